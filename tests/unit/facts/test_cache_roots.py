"""Where Triton's caches are looked for."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import triton_cache
from tritonsmith.facts.triton_cache import Root


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(home), "TMPDIR": str(tmp_path)}


def find(environ: dict[str, str], space: Path = Path("/nowhere")) -> list[tuple[str, Path, str, bool]]:
    found = triton_cache.find(environ, Workspace(space))
    return [(root.kind, root.path, root.source, root.current) for root in found]


def make(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True)


def test_the_default_is_told_even_before_it_is_there(environ: dict[str, str], home: Path) -> None:
    assert find(environ) == [("jit", home / ".triton" / "cache", "the default", True)]


@pytest.mark.parametrize("empty", ["", "  "])
def test_variables_that_are_empty_name_nothing(environ: dict[str, str], home: Path, empty: str) -> None:
    found = find(environ | {"TRITON_CACHE_DIR": empty, "TRITON_HOME": empty})
    assert found == [("jit", home / ".triton" / "cache", "the default", True)]


def test_variables_come_first_and_older_defaults_stay_in_sight(
    environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    named, moved = tmp_path / "named", tmp_path / "moved"
    defaults = [folder / ".triton" / "cache" for folder in (moved, home)]
    make(named, *defaults)
    found = find(environ | {"TRITON_CACHE_DIR": str(named), "TRITON_HOME": str(moved)})
    assert found == [
        ("jit", named, "TRITON_CACHE_DIR", True),
        ("jit", defaults[0], "TRITON_HOME", False),
        ("jit", defaults[1], "the default", False),
    ]


def test_dumps_and_overrides(environ: dict[str, str], home: Path, tmp_path: Path) -> None:
    make(home / ".triton" / "dump", home / ".triton" / "override", tmp_path / "d", tmp_path / "o")
    found = find(
        environ | {"TRITON_DUMP_DIR": str(tmp_path / "d"), "TRITON_OVERRIDE_DIR": str(tmp_path / "o")}
    )
    assert [(kind, path.name, source) for kind, path, source, _ in found[1:]] == [
        ("dump", "d", "TRITON_DUMP_DIR"),
        ("dump", "dump", "the default"),
        ("override", "o", "TRITON_OVERRIDE_DIR"),
        ("override", "override", "the default"),
    ]


def test_environments_of_the_tool(environ: dict[str, str], tmp_path: Path) -> None:
    make(tmp_path / "space" / "envs" / "wheel" / "triton-cache")
    *_, (kind, path, source, current) = find(environ, tmp_path / "space")
    assert (kind, source, current) == ("env", "environment wheel", False)
    assert Root("env", path, source).label == "env wheel"


@pytest.mark.parametrize("by_variable", [True, False])
def test_torchinductors_has_one_folder_for_each_device(
    environ: dict[str, str], tmp_path: Path, by_variable: bool
) -> None:
    folder = tmp_path / ("named" if by_variable else f"torchinductor_{getpass.getuser()}")
    make(folder / "triton" / "0", folder / "triton" / "1", folder / "fxgraph")
    more = {"TORCHINDUCTOR_CACHE_DIR": str(folder)} if by_variable else {}
    found = [path.relative_to(folder) for kind, path, *_ in find(environ | more) if kind == "inductor"]
    assert found == [Path("triton/0"), Path("triton/1")]
    assert Root("inductor", folder / "triton" / "0", "").label == "inductor 0"


def test_a_folder_that_two_variables_name_is_told_once(
    environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    (home / ".triton").mkdir()
    make(tmp_path / "disk")
    (home / ".triton" / "cache").symlink_to(tmp_path / "disk")
    found = triton_cache.find(environ | {"TRITON_CACHE_DIR": str(tmp_path / "disk")}, Workspace(tmp_path))
    assert [(root.source, root.real) for root in found] == [("TRITON_CACHE_DIR", tmp_path / "disk")]
