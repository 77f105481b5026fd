"""A search for something smaller that stays interesting; several candidates are tested at a time.

The first good one in their order is taken, so the result does not depend on which answer comes first. A
candidate counts only if it is smaller. What is made small, IR or a kernel's source, is a subclass's matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tritonsmith.core.plan import digest
from tritonsmith.lab.model import Observation, Verdict

C = TypeVar("C", bound=Hashable)
T = TypeVar("T", bound=Hashable)
A = TypeVar("A")


class OutOfTimeError(Exception):
    """The time limit is reached."""


@dataclass(frozen=True)
class DeltaCandidate(Generic[C]):
    """Something smaller, which the journal knows by its digest: to resume, its content is made again."""

    content: C

    @property
    def name(self) -> str:
        """The digest of its content."""
        return digest(self.content)


# Part of a search, with an answer of its own: see `experiment.Search`.
Part = Generator[Sequence[DeltaCandidate[C]], Sequence[Observation], A]


class DeltaSearch(Generic[C]):
    """Shrinks something while it stays interesting, as a search of `experiment.run`.

    Args:
        start: that is interesting.
        size_of: how large a candidate is, something that can be compared.
        jobs: how many candidates are asked for at once.
        on_better: called with each candidate that is better than the last.

    Attributes:
        best: the smallest so far.
        tried: candidates that were asked for.
    """

    def __init__(
        self,
        start: C,
        size_of: Callable[[C], Any],
        *,
        jobs: int = 1,
        on_better: Callable[[C, int], None] = lambda *_: None,
    ) -> None:
        self.best, self.tried = start, 0
        self._size_of, self._size = size_of, size_of(start)
        self._jobs, self._on_better = jobs, on_better
        self._answers: dict[C, bool] = {}

    def moves(self) -> Sequence[Callable[[], Part[C, bool]]]:
        """Return the searches that shrink the candidate, in order; each reports whether it did."""
        raise NotImplementedError

    def search(self) -> Part[C, C]:
        """Try everything, until nothing makes it smaller; return the best."""
        changed = True
        while changed:
            changed = False
            for move in self.moves():
                changed = (yield from move()) or changed
        return self.best

    def accept(self, candidate: C) -> Part[C, bool]:
        """Accept what somebody else made, if it is smaller and interesting."""
        return (yield from self._first([candidate])) is not None

    def _repeat(self, candidates: Callable[[C], Iterable[C | None]]) -> Part[C, bool]:
        """Single changes, again from the start after each that is taken."""
        changed = False
        while (yield from self._first(candidates(self.best))) is not None:
            changed = True
        return changed

    def _delta(
        self,
        items: Sequence[T],
        make: Callable[[Sequence[T]], C | None],
        others: Callable[[Sequence[T], Sequence[T]], list[T]] | None = None,
    ) -> Part[C, bool]:
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
                hit = yield from self._first(make([*gone, *chunk]) for chunk in chunks)
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

    def _first(self, candidates: Iterable[C | None]) -> Part[C, int | None]:
        """Take the first candidate that is smaller and interesting; its place, or None."""
        coming = iter(enumerate(candidates))
        while batch := list(self._next(coming)):
            new = [content for content in dict.fromkeys(c for _, c in batch) if content not in self._answers]
            self.tried += len(new)
            observations = (yield [DeltaCandidate(content) for content in new]) if new else ()
            answers = (observation.verdict is Verdict.BAD for observation in observations)
            self._answers.update(zip(new, answers, strict=True))
            for number, content in batch:
                if self._answers[content]:
                    self.best, self._size = content, self._size_of(content)
                    self._on_better(content, self.tried)
                    return number
        return None

    def _next(self, coming: Iterator[tuple[int, C | None]]) -> Iterator[tuple[int, C]]:
        """Take as many candidates as are asked for at once, those with a known refusal left out."""
        asked_for = 0
        for number, content in coming:
            # Candidates that came after a good one may be known to be good, too; then no other is asked for.
            if content is None or not self._answers.get(content, True):
                continue
            if not self._size_of(content) < self._size:
                continue
            yield number, content
            asked_for += 1
            if asked_for == self._jobs or content in self._answers:
                return


def _others(items: Sequence[T], gone: Sequence[T]) -> list[T]:
    cut = set(gone)
    return [item for item in items if item not in cut]


@contextmanager
def asking(
    ask: Callable[[C], Observation], jobs: int, until: float = float("inf")
) -> Iterator[Callable[[Sequence[DeltaCandidate[C]]], Iterator[Observation]]]:
    """Yield the test of `experiment.run`, which asks in threads.

    Args:
        ask: tests one candidate.
        jobs: how many at once.
        until: `time.monotonic()` after which it raises `OutOfTimeError`.
    """
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")

    def several(candidates: Sequence[DeltaCandidate[C]]) -> Iterator[Observation]:
        if candidates and time.monotonic() > until:
            raise OutOfTimeError
        yield from pool.map(ask, [candidate.content for candidate in candidates])

    try:
        yield several
    finally:
        pool.shutdown(cancel_futures=True)
