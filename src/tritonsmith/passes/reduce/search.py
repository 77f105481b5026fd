"""The search: candidates are tested several at a time, and the first good one in their order is taken.

So the result does not depend on which answer comes first. A candidate counts only if it is smaller.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tritonsmith.passes.reduce.ir_text import IrText, parse
from tritonsmith.passes.reduce.reductions import attributes, control_flow, loops
from tritonsmith.passes.reduce.reductions.operations import Cutter

T = TypeVar("T", bound=Hashable)


class OutOfTimeError(Exception):
    """The time limit is reached."""


@dataclass(frozen=True, order=True)
class Size:
    """How large a text is; fewer operations are smaller, whatever the rest.

    Attributes:
        ops: operations, modules and functions aside.
        size: bytes.
        lines: number of them.
    """

    ops: int
    size: int
    lines: int


def size_of(text: str) -> Size:
    """How large a text is."""
    return Size(parse(text).count(), len(text.encode()), len(text.splitlines()))


class Search:
    """Shrinks a text while it stays interesting.

    Args:
        text: that is interesting.
        interesting: whether a text is; called from several threads at once.
        jobs: how many.
        until: `time.monotonic()` at which to stop.
        on_better: called with each text that is better than the last.

    Attributes:
        best: the smallest so far.
        tried: candidates that were asked for.
    """

    def __init__(
        self,
        text: str,
        interesting: Callable[[str], bool],
        *,
        jobs: int = 1,
        until: float = float("inf"),
        on_better: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        self.best, self.tried = text, 0
        self._size = size_of(text)
        self._interesting, self._jobs, self._until = interesting, jobs, until
        self._on_better = on_better
        self._refused: set[str] = set()
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")

    def run(self) -> str:
        """Try everything, until nothing makes it smaller.

        Returns:
            The best.

        Raises:
            OutOfTimeError: before that.
        """
        moves: tuple[Callable[[], bool], ...] = (
            self._functions,
            self._cut,
            partial(self._repeat, loops.unwrapped),
            partial(self._repeat, control_flow.straighter),
            partial(self._repeat, control_flow.merged),
            partial(self._without, control_flow.parameters, control_flow.without),
            partial(self._repeat, loops.lighter),
            partial(self._repeat, lambda source: [attributes.without_aliases(source)]),
            partial(self._without, attributes.unused_arguments, attributes.without),
            partial(self._without, attributes.attributes, attributes.without),
        )
        changed = True
        while changed:
            changed = False
            for move in moves:
                changed = move() or changed
        return self.best

    def close(self) -> None:
        """Ask for nothing more, and wait for what was asked."""
        self._pool.shutdown(cancel_futures=True)

    def accept(self, text: str) -> bool:
        """Accept a text from another tool, if it is smaller and interesting."""
        return self._first([text]) is not None

    # ------------------------------------------------------------ moves

    def _functions(self) -> bool:
        """Whole functions."""
        cutter = Cutter(parse(self.best))
        return self._delta([op for op in cutter.items if op.function], cutter.cut, cutter.left)

    def _cut(self) -> bool:
        """Operations, users first."""
        cutter = Cutter(parse(self.best))
        return self._delta(list(reversed(cutter.items)), cutter.cut, cutter.left)

    def _without(
        self,
        find: Callable[[IrText], Sequence[T]],
        without: Callable[[IrText, Sequence[T]], str | None],
    ) -> bool:
        """Things that go alone or together."""
        source = parse(self.best)
        return self._delta(find(source), partial(without, source), _others)

    # ------------------------------------------------------------ how they are tried

    def _repeat(self, candidates: Callable[[IrText], Iterable[str]]) -> bool:
        """Single changes, again from the start after each that is taken."""
        changed = False
        while self._first(candidates(parse(self.best))) is not None:
            changed = True
        return changed

    def _delta(
        self,
        items: Sequence[T],
        make: Callable[[Sequence[T]], str | None],
        others: Callable[[Sequence[T], Sequence[T]], list[T]],
    ) -> bool:
        """Delta debugging: chunks of items, all of them first, then ever smaller ones, single ones at last.

        `make` gives the text without some items, or None; `others` gives the items that are left.
        """
        gone: list[T] = []
        left = list(items)
        size = len(left)
        while size and left:
            at, changed = 0, False
            while at < len(left):
                chunks = [left[begin : begin + size] for begin in range(at, len(left), size)]
                hit = self._first(make([*gone, *chunk]) for chunk in chunks)
                if hit is None:
                    break
                gone += chunks[hit]
                done = at + hit * size
                before = others(left[:done], gone)
                left = [*before, *others(left[done:], gone)]
                at, changed = len(before), True
            if size > 1:
                size = min(size // 2, max(len(left), 1))
            elif not changed:
                break
        return bool(gone)

    def _first(self, candidates: Iterable[str | None]) -> int | None:
        """Take the first candidate that is smaller and interesting; its place, or None."""
        waiting: deque[tuple[int, str, Future[bool]]] = deque()
        coming = enumerate(candidates)
        while True:
            while len(waiting) < self._jobs and (one := next(coming, None)):
                number, text = one
                if text is None or text in self._refused or not size_of(text) < self._size:
                    continue
                self.tried += 1
                waiting.append((number, text, self._pool.submit(self._interesting, text)))
            if not waiting:
                return None
            if time.monotonic() > self._until:
                raise OutOfTimeError
            number, text, answer = waiting.popleft()
            if answer.result():
                self.best, self._size = text, size_of(text)
                self._on_better(text, self.tried)
                return number
            self._refused.add(text)


def _others(items: Sequence[T], gone: Sequence[T]) -> list[T]:
    cut = set(gone)
    return [one for one in items if one not in cut]
