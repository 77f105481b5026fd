from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import VERSIONS, Programs, leave
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Move
from tritonsmith.doctor import history, run
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, worst

A = Move(Path("/a"), Path("/a.stale"), phase="p")
B = Move(Path("/b"), Path("/b.stale"), phase="p")


def test_the_environment_that_is_named(home: Path) -> None:
    assert run.subject("release").settings.name == "release"
    (home / "mine.toml").write_text('[llvm]\ndir = "/opt/llvm"\n')
    found = run.subject(str(home / "mine.toml"))
    assert (found.settings.name, found.settings.llvm.dir) == ("mine", "/opt/llvm")
    assert found.space == workspace.default()
    with pytest.raises(UsageError, match="no environment named 'relaese'"):
        run.subject("relaese")


def test_the_interpreter_that_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = home / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert run.subject("dev", str(python)).interpreter == python
    assert run.subject("dev", "~/bin/python").interpreter == python
    monkeypatch.chdir(home)
    assert run.subject("dev", "bin/python").interpreter == python
    for nothing in ("~/bin", "~/bin/pyhton"):
        with pytest.raises(UsageError, match="no such interpreter") as caught:
            run.subject("dev", nothing)
        assert str(home) in str(caught.value)


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A workspace in which `release` was used after `wheel`, and something else after both."""
    space = Workspace(tmp_path / "space")
    moments = {"wheel": 100, "release": 300, "deleted-since": 900}
    for name, moment in moments.items():
        for age, task in enumerate(("build-triton", "setup-mlir")):
            path = leave(DoctorContext(Settings(name), space), task, name)
            os.utime(path, (moment - age * 250, moment - age * 250))
    return space


def test_the_environment_that_was_used_last(space: Workspace) -> None:
    assert run.last_used(space) == "release"
    os.utime(space.env("wheel").receipt("setup-mlir"), (400, 400))
    assert run.last_used(space) == "wheel"


def test_before_any_was_used(tmp_path: Path) -> None:
    assert run.last_used(Workspace(tmp_path / "none")) == "dev"
    assert run.subject().settings.name == "dev"


def test_what_mends() -> None:
    plan = run.mending(
        (
            Finding("error", "one is gone", fix=(A,), check="builds.cmake-paths"),
            Finding("error", "another LLVM", fix=(A, B), check="builds.cmake-llvm"),
            Finding("warning", "nothing to do about it", check="tools.lit"),
            Finding("ok", "fine", fix=(Move(Path("/c"), Path("/d"), phase="p"),), check="tools.cmake"),
        )
    )
    assert plan.steps == (A, B)
    assert plan.notes == ("builds.cmake-paths: one is gone", "builds.cmake-llvm: another LLVM")


def test_where_nothing_mends() -> None:
    assert run.mending((Finding("error", "x"), Finding("ok", "y"))).steps == ()


def test_a_whole_examination(programs: Programs) -> None:
    programs(VERSIONS)
    found = run.examine(Settings("dev"))
    assert {"machine", "tools", "sources", "builds"} <= {one.group for one in found}
    assert "crashed" not in {one.status for one in found}
    (entry,) = history.read(workspace.default().env("dev").history)
    assert entry.worst == worst(found)
