"""What is said of the commits between two pins of LLVM, without a clone and with one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.bisect.simulated import Simulated, history, simulated
from tests.unit.lab.fake_subject import FakeSubject, quiet
from tests.unit.repositories import Made
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import StepError
from tritonsmith.facts.llvm_history import LlvmHistory
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab import experiment
from tritonsmith.lab.bisect import llvm_range
from tritonsmith.lab.bisect.llvm_range import LLC, OPT, LlcBuilds, LlvmBisect, LlvmRange
from tritonsmith.lab.bisect.search import LlvmState
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.journal import Journal, Observation, Verdict

pytestmark = pytest.mark.unit

GVN = "llvm/lib/Transforms/Scalar/GVN.cpp"
NVPTX = "llvm/lib/Target/NVPTX/NVPTX.td"


def bumped(old: str, new: str) -> list[TritonCommit]:
    """Triton's commits, of which the third one moves the pin."""
    before, python, bump = history("common", "python", "bump")
    return [replace(before, pin=old), replace(python, pin=old), replace(bump, pin=new)]


def ranged(made: Made, by_pass: str = "") -> LlvmRange:
    """Between the first commit of a clone and its last one."""
    old, new = (made.git("rev-parse", name) for name in ("first", "HEAD"))
    commits = bumped(old, new)
    found = llvm_range.range_of(commits, commits[-1], "nvidia", made.path, by_pass)
    assert found
    return found


@pytest.fixture
def llvm(make: Callable[[str], Made]) -> Made:
    made = make("llvm")
    made.commit("first", {GVN: "1", NVPTX: "1"})
    made.git("tag", "first")
    made.commit("[GVN] Better (#7)", {GVN: "2"})
    made.commit("[docs] Better", {"llvm/docs/LangRef.rst": "1"})
    made.commit("[NVPTX] Better", {NVPTX: "2"})
    return made


def test_without_a_clone_there_is_the_comparison_and_what_to_give() -> None:
    commits = bumped("a" * 40, "b" * 40)
    found = llvm_range.range_of(commits, commits[-1], "nvidia", None)
    assert found
    url, more = found.lines()
    assert url.endswith(f"https://github.com/llvm/llvm-project/compare/{'a' * 40}...{'b' * 40}")
    assert "invoke bisect --resume --llvm-source CLONE" in more
    assert found.as_json()["commits"] is None


def test_a_commit_that_moves_no_pin_has_no_range() -> None:
    commits = bumped("a" * 40, "b" * 40)
    assert llvm_range.range_of(commits, commits[1], "nvidia", None) is None
    unpinned = bumped("", "b" * 40)
    assert llvm_range.range_of(unpinned, unpinned[-1], "nvidia", None) is None


def test_a_clone_counts_them_and_names_those_of_the_code_generator(llvm: Made) -> None:
    found = ranged(llvm)
    _, counts, named = found.lines()
    assert counts == "LLVM: 3 commits, 1 of them in the code generator for NVPTX"
    assert "[NVPTX] Better" in named
    assert [one["subject"] for one in found.as_json()["near"]] == ["[NVPTX] Better"]


def test_many_are_cut_and_counted() -> None:
    every = tuple(history(*["common"] * 26))
    found = LlvmRange("a" * 40, "b" * 40, ("NVPTX", "AMDGPU"), LlvmHistory(every, {}))
    _, counts, *named, rest = found.lines()
    assert counts == "LLVM: 25 commits, 25 of them in the code generator for NVPTX and AMDGPU"
    assert (len(named), rest) == (20, "LLVM: and 5 more: --json names them")


def test_a_pass_of_llvm_narrows_them_to_its_file(llvm: Made) -> None:
    _, _, by_pass, named = ranged(llvm, "GVNPass").lines()
    assert by_pass == f"LLVM: 1 of them in the pass GVNPass, {GVN}"
    assert "[GVN] Better (#7)" in named


def test_a_pass_of_triton_does_not(llvm: Made) -> None:
    found = ranged(llvm, "tritongpu-coalesce")
    assert found.by_pass == ("tritongpu-coalesce", ())
    assert found.as_json()["touching_pass"] == []


def test_a_clone_without_the_pins_says_which_it_lacks(llvm: Made) -> None:
    commits = bumped("a" * 40, "b" * 40)
    found = llvm_range.range_of(commits, commits[-1], "nvidia", llvm.path)
    assert found
    assert "has no aaaaaaaaaaaa" in found.note
    assert f"git fetch https://github.com/llvm/llvm-project {'a' * 40}" in found.note
    assert str(llvm.path) not in found.note  # which is pasted upstream


def test_a_folder_that_is_no_clone_has_no_commits(tmp_path: Path) -> None:
    commits = bumped("a" * 40, "b" * 40)
    found = llvm_range.range_of(commits, commits[-1], "amd", tmp_path)
    assert found
    assert found.history is None
    assert "not listed" in found.note


@dataclass(frozen=True)
class Llcs:
    """Builds of llc that take no time, of all but some commits."""

    broken: frozenset[str] = frozenset()
    programs: tuple[str, ...] = ("llc",)
    made: list[tuple[str, ...]] = field(default_factory=list)

    def llvm_state(self, _pin: str) -> LlvmState:
        return "ready"

    def last(self, _pin: str) -> str:
        return self.made[-1][0] if self.made else ""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        return {} if self.made and self.made[-1] == (commit.commit, *self.programs) else None

    def make(self, commit: TritonCommit) -> Triton:
        if commit.commit in self.broken:
            raise StepError("cannot compile")
        self.made.append((commit.commit, *self.programs))
        return Triton(commit.commit, python="/llc")


@given(simulated(), st.sampled_from([LLC, OPT]), st.sampled_from(["good", "bad"]), st.integers(0, 9))
def test_the_culprit_in_llvm_is_found_wherever_it_is_killed_and_an_end_is_built_once_for_both_sides(
    made: Simulated, shows: str, side: str, lives: int
) -> None:
    commits, numbers = made.commits, {row.commit: index for index, row in enumerate(made.commits)}
    bad = {f"{shows}, {side}, {row.commit}" for row in commits[made.culprit :]}
    subject = FakeSubject(
        lambda name: Observation(Verdict.BAD if name in bad else Verdict.GOOD, name.partition(",")[0]),
        lives=lives,
        killed=KeyboardInterrupt,
    )

    def test_of(by: str, of_side: str) -> Callable[[Triton], Observation]:
        return lambda llc: subject.ask(f"{by}, {of_side}, {llc.label}")

    builds = Llcs(frozenset(commits[index].commit for index in made.broken))
    tests = {by: {of_side: test_of(by, of_side) for of_side in ("good", "bad")} for by in (LLC, OPT)}
    pins = LlvmRange("a" * 40, "b" * 40, ("NVPTX",), LlvmHistory(tuple(commits), {}))
    journal, notes = Journal(), list[str]()

    def search() -> LlvmBisect:
        session = BisectSession(Path(), BisectQuestion(good="a", bad="b"), Journal())
        known = Journal(observations=deepcopy(journal.observations))
        return LlvmBisect(pins, cast("LlcBuilds", builds), tests, session, notes.append, journal=known)

    first = search()
    with suppress(KeyboardInterrupt):
        experiment.run(first.search(commits), first.test, first.journal, quiet)
    journal, subject.lives = first.journal, -1
    again = search()
    said = experiment.run(again.search(commits), again.test, again.journal, quiet)
    assert commits[made.culprit] in again.suspects
    assert {numbers[row.commit] for row in again.suspects[:-1]} <= made.untestable
    assert (again.by, again.side) == (shows, side)
    assert len(subject.tested) == len(set(subject.tested))
    assert any(f"by {shows} on the llir of the {side} side" in line for line in said)
    assert builds.made.count((commits[0].commit, "llc")) <= 2  # once more if it was killed between both sides
    rows = again.as_json()["tested"]
    assert {f"{row['by']}, {row['llir_of']}, {row['commit']}" for row in rows} >= {*subject.tested}


def test_where_no_llc_shows_it_nothing_is_blamed() -> None:
    commits, session = (
        history(*["common"] * 5),
        BisectSession(Path(), BisectQuestion(good="a", bad="b"), Journal()),
    )
    tests = {by: {"good": lambda _llc: Observation(Verdict.GOOD, "fast")} for by in (LLC, OPT)}
    pins = LlvmRange("a" * 40, "b" * 40, ("NVPTX",), LlvmHistory(tuple(commits), {}))
    search = LlvmBisect(pins, cast("LlcBuilds", Llcs()), tests, session)
    said = experiment.run(search.search(commits), search.test, search.journal, quiet)
    assert "LLVM's code generator alone does not show it" in said[0]
    assert "LLVM's O3 and code generator do not show it" in said[2]
    assert "invoke blame" in said[-1]
    assert search.suspects == ()
    assert search.as_json()["by"] is None
