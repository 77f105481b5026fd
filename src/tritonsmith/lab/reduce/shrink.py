"""Delta debugging: a search for something smaller that stays interesting, IR or a kernel's source.

Several candidates are tested at once, as if all before them failed, which most do. The first interesting one
in their order is taken, so the result depends neither on which test ends first nor on how many run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tritonsmith.core.plan import digest
from tritonsmith.lab.journal import UNNEEDED, Observation, Verdict

C = TypeVar("C", bound=Hashable)
T = TypeVar("T", bound=Hashable)
A = TypeVar("A")

_ROUNDS = 8  # most tests of each of the jobs in one request


class OutOfTimeError(Exception):
    """The time limit is reached."""


@dataclass(frozen=True)
class DeltaCandidate(Generic[C]):
    """Something smaller, which the journal knows by its digest."""

    # Not in the journal: a search that is resumed makes the same candidates again, in the same order.
    content: C

    @property
    def name(self) -> str:
        """The digest of its content."""
        return digest(self.content)


# Part of a search, with a result of its own: see `experiment.Search`.
Part = Generator[Sequence[DeltaCandidate[C]], Sequence[Observation], A]


class DeltaSearch(Generic[C]):
    """Shrinks something while it stays interesting, as a search of `experiment.run` with `first`.

    Args:
        start: an interesting candidate.
        size_of: returns the size of a candidate, a value that can be compared.
        jobs: number of candidates that are tested at once.
        on_better: called with each smaller candidate, and the number of tries.

    Attributes:
        best: the smallest interesting candidate so far.
        tried: number of candidates that were tested.
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
        # These are kept for the whole search: moves reach the same text in several ways, and a test may take
        # seconds.
        self._answers: dict[C, bool] = {}

    def moves(self) -> Sequence[Callable[[], Part[C, bool]]]:
        """Return the searches that shrink the candidate, in order; each reports whether it did."""
        raise NotImplementedError

    def search(self) -> Part[C, C]:
        """Try everything, until nothing makes it smaller; return the best."""
        # One move makes room for another: an operation may go only once its attribute is gone.
        changed = True
        while changed:
            changed = False
            for move in self.moves():
                changed = (yield from move()) or changed
        return self.best

    def accept(self, candidate: C) -> Part[C, bool]:
        """Accept the candidate of another reducer, if it is smaller and interesting."""
        return (yield from self._first([candidate])) is not None

    def _repeat(self, candidates: Callable[[C], Iterable[C | None]]) -> Part[C, bool]:
        """Make single changes, again from the start after each that is taken."""
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
        """Remove chunks of items, all of them first, then ever smaller ones, single ones at last.

        Args:
            items: the items that can go.
            make: returns the candidate without some items, or None if there is none.
            others: returns which of some items are left when others are gone; by default all but those.
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
                # Not from the start: the chunks before this one were tried, and most still cannot go.
                before = others(left[:done], gone)
                left = [*before, *others(left[done:], gone)]
                at, changed = len(before), True
            # Single items are tried until none of them goes, as one may have held another.
            if size > 1:
                size = min(size // 2, max(len(left), 1))
            elif not changed:
                break
        return bool(gone)

    def _first(self, candidates: Iterable[C | None]) -> Part[C, int | None]:
        """Take the first candidate that is smaller and interesting; return its place, or None."""
        coming = iter(enumerate(candidates))
        count = self._jobs
        while batch := list(self._next(coming, count)):
            new = [content for content in dict.fromkeys(c for _, c in batch) if content not in self._answers]
            observations = (yield [DeltaCandidate(content) for content in new]) if new else ()
            for content, observation in zip(new, observations, strict=True):
                if observation is not UNNEEDED:
                    self._answers[content] = observation.verdict is Verdict.BAD
                    self.tried += 1
            # A row of failures is likely to go on, and all jobs wait for the last test of a request. A single
            # job waits for none, and would make candidates that are not needed.
            count = min(2 * count, _ROUNDS * self._jobs) if self._jobs > 1 else 1
            for number, content in batch:
                if self._answers[content]:
                    self.best, self._size = content, self._size_of(content)
                    self._on_better(content, self.tried)
                    return number
        return None

    def _next(self, coming: Iterator[tuple[int, C | None]], most: int) -> Iterator[tuple[int, C]]:
        """Take the candidates of one request, without those that are known to be uninteresting."""
        count = 0
        for number, content in coming:
            # A candidate may be known to be interesting from an earlier batch: then none after it is tested.
            if content is None or not self._answers.get(content, True):
                continue
            if not self._size_of(content) < self._size:
                continue
            yield number, content
            count += 1
            if count == most or content in self._answers:
                return


def _others(items: Sequence[T], gone: Sequence[T]) -> list[T]:
    cut = set(gone)
    return [item for item in items if item not in cut]


@contextmanager
def asking(
    ask: Callable[[C], Observation], jobs: int, until: float = float("inf")
) -> Iterator[Callable[[Sequence[DeltaCandidate[C]]], Iterator[tuple[int, Observation]]]]:
    """Yield a test for `experiment.run` that tests several candidates at once.

    Args:
        ask: tests one candidate.
        jobs: number of candidates that are tested at once.
        until: `time.monotonic()` after which it raises `OutOfTimeError`.
    """
    # Threads do: each of them waits for a process.
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")
    # Tests whose result nobody has taken: a search that takes a candidate does not wait for those after it.
    begun: dict[C, Future[Observation]] = {}

    def several(candidates: Sequence[DeltaCandidate[C]]) -> Iterator[tuple[int, Observation]]:
        if candidates and time.monotonic() > until:
            raise OutOfTimeError
        contents = [candidate.content for candidate in candidates]
        for content in begun.keys() - set(contents):
            if begun[content].cancel():
                del begun[content]
        for content in contents:
            if content not in begun:
                begun[content] = pool.submit(ask, content)
        places = {begun[content]: place for place, content in enumerate(contents)}
        # As they come: one that has ended is in the journal, however long the one before it takes.
        for future in as_completed(places):
            place = places[future]
            del begun[contents[place]]
            yield place, future.result()

    try:
        yield several
    finally:
        pool.shutdown(cancel_futures=True)
