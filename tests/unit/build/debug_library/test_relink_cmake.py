"""CMake decides from the LLVM at hand what stands for what: the environment's file may be of another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.debug_library import relink
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.facts import tools

# What MLIR's and LLVM's packages leave behind in the folder that finds them.
_PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(triton LANGUAGES NONE)
set(LLVM_DIR "@PREFIX@/lib/cmake/llvm")
set(LLVM_LINK_LLVM_DYLIB @DYLIB@)
set(LLVM_AVAILABLE_LIBS LLVMSupport LLVMCore)
foreach(name LLVMSupport LLVMCore MLIRIR MLIRTransforms)
  add_library(${name} STATIC IMPORTED)
  set_target_properties(${name} PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
    IMPORTED_LOCATION_RELEASE "@PREFIX@/lib/lib${name}.a")
endforeach()
if(@DYLIB@)
  add_library(LLVM SHARED IMPORTED)
  set_target_properties(LLVM PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
    IMPORTED_LOCATION_RELEASE "@PREFIX@/lib/libLLVM.so" IMPORTED_SONAME_RELEASE libLLVM.so)
endif()
function(say)
  foreach(name LLVMSupport LLVMCore MLIRIR MLIRTransforms LLVM)
    if(TARGET ${name})
      get_target_property(location ${name} IMPORTED_LOCATION_RELEASE)
      cmake_path(GET location FILENAME file)
      cmake_path(GET location PARENT_PATH folder)
      cmake_path(GET folder FILENAME folder)
      message(STATUS "at ${name}=${folder}/${file}")
    endif()
  endforeach()
  get_target_property(first MLIRTransforms INTERFACE_LINK_OPTIONS)
  if(first)
    message(STATUS "at first=${first}")
  endif()
endfunction()
cmake_language(DEFER CALL say)
"""


def configure(
    tmp_path: Path,
    *,
    debug: tuple[str, ...],
    dylib: bool,
    of: Path | None = None,
    objects: tuple[str, ...] = (),
) -> dict[str, str]:
    """Configure under an LLVM with an environment's file; where each library is afterwards.

    Args:
        tmp_path: folder of the test.
        debug: names of libraries in debug.
        dylib: the LLVM at hand links the shared libLLVM.
        of: prefix of the LLVM that the environment's file was written for; the one at hand by default.
        objects: those in debug, if not all.
    """
    prefix = tmp_path / "llvm"
    (prefix / "lib").mkdir(parents=True)
    replaced = {name: Replacement(tmp_path / "debug" / f"lib{name}.a", objects) for name in debug}
    (tmp_path / "debug").mkdir()
    for path in (
        *(one.archive for one in replaced.values()),
        *(prefix / "lib" / f"lib{name}.a" for name in ("LLVMSupport", "LLVMCore")),
    ):
        path.touch()
    text = _PROJECT.replace("@PREFIX@", str(prefix)).replace("@DYLIB@", "ON" if dylib else "OFF")
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    file = tmp_path / "relink.cmake"
    file.write_text(relink.render(made.llvm(of or prefix, dylib=dylib), replaced), encoding="utf-8")
    cmake, ninja = tools.own("cmake"), tools.own("ninja")
    assert cmake is not None
    assert ninja is not None
    defined = {"CMAKE_MAKE_PROGRAM": str(ninja.path), **relink.variables(file)}
    done = subprocess.run(
        (cmake.path, "-G", "Ninja", *(f"-D{name}={value}" for name, value in defined.items()), "."),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.removeprefix("-- at ") for line in done.stdout.splitlines() if line.startswith("-- at ")]
    return dict(line.split("=") for line in said)


_OWN = {name: f"lib/lib{name}.a" for name in ("LLVMSupport", "LLVMCore", "MLIRIR", "MLIRTransforms")}
_SHARED = {"LLVMSupport": "lib/libLLVM.so", "LLVMCore": "lib/libLLVM.so", "LLVM": "lib/libLLVM.so"}
_MLIR = {"MLIRTransforms": "debug/libMLIRTransforms.a"}
_CORE = {"LLVMCore": "debug/libLLVMCore.a"}
_SUPPORT = {"LLVMSupport": "debug/libLLVMSupport.a"}


@pytest.mark.parametrize(
    ("debug", "dylib", "changes"),
    [
        ((), False, {}),
        ((), True, _SHARED),
        (("MLIRTransforms",), False, _MLIR),
        (("MLIRTransforms",), True, _SHARED | _MLIR),
        (("LLVMCore",), False, _CORE),
        (("LLVMCore",), True, _CORE | {"LLVM": "lib/libLLVMSupport.a"}),
        (("LLVMCore", "MLIRTransforms"), True, _MLIR | _CORE | {"LLVM": "lib/libLLVMSupport.a"}),
        (("LLVMSupport",), True, _SUPPORT | {"LLVM": "debug/libLLVMSupport.a"}),
    ],
)
def test_what_stands_for_what(
    tmp_path: Path, debug: tuple[str, ...], *, dylib: bool, changes: dict[str, str]
) -> None:
    assert configure(tmp_path, debug=debug, dylib=dylib) == _OWN | changes


@pytest.mark.skipif(sys.platform != "linux", reason="other linkers have other options")
def test_single_files_come_first_in_each_link(tmp_path: Path) -> None:
    found = configure(tmp_path, debug=("MLIRTransforms",), dylib=False, objects=("objects/CSE.cpp.o",))
    first = f"LINKER:--whole-archive,{tmp_path}/debug/first.a,--no-whole-archive"
    assert found == _OWN | _MLIR | {"first": first}


@pytest.mark.parametrize("debug", [(), ("MLIRTransforms",), ("LLVMCore",)])
@pytest.mark.parametrize(("dylib", "changes"), [(False, {}), (True, _SHARED)])
def test_another_llvm_came_since(
    tmp_path: Path, debug: tuple[str, ...], *, dylib: bool, changes: dict[str, str]
) -> None:
    found = configure(tmp_path, debug=debug, dylib=dylib, of=tmp_path / "before")
    assert found == _OWN | changes
