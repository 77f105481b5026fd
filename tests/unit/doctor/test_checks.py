from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith import configs
from tritonsmith.doctor import checks, report
from tritonsmith.doctor.checks import Subject
from tritonsmith.doctor.finding import Finding
from tritonsmith.envs import receipts
from tritonsmith.envs.schema import LlvmSettings, Settings, TritonSettings
from tritonsmith.envs.workspace import Workspace
from tritonsmith.facts.machine import Machine

GIB = 1 << 30
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject(Settings("dev"), Workspace(tmp_path / "space"), Machine("Linux", "x86_64", 8, 32 * GIB))


def only(found: Iterator[Finding]) -> Finding:
    (one,) = found
    return one


# --- machine


@pytest.mark.parametrize(("memory", "status"), [(32, "ok"), (4, "ok"), (2, "warning")])
def test_memory(subject: Subject, memory: int, status: str) -> None:
    host = replace(subject.host, memory=memory * GIB)
    found = only(checks.machine_memory(replace(subject, host=host)))
    assert (found.id, found.status) == ("machine.memory", status)
    assert f"{memory}.0 GiB, 8 cores" in found.seen
    assert bool(found.remedy) is (status != "ok")


@pytest.mark.parametrize(
    ("free", "settings", "status"),
    [
        (500, Settings("x"), "ok"),
        (20, Settings("x"), "note"),
        (20, Settings("x", llvm=LlvmSettings(build_type="Release")), "ok"),
        (20, Settings("x", triton=TritonSettings(wheel="newest")), "ok"),
        (1, Settings("x"), "error"),
        (1, Settings("x", triton=TritonSettings(wheel="newest")), "error"),
    ],
)
def test_disk(
    subject: Subject, free: float, settings: Settings, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonsmith.facts.machine.disk_free", lambda _: float(free))
    found = only(checks.machine_disk(replace(subject, settings=settings)))
    assert (found.id, found.status) == ("machine.disk", status)
    assert f"{free} GiB free" in found.seen
    assert (found.affects == "") is (status == "ok")


# --- tools

GOOD = {
    "cmake": "3.31.10",
    "ninja": "1.13",
    "git": "2.39.5",
    "clang++": "19.1.7",
    "ld.lld": "19.1.7",
    "ccache": "4.8",
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Fills the only folder of programs: name to the version that it prints."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.executable", str(folder / "python"))

    def fill(versions: dict[str, str]) -> None:
        for name, version in versions.items():
            (folder / name).write_text(f"#!/bin/sh\necho '{name} version {version}'\n")
            (folder / name).chmod(0o755)

    return fill


def statuses(found: Iterator[Finding]) -> dict[str, str]:
    return {one.id: one.status for one in found}


def test_the_rows_are_those_of_the_config(subject: Subject, programs: Callable[..., None]) -> None:
    programs(GOOD)
    found = list(checks.tools_versions(subject))
    assert [one.id for one in found] == [f"tools.{row['name']}" for row in configs.load("tools")["tool"]]
    assert {one.status for one in found} == {"ok"}
    assert found[0].seen.startswith("3.31.10 at /")


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [
        ("cmake", "4.1.0", "warning"),
        ("cmake", "3.16.3", "warning"),
        ("ninja", "1.10.0", "warning"),
        ("ninja", "1.12.1.git.kitware.jobserver-1", "ok"),
        ("clang++", "13.0.1", "warning"),
        ("git", "unknown", "ok"),
    ],
)
def test_versions_that_do_not_fit(
    subject: Subject, programs: Callable[..., None], name: str, version: str, status: str
) -> None:
    programs(GOOD | {name: version})
    found = {one.id: one for one in checks.tools_versions(subject)}
    wrong = found.pop(f"tools.{name}")
    assert wrong.status == status
    assert {one.status for one in found.values()} == {"ok"}
    if status == "warning":
        assert "wanted" in wrong.seen
        assert wrong.affects
        assert wrong.remedy


def test_missing_programs(subject: Subject, programs: Callable[..., None]) -> None:
    programs({})
    building = statuses(checks.tools_versions(subject))
    assert building == {
        "tools.cmake": "error",
        "tools.ninja": "error",
        "tools.git": "error",
        "tools.clang++": "error",
        "tools.ld.lld": "note",
        "tools.ccache": "note",
    }
    wheel = replace(subject, settings=Settings("wheel", triton=TritonSettings(wheel="newest")))
    assert set(statuses(checks.tools_versions(wheel)).values()) == {"note"}


def test_versioned_names_count(subject: Subject, programs: Callable[..., None]) -> None:
    programs(GOOD | {"clang++-17": "17.0.6"})
    (Path(subject.space.root).parent / "bin" / "clang++").unlink()
    found = {one.id: one for one in checks.tools_versions(subject)}
    assert found["tools.clang++"].seen.endswith("/clang++-17")


# --- builds


def leave(subject: Subject, task: str, **content: Any) -> None:
    path = subject.space.env("dev").receipt(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(receipts.render(task, content))


def test_nothing_built_is_nothing_to_say(subject: Subject) -> None:
    assert list(checks.builds_llvm(subject)) == []
    assert list(checks.builds_triton(subject)) == []


@pytest.mark.parametrize(
    ("pin", "status"), [(COMMIT, "ok"), (COMMIT[:12], "ok"), ("", "ok"), ("f" * 40, "warning")]
)
def test_llvm_against_its_pin(subject: Subject, tmp_path: Path, pin: str, status: str) -> None:
    header = "include/llvm/Support/VCSRevision.h"
    prefix = fakes.llvm(tmp_path / "llvm", files=(header,))
    (prefix / header).write_text(f'#define LLVM_REVISION "{COMMIT}"\n')
    leave(subject, "setup-mlir", prefix=prefix, pin=pin)
    found = only(checks.builds_llvm(subject))
    assert (found.id, found.status) == ("builds.llvm", status)
    assert f"LLVM 19.1.7 (RelWithDebInfo) in {prefix}" in found.seen
    if status == "warning":
        assert "ffffffffffff" in found.affects
        assert found.remedy == ("invoke setup-mlir --env dev",)


def test_llvm_that_is_gone(subject: Subject, tmp_path: Path) -> None:
    leave(subject, "setup-mlir", prefix=tmp_path / "gone", pin=COMMIT)
    found = only(checks.builds_llvm(subject))
    assert (found.status, found.affects) == ("error", "Triton cannot be built")
    assert str(tmp_path / "gone") in found.seen


def built(subject: Subject, source: Path, **changes: Any) -> None:
    content = {"source": source, "version": "3.5.0", "build_type": "Debug", "commit": "", "pin": fakes.HASH}
    leave(subject, "build-triton", **content | changes)


@pytest.mark.parametrize(
    ("changes", "status", "affects"),
    [
        ({}, "ok", ""),
        ({"commit": "a" * 40}, "warning", "built at aaaaaaaaaaaa, the checkout is at"),
        ({"pin": "b" * 40}, "warning", "built for LLVM bbbbbbbbbbbb, the checkout pins 10dc3a8e916d"),
        ({"pin": ""}, "warning", "the checkout pins 10dc3a8e916d"),
    ],
)
def test_triton_against_its_sources(
    subject: Subject, tmp_path: Path, changes: dict[str, str], status: str, affects: str
) -> None:
    require("git")
    source = fakes.checkout(tmp_path / "triton", "3.5")
    built(subject, source, **{"commit": fakes.commit(source)} | changes)
    found = only(checks.builds_triton(subject))
    assert (found.id, found.status) == ("builds.triton", status)
    assert affects in found.affects
    assert f"Triton 3.5.0 (Debug) of {source}" in found.seen


def test_triton_whose_sources_are_gone(subject: Subject, tmp_path: Path) -> None:
    built(subject, tmp_path / "gone")
    found = only(checks.builds_triton(subject))
    assert (found.status, found.affects) == ("error", "the build has no sources")


# --- all together


def test_a_check_that_crashes_is_a_finding_and_the_others_go_on(
    subject: Subject, programs: Callable[..., None]
) -> None:
    programs(GOOD)
    leave(subject, "setup-mlir", nonsense=1)
    leave(subject, "build-triton", nonsense=1)
    found = {one.id: one for one in checks.examine(subject)}
    for name, what in (("builds.llvm", "KeyError: 'prefix'"), ("builds.triton", "KeyError: 'source'")):
        assert (found[name].status, found[name].seen) == ("crashed", what)
        assert "bug of the doctor" in found[name].remedy[0]
    assert found["machine.memory"].status == "ok"
    assert found["tools.ccache"].status == "ok"


def test_a_damaged_receipt_is_none(subject: Subject) -> None:
    leave(subject, "setup-mlir")
    subject.space.env("dev").receipt("setup-mlir").write_text("{")
    assert list(checks.builds_llvm(subject)) == []


def test_a_whole_examination_can_be_printed_as_json(programs: Callable[..., None]) -> None:
    programs(GOOD)
    found = report.examine(Settings("dev"))
    assert {one.group for one in found} == {"machine", "tools"}
    assert json.dumps([one.seen for one in found])
