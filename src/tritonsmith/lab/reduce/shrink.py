"""Delta debugging: a search for something smaller that stays interesting, IR or a kernel's source.

Several candidates are tested at once, as if all before them failed, which most do. The first interesting one
in their order is taken, so the result depends neither on which test ends first nor on how many run. Whatever
has nothing else to do tests what would follow a candidate whose test goes on: a compiler refuses most of what
is not interesting long before it has compiled what is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from tritonsmith.core.plan import digest
from tritonsmith.lab.journal import UNNEEDED, Observation, Verdict

C = TypeVar("C", bound=Hashable)
T = TypeVar("T", bound=Hashable)
A = TypeVar("A")

_ROUNDS = 8  # most tests of each of the jobs in one request
_ROW = 2  # successes after which the next candidate is tested as if it was one


class OutOfTimeError(Exception):
    """The time limit is reached."""


@dataclass(frozen=True)
class DeltaCandidate(Generic[C]):
    """Something smaller, which the journal knows by its digest."""

    # Not in the journal: a search that is resumed makes the same candidates again, in the same order.
    content: C
    # What the search would ask for if it took this one.
    following: Callable[[], Iterator[C]] = field(default=lambda: iter(()), compare=False)

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
        self._row = 0  # interesting candidates, one after the other

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
        while (yield from self._first(candidates(self.best), lambda _, taken: candidates(taken))) is not None:
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
        rest = _Chunks[T]([], list(items), len(items), 0, others or _others)
        while rest.size and rest.left:
            rest, changed = replace(rest, at=0), False
            while rest.at < len(rest.left):
                candidates = map(make, rest.removals())
                follow = partial(_following, make, rest)
                hit = yield from self._first(candidates, follow)
                if hit is None:
                    break
                rest, changed = rest.after(hit), True
            # Single items are tried until none of them goes, as one may have held another.
            if rest.size > 1:
                rest = replace(rest, size=min(rest.size // 2, max(len(rest.left), 1)))
            elif not changed:
                break
        return bool(rest.gone)

    def _first(
        self,
        candidates: Iterable[C | None],
        follow: Callable[[int, C], Iterable[C | None]] = lambda _number, _taken: (),
    ) -> Part[C, int | None]:
        """Take the first candidate that is smaller and interesting; return its place, or None.

        Args:
            candidates: the candidates.
            follow: returns what is asked for next if a candidate is taken, by its place and content.
        """
        coming = iter(enumerate(candidates))
        # After a row of successes the next one is likely to be one, too: the other jobs then test what comes
        # after it, and not what comes if it fails.
        count = 1 if self._row >= _ROW else self._jobs
        while batch := list(self._next(coming, count)):
            new = [content for content in dict.fromkeys(c for _, c in batch) if content not in self._answers]
            places = {content: number for number, content in reversed(batch)}
            request = [
                DeltaCandidate(content, partial(self._ahead, follow, places[content], content))
                for content in new
            ]
            observations = (yield request) if request else ()
            for content, observation in zip(new, observations, strict=True):
                if observation is not UNNEEDED:
                    self._answers[content] = observation.verdict is Verdict.BAD
                    self.tried += 1
            # A row of failures is likely to go on, and all jobs wait for the last test of a request. A single
            # job waits for none, and would make candidates that are not needed.
            count = min(2 * count, _ROUNDS * self._jobs) if self._jobs > 1 else 1
            for number, content in batch:
                self._row = self._row + 1 if self._answers[content] else 0
                if self._row:
                    self.best, self._size = content, self._size_of(content)
                    self._on_better(content, self.tried)
                    return number
        return None

    def _ahead(self, follow: Callable[[int, C], Iterable[C | None]], number: int, taken: C) -> Iterator[C]:
        """Yield what is asked for if a candidate is taken, but for what is known."""
        size = self._size_of(taken)
        for content in follow(number, taken):
            if content is not None and content not in self._answers and self._size_of(content) < size:
                yield content

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


@dataclass(frozen=True)
class _Chunks(Generic[T]):
    """A state of `_delta`.

    Attributes:
        gone: items that were removed.
        left: the others.
        size: of a chunk.
        at: place in `left` of the first chunk to try.
        others: see `_delta`.
    """

    gone: list[T]
    left: list[T]
    size: int
    at: int
    others: Callable[[Sequence[T], Sequence[T]], list[T]]

    def removals(self) -> Iterator[list[T]]:
        """Yield what is gone if a chunk goes, one chunk after the other."""
        for begin in range(self.at, len(self.left), self.size):
            yield [*self.gone, *self.left[begin : begin + self.size]]

    def after(self, hit: int) -> _Chunks[T]:
        """Return the state after the removal of a chunk, by its place."""
        begin = self.at + hit * self.size
        gone = [*self.gone, *self.left[begin : begin + self.size]]
        # Not from the start: the chunks before this one were tried, and most still cannot go.
        before = self.others(self.left[:begin], gone)
        return replace(self, gone=gone, left=[*before, *self.others(self.left[begin:], gone)], at=len(before))


def _following(
    make: Callable[[Sequence[T]], C | None], rest: _Chunks[T], hit: int, _taken: C
) -> Iterator[C | None]:
    return map(make, rest.after(hit).removals())


def _others(items: Sequence[T], gone: Sequence[T]) -> list[T]:
    cut = set(gone)
    return [item for item in items if item not in cut]


class _Tests(Generic[C]):
    """Tests of candidates, several at once.

    Args:
        ask: tests one candidate.
        jobs: number of candidates that are tested at once.
    """

    def __init__(self, ask: Callable[[C], Observation], jobs: int) -> None:
        self._ask, self._jobs = ask, jobs
        # Threads do: each of them waits for a process.
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")
        # Tests whose result nobody has taken: a search that takes a candidate does not wait for the others.
        self._begun: dict[C, Future[Observation]] = {}
        self._followed: DeltaCandidate[C] | None = None
        self._following: Iterator[C] = iter(())

    def several(self, candidates: Sequence[DeltaCandidate[C]]) -> Iterator[tuple[int, Observation]]:
        """Test candidates, and yield their places with observations as they come."""
        contents = [candidate.content for candidate in candidates]
        for content in self._begun.keys() - set(contents):
            if self._begun[content].cancel():
                del self._begun[content]
        for content in contents:
            self._begin(content)
        places = {self._begun[content]: place for place, content in enumerate(contents)}
        while places:
            # The first one that still runs is taken if it is interesting, whatever comes of those after it.
            self._look_ahead(candidates[min(places.values())])
            # As they come: one that has ended is in the journal, however long the one before it takes.
            waited_for = places.keys() | {future for future in self._begun.values() if not future.done()}
            for future in wait(waited_for, return_when=FIRST_COMPLETED).done & places.keys():
                place = places.pop(future)
                del self._begun[contents[place]]
                yield place, future.result()

    def close(self) -> None:
        """Wait for the tests that have begun."""
        self._threads.shutdown(cancel_futures=True)

    def _begin(self, content: C) -> None:
        if content not in self._begun:
            self._begun[content] = self._threads.submit(self._ask, content)

    def _look_ahead(self, candidate: DeltaCandidate[C]) -> None:
        """Begin tests of what follows a candidate that is being tested, while a thread has nothing to do."""
        if candidate is not self._followed:
            self._followed, self._following = candidate, candidate.following()
        test = self._begun[candidate.content]
        while not test.done() and sum(not each.done() for each in self._begun.values()) < self._jobs:
            content = next(self._following, None)
            if content is None:
                return
            self._begin(content)


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
    tests = _Tests(ask, jobs)

    def several(candidates: Sequence[DeltaCandidate[C]]) -> Iterator[tuple[int, Observation]]:
        if candidates and time.monotonic() > until:
            raise OutOfTimeError
        yield from tests.several(candidates)

    try:
        yield several
    finally:
        tests.close()
