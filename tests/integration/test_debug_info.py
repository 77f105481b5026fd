"""How much debug information an LLVM of each kind has, by a small one that is compiled with clang."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.integration.harness import CMAKE, LLVM, LLVM_PROGRAMS, capture
from tests.support import require
from tests.unit.build import made
from tritonsmith.build.llvm import source
from tritonsmith.core.envs.settings import BuildType, DebugInfo

NINJA = CMAKE.with_name("ninja")
TYPE, LINES = "DW_TAG_structure_type", "DW_TAG_compile_unit"
LISTING = """\
cmake_minimum_required(VERSION 3.20)
project(LLVM C CXX)
add_subdirectory(lib)
add_executable(mlir-opt shape.cpp)
add_executable(llc shape.cpp)
"""
BELOW = """\
foreach(name IN ITEMS LLVMSupport LLVMSupportMore LLVMAnalysis MLIRIR)
  add_library(obj.${name} OBJECT ../shape.cpp)
  add_library(${name} STATIC $<TARGET_OBJECTS:obj.${name}>)
endforeach()
"""
SHAPE = "struct Shape { int sides; };\nShape square{4};\nint main() { return square.sides - 4; }\n"


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    """The sources, in a path with a space."""
    require(*LLVM_PROGRAMS)
    root = tmp_path / "a space" / "llvm"
    (root / "lib").mkdir(parents=True)
    (root / "CMakeLists.txt").write_text(LISTING, encoding="utf-8")
    (root / "lib" / "CMakeLists.txt").write_text(BELOW, encoding="utf-8")
    (root / "shape.cpp").write_text(SHAPE, encoding="utf-8")
    return root


def described(llvm: Path, kind: DebugInfo, build_type: BuildType = "Debug") -> dict[str, set[str]]:
    """Build it, and return by target which of types and lines its object describes."""
    request = made.request(debug_info=kind, build_type=build_type)
    variables = source.cache_variables(request, made.means())
    used = {name: value for name, value in variables.items() if "PCH" not in name}
    used.pop("CMAKE_PROJECT_LLVM_INCLUDE", None)
    used |= {"CMAKE_CXX_COMPILER": LLVM_PROGRAMS[0], "CMAKE_C_COMPILER": LLVM_PROGRAMS[0].replace("++", "")}
    used |= {f"CMAKE_{language}_COMPILER_LAUNCHER": "" for language in ("C", "CXX")}
    build = llvm.parent / f"{kind}-{build_type}"
    definitions = [f"-D{name}={value}" for name, value in used.items()]
    capture(CMAKE, "-G", "Ninja", "-S", llvm, "-B", build, f"-DCMAKE_MAKE_PROGRAM={NINJA}", *definitions)
    capture(NINJA, "-C", build)
    result = {}
    for path in build.rglob("shape.cpp.o"):
        text = capture(LLVM / "bin" / "llvm-dwarfdump", "--all", path)
        target = path.relative_to(build).as_posix().split("CMakeFiles/")[1].split(".dir")[0]
        result[target] = {part for part in (TYPE, LINES) if part in text}
    return result


def test_types_are_described_where_code_of_mlir_has_them_and_lines_everywhere(llvm: Path) -> None:
    whole, lines = {TYPE, LINES}, {LINES}
    assert described(llvm, "mlir") == {
        "obj.LLVMSupport": whole,
        "obj.LLVMSupportMore": lines,
        "obj.LLVMAnalysis": lines,
        "obj.MLIRIR": whole,
        "mlir-opt": whole,
        "llc": lines,
    }


@pytest.mark.parametrize(
    ("kind", "parts"),
    [("split", {TYPE, LINES}), ("full", {TYPE, LINES}), ("lines", {LINES}), ("none", set())],
)
@pytest.mark.parametrize("build_type", ["Debug", "RelWithDebInfo"])
def test_every_library_has_what_its_kind_says(
    llvm: Path, kind: DebugInfo, parts: set[str], build_type: BuildType
) -> None:
    objects = described(llvm, kind, build_type)
    assert len(objects) == 6
    assert all(found == parts for found in objects.values()), objects


def test_no_other_build_type_has_any(llvm: Path) -> None:
    assert not any(described(llvm, "mlir", "Release").values())


def test_no_kind_is_left_out() -> None:
    tested = {"mlir", "split", "full", "lines", "none"}
    assert tested == {*get_args(DebugInfo)}
