"""The search over commits: which are tested, which are left aside, and what a failing build means."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.bisect.simulated import (
    NEW,
    OLD,
    NoLlvm,
    Run,
    Simulated,
    Workshop,
    again,
    history,
    oracle,
    ran,
    simulated,
)
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import LockedError, PreflightError, SmithError, StepError
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.candidates import Observations, one_by_one
from tritonsmith.lab.bisect.search import BUILD, READY, CommitCosts, likelihood
from tritonsmith.lab.bisect.stages import searched
from tritonsmith.lab.experiment import agreed
from tritonsmith.lab.journal import Journal, Observation, Verdict

pytestmark = pytest.mark.unit


def test_the_other_vendors_commits_cost_no_tests_but_the_one_before_the_culprit_is_confirmed() -> None:
    commits = history("common", *["amd", "amd", "tests", "nvidia"] * 8)
    search, tested = ran(commits, 16, Workshop())
    assert list(search.span.state.culprits) == [16]
    assert 15 in tested
    assert len(tested) <= 4  # 8 of 32 matter: three halvings, and one to confirm


@pytest.mark.parametrize("culprit", range(1, 13))
def test_one_that_should_not_matter_is_found_all_the_same(culprit: int) -> None:
    search, _ = ran(history("common", *["amd", "tests", "nvidia"] * 4), culprit, Workshop())
    assert list(search.span.state.culprits) == [culprit]


def test_python_only_commits_share_one_build() -> None:
    workshop = Workshop()
    commits = history("common", *["python"] * 20)
    search, tested = ran(commits, 7, workshop)
    assert list(search.span.state.culprits) == [7]
    assert len(tested) == 4 or len(tested) == 5
    assert workshop.libraries == {commits[0].native}


def test_commits_whose_llvm_would_have_to_be_built_come_last() -> None:
    commits = history("common", *["common"] * 10, "bump", *["common"] * 10)
    _, tested = ran(commits, 4, Workshop())
    assert max(tested) < 11
    search, tested = ran(commits, 17, Workshop())
    assert list(search.span.state.culprits) == [17]
    assert tested[0] < 11


def test_what_cannot_be_built_is_skipped_with_the_reason_and_left_in_the_answer() -> None:
    commits = history(*["common"] * 12)
    workshop = Workshop(*(commit.commit for commit in commits[5:8]))
    search, tested = ran(commits, 6, workshop)
    assert list(search.span.state.culprits) == [5, 6, 7, 8]
    outcomes = search.span.observations.values()
    skips = [outcome for outcome in outcomes if outcome.verdict is Verdict.SKIP]
    assert {skip.why for skip in skips} == {"cannot compile: A.cpp:1: error: no"}
    assert len(tested) == len(set(tested))


def test_a_native_tree_that_cannot_be_built_is_tried_once() -> None:
    commits = history("common", "common", *["python"] * 8, "common", "common")
    workshop = Workshop(*(commit.commit for commit in commits[1:10]))
    search, tested = ran(commits, 6, workshop)
    assert list(search.span.state.culprits) == list(range(1, 11))
    assert len([number for number in tested if 1 <= number < 10]) == 1


@pytest.mark.parametrize(
    "error",
    [StepError("cannot link", why="ld: No space left on device"), LockedError("somebody builds there")],
)
def test_what_is_no_fault_of_a_commit_ends_the_search(error: Exception) -> None:
    commits = history(*["common"] * 5)
    workshop = Workshop(*(commit.commit for commit in commits), error=error)
    with pytest.raises(type(error)):
        ran(commits, 3, workshop)


def test_a_search_goes_on_with_what_is_known() -> None:
    commits = history(*["common"] * 33)
    journal = Journal()
    journal.add(commits[16].commit, Observation(Verdict.BAD))
    journal.add(commits[8].commit, Observation(Verdict.SKIP))
    run = Run(commits, Workshop(), oracle(commits, 1), journal=again(journal))
    assert list(run.end().culprits) == [1]
    assert not {8, 16} & {*run.tested}
    assert max(run.tested) < 16


@given(simulated(), st.integers(1, 3), st.integers(0, 12))
def test_wherever_a_search_is_killed_it_ends_in_the_same_culprit_and_tests_nothing_twice(
    made: Simulated, jobs: int, lives: int
) -> None:
    """Whatever is built by then, whatever does not build, and however many are tested at once."""
    commits = made.commits
    workshop = Workshop(*(commits[index].commit for index in made.broken))
    first = Run(commits, workshop, oracle(commits, made.culprit, lives), jobs=jobs)
    with suppress(KeyboardInterrupt):
        first.end()
    second = Run(commits, workshop, oracle(commits, made.culprit), jobs=jobs, journal=again(first.journal))
    end = second.end()
    assert not {*first.tested} & {*second.tested}
    assert made.culprit in end.culprits
    assert {*end.culprits} - {end.bad} <= made.untestable


def test_expected_costs_follow_what_was_built() -> None:
    commits = history("common", "common", "python", "nvidia", "bump")
    built: set[str] = set()
    costs = CommitCosts(commits, Workshop().llvm_state, lambda commit: commit.native in built)
    assert costs.of(1).reasons == ("a whole build",)
    costs.record_build(1, 700.0)
    costs.record_test(2.0)
    built.add(commits[1].native)
    assert costs.of(2).seconds == 2.0
    assert costs.of(3).reasons == (f"1 native files differ from the last build, {commits[1].commit[:9]}",)
    assert costs.of(2).seconds < costs.of(3).seconds < 700
    assert costs.of(4).seconds > 3600
    assert "to be built" in costs.of(4).reasons[0]
    headers = CommitCosts(
        [replace(commit, headers=commit.sources) for commit in commits],
        Workshop().llvm_state,
        lambda _: False,
    )
    headers.record_build(1, 700.0)
    assert headers.of(3).seconds > costs.of(3).seconds


def test_a_build_is_not_taken_for_a_test_where_a_second_one_confirms_it() -> None:
    commits = history("common", "common", "python")
    costs = CommitCosts(commits, Workshop().llvm_state, lambda commit: commit.native == commits[1].native)
    with_build = Observation(Verdict.GOOD, seconds=3610.0, metrics={READY: 3600.0, BUILD: 3600.0})
    ready = Observation(Verdict.GOOD, seconds=10.5, metrics={READY: 0.5})
    costs.learn(1, agreed([with_build, ready]), earlier=False)
    assert costs.of(2).seconds == pytest.approx(20.5)


def test_a_search_that_goes_on_knows_what_the_build_folder_holds() -> None:
    commits = history(*["common"] * 9)
    workshop = Workshop()
    workshop.at[OLD] = commits[6].commit
    span = searched(commits, workshop)
    costs = [span.costs.of(index) for index in range(9)]
    assert costs[5].seconds == costs[7].seconds < costs[2].seconds
    assert span.next() == (6,)  # nothing to compile
    assert costs[1].reasons[0].endswith(commits[6].commit[:9])


def test_a_bump_is_the_likeliest_culprit_and_tests_the_unlikeliest() -> None:
    _, bump, nvidia, amd, tests = history("common", "bump", "nvidia", "amd", "tests")
    assert likelihood(bump, "nvidia") > likelihood(nvidia, "nvidia") > likelihood(amd, "nvidia")
    assert likelihood(amd, "") == likelihood(nvidia, "")
    assert likelihood(tests, "") == likelihood(amd, "nvidia")


def with_a_missing_pin() -> list[TritonCommit]:
    """60 commits, 100 of a pin that cannot be had, and 60 of the first pin, which came back."""
    commits = history(*["common"] * 60, "bump", *["common"] * 159)
    return [replace(one, pin=OLD) if number >= 160 else one for number, one in enumerate(commits)]


@pytest.mark.parametrize("culprit", [20, 60, 100, 159, 160, 161, 200])
def test_a_pin_whose_llvm_cannot_be_had_is_tried_once(culprit: int) -> None:
    commits, workshop = with_a_missing_pin(), NoLlvm()
    search, tested = ran(commits, culprit, workshop)
    assert culprit in search.span.state.culprits
    assert len(tested) <= 12
    assert sum(commits[index].pin == NEW for index in tested) <= 1
    between = range(60, 161)
    assert search.span.state.culprits == (between if culprit in between else range(culprit, culprit + 1))
    if culprit in between:
        (why,) = {seen.why for seen in search.span.observations.values() if seen.why}
        assert why == "no LLVM: no archive has it"
        assert search.span.state.skipped == tuple(range(60, 160))


def test_a_resumed_search_tries_a_missing_pin_again() -> None:
    commits = with_a_missing_pin()
    first, _ = ran(commits, 100, NoLlvm())
    workshop = Workshop()
    run = Run(commits, workshop, oracle(commits, 200), journal=again(first.journal))
    run.end()
    assert any(commits[index].pin == NEW for index in run.tested)


@pytest.mark.parametrize(("error", "tried"), [(StepError("an error"), 0), (PreflightError("no clang"), 1)])
def test_a_resumed_search_builds_no_native_tree_that_does_not_compile(error: SmithError, tried: int) -> None:
    """A compiler that was missing may be there by now, so one more commit is tried."""
    commits = history("common", "common", *["python"] * 8, "common", "common")
    broken = [commit.commit for commit in commits[1:10]]
    first, _ = ran(commits, 6, Workshop(*broken, error=error))
    workshop = Workshop(*broken, error=error)
    run = Run(commits, workshop, oracle(commits, 6), journal=again(first.journal))
    assert list(run.end().culprits) == list(range(1, 11))
    assert len(workshop.made) == tried


def test_the_seconds_of_an_llvm_are_not_those_of_a_build() -> None:
    class Slow(Workshop):
        def built(self, commit: TritonCommit) -> dict[str, Any] | None:
            seconds = {"configure": 1.0, "build": 99.0}
            return {"seconds": seconds} if commit.native in self.libraries else None

    commits = history(*["common"] * 9)
    run = Run(commits, Slow(), oracle(commits, 8))
    run.ask(4)
    assert run.span.costs.of(0).seconds <= 100 + run.span.costs.of(4).seconds


@pytest.mark.parametrize("culprit", range(1, 24))
def test_commits_that_need_no_build_are_tested_at_once(culprit: int) -> None:
    commits = history("common", *["python"] * 11, "common", *["python"] * 11)
    workshop, numbers = Workshop(), {commit.commit: number for number, commit in enumerate(commits)}
    rounds: list[tuple[int, ...]] = []

    def tests(tritons: Sequence[Triton]) -> Observations:
        indices = [numbers[one.label] for one in tritons]
        rounds.append(tuple(indices))
        return oracle(commits, culprit)(tritons[::-1])  # the last one ends first

    run = Run(commits, workshop, tests, jobs=3)
    run.ask(0, len(commits) - 1)
    assert list(run.end().culprits) == [culprit]
    tested = [index for indices in rounds for index in indices]
    assert len(tested) == len(set(tested))
    assert max(map(len, rounds)) == 3
    assert len(rounds) <= 5  # one by one it takes up to seven
    assert len(workshop.libraries) == 2


def test_an_outcome_that_comes_first_is_noted_first() -> None:
    """A kill while the slowest test of several is under way loses that one only."""
    commits = history("common", *["python"] * 11)

    def tests(tritons: Sequence[Triton]) -> Observations:
        yield from ((triton, Observation(Verdict.GOOD)) for triton in tritons[:0:-1])
        raise KeyboardInterrupt

    run = Run(commits, Workshop(), tests, jobs=3)
    with pytest.raises(KeyboardInterrupt):
        run.ask(3, 4, 5)
    assert run.tested == [5, 4]


def test_of_several_commits_a_native_tree_that_cannot_be_built_is_tried_once() -> None:
    commits = history("common", "common", *["python"] * 8, "common", "common")
    workshop = Workshop(*(commit.commit for commit in commits[1:10]))
    run = Run(commits, workshop, oracle(commits, 6), jobs=3)
    assert list(run.end().culprits) == list(range(1, 11))
    assert len([name for name in workshop.made if name in workshop.broken]) == 1


def test_commits_that_must_be_built_are_tested_one_by_one() -> None:
    commits = history(*["common"] * 20)
    rounds: list[int] = []

    def tests(tritons: Sequence[Triton]) -> Observations:
        rounds.append(len(tritons))
        return one_by_one(lambda _: Observation(Verdict.GOOD))(tritons)

    run = Run(commits, Workshop(), tests, jobs=4)
    assert list(run.end().culprits) == [19]
    assert set(rounds) == {1}
