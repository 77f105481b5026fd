"""The file that puts archives into Triton's links, and the CMake call around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.build import made
from tritonsmith.build.cmake import CACHE_FILE
from tritonsmith.build.debug_library import command, relink
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.build.triton import recipe
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.plan import Write

_ARCHIVE = Path("/home/dev/a folder/libMLIRTransforms.a")


def test_an_environment_knows_its_libraries_by_that_file(tmp_path: Path) -> None:
    env = EnvDir(tmp_path / "envs" / "dev", tmp_path)
    tree, other = made.llvm(tmp_path / "my llvm"), made.llvm(tmp_path / "another")
    assert relink.read(env, tree) == {}
    replaced = {
        "LLVMCore": Replacement(_ARCHIVE),
        "MLIRTransforms": Replacement(_ARCHIVE, ("objects/CSE.cpp.o", "objects/Utils/my utils.cpp.o")),
    }
    relink.file(env).parent.mkdir(parents=True)
    relink.file(env).write_text(relink.render(tree, replaced), encoding="utf-8")
    assert relink.read(env, tree) == replaced
    assert relink.read(env, other) == {}, "the environment has another LLVM by now"
    relink.file(env).write_text(relink.render(tree, {}), encoding="utf-8")
    assert relink.read(env, tree) == {}


def test_what_a_killed_run_left_is_known_too(tmp_path: Path) -> None:
    env = EnvDir(tmp_path / "envs" / "dev", tmp_path)
    assert relink.made(env) == ()
    for name in ("MLIRTransforms", relink.CONFIG_HEADER):
        (relink.folder(env) / name).mkdir(parents=True)
    relink.file(env).touch()
    assert relink.made(env) == ("MLIRTransforms",)


def test_an_environment_has_the_file_once_it_had_a_debug_library(tmp_path: Path) -> None:
    env = made.workspace().env("dev")
    env = replace(env, path=tmp_path)
    assert relink.existing(env) is None
    relink.file(env).parent.mkdir()
    relink.file(env).touch()
    assert relink.existing(env) == relink.file(env)


def test_triton_is_told_of_the_file_only_then() -> None:
    inputs = made.inputs(tree=made.llvm(dylib=True))
    without = recipe.cache_variables(inputs)
    assert Path(without["CMAKE_PROJECT_triton_INCLUDE"]).name == "one_llvm.cmake"
    path = relink.file(inputs.env)
    given = recipe.cache_variables(replace(inputs, after_project=path))
    assert given["TRITONSMITH_DEBUG_LIBRARIES"] == str(path)
    assert Path(given["CMAKE_PROJECT_triton_INCLUDE"]).is_file()
    assert given.keys() - without.keys() == {"TRITONSMITH_DEBUG_LIBRARIES"}


def test_the_file_is_written_before_triton_is_configured() -> None:
    inputs = made.inputs(tree=made.llvm(dylib=True))
    plan = command.relinked(inputs, {"MLIRTransforms": Replacement(_ARCHIVE)})
    first = plan.steps[0]
    assert isinstance(first, Write)
    assert first.path == relink.file(inputs.env)
    text = next(step.text for step in plan.steps if isinstance(step, Write) and step.path.name == CACHE_FILE)
    assert f"set(TRITONSMITH_DEBUG_LIBRARIES [[{first.path}]]" in text
