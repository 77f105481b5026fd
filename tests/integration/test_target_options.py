"""Options of single targets of an LLVM, by a small one that clang compiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from tests.integration.harness import CMAKE, LLVM, LLVM_PROGRAMS, capture
from tests.support import require
from tests.unit.build import made
from tritonsmith.build.llvm import source
from tritonsmith.core.envs.settings import BuildType, DebugInfo

NINJA = CMAKE.with_name("ninja")
TYPE, LINES, SPLIT = "DW_TAG_structure_type", "DW_AT_stmt_list", "DW_TAG_skeleton_unit"
LISTING = """\
cmake_minimum_required(VERSION 3.20)
project(LLVM C CXX)
if(LLVM_USE_SPLIT_DWARF)
  add_compile_options(-gsplit-dwarf)
endif()
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_subdirectory(lib)
foreach(name IN ITEMS mlir-opt llc mlir-tblgen)
  add_executable(${name} shape.cpp)
endforeach()
"""
BELOW = """\
foreach(name IN ITEMS LLVMSupport LLVMSupportMore LLVMAnalysis MLIRIR)
  add_library(obj.${name} OBJECT ../shape.cpp)
  add_library(${name} STATIC $<TARGET_OBJECTS:obj.${name}>)
endforeach()
target_sources(obj.LLVMSupport PRIVATE FoldingSet.cpp)
add_library(LLVMTableGen STATIC record.cpp)
"""
SHAPE = "struct Shape { int sides; };\nShape square{4};\nint main() { return square.sides - 4; }\n"
SOURCES = {
    "CMakeLists.txt": LISTING,
    "lib/CMakeLists.txt": BELOW,
    "lib/FoldingSet.cpp": "int folded() { return 1; }\n",
    "lib/record.cpp": "int recorded() { return sizeof(std::vector<int>) > 0; }\n",  # by its header alone
    "shape.cpp": SHAPE,
}
OWN_HEADERS = """
target_precompile_headers(obj.LLVMSupport PRIVATE <string>)
target_precompile_headers(mlir-tblgen REUSE_FROM obj.LLVMSupport)
target_precompile_headers(llc REUSE_FROM obj.LLVMSupport)
"""


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    """The sources, in a path with a space."""
    require(*LLVM_PROGRAMS)
    root = tmp_path / "a space" / "llvm"
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def build(llvm: Path, kind: DebugInfo, build_type: BuildType = "Debug", **more: str) -> Path:
    """Configure and build it as LLVM itself, with the headers of the one level that it has sources of."""
    request = made.request(debug_info=kind, build_type=build_type)
    used = source.cache_variables(request, made.means())
    used |= {
        "TRITONSMITH_PCH": "tables",
        "TRITONSMITH_PCH_tables_HEADERS": "<vector>",
        "TRITONSMITH_PCH_tables_FOLDERS": "lib",
        "CMAKE_CXX_COMPILER": LLVM_PROGRAMS[0],
        "CMAKE_C_COMPILER": LLVM_PROGRAMS[0].replace("++", ""),
        # Without the launcher, no source is compiled once more without its header.
        **{f"CMAKE_{language}_COMPILER_LAUNCHER": "" for language in ("C", "CXX")},
        **more,
    }
    folder = llvm.parent / f"{kind}-{build_type}"
    definitions = [f"-D{name}={value}" for name, value in used.items()]
    capture(CMAKE, "-G", "Ninja", "-S", llvm, "-B", folder, f"-DCMAKE_MAKE_PROGRAM={NINJA}", *definitions)
    capture(NINJA, "-C", folder)
    return folder


def described(folder: Path) -> dict[str, set[str]]:
    """Return which of types, lines and a part elsewhere each target's object describes."""
    result = {}
    for path in folder.rglob("shape.cpp.o"):
        units = (path, *path.parent.glob("shape.cpp.dwo"))
        text = "".join(capture(LLVM / "bin" / "llvm-dwarfdump", "--debug-info", unit) for unit in units)
        target = path.relative_to(folder).as_posix().split("CMakeFiles/")[1].split(".dir")[0]
        result[target] = {part for part in (TYPE, LINES, SPLIT) if part in text}
    return result


def options(folder: Path) -> dict[str, list[str]]:
    """Return the command of each object."""
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    return {Path(row["output"]).as_posix(): row["command"].split() for row in commands}


def test_types_are_described_where_code_of_mlir_has_them_and_lines_everywhere(llvm: Path) -> None:
    whole, lines = {TYPE, LINES, SPLIT}, {LINES}  # gdb cannot read a skeleton that names no .dwo file
    assert described(build(llvm, "mlir")) == {
        "obj.LLVMSupport": whole,
        "obj.LLVMSupportMore": lines,
        "obj.LLVMAnalysis": lines,
        "obj.MLIRIR": whole,
        "mlir-opt": whole,
        "llc": lines,
        "mlir-tblgen": set(),
    }


def test_the_table_generators_of_a_debug_build_are_optimised(llvm: Path) -> None:
    commands = options(build(llvm, "split"))
    optimised = {output for output, words in commands.items() if "-O1" in words}
    without = {output for output, words in commands.items() if "-DNDEBUG" in words}
    generators = {output for output in optimised if "mlir-tblgen" in output or "TableGen" in output}
    header = {output for output in optimised if "tritonsmith_pch" in output}
    assert len(generators) == 2
    assert header
    assert without == generators | header
    assert optimised == without | {"lib/CMakeFiles/obj.LLVMSupport.dir/FoldingSet.cpp.o"}


def test_llvms_own_headers_are_used_where_the_options_agree(llvm: Path) -> None:
    with (llvm / "CMakeLists.txt").open("a", encoding="utf-8") as listing:
        listing.write(OWN_HEADERS)
    (llvm / "lib" / "record.cpp").write_text("int recorded() { return 1; }\n", encoding="utf-8")
    commands = options(build(llvm, "mlir", TRITONSMITH_PCH=""))
    users = {output for output, words in commands.items() if "-include-pch" in words}
    assert users == {"CMakeFiles/llc.dir/shape.cpp.o", "lib/CMakeFiles/obj.LLVMSupport.dir/__/shape.cpp.o"}


@pytest.mark.parametrize(
    ("kind", "parts"),
    [("split", {TYPE, LINES, SPLIT}), ("full", {TYPE, LINES}), ("lines", {LINES}), ("none", set())],
)
@pytest.mark.parametrize("build_type", ["Debug", "RelWithDebInfo"])
def test_every_library_has_what_its_kind_says(
    llvm: Path, kind: DebugInfo, parts: set[str], build_type: BuildType
) -> None:
    objects = described(build(llvm, kind, build_type))
    if build_type == "Debug":
        assert objects.pop("mlir-tblgen") == set()
    assert {*objects} >= {"obj.LLVMSupport", "obj.LLVMAnalysis", "obj.MLIRIR", "mlir-opt", "llc"}
    assert all(found == parts for found in objects.values()), objects


def test_no_other_build_type_has_any(llvm: Path) -> None:
    assert not any(described(build(llvm, "mlir", "Release")).values())


def test_no_kind_is_left_out() -> None:
    tested = {"mlir", "split", "full", "lines", "none"}
    assert tested == {*get_args(DebugInfo)}
