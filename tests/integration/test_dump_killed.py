"""A dump under SIGKILL, over an older one: the next run goes on, and what is the user's stays."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.harness import SMITH, Smith, preloaded
from tests.unit.compiler.dump.streams import banner, module
from tritonsmith.compiler.dump import index as indexes

KILLED = -9
_LOADS = [f"%{number} = tt.load %arg{number} : !tt.ptr<f32>" for number in range(4)]
OLD = banner("Old", "old") + module(_LOADS[0]) + banner("Older", "older") + module(_LOADS[1])
NEW = "".join(banner(f"P{number}", f"p{number}") + module(text) for number, text in enumerate(_LOADS))


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    """The tool in a folder with two logs, and a program that prints one of them."""
    (tmp_path / "old").write_text(OLD, encoding="utf-8")
    (tmp_path / "new").write_text(NEW, encoding="utf-8")
    program = "import sys; sys.stderr.write(open('new').read())"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    return Smith(tmp_path, cwd=tmp_path)


def told(folder: Path) -> list[tuple[str, str]]:
    """The passes of a dump, each with its text."""
    index = indexes.read(folder)
    return [(one.name, index.text(one)) for one in index.dumps]


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv", [("passes.import", "new"), ("passes.dump", "--", sys.executable, "program.py")]
)
def test_every_death_on_the_way_and_each_next_run_goes_on(smith: Smith, argv: tuple[str, ...]) -> None:
    folder, before = smith.cwd / "dump", smith.cwd / "before"
    smith("passes.import", "old", "--out", "before")
    (before / "notes.txt").write_text("mine\n", encoding="utf-8")
    full = (argv[0], "--out", "dump", *argv[1:])
    smith(*full)
    expected = {path.relative_to(folder) for path in folder.rglob("*")} | {Path("notes.txt")}
    passes = told(folder)
    deaths = 0
    while _death(smith, before, folder, full, deaths) == KILLED:
        deaths += 1
        smith(*full)
        assert {path.relative_to(folder) for path in folder.rglob("*")} == expected, deaths
        assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine\n"
    assert deaths > 10
    assert told(folder) == passes


def _death(smith: Smith, before: Path, folder: Path, argv: tuple[str, ...], at: int) -> int:
    """Kill a run over an older dump before one of its changes; its exit code."""
    shutil.rmtree(folder)
    shutil.copytree(before, folder)
    done = preloaded().run(
        (SMITH, *argv), cwd=smith.cwd, env=smith.environ, timeout=smith.patience, death=(at, folder)
    )
    return done.returncode


def _kill(smith: Smith) -> Path:
    """A dump whose run was killed after its first text."""
    folder = smith.cwd / "dump"
    for at in range(40):
        shutil.rmtree(folder, ignore_errors=True)
        argv = (SMITH, "passes.import", "new", "--out", "dump")
        done = preloaded().run(
            argv, cwd=smith.cwd, env=smith.environ, timeout=smith.patience, death=(at, folder)
        )
        assert done.returncode == KILLED
        if any(folder.glob("*/000-*")):
            return folder
    raise AssertionError("it has written no text")


def test_a_dump_that_was_killed_says_so(smith: Smith) -> None:
    _kill(smith)
    assert "the run that began it was killed" in smith("passes.list", "dump", code=1).err


@pytest.mark.parametrize(
    "add",
    [
        lambda folder: next(folder.glob("*/000-*")).with_name("mine.txt").write_text("x"),
        lambda folder: next(folder.glob("*/000-*")).with_name("009-mine.mlir").symlink_to("/etc/passwd"),
        lambda folder: next(folder.glob("*/000-*")).with_name("008-mine.mlir").mkdir(),
        lambda folder: next(folder.glob("*/000-*")).with_name("007-edited.mlir").write_text("mine"),
    ],
)
def test_files_of_others_in_such_a_dump_are_not_deleted(smith: Smith, add: Callable[[Path], object]) -> None:
    folder = _kill(smith)
    add(folder)
    before = sorted(folder.rglob("*"))
    done = smith("passes.import", "new", "--out", "dump", code=2)
    assert "contains files that do not belong to the dump" in done.error
    assert sorted(folder.rglob("*")) == before


def test_a_copy_of_its_texts_is_left_alone(smith: Smith) -> None:
    folder = _kill(smith)
    kernel = next(folder.glob("*/000-*")).parent
    shutil.copytree(kernel, folder / "edited")
    smith("passes.import", "new", "--out", "dump")
    assert [path.name for path in (folder / "edited").iterdir()] == [
        path.name for path in kernel.glob("000-*")
    ]
