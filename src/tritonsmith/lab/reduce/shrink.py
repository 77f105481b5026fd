"""Delta debugging: a search for something smaller that stays interesting, IR or a kernel's source.

Several candidates are tested at once, and the first interesting one in their order is taken, so the result
depends neither on which test ends first nor on how many run. While the first one is tested, other jobs test
what comes next: if it is not taken, or if it is. The last tests that took as long decide which is likelier,
since a compiler refuses most of what is not interesting long before it has compiled what is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, tee
from typing import Any, Generic, TypeVar

from tritonsmith.core.plan import digest
from tritonsmith.lab.journal import UNNEEDED, Observation, Verdict

C = TypeVar("C", bound=Hashable)
T = TypeVar("T", bound=Hashable)
A = TypeVar("A")

_ROUNDS = 8  # most tests of each of the jobs in one request
_PAST = 100  # tests that are remembered
_LIKE = 3  # how many of them decide what a test will show: the last that took longer than it has so far


class OutOfTimeError(Exception):
    """The time limit is reached."""


@dataclass(frozen=True)
class DeltaCandidate(Generic[C]):
    """Something smaller, which the journal knows by its digest."""

    # Not in the journal: a search that is resumed makes the same candidates again, in the same order.
    content: C
    # What the search asks for next if it takes this one, in this move and in later ones, and if it does not;
    # None for what is known.
    if_taken: Callable[[], Iterator[C | None]] = field(default=lambda: iter(()), compare=False)
    afterwards: Callable[[], Iterator[C | None]] = field(default=lambda: iter(()), compare=False)
    if_not: Callable[[], Iterator[C | None]] = field(default=lambda: iter(()), compare=False)

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
        answers: whether a candidate is interesting, of those that were tested.
        on_better: see above.
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
        self._jobs, self.on_better = jobs, on_better
        # These are kept for the whole search: moves reach the same text in several ways, and a test may take
        # seconds.
        self.answers: dict[C, bool] = {}
        self._move = 0  # the number of the move that is made

    def moves(self) -> Sequence[Callable[[], Part[C, bool]]]:
        """Return the searches that shrink the candidate, in order; each reports whether it did."""
        raise NotImplementedError

    def search(self) -> Part[C, C]:
        """Try everything, until nothing makes it smaller; return the best."""
        # One move makes room for another: an operation may go only once its attribute is gone.
        changed = True
        while changed:
            changed = False
            for number, move in enumerate(self.moves()):
                self._move = number
                changed = (yield from move()) or changed
        return self.best

    def coming(self) -> Iterator[C | None]:
        """Yield what the search asks for first if nothing is taken, and None for what is known."""
        return self._later(self.best, 0)

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
            follow: returns what this move asks for next if a candidate is taken, by its place and content.
        """
        coming: Iterator[tuple[int, C | None]] = enumerate(candidates)
        count = self._jobs
        while batch := list(self._next(coming, count)):
            new = [content for content in dict.fromkeys(c for _, c in batch) if content not in self.answers]
            places = {content: number for number, content in reversed(batch)}
            coming, later = tee(coming)
            request = [
                DeltaCandidate(
                    content,
                    partial(self._after, follow, places[content], content),
                    partial(self._later, content, self._move + 1),
                    partial(self._instead, later),
                )
                for content in new
            ]
            observations = (yield request) if request else ()
            for content, observation in zip(new, observations, strict=True):
                if observation is not UNNEEDED:
                    self.answers[content] = observation.verdict is Verdict.BAD
                    self.tried += 1
            # A row of failures is likely to go on, and what is asked for is in the journal once it is tested.
            # A single job would make candidates that are not needed.
            count = min(2 * count, _ROUNDS * self._jobs) if self._jobs > 1 else 1
            for number, content in batch:
                if self.answers[content]:
                    self.best, self._size = content, self._size_of(content)
                    self.on_better(content, self.tried)
                    return number
        return None

    def _after(
        self, follow: Callable[[int, C], Iterable[C | None]], number: int, taken: C
    ) -> Iterator[C | None]:
        """Yield what this move asks for if a candidate is taken, and nothing after it."""
        yield from self._unknown(follow(number, taken), taken)

    def _instead(self, rest: Iterator[tuple[int, C | None]]) -> Iterator[C | None]:
        """Yield what is asked for if nothing is taken: the rest, smaller parts in this move, later moves."""
        yield from self._unknown((content for _, content in copy(rest)), self.best)
        yield from self._later(self.best, self._move)

    def _later(self, best: C, begin: int) -> Iterator[C | None]:
        """Yield what the moves from a number on ask for if they take nothing."""
        # Not the next round: by then, something else may have been taken (measured: docs/performance.md).
        other = copy(self)
        # Without the answers, and one by one, so that it comes back after each, whether it is known or not.
        vars(other).update(
            best=best, _size=self._size_of(best), _jobs=1, answers={}, on_better=lambda *_: None
        )
        for move in other.moves()[begin:]:
            part = move()
            with suppress(StopIteration):
                request = next(part)
                while True:
                    yield from self._unknown((each.content for each in request), best)
                    request = part.send([Observation(Verdict.GOOD)] * len(request))

    def _unknown(self, contents: Iterable[C | None], best: C) -> Iterator[C | None]:
        """Yield the candidates that are not known and smaller than the best, and None for each other one."""
        size = self._size_of(best)
        for content in contents:
            fits = content is not None and content not in self.answers and self._size_of(content) < size
            yield content if fits else None

    def _next(self, coming: Iterator[tuple[int, C | None]], most: int) -> Iterator[tuple[int, C]]:
        """Take the candidates of one request, without those that are known to be uninteresting."""
        count = 0
        for number, content in coming:
            # A candidate may be known to be interesting from an earlier batch: then none after it is tested.
            if content is None or not self.answers.get(content, True):
                continue
            if not self._size_of(content) < self._size:
                continue
            yield number, content
            count += 1
            if count == most or content in self.answers:
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


@dataclass(eq=False)
class PendingTest:
    """A test that goes on, as it sees itself.

    Attributes:
        is_unneeded: returns whether it is likely that nobody needs its result. A test that therefore ends
            early returns `UNNEEDED`, and begins anew if its result is needed after all.
        likely: whether it is likely that the candidate is interesting; set by the test.
    """

    is_unneeded: Callable[[], bool] = lambda: False
    likely: bool = False


@dataclass(frozen=True)
class _Begun:
    """A test that has begun, as others see it.

    Attributes:
        began: `time.monotonic()`.
        pending: the test.
        answer: of the test.
        follows: the test that has to show something interesting before anybody needs this one; None for none.
    """

    began: float
    pending: PendingTest
    answer: Future[Observation]
    follows: _Begun | None

    def is_likely(self) -> bool:
        """Report whether the candidate is interesting, or seems to be while the test goes on."""
        if not self.answer.done():
            return self.pending.likely
        return self.answer.exception() is None and self.answer.result().verdict is Verdict.BAD


class _Tests(Generic[C]):
    """Tests of candidates, several at once.

    Args:
        ask: tests one candidate.
        jobs: number of candidates that are tested at once.
    """

    def __init__(self, ask: Callable[[C, PendingTest], Observation], jobs: int) -> None:
        self._ask, self._jobs = ask, jobs
        # Threads do: each of them waits for a process.
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")
        # Tests whose result nobody has taken: a search that takes a candidate does not wait for the others.
        self._begun: dict[C, _Begun] = {}
        self._past: deque[tuple[float, bool]] = deque(maxlen=_PAST)  # seconds, and whether it was interesting
        self._first: DeltaCandidate[C] | None = None
        self._first_test: _Begun | None = None
        self._if_taken: Iterator[C | None] = iter(())
        self._afterwards: Iterator[C | None] = iter(())
        self._if_not: Iterator[C | None] = iter(())

    def several(self, candidates: Sequence[DeltaCandidate[C]]) -> Iterator[tuple[int, Observation]]:
        """Test candidates, and yield their places with observations as they come."""
        left = {candidate.content: place for place, candidate in enumerate(candidates)}
        over: set[C] = set()  # the search hears of them with the others
        while left:
            self._begin_some([candidate for candidate in candidates if candidate.content in left], over)
            # As they come: one that has ended is in the journal, however long the one before it takes.
            contents = {self._begun[content].answer: content for content in left if content in self._begun}
            running = {test.answer for test in self._begun.values() if not test.answer.done()}
            ended = wait(contents.keys() | running, return_when=FIRST_COMPLETED).done
            for answer in ended & contents.keys():
                test = self._begun.pop(contents[answer])
                if test is self._first_test and test.is_likely():
                    self._drop_all_but(test)
                if answer.result() is not UNNEEDED:
                    over.add(contents[answer])
                    yield left.pop(contents[answer]), answer.result()

    def close(self) -> None:
        """Wait for the tests that have begun."""
        self._threads.shutdown()

    def _drop_all_but(self, taken: _Begun) -> None:
        """End the tests of what does not follow the candidate that is taken."""
        for test in self._begun.values():
            if test.follows is not taken:
                test.pending.is_unneeded = lambda: True

    def _begin_some(self, candidates: Sequence[DeltaCandidate[C]], over: Collection[C]) -> None:
        """Begin tests while a thread has nothing to do, and what the first one shows is not known."""
        # The first one that still runs is taken if it is interesting, whatever comes of those after it.
        first, *others = candidates
        if first is not self._first:
            self._first, self._if_taken, self._if_not = first, first.if_taken(), first.if_not()
            self._afterwards = first.afterwards()
        self._first_test = None  # it may be one that was taken
        if first.content not in self._begun:
            self._begin(first.content)
        self._first_test = test = self._begun[first.content]
        contents = [candidate.content for candidate in others]
        while self._is_free() and not self._any_over(candidates):
            if_not = ((content, None) for content in chain(contents, self._if_not))
            if_taken = ((content, test) for content in self._if_taken)
            afterwards = ((content, test) for content in self._afterwards)
            # Last, as it supposes the most: that this one is taken, and no other one of its move.
            near = chain(if_taken, if_not) if self._seems_likely(test) else chain(if_not, if_taken)
            # Where it is likely, what supposes the contrary would end at once.
            coming = chain(if_taken if test.is_likely() else near, afterwards)
            for content, follows in coming:
                # To find out that all of the later moves is known can take as long as the moves.
                if self._any_over(candidates):
                    return
                if content is not None and content not in self._begun and content not in over:
                    self._begin(content, follows)
                    break
            else:
                return

    def _any_over(self, candidates: Iterable[DeltaCandidate[C]]) -> bool:
        tests = (self._begun.get(candidate.content) for candidate in candidates)
        return any(test.answer.done() for test in tests if test)

    def _is_free(self) -> bool:
        return sum(not test.answer.done() for test in self._begun.values()) < self._jobs

    def _begin(self, content: C, follows: _Begun | None = None) -> None:
        pending = PendingTest()
        pending.is_unneeded = partial(self._is_unneeded, pending, follows)
        answer = self._threads.submit(self._timed, content, pending)
        self._begun[content] = _Begun(time.monotonic(), pending, answer, follows)

    def _is_unneeded(self, pending: PendingTest, follows: _Begun | None) -> bool:
        """Report whether a candidate would not be asked for now, as far as is known."""
        if follows and not follows.answer.done():
            return False
        if follows and not follows.is_likely():
            return True
        first = self._first_test
        if first is None or first is follows or first.pending is pending:  # one that is taken is followed
            return False
        return first.is_likely()

    def _seems_likely(self, test: _Begun) -> bool:
        """Report whether most of the last tests that took as long showed something interesting."""
        seconds = time.monotonic() - test.began
        longer = [interesting for took, interesting in self._past.copy() if took > seconds][-_LIKE:]
        return 2 * sum(longer) > len(longer)

    def _timed(self, content: C, pending: PendingTest) -> Observation:
        began = time.monotonic()
        observation = self._ask(content, pending)
        if observation is not UNNEEDED:
            self._past.append((time.monotonic() - began, observation.verdict is Verdict.BAD))
        return observation


@contextmanager
def asking(
    ask: Callable[[C, PendingTest], Observation], jobs: int, until: float = float("inf")
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
