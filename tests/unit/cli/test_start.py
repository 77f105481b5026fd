"""Answers of `explain` that are printed again: the same byte by byte, and never older than their sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tritonsmith.atlas import command
from tritonsmith.cli import pages, start
from tritonsmith.core.envs import workspace
from tritonsmith.core.plan import files
from tritonsmith.facts import llvm_tree

WORD = "tritongpu-pipeline"
PASSES = "include/triton/Dialect/TritonGPU/Transforms/Passes.td"
MARKED = "[[a kept answer]]\n"


class Asker:
    """Asks for `WORD` in a planted checkout, as the command line does."""

    def __init__(self, root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.home, self.patch = root, home, monkeypatch

    def __call__(self, *words: str) -> None:
        self.patch.setattr(sys, "argv", ["tritonsmith", "explain", *(words or (WORD,))])
        command.origins.clear()
        start.main()

    @property
    def kept(self) -> list[Path]:
        """The files with answers."""
        return [*(self.home / "atlas").glob("answer-*")]

    def mark(self) -> None:
        """Change the answer that is kept, so that it is known where it comes from."""
        (file,) = self.kept
        content = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**content, "printed": [[1, MARKED]]}), encoding="utf-8")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asker:
    home, root = tmp_path / "home", plant(tmp_path / "triton")
    (root / "third_party").mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    commit(root, "Add all")
    files.mark(home)
    monkeypatch.setenv("TRITONSMITH_HOME", str(home))
    monkeypatch.setenv("TRITONSMITH_CONFIG", str(tmp_path / "settings" / "settings.toml"))
    monkeypatch.setattr(llvm_tree, "installed", lambda: ())
    monkeypatch.setattr(start, "_SETTLED", -1e6)  # what was planted just now counts
    monkeypatch.chdir(root)
    return Asker(root, home, monkeypatch)


def commit(root: Path, subject: str, *flags: str) -> None:
    """Commit all files."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)
    subprocess.run(["git", "-C", root, *who, "commit", "-qm", subject, *flags], check=True)


def test_an_answer_is_printed_again_without_the_program(
    ask: Asker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()
    first = capsys.readouterr()
    assert "Number of loops" in first.out
    assert f"reading {ask.root}" in first.err
    monkeypatch.setitem(sys.modules, "tritonsmith.cli.program", None)  # an import of it is an error
    ask()
    assert capsys.readouterr() == first


def edit(ask: Asker) -> None:
    """Change a file, and neither its size nor the time of its last change."""
    file = ask.root / PASSES
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text(file.read_text(encoding="utf-8").replace("loops", "LOOPS"), encoding="utf-8")
    os.utime(file, ns=times)


def edit_behind_a_link(ask: Asker) -> None:
    """Change a file in a folder to which a link leads."""
    (ask.root.parent / "elsewhere" / "Shared.inc").write_text("B", encoding="utf-8")


def add(ask: Asker) -> None:
    """Add a test."""
    (ask.root / "test" / "new.mlir").write_text(f"// RUN: triton-opt -{WORD} %s\n", encoding="utf-8")


def remove(ask: Asker) -> None:
    """Remove the file that implements the pass."""
    (ask.root / "lib/Dialect/TritonGPU/Transforms/Pipeline.cpp").unlink()


def change_the_top(ask: Asker) -> None:
    """Add a file to the top folder."""
    (ask.root / "more.py").write_text("", encoding="utf-8")


def amend(ask: Asker) -> None:
    """Change the commit alone."""
    commit(ask.root, "Add all once more", "--amend")


def set_a_key(ask: Asker) -> None:
    """Set a key for all environments, which may be wrong."""
    file = ask.root.parent / "settings" / "settings.toml"
    file.parent.mkdir()
    file.write_text("[triton]\nwheel = 'newest'\n", encoding="utf-8")


def build_an_llvm(_: Asker) -> None:
    """Write the receipt of an LLVM."""
    receipt = workspace.default().env("dev").receipt("setup-mlir")
    receipt.parent.mkdir(parents=True, exist_ok=True)
    receipt.write_text("{}", encoding="utf-8")


def set_a_variable(ask: Asker) -> None:
    """Make the screen another one."""
    ask.patch.setenv("COLUMNS", "57")


def change_the_tool(ask: Asker) -> None:
    """Change a file of the tool."""
    ask.patch.setattr(pages, "state_of_tool", lambda: "another one")


def install_a_package(ask: Asker) -> None:
    """Change the packages that the tool may import."""
    folder = ask.root.parent / "packages"
    folder.mkdir()
    ask.patch.setattr(sys, "path", [*sys.path, str(folder)])


def damage(ask: Asker) -> None:
    """Leave half a file."""
    (file,) = ask.kept
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        edit, edit_behind_a_link, add, remove, change_the_top, amend, set_a_key, build_an_llvm,
        set_a_variable, change_the_tool, install_a_package, damage,
    ],
)  # fmt: skip
def test_no_answer_outlives_what_it_comes_from(
    ask: Asker, change: Callable[[Asker], None], capsys: pytest.CaptureFixture[str]
) -> None:
    (ask.root.parent / "elsewhere").mkdir()
    (ask.root.parent / "elsewhere" / "Shared.inc").write_text("A", encoding="utf-8")
    (ask.root / "include" / "linked").symlink_to(ask.root.parent / "elsewhere")
    (ask.root / "include" / "linked" / "back").symlink_to(ask.root)  # a walk that follows links must end
    ask()
    ask.mark()
    capsys.readouterr()
    ask()
    assert capsys.readouterr().out == MARKED
    change(ask)
    ask()
    assert MARKED not in (again := capsys.readouterr()).out
    for file in ask.kept:
        file.unlink()
    ask()
    assert capsys.readouterr() == again


@pytest.mark.parametrize(
    "words",
    [
        ("explain", WORD, "doctor"),  # another task
        ("explain", WORD, "--open"),
        ("explain", "--list", "passes"),
        ("explain", WORD, "--env", "dev"),
        ("explain", WORD, "--python", "python3"),
        ("explain", "--pipeline"),
        ("explain", WORD, "--kind"),
        ("explain", WORD, "--kind", "--all"),
        ("explain",),
        ("-e", "explain", WORD),
        ("doctor",),
    ],
)
def test_no_other_command_is_answered_so(words: tuple[str, ...]) -> None:
    assert not start.is_kept(words)


def test_a_command_with_all_flags_is_answered_so() -> None:
    flags = ("--source", "x", "--llvm-dir", "y", "--all", "--json", "--wide")
    assert start.is_kept(["explain", "--kind=pass", WORD, *flags])


def test_what_may_be_another_answer_the_next_time_is_not_kept(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        ask("nothing-of-this-name")
    ask("tree")  # the number of files in any folder
    with monkeypatch.context() as fresh:
        fresh.setattr(start, "_SETTLED", 3600.0)
        ask()  # files that changed just now may change again within a tick of the clock
    (ask.home / ".tritonsmith").unlink(missing_ok=True)
    assert not ask.kept
    monkeypatch.setattr(files, "is_marked", lambda _: False)
    ask()  # a question alone makes no workspace
    assert not ask.kept
    assert capsys.readouterr().out
