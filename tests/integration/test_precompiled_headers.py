"""Precompiled headers, injected into a small LLVM by CMake's include hook, and compiled with clang."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.harness import CMAKE, LLVM_PROGRAMS, capture
from tests.support import require
from tritonsmith.build import precompiled_headers

LISTING = """\
cmake_minimum_required(VERSION 3.20)
project(LLVM C CXX)
include_directories("${CMAKE_SOURCE_DIR}/include" "${CMAKE_BINARY_DIR}/include")
add_custom_command(
  OUTPUT include/made.inc COMMAND ${CMAKE_COMMAND} -E copy "${CMAKE_SOURCE_DIR}/made.in" include/made.inc)
add_custom_target(made_gen DEPENDS include/made.inc)
add_subdirectory(lib/Support)
add_subdirectory(lib/IR)
"""
SUPPORT = """\
add_library(LLVMSupport plain.cpp c.c RustDemangle.cpp)
add_library(LLVMWithRtti rtti.cpp)
add_executable(shapes shapes.cpp)
target_link_libraries(shapes LLVMSupport)
set_target_properties(shapes PROPERTIES COMPILE_FLAGS "-fno-rtti")
set_source_files_properties(plain.cpp RustDemangle.cpp PROPERTIES COMPILE_FLAGS "-fno-rtti")
target_compile_options(LLVMWithRtti PRIVATE -frtti)
"""
IR = """\
add_library(LLVMAnalysis ir.cpp)
set_target_properties(LLVMAnalysis PROPERTIES COMPILE_FLAGS "-fno-rtti")
add_dependencies(LLVMAnalysis made_gen)
"""
SOURCES = {
    "CMakeLists.txt": LISTING,
    "cmake/modules/AddLLVM.cmake": "# precompiles nothing itself\n",
    "made.in": "inline int made() { return 3; }\n",
    "include/base.h": "#pragma once\nstruct Shape { int sides; };\ninline int base() { return 1; }\n",
    "include/ir.h": '#pragma once\n#include "made.inc"\n',
    "lib/Support/CMakeLists.txt": SUPPORT,
    "lib/Support/plain.cpp": "int plain() { return base(); }\n",  # only the precompiled header declares it
    "lib/Support/c.c": "int c(void) { return 0; }\n",
    "lib/Support/RustDemangle.cpp": "static int base() { return 2; }\nint rust() { return base(); }\n",
    "lib/Support/rtti.cpp": "#include <typeinfo>\nint rtti() { return typeid(int) == typeid(1); }\n",
    "lib/IR/CMakeLists.txt": IR,
    "lib/IR/ir.cpp": "int ir() { return made(); }\n",
    "lib/Support/shapes.cpp": '#include "base.h"\nint main() {\n  Shape one{4};\n  return one.sides;\n}\n',
}


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    """The sources, in a path with a space."""
    require(*LLVM_PROGRAMS)
    root = tmp_path / "a space" / "llvm"
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def variables() -> dict[str, str]:
    """As for the real one, but of two levels with headers of the small one."""
    real = precompiled_headers.llvm_variables()
    levels = {"TRITONSMITH_PCH": "base;ir"}
    headers = {
        "TRITONSMITH_PCH_base_HEADERS": '"base.h";"of_another_llvm.h"',
        "TRITONSMITH_PCH_ir_HEADERS": '"ir.h"',
    }
    return real | levels | headers


def configure(llvm: Path, **more: str) -> Path:
    build = llvm.parent / "build"
    told = {
        **variables(),
        **more,
        "CMAKE_C_COMPILER": LLVM_PROGRAMS[0].replace("++", ""),
        "CMAKE_CXX_COMPILER": LLVM_PROGRAMS[0],
    }
    ninja = CMAKE.with_name("ninja")
    definitions = [f"-D{name}={value}" for name, value in told.items()]
    export = ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_MAKE_PROGRAM={ninja}")
    capture(CMAKE, "-G", "Ninja", "-S", llvm, "-B", build, *export, *definitions)
    return build


def users(build: Path) -> set[str]:
    """Names of the sources that are compiled with a precompiled header."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    names = {Path(row["file"]).name for row in commands if "-include-pch" in row["command"]}
    return names - {"tritonsmith_pch.cpp"}


def test_sources_whose_flags_agree_use_the_header_of_their_folder(llvm: Path) -> None:
    build = configure(llvm)
    assert users(build) == {"plain.cpp", "ir.cpp", "shapes.cpp"}
    capture(CMAKE.with_name("ninja"), "-C", build)
    assert (build / "CMakeFiles" / "tritonsmith_pch_ir.dir" / "cmake_pch.hxx.pch").is_file()


def test_a_header_that_cannot_be_precompiled_costs_time_and_not_the_build(llvm: Path) -> None:
    (llvm / "include" / "base.h").write_text("#error nobody includes it\n", encoding="utf-8")
    own = "int plain() { return 1; }\nint main() { return plain() - 1; }\n"
    for name in ("plain.cpp", "shapes.cpp"):
        (llvm / "lib" / "Support" / name).write_text(own, encoding="utf-8")
    build = configure(llvm, CMAKE_CXX_COMPILER_LAUNCHER=";".join(precompiled_headers.RETRY))
    printed = capture(CMAKE.with_name("ninja"), "-C", build, "shapes")
    assert (
        printed.count("compiled without the precompiled header") == 4
    )  # the header, its own source, two users


def test_a_changed_header_is_precompiled_again(llvm: Path) -> None:
    build = configure(llvm)
    ninja = CMAKE.with_name("ninja")
    capture(ninja, "-C", build)
    (llvm / "include" / "base.h").write_text(
        "#pragma once\nstruct Shape { int sides; };\nint base(int = 4);\n", encoding="utf-8"
    )
    assert "plain.cpp" in capture(ninja, "-C", build)
    assert capture(ninja, "-C", build).strip().endswith("no work to do.")


def test_an_llvm_that_precompiles_itself_is_left_alone(llvm: Path) -> None:
    (llvm / "cmake" / "modules" / "AddLLVM.cmake").write_text(
        "target_precompile_headers(x)\n", encoding="utf-8"
    )
    build = llvm.parent / "build"
    definitions = [f"-D{name}={value}" for name, value in variables().items()]
    done = subprocess.run(
        (CMAKE, "-G", "Ninja", "-S", llvm, "-B", build, *definitions),
        env={**os.environ, "PATH": f"{CMAKE.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "this LLVM precompiles headers itself" in done.stdout
    assert not (build / "tritonsmith_pch.cpp").exists()
