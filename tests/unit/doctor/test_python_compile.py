"""The good state, with a real Triton, is in tests/integration/test_up.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.facts.installs import install, site_of
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.doctor import python_compile as deep
from tritonsmith.doctor.context import DoctorContext


@pytest.fixture
def subject(tmp_path: Path) -> DoctorContext:
    """A real Python environment without pip."""
    venv = tmp_path / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", venv), check=True)
    space = Workspace(tmp_path / "space")
    return DoctorContext(Settings("dev"), space, python=venv / "bin" / "python", cwd=tmp_path)


@pytest.mark.parametrize("version", ["", "2.1.0"])
def test_nothing_that_could_compile(subject: DoctorContext, tmp_path: Path, version: str) -> None:
    if version:
        install(site_of(tmp_path / "a venv"), "triton", version, {"triton/__init__.py": ""})
    (found,) = deep.compiles(subject)
    assert (found.status, found.check) == ("not applicable", "python.compile")


def test_a_triton_that_does_not_load(subject: DoctorContext, tmp_path: Path) -> None:
    broken = "raise ImportError('libtriton.so: undefined symbol: PyX')\n"
    install(site_of(tmp_path / "a venv"), "triton", "3.5.0", {"triton/__init__.py": broken})
    (found,) = deep.compiles(subject)
    assert found.status == "error"
    assert "Triton 3.5.0 does not compile vector-add for cuda:80:32" in found.seen
    assert "undefined symbol: PyX" in found.seen
    assert found.commands
