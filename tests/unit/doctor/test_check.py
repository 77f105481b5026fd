from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import COMMIT, VERSIONS, Programs, built, leave, venv
from tests.unit.facts import fakes
from tritonsmith.core.envs.settings import LlvmSettings, Settings, TritonSettings
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Move
from tritonsmith.doctor.check import (
    Check,
    DoctorContext,
    Finding,
    NotApplicableError,
    Status,
    check,
    findings_as_json,
    ok,
    skipped,
    worst,
)

STEP = Move(Path("/a"), Path("/b"), phase="p")
ALL = (
    Finding("not applicable", "nothing to look at", check="builds.cmake-paths"),
    Finding("ok", "3.31", "/usr/bin/cmake", check="tools.cmake"),
    Finding("note", "not installed", affects="slow", remedy="install it", check="tools.ccache"),
    Finding("warning", "2 GiB", affects="killed", remedy="or [x]", check="machine.memory"),
    Finding(
        "error",
        "a link to nowhere",
        "/src",
        "no build",
        "link it",
        ("do this", "then that"),
        (STEP,),
        "builds.llvm",
    ),
    Finding("crashed", "KeyError: 'x'", check="builds.triton"),
)


def test_the_documented_json() -> None:
    answer = json.loads(json.dumps(findings_as_json(ALL)))
    assert list(answer) == ["schema", "worst", "findings"]
    assert (answer["schema"], answer["worst"]) == (2, "crashed")
    assert answer["findings"][4] == {
        "id": "builds.llvm",
        "group": "builds",
        "status": "error",
        "seen": "a link to nowhere",
        "where": "/src",
        "affects": "no build",
        "remedy": "link it",
        "commands": ["do this", "then that"],
        "docs": "invoke doctor --explain builds.llvm",
        "fixable": True,
    }
    assert [row["status"] for row in answer["findings"]] == [one.status for one in ALL]
    assert {tuple(row) for row in answer["findings"]} == {tuple(answer["findings"][0])}
    assert [row["fixable"] for row in answer["findings"]].count(True) == 1


def test_the_json_of_nothing() -> None:
    assert findings_as_json(()) == {"schema": 2, "worst": "ok", "findings": []}


@pytest.mark.parametrize("count", range(7))
def test_the_worst(count: int) -> None:
    order: tuple[Status, ...] = ("ok", "not applicable", "ok", "note", "warning", "error", "crashed")
    assert worst(tuple(reversed(ALL[:count]))) == order[count]


def test_groups_and_what_is_wrong() -> None:
    assert [one.group for one in ALL] == ["builds", "tools", "tools", "machine", "builds", "builds"]
    assert [one.name for one in ALL[:2]] == ["cmake-paths", "cmake"]
    assert [one.wrong for one in ALL] == [False, False, False, True, True, True]


def test_the_two_short_forms() -> None:
    assert ok("fine", Path("/x")) == Finding("ok", "fine", "/x")
    assert ok("fine").where == ""
    assert skipped("nothing") == Finding("not applicable", "nothing")


def root_of(subject: DoctorContext) -> Path | None:
    return subject.checkout.root if subject.checkout else None


def named(subject: DoctorContext, source: str) -> DoctorContext:
    return replace(subject, settings=Settings("dev", triton=TritonSettings(source=source)))


# --- the checkout


def test_which_checkout_is_meant(subject: DoctorContext, home: Path) -> None:
    assert subject.checkout is None
    assert subject.unreadable is None
    clone = fakes.checkout(subject.space.sources / "triton-dev", "3.1")
    last = fakes.checkout(subject.cwd / "last", "3.3")
    here = fakes.checkout(subject.cwd / "here", "3.5")
    mine = fakes.checkout(home / "mine", "3.8")
    assert root_of(replace(subject)) == clone
    receipt = built(subject, last)
    assert root_of(replace(subject)) == last
    inside = replace(subject, cwd=here / "third_party" / "nvidia")
    assert root_of(inside) == here
    assert root_of(named(inside, "~/mine")) == mine
    assert root_of(named(inside, "https://github.com/triton-lang/triton")) == here
    assert root_of(named(subject, "git@github.com:triton-lang/triton")) == last
    (last / "setup.py").unlink(missing_ok=True)
    receipt.unlink()
    assert root_of(replace(subject)) == clone


def test_sources_that_were_deleted_since_they_were_built(subject: DoctorContext) -> None:
    built(subject, subject.cwd / "gone")
    assert subject.checkout is None
    assert subject.unreadable is None  # builds.triton says so


def test_a_checkout_that_cannot_be_read(subject: DoctorContext) -> None:
    found = named(subject, str(subject.cwd / "gone"))
    assert found.checkout is None
    assert isinstance(found.unreadable, FactError)
    assert "not a checkout of Triton" in str(found.unreadable)
    assert found.triton_version == ""


# --- the LLVM


def test_which_llvm_is_meant(subject: DoctorContext) -> None:
    assert (subject.llvm_prefix, subject.llvm) == (None, None)
    prefixes = {name: fakes.llvm(subject.cwd / name) for name in ("named", "prepared", "variable")}
    found = replace(subject, environ={"LLVM_SYSPATH": str(prefixes["variable"])})
    assert found.llvm_prefix == prefixes["variable"]
    leave(subject, "setup-mlir", prefix=prefixes["prepared"])
    assert found.llvm_prefix == prefixes["prepared"]
    found.settings = Settings("dev", llvm=LlvmSettings(dir=str(prefixes["named"])))
    assert found.llvm_prefix == prefixes["named"]
    assert found.llvm is not None
    assert found.llvm.prefix == prefixes["named"]


def test_an_llvm_in_the_home_folder_and_a_relative_one(subject: DoctorContext, home: Path) -> None:
    fakes.llvm(home / "llvm")
    fakes.llvm(subject.cwd / "build" / "llvm")
    for path, prefix in (("~/llvm", home / "llvm"), ("build/llvm", subject.cwd / "build" / "llvm")):
        found = replace(subject, environ={"LLVM_SYSPATH": path})
        assert found.llvm_prefix == prefix
        assert found.llvm is not None
        assert found.llvm.prefix == prefix


@pytest.mark.parametrize("path", ["", "/", "/gone"])
def test_an_llvm_that_is_none(subject: DoctorContext, path: str) -> None:
    found = replace(subject, environ={"LLVM_SYSPATH": path})
    assert found.llvm_prefix == (Path(path) if path else None)
    assert found.llvm is None


def test_a_receipt_without_a_prefix(subject: DoctorContext) -> None:
    leave(subject, "setup-mlir", commit=COMMIT)
    assert subject.llvm_prefix is None


# --- the Python


def test_which_interpreter_is_meant(subject: DoctorContext) -> None:
    assert (subject.interpreter, subject.packages) == (None, None)
    conda = venv(subject.cwd / "conda")
    found = replace(subject, environ={"CONDA_PREFIX": str(subject.cwd / "conda")})
    assert found.interpreter == conda
    active = venv(subject.cwd / "active")
    found = replace(found, environ={**found.environ, "VIRTUAL_ENV": str(subject.cwd / "active")})
    assert found.interpreter == active
    own = venv(subject.env.venv, lit="18.1.8")
    found = replace(found)
    assert found.interpreter == own
    assert found.packages is not None
    assert dict(found.packages.dists)["lit"] == "18.1.8"
    assert replace(found, python=conda).interpreter == conda


def test_the_tools_own_environment_is_not_meant(
    subject: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = venv(subject.cwd / "own").parents[1]
    monkeypatch.setattr("sys.prefix", str(active))
    assert replace(subject, environ={"VIRTUAL_ENV": str(active)}).interpreter is None


def test_an_environment_whose_interpreter_is_gone(subject: DoctorContext) -> None:
    python = venv(subject.env.venv)
    python.unlink()
    python.symlink_to("/gone/python3")
    assert subject.interpreter is None


@pytest.mark.parametrize("kind", ["folder", "text", "no Python"])
def test_an_interpreter_that_does_not_run(subject: DoctorContext, kind: str) -> None:
    python = subject.cwd / "python"
    if kind == "folder":
        python.mkdir()
    else:
        python.write_text("#!/bin/sh\necho hello\n" if kind == "no Python" else "hello")
        python.chmod(0o755 if kind == "no Python" else 0o644)
    found = replace(subject, python=python)
    assert (found.interpreter, found.packages, found.triton_version) == (python, None, "")


# --- the rest


def test_the_version_in_question(subject: DoctorContext) -> None:
    python = venv(subject.env.venv, triton="3.4.0")
    (info,) = python.parents[1].glob("lib/*/site-packages/triton-3.4.0.dist-info")
    (info / "RECORD").write_text("triton/__init__.py,,\n")
    assert subject.triton_version == "3.4.0"
    root = fakes.checkout(subject.cwd / "triton", "3.5")
    assert replace(subject, cwd=root).triton_version == "3.5.0"


def test_the_programs_are_those_of_the_config(subject: DoctorContext, programs: Programs) -> None:
    folder = programs(VERSIONS | {"clang++-17": "17.0.6"})
    (folder / "clang++").unlink()
    (folder / "ccache").unlink()
    found = subject.programs
    assert set(found) == set(VERSIONS)
    assert found["ccache"] is None
    clang = found["clang++"]
    assert clang is not None
    assert (clang.path, clang.version) == (folder / "clang++-17", "17.0.6")


def test_a_ccache_that_does_not_answer(subject: DoctorContext, programs: Programs) -> None:
    programs({"ccache": "4.8"})  # it prints its version, whatever it is asked
    found = replace(subject)
    assert found.programs["ccache"] is not None
    assert found.ccache is not None
    assert found.ccache.limit_gib == 0
    programs({"ccache": "\n[ $1 = --version ] && echo ccache version 4.8\n"})
    assert replace(subject).ccache is None
    programs({"ccache": "\nexit 1\n"})
    assert replace(subject).ccache is None


def test_each_fact_is_read_once(subject: DoctorContext) -> None:
    fakes.checkout(subject.cwd, "3.5")
    first = subject.checkout
    (subject.cwd / "setup.py").unlink()
    assert subject.checkout is first


def test_a_damaged_receipt_is_none(subject: DoctorContext) -> None:
    path = leave(subject, "setup-mlir", prefix="/x")
    assert subject.receipt("setup-mlir") is not None
    path.write_text("{")
    assert subject.receipt("setup-mlir") is None


@check("tools.two", "a check that finds two things", deep=True)
def two(subject: DoctorContext) -> Iterator[Finding]:
    yield ok(f"environment {subject.settings.name}")
    yield skipped("the other")


@check("tools.broken", "a check with a bug")
def broken(subject: DoctorContext) -> Iterator[Finding]:
    yield ok("so far")
    yield ok({"tools": subject.settings.name}["no such key"])


def test_a_function_becomes_a_check() -> None:
    assert isinstance(two, Check)
    assert (two.id, two.group, two.title, two.deep) == (
        "tools.two",
        "tools",
        "a check that finds two things",
        True,
    )
    assert not broken.deep


def test_each_finding_gets_the_name_of_its_check(subject: DoctorContext) -> None:
    assert [(found.check, found.status, found.seen) for found in two(subject)] == [
        ("tools.two", "ok", "environment dev"),
        ("tools.two", "not applicable", "the other"),
    ]


def test_a_check_that_does_not_apply_says_why(subject: DoctorContext) -> None:
    @check("tools.absent", "a check of what is not there")
    def absent(_: DoctorContext) -> Iterator[Finding]:
        raise NotApplicableError("nothing to look at")

    assert absent(subject) == (Finding("not applicable", "nothing to look at", check="tools.absent"),)


def test_a_check_that_crashes_is_a_finding(subject: DoctorContext) -> None:
    (found,) = broken(subject)
    assert (found.check, found.status, found.seen) == (
        "tools.broken",
        "crashed",
        "KeyError: 'no such key'",
    )
    assert "a bug in the doctor" in found.remedy
    assert found.wrong
