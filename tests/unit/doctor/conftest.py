"""A subject whose folders are the test's own, and programs, receipts and Pythons for it to find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.facts import fakes
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.doctor.check import Check, DoctorContext, Finding
from tritonsmith.facts.machine import Machine

GIB = 1 << 30
PYTHON = sys.executable  # some tests set another
COMMIT = "0123456789abcdef0123456789abcdef01234567"
VERSIONS = {
    "cmake": "3.31.10",
    "ninja": "1.13",
    "git": "2.39.5",
    "clang++": "19.1.7",
    "ld.lld": "19.1.7",
    "ccache": "4.8",
}

Programs = Callable[[dict[str, str]], Path]


@pytest.fixture
def subject(tmp_path: Path, home: Path) -> DoctorContext:
    """The environment `dev` of a new workspace, seen from an empty folder, on a machine that suffices."""
    space = Workspace(tmp_path / "space")
    found = DoctorContext(Settings("dev"), space, environ={"HOME": str(home)}, cwd=tmp_path)
    found.host = Machine("Linux", "x86_64", 8, 32 * GIB, "debian", "2.36", "3.4.30")
    found.ccache = None
    return found


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Fills the only folder of programs: name to the version that it prints, or to a whole script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.executable", str(folder / "python"))

    def fill(versions: dict[str, str]) -> Path:
        for name, version in versions.items():
            script = version if "\n" in version else f"echo '{name} version {version}'\n"
            (folder / name).write_text(f"#!/bin/sh\n{script}")
            (folder / name).chmod(0o755)
        return folder

    return fill


def only(check: Check, subject: DoctorContext) -> Finding:
    """The one finding of a check, which names it."""
    (found,) = check(subject)
    assert found.check == check.id
    return found


def leave(subject: DoctorContext, task: str, env: str = "dev", **content: Any) -> Path:
    """Leave a receipt, as a task does."""
    path = subject.space.env(env).receipt(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(receipts.render(task, content))
    return path


def built(subject: DoctorContext, source: Path, env: str = "dev", **changes: Any) -> Path:
    """Leave the receipt of a build of a checkout of 3.5."""
    content = {
        "source": source,
        "version": "3.5.0",
        "build_type": "Debug",
        "commit": "",
        "pin": fakes.HASH,
        "python": "3.11.7",
    }
    return leave(subject, "build-triton", env, **content | changes)


def venv(folder: Path, **dists: str) -> Path:
    """Make a virtual environment with these distributions; its interpreter."""
    argv = (PYTHON, "-m", "venv", "--without-pip", folder)
    subprocess.run(argv, capture_output=True, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, version in dists.items():
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder / "bin" / "python"
