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


def run(place: Path, python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "PYTHON": str(python)}
    argv = [str(place / "bootstrap"), "env"]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """A Python that makes environments, whose pip reaches nothing."""
    path = tmp_path / "python"
    path.write_text("""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\\nexit 1\\n' >"$3/bin/python"
chmod +x "$3/bin/python"
""")
    path.chmod(0o755)
    return path


def test_a_venv_of_the_users(place: Path) -> None:
    done = run(place)
    assert done.returncode == 1
    assert "is there already, and this script did not make it" in done.stderr
    assert (place / ".venv" / "mine").read_text() == "mine"


def test_a_run_after_one_that_failed(place: Path, offline: Path) -> None:
    shutil.rmtree(place / ".venv")
    assert "cannot install the dependencies" in run(place, offline).stderr
    (place / ".venv" / "left over").touch()
    assert "cannot install the dependencies" in run(place, offline).stderr
    assert not (place / ".venv" / "left over").exists()


def test_a_venv_that_was_made_by_hand_since_a_run_that_failed(place: Path, offline: Path) -> None:
    shutil.rmtree(place / ".venv")
    run(place, offline)
    # Often with the very inode of the one before.
    shutil.rmtree(place / ".venv")
    (place / ".venv").mkdir()
    (place / ".venv" / "mine").write_text("mine")
    assert "is there already, and this script did not make it" in run(place, offline).stderr
    assert (place / ".venv" / "mine").read_text() == "mine"
