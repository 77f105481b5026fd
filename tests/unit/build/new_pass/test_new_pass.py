"""The folder of a plugin; docs/new-pass.md says where one was built and loaded."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.cli.tasks.conftest import smith as smith  # noqa: PLC0414 - a fixture


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    return ("pass.new", "hoist-loads", "--plugin", "--wheel", "3.9.0", "--out", str(tmp_path / "out put"))


def test_the_folder(smith: Smith, tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "out put"
    assert smith(*words, "--dry-run").code == 0
    assert not folder.exists()
    answer = smith(*words, "--source", str(tmp_path / "triton"))
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "CMakeLists.txt",
        "HoistLoads.cpp",
        "README.md",
        "hoist-loads.mlir",
        "hoist_loads.py",
        "lit.cfg.py",
        "test_hoist_loads.py",
    ]
    for path in folder.iterdir():
        text = path.read_text()
        assert "@" not in text.replace("@triton.jit", "").replace("func public @", "")
        if path.suffix == ".py":
            ast.parse(text)
    assert 'STAGE = "ttgir"' in (folder / "hoist_loads.py").read_text()
    assert "invoke worktree add v3.9.0" in answer.out
    assert f"-DTRITON_SOURCE={tmp_path / 'triton'}" in answer.out
    assert f"'{folder}/build/libhoist_loads.so' --wheel 3.9.0" in answer.out
    assert smith(*words, "--source", str(tmp_path / "triton")).code == 0  # nothing has changed since
    (folder / "HoistLoads.cpp").write_text("mine")
    refused = smith(*words)
    assert (refused.code, "already exists" in refused.err) == (2, True)
    assert (folder / "HoistLoads.cpp").read_text() == "mine"


def test_the_stage_of_a_family(smith: Smith, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert smith(*words, "--family", "ttir").code == 0
    assert 'STAGE = "ttir"' in (tmp_path / "out put" / "hoist_loads.py").read_text()
    assert smith(*words, "--family", "ttyr").code == 2


def test_flags_of_plugins(smith: Smith) -> None:
    refused = smith("pass.new", "x", "--wheel", "3.9.0")
    assert (refused.code, "are for plugins" in refused.err) == (2, True)
    assert smith("pass.new", "X", "--plugin").code == 2
