from __future__ import annotations

import json
import os
import re
from itertools import groupby
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import VERSIONS, Programs, leave
from tests.unit.facts import fakes
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.settings import Settings, TritonSettings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Move
from tritonsmith.doctor import history, run
from tritonsmith.doctor.check import Check, DoctorContext, Finding, findings_as_json, ok, worst

QUICK = [check for check in run.ALL if not check.deep]


def test_names_and_titles() -> None:
    names = [check.id for check in run.ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert max(len(name.partition(".")[2]) for name in names) < 18  # the width of their column
    assert all(check.title and not check.title.endswith(".") for check in run.ALL)


def test_a_group_stands_together() -> None:
    groups = [group for group, _ in groupby(run.ALL, key=lambda check: check.group)]
    assert groups[:4] == ["machine", "tools", "sources", "builds"]
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.id)
def test_where_there_is_nothing_yet_each_says_so(
    subject: DoctorContext, programs: Programs, check: Check
) -> None:
    programs({})
    found = check(subject)
    assert found
    assert {one.status for one in found} <= {"ok", "note", "not applicable", "error"}
    assert all(one.seen and one.check == check.id for one in found)
    assert {one.check for one in found if one.status == "error"} <= {
        "tools.cmake",
        "tools.ninja",
        "tools.git",
        "tools.clang",
    }


@pytest.mark.parametrize("era", fakes.ERAS)
def test_no_check_crashes_at_the_checkout_of_any_era(
    subject: DoctorContext, programs: Programs, era: str
) -> None:
    programs(VERSIONS)
    root = fakes.checkout(subject.cwd / "a triton", era)
    subject.cwd = root / "third_party"
    found = run.run_checks(subject, QUICK)
    assert [one for one in found if one.status == "crashed"] == []
    assert subject.checkout is not None
    assert json.dumps(findings_as_json(found))


@pytest.mark.parametrize("trouble", ["gone", "no checkout", "marks of a merge", "too old", "no pin file"])
def test_sources_that_cannot_be_read_are_one_error_and_no_crash(
    subject: DoctorContext, programs: Programs, trouble: str
) -> None:
    programs(VERSIONS)
    root = subject.cwd / "triton"
    if trouble != "gone":
        fakes.checkout(root, "3.8")
    match trouble:
        case "no checkout":
            (root / "setup.py").unlink()
        case "marks of a merge":
            (root / "pyproject.toml").write_text("<<<<<<< HEAD\n")
        case "too old":
            text = (root / "setup.py").read_text()
            (root / "setup.py").write_text(text.replace("3.8.0", "1.1.0").replace("MIN_PYTHON", "X"))
        case "no pin file":
            (root / "cmake" / "llvm-info.json").write_text("{}")
    subject.settings = Settings("dev", triton=TritonSettings(source=str(root)))
    found = run.run_checks(subject, QUICK)
    assert [one for one in found if one.status == "crashed"] == []
    assert [one.check for one in found if one.status == "error"] == ["sources.checkout"]


def test_all_are_chosen_but_the_deep_ones() -> None:
    assert list(run.chosen_checks()) == QUICK
    assert run.chosen_checks(deep=True) == run.ALL


def test_checks_and_groups_are_chosen_by_name() -> None:
    taken = run.chosen_checks(["builds.llvm", "machine"])
    assert [check.id for check in taken] == [
        *(check.id for check in QUICK if check.group == "machine"),
        "builds.llvm",
    ]


def deep(_: DoctorContext) -> list[Finding]:
    return [ok("done")]


def test_a_deep_check_runs_when_it_is_named_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = Check("tools.slow", "x", deep, deep=True), Check("tools.quick", "x", deep)
    monkeypatch.setattr(run, "ALL", (slow, quick))
    assert run.chosen_checks() == run.chosen_checks(["tools"]) == (quick,)
    assert run.chosen_checks(["tools.slow"]) == (slow,)
    assert run.chosen_checks(["tools"], deep=True) == run.chosen_checks(deep=True) == (slow, quick)


@pytest.mark.parametrize(
    ("name", "nearest"), [("tools.cmaek", "tools.cmake"), ("tool", "tools"), ("Builds.llvm", "builds.llvm")]
)
def test_a_name_that_there_is_not(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"no such check: '{name}'") as caught:
        run.chosen_checks(["machine", name])
    assert f"did you mean {nearest!r}?" in str(caught.value)


def test_the_others_go_on_when_one_crashes(subject: DoctorContext) -> None:
    def crash(_: DoctorContext) -> list[Finding]:
        raise ZeroDivisionError("of ours")

    found = run.run_checks(
        subject, [Check("a.one", "x", deep), Check("a.two", "x", crash), Check("a.three", "x", deep)]
    )
    assert [(one.check, one.status) for one in found] == [
        ("a.one", "ok"),
        ("a.two", "crashed"),
        ("a.three", "ok"),
    ]


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
    plan = run.fix_plan(
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
    assert run.fix_plan((Finding("error", "x"), Finding("ok", "y"))).steps == ()


def test_a_whole_examination(programs: Programs) -> None:
    programs(VERSIONS)
    found = run.examine(Settings("dev"))
    assert {"machine", "tools", "sources", "builds"} <= {one.group for one in found}
    assert "crashed" not in {one.status for one in found}
    (entry,) = history.read(workspace.default().env("dev").history)
    assert entry.worst == worst(found)
