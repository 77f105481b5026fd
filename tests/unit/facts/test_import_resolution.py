"""What is worked out is held against what the interpreter itself finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.facts.installs import checkout, editable, put, site_of, triton
from tritonsmith.facts import import_resolution, python_env
from tritonsmith.facts.import_resolution import ResolvedImport

ASK = """
import importlib.util, json
spec = importlib.util.find_spec("triton")
print(json.dumps(spec and [spec.origin, list(spec.submodule_search_locations or [])]))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv") / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    return folder


@pytest.fixture
def venv(bare: Path) -> Path:
    """A virtual environment with nothing in it."""
    for path in site_of(bare).iterdir():
        path.rename(bare / f"{len(list(bare.iterdir()))}-{path.name}")
    return bare


def asked(venv: Path, cwd: Path, pythonpath: str = "") -> Path | None:
    """The folder that the interpreter finds, when it is started with `-c` in a folder."""
    env = {**os.environ, "PYTHONPATH": pythonpath}
    done = subprocess.run(
        (venv / "bin" / "python", "-c", ASK), cwd=cwd, env=env, capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    if answer is None:
        return None
    origin, places = answer
    return Path(places[0]) if places else Path(origin)


def worked_out(venv: Path, *before: Path) -> ResolvedImport | None:
    seen = python_env.read(venv / "bin" / "python")
    assert seen is not None
    return import_resolution.find(
        (*before, *seen.path), import_resolution.finders(seen.sites, seen.distributions)
    )


def nothing(_venv: Path, _: Path) -> None:
    """Install nothing."""


def wheel(venv: Path, _: Path) -> None:
    triton(site_of(venv))


def by_finder(venv: Path, tmp: Path) -> None:
    editable(site_of(venv), checkout(tmp / "src"), finder=True)


def by_pth(venv: Path, tmp: Path) -> None:
    editable(site_of(venv), checkout(tmp / "src"), finder=False)


def by_hand(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"mine.pth": f"{checkout(tmp / 'src') / 'python'}\n"})


def wheel_and_finder(venv: Path, tmp: Path) -> None:
    triton(site_of(venv))
    by_finder(venv, tmp)


def wheel_and_pth(venv: Path, tmp: Path) -> None:
    triton(site_of(venv))
    by_pth(venv, tmp)


def remains_and_finder(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"triton/stale.txt": ""})
    by_finder(venv, tmp)


def remains_and_pth(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"triton/stale.txt": ""})
    by_pth(venv, tmp)


def forsaken_finder(venv: Path, tmp: Path) -> None:
    by_finder(venv, tmp)
    for path in (site_of(venv) / "triton-3.6.0.dist-info").iterdir():
        path.unlink()
    (site_of(venv) / "triton-3.6.0.dist-info").rmdir()


def finder_to_nowhere(venv: Path, tmp: Path) -> None:
    by_finder(venv, tmp)
    (tmp / "src").rename(tmp / "moved")


def module(venv: Path, _: Path) -> None:
    put(site_of(venv), {"triton.py": ""})


INSTALLS = (
    nothing, wheel, by_finder, by_pth, by_hand, wheel_and_finder, wheel_and_pth, remains_and_finder,
    remains_and_pth, forsaken_finder, finder_to_nowhere, module,
)  # fmt: skip
CLONE = {"triton/README.md": ""}
PACKAGE = {"triton/__init__.py": ""}


@pytest.mark.parametrize("put_here", [{}, CLONE, PACKAGE], ids=["empty", "clone", "package"])
@pytest.mark.parametrize("installed", INSTALLS, ids=lambda function: function.__name__)
def test_what_an_import_finds(
    venv: Path, tmp_path: Path, installed: Callable[[Path, Path], None], put_here: dict[str, str]
) -> None:
    installed(venv, tmp_path)
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    put(cwd, put_here)
    found = worked_out(venv, cwd)
    assert (found.folder if found else None) == asked(venv, cwd)


def test_a_clone_in_the_current_folder_hides_an_editable_install(venv: Path, tmp_path: Path) -> None:
    """triton#1693: finders of setuptools come after the path."""
    by_finder(venv, tmp_path)
    put(tmp_path, CLONE)
    found = worked_out(venv, tmp_path)
    assert found == ResolvedImport(tmp_path / "triton", tmp_path, namespace=True)
    without = worked_out(venv)
    assert without is not None
    assert without.folder == tmp_path / "src" / "python" / "triton"
    assert without.by.name == "__editable___triton_3_6_0_finder.py"


def test_pythonpath_comes_first(venv: Path, tmp_path: Path) -> None:
    wheel(venv, tmp_path)
    put(tmp_path / "more", PACKAGE)
    found = worked_out(venv, tmp_path / "more")
    assert found is not None
    assert found.folder == asked(venv, tmp_path, str(tmp_path / "more"))
