"""configs/pytorch-pins.toml against a clone of Triton: every commit that it has, and what content: there.

No single clone has them all: ROCm/triton, intel/intel-xpu-backend-for-triton and Triton's release branches
have their own. What the clone lacks is printed, with `-s` or in the report of a failure.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import REAL_SOURCE
from tritonsmith.core.text import version_key
from tritonsmith.doctor.pins import releases_with
from tritonsmith.facts import checkout, pytorch_pins
from tritonsmith.facts import git_history as histories
from tritonsmith.facts.pytorch_pins import Pin, PyTorchRelease

from .regenerate_checkouts import History

# On main of triton-lang/triton, so every clone with upstream's history has them.
ON_MAIN = {
    "e6216047b8b0aef1fe8da6ca8667a3ad0a016411",
    "bcad9dabe15021c53b6a88296e9d7a210044f108",
    "989adb9a29496c22a36ef82ca69cad5dad536b9c",
    "45fff310c891f5a92d55445adf8cc9d29df5841e",
}
# A fix on main, and its cherry-pick on release/3.7.x, which 2.12.1 and 2.13.0 pin.
FIX = "eb706474c5d3ab03d3ddc8033cc68640a4b4d142"
PICKED = "5d6048aa0a324e090ada215b609ea76620133845"

Named = dict[str, list[tuple[PyTorchRelease, str, Pin]]]


def named() -> Named:
    """Commit of the table to every place that names it."""
    found: Named = {}
    for release in pytorch_pins.releases():
        for where, pin in release.own_pins.items():
            if pin is not None:
                for commit in filter(None, (pin.commit, *pin.candidates)):
                    found.setdefault(commit, []).append((release, where, pin))
    return found


def source() -> Path:
    return Path(os.environ[REAL_SOURCE]).expanduser().absolute()


def test_how_many_commits_of_the_table_the_clone_has(history: History) -> None:
    commits = named()
    absent = [commit for commit in commits if not history.has(commit)]
    print(f"{len(commits) - len(absent)} of {len(commits)} commits are in {source()}; it lacks")
    for commit in absent:
        print(f"  {commit}", ", ".join(f"{release.version} {where}" for release, where, _ in commits[commit]))
    assert not ON_MAIN.intersection(absent)


@pytest.mark.parametrize("commit", named())
def test_a_commit_and_what_the_table_says_of_it(commit: str, history: History) -> None:
    """LLVM at the commit, read twice; and Triton's version, if the commit is no mere candidate."""
    if not history.has(commit):
        pytest.skip(f"{source()} lacks {commit[:10]}")
    read = checkout.read(history.tree(commit))
    assert read.pin is not None
    with histories.opened(source()) as clone:
        llvm = histories.llvm_at(clone, commit)
    assert read.pin.commit.startswith(llvm)
    for release, where, pin in named()[commit]:
        if pin.llvm:
            assert llvm.startswith(pin.llvm), (release.version, where)
        if pin.commit == commit:
            assert read.version == (pin.version or release.cuda.version), (release.version, where)


@pytest.mark.parametrize("commit", sorted(ON_MAIN))
def test_every_pin_is_decided_if_the_clone_has_it(commit: str, history: History) -> None:
    for one in releases_with.find_releases(commit, source()).holdings:
        decided = one.standing.holds is not None
        assert decided is bool(one.pin and history.has(one.pin)), one


def test_who_holds_the_pin_of_2_1(history: History) -> None:
    commit = "e6216047b8b0aef1fe8da6ca8667a3ad0a016411"
    found = {(one.release, one.where): one for one in releases_with.find_releases(commit, source()).holdings}
    assert found["2.1.2", "cuda"].standing.relation == "at"
    newer = [
        one
        for one in found.values()
        if one.pin and history.has(one.pin) and version_key(one.release) > (2, 2)
    ]
    if not newer:
        pytest.skip(f"{source()} lacks the pins of PyTorch 2.3 and later")
    assert all(one.standing.holds for one in newer if one.where != "rocm")


def test_a_cherry_pick_on_a_release_branch_is_found(history: History) -> None:
    if not history.has(PICKED) or not history.has(FIX):
        pytest.skip(f"{source()} lacks release/3.7.x")
    found = {(one.release, one.where): one for one in releases_with.find_releases(FIX, source()).holdings}
    for release in ("2.12.1", "2.13.0"):
        assert found[release, "cuda"].standing.relation == "cherry-picked"
        assert found[release, "cuda"].standing.why.startswith(f"as {PICKED[:10]}")
    assert found["2.12.0", "cuda"].standing.relation == "apart"
