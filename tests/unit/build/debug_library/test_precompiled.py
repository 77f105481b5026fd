"""Which header is precompiled for a library, and for which of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build.debug_library.test_ninja_file import compilation
from tritonsmith.build.debug_library import ninja_file, precompiled
from tritonsmith.build.debug_library.cmake_lists import Library
from tritonsmith.core import configs
from tritonsmith.facts.llvm_tree import LlvmTree

_HEADERS = ("mlir/IR/Builders.h", "llvm/IR/Module.h", "llvm/CodeGen/SelectionDAG.h", "llvm/ADT/ArrayRef.h")


def library(folder: Path, *names: str) -> Library:
    """A library of these files, or of as many as it takes."""
    files = names or tuple(f"{number}.cpp" for number in range(_enough()))
    return Library("Any", folder, tuple(folder / name for name in files), (), (), hidden=False, tables=())


def _enough() -> int:
    least = configs.load("precompiled-headers")["pays-from"]
    assert isinstance(least, int)
    return least


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """Headers of an LLVM that has one of each level."""
    for name in _HEADERS:
        (tmp_path / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "include" / name).touch()
    return tmp_path / "include"


@pytest.mark.parametrize(
    ("folder", "header"),
    [
        ("mlir/lib/Transforms", "mlir/IR/Builders.h"),
        ("llvm/lib/Transforms/Utils", "llvm/IR/Module.h"),
        ("llvm/lib/Target/NVPTX", "llvm/CodeGen/SelectionDAG.h"),
        ("llvm/lib/Support", "llvm/ADT/ArrayRef.h"),
        ("mlir/lib/TableGen", "llvm/ADT/ArrayRef.h"),
    ],
)
def test_the_folder_decides_the_level(tmp_path: Path, include: Path, folder: str, header: str) -> None:
    found = precompiled.choose(library(tmp_path / folder), tmp_path, (include,))
    assert found is not None
    assert f'#include "{header}"\n' in found.text


def test_headers_that_this_llvm_does_not_have_are_left_out(tmp_path: Path, include: Path) -> None:
    found = precompiled.choose(library(tmp_path / "mlir/lib/IR"), tmp_path, (tmp_path / "none", include))
    assert found is not None
    assert found.text == '#include "mlir/IR/Builders.h"\n'


def test_few_files_do_not_pay(tmp_path: Path, include: Path) -> None:
    names = tuple(f"{number}.cpp" for number in range(_enough()))
    of = library(tmp_path / "mlir/lib/IR", *names[1:], "fast.c")
    assert precompiled.choose(of, tmp_path, (include,)) is None


def test_files_that_do_not_compile_with_it_and_those_in_c_go_without(tmp_path: Path, include: Path) -> None:
    names = tuple(f"{number}.cpp" for number in range(_enough()))
    folder = tmp_path / "llvm/lib/Demangle"
    found = precompiled.choose(library(folder, *names, "RustDemangle.cpp", "fast.c"), tmp_path, (include,))
    assert found is not None
    assert found.sources == {folder / name for name in names}


def test_a_folder_without_a_level(tmp_path: Path, include: Path) -> None:
    assert precompiled.choose(library(tmp_path / "flang/lib"), tmp_path, (include,)) is None


def test_the_edges_of_a_precompiled_header(tree: LlvmTree, project: Path) -> None:
    twice = project / "mlir/lib/Mini/Twice.cpp"
    header = precompiled.Header("", frozenset({twice}))
    lines = ninja_file.render(compilation(tree, project, header=header)).splitlines()
    compile_ = next(line for line in lines if "c++-header" in line)
    assert "-fno-pch-timestamp" in compile_, "or the compiler cache never answers"
    assert "-frtti" not in compile_
    assert "-std=c++17" in compile_
    edge = next(at for at, line in enumerate(lines) if line.startswith("build objects/Twice.cpp.o"))
    assert "| precompiled.h.pch || " in lines[edge]
    assert lines[edge + 1] == "  header = -include-pch precompiled.h.pch"
    assert sum("precompiled.h.pch" in line for line in lines) == 3


def test_without_one_nothing_of_it_is_there(tree: LlvmTree, project: Path) -> None:
    assert "precompiled" not in ninja_file.render(compilation(tree, project))
