"""What cannot work is said in one message, before anything is configured."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, LLVM_PROGRAMS, Smith, plant
from tests.support import require


@pytest.fixture
def fresh(tmp_path: Path) -> Smith:
    """The tool in a checkout, with a workspace that does not exist yet."""
    require("git")
    return Smith(tmp_path, cwd=plant("mini_triton", tmp_path / "triton"))


@pytest.fixture
def lacking(tmp_path: Path) -> Path:
    """An LLVM with its libraries and without MLIR, FileCheck and a compiler."""
    require(*LLVM_PROGRAMS)
    prefix = tmp_path / "llvm-lacking"
    (prefix / "lib" / "cmake").mkdir(parents=True)
    (prefix / "lib" / "cmake" / "llvm").symlink_to(LLVM / "lib" / "cmake" / "llvm")
    (prefix / "lib" / "libLLVMSupport.a").symlink_to(LLVM / "lib" / "libLLVMSupport.a")
    (prefix / "include").symlink_to(LLVM / "include")
    return prefix


def test_a_build_type_that_does_not_exist_is_a_usage_error(fresh: Smith) -> None:
    error = fresh("build-triton", "--build-type", "Foo", code=2).error
    assert "triton.build-type cannot be 'Foo'" in error
    assert "RelWithDebInfo" in error
    assert not fresh.home.exists()


def test_a_task_that_does_not_exist_is_a_usage_error(fresh: Smith) -> None:
    assert "did you mean 'build-triton'?" in fresh("biuld-triton", code=2).error


def test_an_environment_that_does_not_exist_is_a_usage_error(fresh: Smith) -> None:
    assert "did you mean 'debug'?" in fresh("build-triton", "--env", "debgu", code=2).error


def test_a_build_without_an_llvm_names_the_command_that_gives_one(fresh: Smith) -> None:
    error = fresh("build-triton", code=1).error
    assert "environment 'dev' has no LLVM yet" in error
    assert "tritonsmith setup-mlir --env dev" in error


@pytest.mark.parametrize("task", ["build-triton", "install-triton"])
def test_a_dry_run_without_an_llvm_prints_what_does_not_depend_on_it(fresh: Smith, task: str) -> None:
    done = fresh(task, "--env", "debug", "--dry-run")
    assert "-m venv --clear" in done.out
    assert "pip install" in done.out
    assert "cmake" not in done.out
    assert "the rest depends on the LLVM: `tritonsmith setup-mlir --env debug` provides it" in done.err
    assert not fresh.home.exists()


def test_an_llvm_that_lacks_something_is_refused_before_anything_is_configured(
    fresh: Smith, lacking: Path
) -> None:
    error = fresh("build-triton", "--llvm-dir", lacking, code=1).error
    assert "this build would fail; nothing was started" in error
    assert "lacks MLIR's CMake package" in error
    assert "lacks FileCheck" in error
    assert not fresh.build().exists()


def test_setup_mlir_says_what_an_installed_llvm_lacks(fresh: Smith, lacking: Path) -> None:
    error = fresh("setup-mlir", "--provider", "system", "--llvm-dir", lacking, code=1).error
    assert "this LLVM 19" in error
    assert str(lacking) in error
    assert "MLIR's CMake package" in error
    assert not fresh.home.exists()


def test_a_folder_that_holds_no_llvm_is_refused(fresh: Smith) -> None:
    error = fresh("build-triton", "--llvm-dir", fresh.root, code=1).error
    assert "no LLVM to build against in this folder" in error
    assert str(fresh.root) in error


def test_without_a_compiler_there_is_one_clear_error(fresh: Smith, tmp_path: Path, lacking: Path) -> None:
    error = replace(fresh, more=_path(tmp_path, "git"))("build-triton", "--llvm-dir", lacking, code=1).error
    assert error.count("[no-compiler] clang++ is not on PATH") == 1
    assert "[no-linker]" in error
    assert not fresh.build().exists()


def test_without_a_compiler_llvm_is_not_built_either(fresh: Smith, tmp_path: Path) -> None:
    sources = plant("mini_llvm", tmp_path / "llvm-project")
    bare = replace(fresh, more=_path(tmp_path, "git"))
    asked = ("--provider", "source", "--llvm-source", sources, "--any-commit", "--target", "FileCheck")
    error = bare("setup-mlir", *asked, code=1).error
    assert error.count("clang++ is not on PATH") == 1
    assert not fresh.home.exists()


def test_an_empty_path_is_no_bug_of_the_tool(fresh: Smith, tmp_path: Path, lacking: Path) -> None:
    bare = replace(fresh, more=_path(tmp_path))
    error = bare("build-triton", "--llvm-dir", lacking, code=1).error
    assert "clang++ is not on PATH" in error


@pytest.mark.parametrize("place", ["/proc/tritonsmith", "file", "file/below"])
def test_a_workspace_that_cannot_be_written_is_refused(fresh: Smith, tmp_path: Path, place: str) -> None:
    require(*LLVM_PROGRAMS)
    (tmp_path / "file").touch()
    home = tmp_path / place
    blocked = replace(fresh, more={"TRITONSMITH_HOME": str(home)})
    error = blocked("setup-mlir", "--provider", "system", "--llvm-dir", LLVM, code=1).error
    assert "cannot write to the workspace" in error
    assert str(home) in error
    assert "set TRITONSMITH_HOME" in error


def test_a_folder_with_somebody_elses_files_is_not_taken_over(fresh: Smith, tmp_path: Path) -> None:
    require(*LLVM_PROGRAMS)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    strange = replace(fresh, more={"TRITONSMITH_HOME": str(mine)})
    error = strange("setup-mlir", "--provider", "system", "--llvm-dir", LLVM, code=1).error
    assert "refusing to use a folder that already contains files" in error
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("task", ["setup-mlir", "build-triton", "install-triton", "link-compile-commands"])
def test_a_folder_that_is_no_checkout_is_refused_by_name(fresh: Smith, tmp_path: Path, task: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    error = fresh(task, "--source", empty, code=1).error
    assert "is not a checkout of Triton" in error
    assert str(empty) in error
    assert not fresh.home.exists()


def test_a_checkout_that_is_missing_is_refused_by_name(fresh: Smith, tmp_path: Path) -> None:
    error = fresh("build-triton", "--source", tmp_path / "nowhere", code=1).error
    assert "is not a checkout of Triton" in error


def test_a_dry_run_touches_nothing_and_prints_a_script(fresh: Smith) -> None:
    require(*LLVM_PROGRAMS)
    script = fresh("build-triton", "--llvm-dir", LLVM, "--dry-run").out
    assert not fresh.home.exists()
    checked = subprocess.run(("sh", "-n"), input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "tritonsmith-cache.cmake" in script


def _path(folder: Path, *programs: str) -> dict[str, str]:
    """A PATH that leads to these programs and to nothing else."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found is not None
        (bin_folder / name).symlink_to(found)
    return {"PATH": os.fspath(bin_folder)}
