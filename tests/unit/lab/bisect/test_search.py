"""The search against an oracle: the culprit is found, nothing is tested twice, and doubts are named."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.fake_subject import FakeChange, FakeSubject, quiet
from tritonsmith.lab import experiment
from tritonsmith.lab.bisect.search import BisectRange, ExpectedCost, Suspects, choose, first_bad, suspects
from tritonsmith.lab.journal import Journal, Observation, Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


@dataclass(frozen=True)
class FixedCosts:
    """Costs that no test changes."""

    cost: Callable[[int], float]

    def of(self, index: int) -> ExpectedCost:
        return ExpectedCost(self.cost(index), ())

    def learn(self, index: int, observation: Observation, *, earlier: bool) -> None:
        """Nothing."""

    def untestable(self) -> Collection[int]:
        return ()

    def together(self, _first: int, left: Collection[int]) -> Collection[int]:
        return left


def run(
    count: int,
    oracle: Callable[[int], Verdict],
    cost: Callable[[int], float] = lambda _index: 1.0,
    jobs: int = 1,
    known: Mapping[int, Verdict] | None = None,
) -> tuple[Suspects, list[int]]:
    """Search to the end: what is left, and the tests of this run in order."""
    journal = Journal()
    for index, verdict in (known or {}).items():
        journal.observations[str(index)].append(Observation(verdict))
    subject = FakeSubject(lambda name: Observation(oracle(int(name))))

    def test(rows: Sequence[FakeChange]) -> Iterator[Observation]:
        assert len(rows) <= jobs
        return subject.each(rows)

    rows = [FakeChange(str(index)) for index in range(count)]
    span = BisectRange(rows, FixedCosts(cost), [*journal.observations], jobs=jobs)
    end = experiment.run(first_bad(span), test, journal, quiet)
    assert len(subject.tested) == len(set(subject.tested))
    return end, [int(name) for name in subject.tested]


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, list[float], set[int]]:
    """A number of candidates, the culprit, what each test costs, and which cannot be tested."""
    count = draw(st.integers(2, 60))
    culprit = draw(st.integers(1, count - 1))
    costs = draw(st.lists(st.sampled_from([0.0, 0.5, 10.0, 2000.0]), min_size=count, max_size=count))
    return count, culprit, costs, draw(st.sets(st.integers(1, count - 1), max_size=count))


@given(histories(), st.integers(1, 4))
def test_the_culprit_is_found_whatever_tests_cost(
    history: tuple[int, int, list[float], set[int]], jobs: int
) -> None:
    count, culprit, costs, _ = history
    end, tested = run(count, lambda index: BAD if index >= culprit else GOOD, costs.__getitem__, jobs)
    assert list(end.culprits) == [culprit]
    assert len(tested) == len(set(tested))
    assert not end.contradictions


@given(histories(), st.integers(1, 4))
def test_with_skips_the_culprit_is_among_those_left_which_are_no_more_than_needed(
    history: tuple[int, int, list[float], set[int]], jobs: int
) -> None:
    count, culprit, costs, broken = history
    truth = [BAD if index >= culprit else GOOD for index in range(count)]
    end, _ = run(count, lambda index: SKIP if index in broken else truth[index], costs.__getitem__, jobs)
    assert culprit in end.culprits
    assert set(end.culprits) - {end.bad} == set(end.skipped) <= broken


@given(histories(), st.integers(1, 4), st.data())
def test_a_search_that_goes_on_with_what_any_other_has_tested_ends_in_the_same_culprit(
    history: tuple[int, int, list[float], set[int]], jobs: int, data: st.DataObject
) -> None:
    """Costs may have changed meanwhile, so it need not choose those that are known."""
    count, culprit, costs, broken = history
    truth = [SKIP if index in broken else BAD if index >= culprit else GOOD for index in range(count)]
    numbers = data.draw(st.lists(st.integers(0, count - 1), unique=True))
    known = {index: truth[index] for index in numbers}
    end, tested = run(count, truth.__getitem__, costs.__getitem__, jobs, known)
    assert culprit in end.culprits
    assert not {*tested} & {*known}
    assert set(end.culprits) - {end.bad} <= broken


@given(st.lists(st.sampled_from([GOOD, BAD, SKIP]), max_size=40), st.integers(1, 4))
def test_whatever_the_outcomes_a_bad_one_follows_a_good_one(outcomes: list[Verdict], jobs: int) -> None:
    known = [GOOD, *outcomes, BAD]
    end, tested = run(len(known), known.__getitem__, jobs=jobs)
    assert known[end.good] is GOOD
    assert known[end.bad] is BAD
    assert all(known[index] is SKIP for index in range(end.good + 1, end.bad))
    assert end.contradictions == tuple(
        index for index in sorted(tested) if index > end.bad and known[index] is GOOD
    )


@given(st.integers(2, 300), st.data())
def test_where_all_cost_the_same_it_is_plain_bisection(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, count - 1))
    _, tested = run(count, lambda index: BAD if index >= culprit else GOOD)
    assert len(tested) <= math.ceil(math.log2(max(count - 1, 1)))


def test_a_good_candidate_after_a_bad_one_is_told() -> None:
    state = suspects(20, {12: GOOD, 5: BAD, 3: GOOD})
    assert (state.good, state.bad, state.contradictions) == (3, 5, (12,))
    assert choose(state, lambda _index: 1.0) == (4,)


def test_a_test_of_seconds_off_the_middle_comes_before_one_of_an_hour_in_it() -> None:
    def cost(index: int) -> float:
        return 10.0 if index % 8 == 1 else 3600.0

    (first,) = choose(suspects(33, {}), cost)
    assert first == 17  # the one with a build at hand beside the middle, 16
    spent = sum(cost(index) for culprit in range(1, 33) for index in _tested(33, culprit, cost))
    plain = sum(cost(index) for culprit in range(1, 33) for index in _tested(33, culprit, lambda _: 1.0))
    assert spent < 0.75 * plain


def _tested(count: int, culprit: int, cost: Callable[[int], float]) -> list[int]:
    return run(count, lambda index: BAD if index >= culprit else GOOD, cost)[1]


def test_tests_at_once_cut_the_range_in_equal_parts() -> None:
    chosen = choose(suspects(65, {}), lambda _index: 1.0, jobs=3)
    assert sorted(chosen) == [16, 32, 48]


def test_a_likely_culprit_is_tested_around_first() -> None:
    prior = [1.0] * 33
    prior[25] = 1000.0  # moves the pin, say
    verdicts: dict[int, Verdict] = {}
    for _ in range(2):
        (index,) = choose(suspects(33, verdicts), lambda _index: 1.0, prior=prior)
        verdicts[index] = BAD if index >= 25 else GOOD
    assert list(suspects(33, verdicts).culprits) == [25]


def test_neighbours_of_one_that_cannot_be_built_are_avoided() -> None:
    (index,) = choose(suspects(65, {32: SKIP}), lambda _index: 1.0)
    assert abs(index - 32) > 3
    assert 0.25 < index / 64 < 0.75


def test_a_search_needs_two_ends() -> None:
    with pytest.raises(ValueError, match="needs a good and a bad"):
        suspects(1, {})
