"""`setup-mlir --scope`: of a small LLVM, just what a small Triton links, runs and tests with."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.harness import LLVM_PROGRAMS, Done, Smith, capture, plant, ready
from tests.support import require

# A Triton that links MLIR (which links LLVMSupport) and runs mlir-tblgen; its tests call FileCheck.
TRITON = """\
cmake_minimum_required(VERSION 3.20)
project(triton LANGUAGES CXX)
find_package(MLIR REQUIRED CONFIG)
file(WRITE "${CMAKE_BINARY_DIR}/a.cpp" "int mini_ir(); int main() { return mini_ir() - 1; }")
file(WRITE "${CMAKE_BINARY_DIR}/b.cpp" "int mini_support(); int module() { return mini_support(); }")
add_custom_command(OUTPUT ops.inc COMMAND mlir-tblgen > ops.inc DEPENDS mlir-tblgen)
add_executable(triton-opt "${CMAKE_BINARY_DIR}/a.cpp" ops.inc)
target_link_libraries(triton-opt MLIRIR)
add_library(triton SHARED "${CMAKE_BINARY_DIR}/b.cpp")
target_link_libraries(triton LLVMSupport)
"""
RUN_LINE = "// RUN: triton-opt %s | FileCheck %s\n"


@dataclass(frozen=True)
class World:
    """A Triton, and an LLVM that it is to be built against.

    Attributes:
        smith: the tool, in the checkout of Triton.
        llvm: sources of the small LLVM.
    """

    smith: Smith
    llvm: Path

    def setup(self, *more: str, code: int = 0) -> Done:
        """`setup-mlir --provider source`, by force: a real LLVM takes more disk than may be free."""
        source = ("--provider", "source", "--llvm-source", str(self.llvm), "--any-commit", "--force")
        return self.smith("setup-mlir", *source, *more, code=code)

    @property
    def prefix(self) -> Path:
        """The build folder of LLVM."""
        return Path(str(self.smith.receipt("setup-mlir")["prefix"]))

    @property
    def made(self) -> set[str]:
        """Libraries and programs in it."""
        files = [*self.prefix.glob("lib/*.a"), *(self.prefix / "bin").glob("*")]
        return {path.name for path in files}


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    require("git", *LLVM_PROGRAMS)
    root = tmp_path / "a space"
    root.mkdir()
    changes = {"CMakeLists.txt": TRITON, "test/twice.mlir": RUN_LINE}
    checkout = plant("mini_triton", root / "triton", changes)
    smith = ready(Smith(root, cwd=checkout), tmp_path_factory)
    return World(smith, plant("mini_llvm", root / "llvm-project"))


CLOSURE = {"libLLVMSupport.a", "libMLIRIR.a", "mlir-tblgen", "FileCheck"}


def test_the_closure_is_built_and_grows_with_triton_and_with_the_scope(world: World) -> None:
    world.setup()
    assert world.made == CLOSURE
    (source,) = world.prefix.rglob("Support.cpp.o")
    compiled = source.stat().st_mtime_ns
    with (world.smith.cwd / "CMakeLists.txt").open("a", encoding="utf-8") as listing:
        listing.write("target_link_libraries(triton-opt LLVMUnused)\n")
    world.setup()
    assert world.made == {*CLOSURE, "libLLVMUnused.a"}
    world.setup("--scope", "all")
    assert source.stat().st_mtime_ns == compiled
    assert "ninja: no work to do." in world.smith.log("setup-mlir")


def test_the_python_module_needs_less_and_one_more_library_is_no_more(world: World) -> None:
    world.setup("--scope", "python-module")
    assert world.made == {"libLLVMSupport.a"}
    world.setup("--target", "LLVMUnused")
    assert world.made == {"libLLVMSupport.a", "libLLVMUnused.a"}
    world.setup()
    assert world.made == {*CLOSURE, "libLLVMUnused.a"}


def test_a_triton_that_takes_nothing_is_an_error(world: World) -> None:
    (world.smith.cwd / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(triton NONE)\nfind_package(MLIR CONFIG)\n",
        encoding="utf-8",
    )
    said = world.setup(code=1).err
    assert "uses nothing from that tree" in said
    assert "--scope all" in said


@pytest.mark.slow
def test_the_script_of_a_dry_run_builds_the_same(world: World) -> None:
    script = world.setup("--dry-run").out
    done = subprocess.run(
        ("sh", "-s"), input=script, env=world.smith.environ, cwd=world.smith.root,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (program,) = (world.smith.home / "llvm").glob("*/bin/FileCheck")
    assert capture(program) == "FileCheck of mini-llvm\n"
    prefix = program.parent.parent
    assert {path.name for path in prefix.glob("lib/*.a")} == {"libLLVMSupport.a", "libMLIRIR.a"}
