"""Which LLVM the commits of a bisect are built with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.lab.bisect.candidates import CommitBuilds

PIN, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def builds(tmp_path: Path) -> CommitBuilds:
    return CommitBuilds(tmp_path / "clone", settings.load("dev"), Workspace(tmp_path / "home"))


def chosen(builds: CommitBuilds, task: str, **content: Any) -> None:
    """Leave a receipt of a task in the environment."""
    path = builds.space.env("dev").receipt(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(receipts.render(task, content), encoding="utf-8")


def test_without_an_llvm_one_is_planned_for_each_pin(builds: CommitBuilds) -> None:
    assert builds.llvm_dir(PIN) == ""
    assert builds.llvm_state(PIN) == "prebuilt"
    assert builds.env(PIN) != builds.env(OTHER)


@pytest.mark.parametrize("commit", ["", OTHER])
def test_an_installed_llvm_that_is_not_the_pin_serves_all(
    builds: CommitBuilds, tmp_path: Path, commit: str
) -> None:
    chosen(builds, "setup-mlir", provider="system", prefix=str(tmp_path), commit=commit, pin=PIN)
    assert [builds.llvm_dir(pin) for pin in (PIN, OTHER)] == [str(tmp_path)] * 2
    assert builds.llvm_state(PIN) == "ready"
    assert builds.env(PIN) == builds.env(OTHER)


def test_an_installed_llvm_at_the_pin_serves_that_pin(builds: CommitBuilds, tmp_path: Path) -> None:
    chosen(builds, "setup-mlir", provider="system", prefix=str(tmp_path), commit=PIN, pin=PIN)
    assert (builds.llvm_dir(PIN), builds.llvm_dir(OTHER)) == (str(tmp_path), "")
    assert builds.llvm_state(OTHER) == "prebuilt"


def test_one_that_the_store_has_is_found_there(builds: CommitBuilds, tmp_path: Path) -> None:
    chosen(builds, "setup-mlir", provider="source", prefix=str(tmp_path), commit=PIN, pin=PIN)
    assert builds.llvm_dir(PIN) == ""


@pytest.mark.parametrize(("commit", "of_others"), [(PIN, False), (OTHER, True), ("", True)])
def test_the_llvm_of_the_last_build_serves_other_pins_unless_it_is_at_its_own(
    builds: CommitBuilds, tmp_path: Path, commit: str, of_others: bool
) -> None:
    last = {"llvm.dir": str(tmp_path)}
    chosen(builds, "build-triton", settings=last, llvm=str(tmp_path), llvm_commit=commit, pin=PIN)
    assert builds.llvm_dir(PIN) == str(tmp_path)
    assert builds.llvm_dir(OTHER) == (str(tmp_path) if of_others else "")


def test_the_llvm_of_the_last_build_and_of_the_env_file(builds: CommitBuilds, tmp_path: Path) -> None:
    chosen(builds, "build-triton", settings={"llvm.dir": str(tmp_path / "built")})
    assert builds.llvm_dir(PIN) == str(tmp_path / "built")
    llvm = replace(builds.settings.llvm, dir="/opt/llvm")
    assert replace(builds, settings=replace(builds.settings, llvm=llvm)).llvm_dir(PIN) == "/opt/llvm"
