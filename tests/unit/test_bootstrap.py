"""`bootstrap`: a `.venv` that it did not make is left alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A checkout with what the script reads, and a `.venv` that somebody made."""
    root = tmp_path / "my clone"
    shutil.copytree(REPOSITORY / "configs" / "lock", root / "configs" / "lock")
    for name in ("bootstrap", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, root / name)
    (root / ".venv").mkdir()
    (root / ".venv" / "mine").write_text("mine")
    return root


def run(place: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    argv = [str(place / "bootstrap"), "env"]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


def test_a_venv_of_the_users(place: Path) -> None:
    done = run(place)
    assert done.returncode == 1
    assert "is there already, and this script did not make it" in done.stderr
    assert (place / ".venv" / "mine").read_text() == "mine"


def test_a_venv_that_was_made_by_hand_since_a_run_that_failed(place: Path) -> None:
    (place / ".venv.incomplete").write_text("12\n")  # the number of another folder
    done = run(place)
    assert done.returncode == 1
    assert "is there already, and this script did not make it" in done.stderr
    assert (place / ".venv" / "mine").read_text() == "mine"
