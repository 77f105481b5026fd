"""The search for the first bad candidate of a history: bisection by expected seconds.

Candidates stand in order of history, as numbers from 0. The first one is known to be good and the last one to
be bad, so somewhere between them a bad one follows a good one: the culprit. Plain bisection halves the number
of suspects, however long each test takes. Here a test is worth what it is expected to tell (Shannon's bits)
in a second of its expected time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import log2
from typing import Generic, TypeVar

from tritonsmith.lab.bisect.cost import Costs
from tritonsmith.lab.experiment import Change, Search
from tritonsmith.lab.model import Observation, Verdict

C = TypeVar("C", bound=Change)


@dataclass(frozen=True)
class Suspects:
    """The state of a search after some tests.

    Attributes:
        good: the last good candidate before `bad`.
        bad: the first bad candidate.
        left: candidates between them that have not been tested, in order; none when the search is over.
        skipped: candidates between them that could not be tested.
        contradictions: good candidates after `bad`: the outcome changed more than once in history, or it is
            flaky. `bad` is bad and `good` is good all the same.
    """

    good: int
    bad: int
    left: tuple[int, ...]
    skipped: tuple[int, ...]
    contradictions: tuple[int, ...]

    @property
    def culprits(self) -> range:
        """Candidates of which one is the first bad one: one candidate, or more where some were skipped."""
        return range(self.good + 1, self.bad + 1)


def suspects(count: int, verdicts: Mapping[int, Verdict]) -> Suspects:
    """Return the state of candidates 0 (good) to `count - 1` (bad) after these outcomes of tests.

    Raises:
        ValueError: fewer than two candidates.
    """
    if count < 2:  # noqa: PLR2004 - the two ends
        raise ValueError("a search needs a good and a bad candidate")
    known = {**verdicts, 0: Verdict.GOOD, count - 1: Verdict.BAD}
    bad = min(index for index, verdict in known.items() if verdict is Verdict.BAD)
    goods = [index for index, verdict in known.items() if verdict is Verdict.GOOD]
    good = max(index for index in goods if index < bad)
    between = range(good + 1, bad)
    return Suspects(
        good=good,
        bad=bad,
        left=tuple(index for index in between if index not in known),
        skipped=tuple(index for index in between if index in known),
        contradictions=tuple(sorted(index for index in goods if index > bad)),
    )


def choose(
    state: Suspects,
    cost: Callable[[int], float],
    *,
    jobs: int = 1,
    prior: Sequence[float] | None = None,
    together: Callable[[int, Collection[int]], Collection[int]] = lambda _first, left: left,
) -> tuple[int, ...]:
    """The candidates to test now, the most worthwhile first; none when the search is over.

    Args:
        state: what is known.
        cost: expected seconds of a test of a candidate, as things are now.
        jobs: how many are tested at once; each one is chosen knowing those before.
        prior: how likely each candidate is the culprit, in any unit; equally likely if not given.
        together: the candidates, of these, that can be tested at once with the first one.
    """
    up_to = [0.0, *accumulate(prior or [1.0] * (state.bad + 1))]  # likelihood of all candidates before one
    chosen: list[int] = []
    left: Collection[int] = state.left
    while left and len(chosen) < jobs:
        ends = sorted((state.good, *chosen, state.bad))

        # Several tests at once are worth what they tell together: each splits the part that the ones chosen
        # before leave it in, so that three tests cut a range into quarters and not thrice in the middle.
        def worth(index: int, ends: Sequence[int] = ends) -> float:
            before = max(end for end in ends if end < index)
            after = min(end for end in ends if end > index)
            left, right = up_to[index + 1] - up_to[before + 1], up_to[after + 1] - up_to[index + 1]
            return _testable(state, index) * _bits(left, right) / max(cost(index), _INSTANT)

        chosen.append(max(left, key=worth))
        others = [index for index in left if index not in chosen]
        left = others if len(chosen) > 1 or jobs == 1 else together(chosen[0], others)
    return tuple(chosen)


_INSTANT = 1e-3  # seconds; no test takes less


def _bits(left: float, right: float) -> float:
    """Return the bits of a test that splits a weight in two, times the weight, to compare several."""
    whole = left + right
    return sum(part * log2(whole / part) for part in (left, right) if part > 0)


def _testable(state: Suspects, index: int) -> float:
    """Estimate how likely a candidate can be tested: neighbours of an untestable one often cannot."""
    near = min((abs(index - other) for other in state.skipped), default=0)
    return 1 - 1 / (1 + near) if near else 1.0


@dataclass
class BisectRange(Generic[C]):
    """A part of history that is searched; see `first_bad`.

    Attributes:
        candidates: in order; the first one is good and the last one bad.
        costs: of their tests.
        known: names of candidates that an earlier run has tested, in the order of its tests.
        prior: how likely each candidate is the culprit, in any unit; None for equally likely.
        jobs: candidates tested at once.
        observations: name to observation, of every candidate of the bisect that was asked for; it grows.
    """

    candidates: Sequence[C]
    costs: Costs
    known: Sequence[str] = ()
    prior: Sequence[float] | None = None
    jobs: int = 1
    observations: dict[str, Observation] = field(default_factory=dict)

    @property
    def state(self) -> Suspects:
        """The state now; a candidate that others have shown to be untestable is skipped."""
        verdicts = dict.fromkeys(self.costs.untestable(), Verdict.SKIP)
        verdicts |= {
            index: self.observations[candidate.name].verdict
            for index, candidate in enumerate(self.candidates)
            if candidate.name in self.observations
        }
        return suspects(len(self.candidates), verdicts)

    def next(self) -> tuple[int, ...]:
        """Return the candidates to test now; none when the search is over."""
        return choose(
            self.state,
            lambda index: self.costs.of(index).seconds,
            jobs=self.jobs,
            prior=self.prior,
            together=self.costs.together,
        )

    def ends(self) -> Search[C, tuple[Observation, Observation]]:
        """Ask for the first candidate and the last one."""
        yield from self.ask((0, len(self.candidates) - 1))
        first, last = (self.observations[self.candidates[index].name] for index in (0, -1))
        return first, last

    def ask(self, indices: Iterable[int]) -> Search[C, None]:
        """Ask for candidates, except for those that were asked for before."""
        new = [
            index for index in dict.fromkeys(indices) if self.candidates[index].name not in self.observations
        ]
        if not new:
            return
        for index, observation in zip(new, (yield [self.candidates[index] for index in new]), strict=True):
            name = self.candidates[index].name
            self.observations[name] = observation
            self.costs.learn(index, observation, earlier=name in self.known)


def first_bad(span: BisectRange[C]) -> Search[C, Suspects]:
    """Search until one suspect is left, or only those that cannot be tested.

    First it asks for everything that an earlier run has tested, which costs nothing. A resumed search does
    not have to choose as it did before for that: what was built meanwhile has changed the costs.
    """
    numbers = {candidate.name: index for index, candidate in enumerate(span.candidates)}
    yield from span.ask([numbers[name] for name in span.known if name in numbers])
    while chosen := span.next():
        yield from span.ask(chosen)
    return span.state
