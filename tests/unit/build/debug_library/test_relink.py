"""The file that puts archives into Triton's links, and the CMake call around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.build import made
from tritonsmith.build import triton
from tritonsmith.build.cmake import CACHE_FILE
from tritonsmith.build.debug_library import command, relink
from tritonsmith.plan import Write

_ARCHIVE = Path("/home/dev/a folder/libMLIRTransforms.a")


def test_mlir_alone_leaves_the_shared_llvm(tmp_path: Path) -> None:
    text = relink.render(made.llvm(tmp_path, dylib=True), {"MLIRTransforms": _ARCHIVE})
    assert "set(TRITONSMITH_ONE_LLVM ON)" in text
    assert f"OFF MLIRTransforms [[{_ARCHIVE}]])" in text


def test_a_library_of_llvm_itself_takes_the_static_ones(tmp_path: Path) -> None:
    text = relink.render(made.llvm(tmp_path, dylib=True), {"LLVMCore": _ARCHIVE, "MLIRTransforms": _ARCHIVE})
    assert "TRITONSMITH_ONE_LLVM" not in text
    assert "ON LLVMCore" in text


def test_an_llvm_without_a_shared_one_needs_neither(tmp_path: Path) -> None:
    text = relink.render(made.llvm(tmp_path), {"LLVMCore": _ARCHIVE})
    assert "TRITONSMITH_ONE_LLVM" not in text
    assert "OFF LLVMCore" in text


def test_after_undo_the_file_stays_and_says_what_was_so_before(tmp_path: Path) -> None:
    text = relink.render(made.llvm(tmp_path, dylib=True), {})
    assert "set(TRITONSMITH_ONE_LLVM ON)" in text
    assert "DEFER" not in text


def test_an_environment_has_the_file_once_it_had_a_debug_library(tmp_path: Path) -> None:
    env = made.workspace().env("dev")
    env = replace(env, path=tmp_path)
    assert relink.existing(env) is None
    relink.file(env).parent.mkdir()
    relink.file(env).touch()
    assert relink.existing(env) == relink.file(env)


def test_triton_is_told_of_the_file_only_then() -> None:
    inputs = made.inputs(tree=made.llvm(dylib=True))
    without = triton.cache_variables(inputs)
    assert Path(without["CMAKE_PROJECT_triton_INCLUDE"]).name == "one_llvm.cmake"
    path = relink.file(inputs.env)
    given = triton.cache_variables(replace(inputs, after_project=path))
    assert given["TRITONSMITH_DEBUG_LIBRARIES"] == str(path)
    assert Path(given["CMAKE_PROJECT_triton_INCLUDE"]).is_file()
    assert given.keys() - without.keys() == {"TRITONSMITH_DEBUG_LIBRARIES"}


def test_the_file_is_written_before_triton_is_configured() -> None:
    inputs = made.inputs(tree=made.llvm(dylib=True))
    plan = command.relinked(inputs, {"MLIRTransforms": _ARCHIVE})
    first = plan.steps[0]
    assert isinstance(first, Write)
    assert first.path == relink.file(inputs.env)
    text = next(step.text for step in plan.steps if isinstance(step, Write) and step.path.name == CACHE_FILE)
    assert f"set(TRITONSMITH_DEBUG_LIBRARIES [[{first.path}]]" in text
