"""A search for something smaller that stays interesting; several candidates are tested at a time.

The first good one in their order is taken, so the result does not depend on which answer comes first. A
candidate counts only if it is smaller. What is made small, IR or a kernel's source, is a subclass's matter.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

C = TypeVar("C", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class OutOfTimeError(Exception):
    """The time limit is reached."""


class DeltaSearch(Generic[C]):
    """Shrinks something while it stays interesting.

    Args:
        start: that is interesting.
        interesting: whether a candidate is; called from several threads at once.
        size_of: how large a candidate is, something that can be compared.
        jobs: how many.
        until: `time.monotonic()` at which to stop.
        on_better: called with each candidate that is better than the last.

    Attributes:
        best: the smallest so far.
        tried: candidates that were asked for.
    """

    def __init__(
        self,
        start: C,
        interesting: Callable[[C], bool],
        size_of: Callable[[C], Any],
        *,
        jobs: int = 1,
        until: float = float("inf"),
        on_better: Callable[[C, int], None] = lambda *_: None,
    ) -> None:
        self.best, self.tried = start, 0
        self._size_of, self._size = size_of, size_of(start)
        self._interesting, self._jobs, self._until = interesting, jobs, until
        self._on_better = on_better
        self._refused: set[C] = set()
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")

    def moves(self) -> Sequence[Callable[[], bool]]:
        """What makes it smaller, in order; each says whether it did."""
        raise NotImplementedError

    def run(self) -> C:
        """Try everything, until nothing makes it smaller.

        Returns:
            The best.

        Raises:
            OutOfTimeError: before that.
        """
        changed = True
        while changed:
            changed = False
            for move in self.moves():
                changed = move() or changed
        return self.best

    def close(self) -> None:
        """Ask for nothing more, and wait for what was asked."""
        self._pool.shutdown(cancel_futures=True)

    def accept(self, candidate: C) -> bool:
        """Accept what somebody else made, if it is smaller and interesting."""
        return self._first([candidate]) is not None

    def _repeat(self, candidates: Callable[[C], Iterable[C | None]]) -> bool:
        """Single changes, again from the start after each that is taken."""
        changed = False
        while self._first(candidates(self.best)) is not None:
            changed = True
        return changed

    def _delta(
        self,
        items: Sequence[T],
        make: Callable[[Sequence[T]], C | None],
        others: Callable[[Sequence[T], Sequence[T]], list[T]] | None = None,
    ) -> bool:
        """Delta debugging: chunks of items, all of them first, then ever smaller ones, single ones at last.

        `make` gives what is left without some items, or None; `others` gives the items that are left, those
        that are not among them if it is not given.
        """
        others = others or _others
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

    def _first(self, candidates: Iterable[C | None]) -> int | None:
        """Take the first candidate that is smaller and interesting; its place, or None."""
        waiting: deque[tuple[int, C, Future[bool]]] = deque()
        coming = enumerate(candidates)
        while True:
            while len(waiting) < self._jobs and (one := next(coming, None)):
                number, candidate = one
                if candidate is None or candidate in self._refused:
                    continue
                if not self._size_of(candidate) < self._size:
                    continue
                self.tried += 1
                waiting.append((number, candidate, self._pool.submit(self._interesting, candidate)))
            if not waiting:
                return None
            if time.monotonic() > self._until:
                raise OutOfTimeError
            number, candidate, answer = waiting.popleft()
            if answer.result():
                self.best, self._size = candidate, self._size_of(candidate)
                self._on_better(candidate, self.tried)
                return number
            self._refused.add(candidate)


def _others(items: Sequence[T], gone: Sequence[T]) -> list[T]:
    cut = set(gone)
    return [one for one in items if one not in cut]
