"""What a command depends on, and what it needs to have built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.repositories import Made
from tritonsmith.build.watch import command
from tritonsmith.build.watch.command import Dependencies
from tritonsmith.build.watch.files import files_of_tree
from tritonsmith.cli.tasks import namespace, option_fields
from tritonsmith.core.envs.settings import Purpose
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError

SOURCES = {
    "CMakeLists.txt": "",
    "README.md": "",
    ".gitignore": "ignored/\n*.so\n",
    "bin/triton-opt.cpp": "",
    "include/triton/Ops.td": "",
    "lib/Pass.cpp": "",
    "python/triton/code.py": "",
    "test/a.mlir": "// RUN: triton-opt %s | FileCheck %s\n",
    "third_party/amd/backend.py": "",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = Made(tmp_path / "triton")
    made.commit("All of it", SOURCES)
    return made.path


@pytest.fixture
def space(tmp_path: Path, source: Path) -> Workspace:
    """A workspace whose environment `dev` has a build of the checkout."""
    made = Workspace(tmp_path / "home")
    configured(made.env("dev").build, source)
    return made


def configured(folder: Path, source: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / command.GRAPH).write_text("")
    (folder / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
    (folder / "bin" / "triton-opt").write_text("")
    return folder


def of_task(space: Workspace, name: str, *words: str) -> Dependencies:
    return command.of_task(name, option_fields.from_argv(namespace[name], words), (), space)


def counted(needs: Dependencies, source: Path) -> set[str]:
    """The sources whose saves count."""
    paths = [source / name for name in SOURCES]
    return {path.relative_to(source).as_posix() for one in needs.files for path in one.select(paths)}


def test_a_kernel_with_a_released_triton_needs_no_build(space: Workspace, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("")
    needs = of_task(space, "kernel.resources", f"{kernel}:matmul", "--signature", "*fp32")
    assert needs.build is None
    assert [kernel in one.select([kernel]) for one in needs.files] == [True, True]


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (("kernel.resources", "{kernel}", "--env", "dev"), ("triton",)),
        (("passes.replay", "dump", "3", "--env", "dev"), ("triton-opt",)),
        (("passes.replay", "dump", "3", "--triton-opt", "{opt}"), ("triton-opt",)),
    ],
)
def test_a_task_that_uses_a_build(
    words: tuple[str, ...], targets: tuple[str, ...], space: Workspace, source: Path, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("")
    opt = configured(tmp_path / "elsewhere", source) / "bin" / "triton-opt"
    name, *rest = (word.format(kernel=kernel, opt=opt) for word in words)
    needs = of_task(space, name, *rest)
    assert needs.build
    assert needs.build.targets == targets
    assert counted(needs, source) == {
        "CMakeLists.txt", "bin/triton-opt.cpp", "include/triton/Ops.td", "lib/Pass.cpp",
        "python/triton/code.py", "third_party/amd/backend.py",
    }  # fmt: skip


def test_a_task_of_no_file_is_refused(space: Workspace) -> None:
    with pytest.raises(UsageError):
        of_task(space, "env.list")


@pytest.mark.parametrize(
    ("argv", "purpose"),
    [
        ("python3 matmul.py", "python"),
        ("/venv/bin/pytest -q", "python"),
        ("triton-opt a.mlir", "opt"),
        ("python3 compare.py bin/triton-opt", "all"),
        ("make check", "all"),
    ],
)
def test_a_command_in_the_checkout(argv: str, purpose: Purpose, space: Workspace, source: Path) -> None:
    needs = command.of_command(argv.split(), (), "dev", source, space)
    assert needs.build
    assert needs.build.targets == {"python": ("triton",), "opt": ("triton-opt",), "all": ()}[purpose]
    assert counted(needs, source) == set(SOURCES) - {"README.md", ".gitignore"}


def test_a_command_elsewhere(
    space: Workspace, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    needs = command.of_command(("true",), (), "dev", None, space)
    assert needs.build is None, "the build is of another folder"
    assert counted(needs, source) == set()
    assert command.of_command(("true",), (source,), "dev", None, space).build is None


def test_lit_tests(space: Workspace, source: Path) -> None:
    made, files = command.of_tests((), "dev", space)
    assert made.targets == ("triton-opt",)
    assert counted(Dependencies(files), source) == {
        "CMakeLists.txt", "bin/triton-opt.cpp", "include/triton/Ops.td", "lib/Pass.cpp", "test/a.mlir",
    }  # fmt: skip
    with pytest.raises(FactError):
        command.of_tests((), "debug", space)


@pytest.mark.parametrize(
    ("name", "stale"),
    [("lib/Pass.cpp", True), ("Ops.td", True), ("CMakeLists.txt", True), ("a.mlir", False), ("b.py", False)],
)
def test_what_starts_a_build(name: str, stale: bool) -> None:
    assert command.stale_files([Path("kernel.py"), Path(name)]) == stale


def test_files_that_git_ignores_do_not_count_and_new_ones_do(source: Path) -> None:
    watched = files_of_tree(source)
    assert source / "lib" in watched.folders()
    assert source / "include" in watched.folders(), "a folder between, where another may be made"
    (source / "ignored").mkdir()
    for name in ("ignored/made.cpp", "lib/libtriton.so"):
        (source / name).write_text("")
        assert watched.select([source / name]) == frozenset()
    assert source / "ignored" not in watched.folders()
    new = source / "lib" / "new" / "New.cpp"
    new.parent.mkdir()
    new.write_text("")
    assert watched.select([new.parent]) == {new}
    assert new.parent in watched.folders()
    new.unlink()
    assert watched.select([new]) == {new}


def test_a_program_that_is_in_no_build(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "kernel.mlir").write_text("")
    dump = str(tmp_path / "kernel.mlir")
    assert of_task(space, "passes.replay", dump, "3", "--triton-opt", "/triton-opt").build is None
