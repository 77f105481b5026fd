"""What is said of the commits between two pins of LLVM, without a clone and with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.bisect.test_commits import history
from tests.unit.repositories import Made
from tritonsmith.facts.llvm_history import LlvmHistory
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import llvm_range
from tritonsmith.lab.bisect.llvm_range import LlvmRange

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
    found = llvm_range.of(commits, commits[-1], "nvidia", made.path, by_pass)
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
    found = llvm_range.of(commits, commits[-1], "nvidia", None)
    assert found
    url, more = found.lines()
    assert url.endswith(f"https://github.com/llvm/llvm-project/compare/{'a' * 40}...{'b' * 40}")
    assert "invoke bisect --resume --llvm-source CLONE" in more
    assert found.as_json()["commits"] is None


def test_a_commit_that_moves_no_pin_has_no_range() -> None:
    commits = bumped("a" * 40, "b" * 40)
    assert llvm_range.of(commits, commits[1], "nvidia", None) is None
    unpinned = bumped("", "b" * 40)
    assert llvm_range.of(unpinned, unpinned[-1], "nvidia", None) is None


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
    found = llvm_range.of(commits, commits[-1], "nvidia", llvm.path)
    assert found
    assert "has no aaaaaaaaaaaa" in found.note
    assert f"git fetch https://github.com/llvm/llvm-project {'a' * 40}" in found.note
    assert str(llvm.path) not in found.note  # which is pasted upstream


def test_a_folder_that_is_no_clone_has_no_commits(tmp_path: Path) -> None:
    commits = bumped("a" * 40, "b" * 40)
    found = llvm_range.of(commits, commits[-1], "amd", tmp_path)
    assert found
    assert found.history is None
    assert "not listed" in found.note
