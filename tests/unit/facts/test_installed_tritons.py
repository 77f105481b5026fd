"""Which Tritons are installed, read from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import installed_tritons
from tritonsmith.facts.distributions import Distribution
from tritonsmith.facts.python_env import PythonEnv


def install(prefix: Path, version: str, *, editable: bool = False) -> Path:
    """A Triton in a virtual environment's folder."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    if editable:
        info = site / f"triton-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
    else:
        (site / "triton").mkdir(parents=True)
        (site / "triton" / "__init__.py").write_text(f'"""Doc."""\n__version__ = "{version}"\n')
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python3").touch()
    return site


def test_one_from_a_checkout_is_told_apart(tmp_path: Path) -> None:
    install(tmp_path / "envs" / "a" / "venv", "3.8.0", editable=True)
    install(tmp_path / "envs" / "b" / "venv", "3.7.1")
    found = installed_tritons.find({}, Workspace(tmp_path))
    assert [(one.version, one.checkout) for one in found] == [("3.8.0", True), ("3.7.1", False)]


def find(environ: dict[str, str], space: Path) -> list[str]:
    return [found.version for found in installed_tritons.find(environ, Workspace(space))]


@pytest.mark.parametrize("editable", [True, False])
def test_environments_of_the_tool(tmp_path: Path, editable: bool) -> None:
    install(tmp_path / "envs" / "dev" / "venv", "3.8.0+git1234567", editable=editable)
    assert find({}, tmp_path) == ["3.8.0"]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_environment(tmp_path: Path, variable: str) -> None:
    install(tmp_path / "mine", "3.2.0")
    assert find({variable: str(tmp_path / "mine")}, tmp_path) == ["3.2.0"]


def test_python_on_path_and_its_base(tmp_path: Path) -> None:
    install(tmp_path / "base", "3.1.0")
    install(tmp_path / "mine", "3.3.1")
    (tmp_path / "mine" / "bin" / "python").symlink_to(tmp_path / "base" / "bin" / "python3")
    assert sorted(find({"PATH": f"{tmp_path / 'mine' / 'bin'}:/nowhere:"}, tmp_path)) == ["3.1.0", "3.3.1"]


def test_packages_of_the_user(tmp_path: Path) -> None:
    install(tmp_path / ".local", "2.1.0")
    assert find({"HOME": str(tmp_path)}, tmp_path) == ["2.1.0"]


def test_an_interpreter_that_was_asked(tmp_path: Path) -> None:
    asked = PythonEnv(
        executable=tmp_path / "python",
        version="3.11.7",
        include=tmp_path,
        headers=True,
        purelib=tmp_path,
        platform="linux-x86_64",
        distributions=(
            Distribution("pytorch-triton", "3.4.0+gitf7888497", tmp_path, tmp_path / "x", owns="RECORD"),
            Distribution("torch", "2.8.0", tmp_path, tmp_path / "y"),
        ),
    )
    (found,) = installed_tritons.find({}, Workspace(tmp_path), asked)
    assert (found.version, found.checkout) == ("3.4.0", False)


def test_none(tmp_path: Path) -> None:
    site = tmp_path / "mine" / "lib" / "python3.11" / "site-packages" / "triton"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("somebody else's\n")
    assert find({"VIRTUAL_ENV": str(tmp_path / "mine"), "PATH": ""}, tmp_path) == []
