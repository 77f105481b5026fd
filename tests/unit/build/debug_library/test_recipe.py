"""Flags and edges of one library's build.ninja."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.build import made
from tests.unit.build.debug_library.test_abi_check import TRAITS
from tritonsmith.build.debug_library import abi_check, recipe, resolve
from tritonsmith.build.debug_library.recipe import Compilation
from tritonsmith.build.debug_library.resolve import Library, Table
from tritonsmith.core import configs
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.tools import Tool


def compilation(tree: LlvmTree, project: Path, **changes: Any) -> Compilation:
    folder = project / "mlir/lib/Mini"
    table = Table(
        "MLIR", folder / "Colors.td", project / "gen dir/Colors.h.inc", ("-gen-enum-decls",), folder
    )
    library = Library(
        name="MLIRMini",
        folder=folder,
        sources=(folder / "Twice.cpp", folder / "../Other/Far.cpp", folder / "fast.c"),
        includes=(folder,),
        definitions=("-DMINE",),
        hidden=changes.pop("hidden", False),
        tables=(table,),
    )
    whole = Compilation(
        library=library,
        tree=tree,
        options=abi_check.read(tree),
        sources=abi_check.sources(project),
        old=TRAITS,
        kept=(),
        tables=(table,),
        headers=(),
        compilers=made.compilers(),
        launcher=("/usr/bin/ccache",),
        archiver=Path("/usr/bin/ar"),
    )
    return replace(whole, **changes)


def test_an_optimised_llvm_without_assertions_and_with_rtti(tree: LlvmTree, project: Path) -> None:
    given = recipe.flags(compilation(tree, project))
    for flag in (
        "-O0",
        "-g",
        "-ggnu-pubnames",
        "-fPIC",
        "-DNDEBUG",
        "-DMINE",
        "-D_GNU_SOURCE",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
    ):
        assert flag in given
    assert "-fvisibility=hidden" not in given
    text = recipe.render(compilation(tree, project))
    assert "-std=c++17" in text
    assert "-fno-exceptions -funwind-tables" in text
    assert "-fno-rtti" not in text


@pytest.mark.parametrize(
    ("of_tree", "of_options", "changes", "has", "lacks"),
    [
        ({"assertions": True}, {}, {}, "-O0", "-DNDEBUG"),
        ({"rtti": False}, {}, {}, "-fno-rtti", "-frtti"),
        ({}, {"exceptions": True}, {}, "-O0", "-fno-exceptions"),
        ({}, {"pic": False}, {}, "-O0", "-fPIC"),
        ({}, {}, {"hidden": True}, "-fvisibility=hidden", "-frtti"),
        ({}, {}, {"old": replace(TRAITS, cxx11=False)}, "_CXX11_ABI=0", "_CXX11_ABI=1"),
        ({}, {}, {"old": replace(TRAITS, cxx11=None)}, "-O0", "_CXX11_ABI"),
        ({}, {}, {"headers": (Path("/made/include"),)}, "-I/made/include", "-frtti"),
    ],
)
def test_flags_follow_the_llvm(
    tree: LlvmTree,
    project: Path,
    of_tree: dict[str, Any],
    of_options: dict[str, Any],
    changes: dict[str, Any],
    has: str,
    lacks: str,
) -> None:
    changed = replace(tree, **of_tree)
    given = {"options": replace(abi_check.read(tree), **of_options), **changes}
    text = recipe.render(compilation(changed, project, **given))
    assert has in text
    assert lacks not in text


@pytest.mark.parametrize(
    ("name", "traced", "without"),
    [("LLVMTableGen", False, True), ("LLVMTableGen", True, False), ("MLIRMini", False, False)],
)
def test_a_table_generator_has_assertions_where_its_archive_has_them(
    tree: LlvmTree, project: Path, name: str, traced: bool, without: bool
) -> None:
    whole = compilation(replace(tree, assertions=True), project, old=replace(TRAITS, assertions=traced))
    given = recipe.flags(replace(whole, library=replace(whole.library, name=name)))
    assert ("-DNDEBUG" in given) is without


def test_gcc_knows_no_standalone_debug(tree: LlvmTree, project: Path) -> None:
    assert "-fstandalone-debug" in recipe.flags(compilation(tree, project))
    gcc = made.compilers(cxx=Tool("g++", Path("/usr/bin/g++"), "14.2.0"))
    assert "-fstandalone-debug" not in recipe.flags(compilation(tree, project, compilers=gcc))


def test_paths_with_spaces_are_escaped_for_ninja_and_quoted_for_the_shell(
    tree: LlvmTree, project: Path
) -> None:
    text = recipe.render(compilation(tree, project))
    escaped = str(project).replace(" ", "$ ")
    assert f"build objects/Twice.cpp.o: cxx {escaped}/mlir/lib/Mini/Twice.cpp || " in text
    assert f"'-I{project}/mlir/lib/Mini'" in text


def test_objects_lie_below_the_folder_wherever_their_source_is(tree: LlvmTree, project: Path) -> None:
    text = recipe.render(compilation(tree, project))
    assert "build objects/__/Other/Far.cpp.o: cxx" in text
    assert "build objects/fast.c.o: cc" in text
    assert "objects/.." not in text


def test_kept_objects_come_from_the_llvms_own_archive(tree: LlvmTree, project: Path) -> None:
    text = recipe.render(compilation(tree, project, kept=(Path("a.S.o"), Path("b.S.o"))))
    assert "x $in a.S.o b.S.o" in text
    assert "build kept/a.S.o kept/b.S.o: take" in text
    assert "kept/b.S.o\ndefault" in text


def test_objects_that_a_thin_archive_names_are_taken_from_where_they_lie(
    tree: LlvmTree, project: Path
) -> None:
    text = recipe.render(compilation(tree, project, kept=(Path("/a build/lib/a.S.o"),)))
    assert "objects/fast.c.o /a$ build/lib/a.S.o\ndefault" in text
    assert ": take" not in text


def test_an_archive_gets_its_name_after_the_comparison(tree: LlvmTree, project: Path) -> None:
    command = next(line for line in recipe.render(compilation(tree, project)).splitlines() if "qcs" in line)
    assert command.index("$out.new") < command.index("debug_library.abi_check") < command.index("mv -f")


def test_tables_are_made_by_the_llvms_own_program(tree: LlvmTree, project: Path) -> None:
    text = recipe.render(compilation(tree, project))
    assert "mlir-tblgen' -gen-enum-decls" in text
    assert f"-I{project}/mlir/include'" in text


def test_includes_are_followed_to_what_is_generated(tree: LlvmTree, project: Path) -> None:
    header = tree.prefix / "include/mlir/Mini/Twice.h"
    header.parent.mkdir(parents=True)
    header.write_text('#include "llvm/Mini/Other.h"\n#  include <vector>\n', encoding="utf-8")
    folder = project / "mlir/lib/Mini"
    reached = resolve.follow_includes([folder / "Twice.cpp"], (folder,), (tree.prefix / "include",))
    assert reached.public == {"mlir/Mini/Twice.h"}
    assert {"Colors.h.inc", "Colors.cpp.inc", "llvm/Mini/Other.h", "vector"} <= reached.missing


def test_a_header_beside_the_source_is_found_through_folders(project: Path) -> None:
    folder = project / "mlir/lib/Mini"
    (folder / "Near.h").write_text('#include "../Far.h"\n', encoding="utf-8")
    (folder.parent / "Far.h").write_text('#include "Generated.inc"\n', encoding="utf-8")
    (folder / "New.cpp").write_text('#include "Near.h"\n', encoding="utf-8")
    reached = resolve.follow_includes([folder / "New.cpp"], (folder,), ())
    assert reached.missing == {"Generated.inc"}


def test_some_files_get_an_archive_of_their_own_that_links_first(tree: LlvmTree, project: Path) -> None:
    assert "first.a" not in recipe.render(compilation(tree, project))
    text = recipe.render(compilation(tree, project, kept=(Path("Down.cpp.o"),), some=True))
    edge = next(line for line in text.splitlines() if line.startswith("build first.a: first "))
    assert "objects/Twice.cpp.o" in edge
    assert "Down.cpp.o" not in edge


# Which header is precompiled for a library, and for which of its files.

_HEADERS = (
    "mlir/Pass/Pass.h",
    "llvm/IR/PatternMatch.h",
    "llvm/CodeGen/TargetLowering.h",
    "llvm/ADT/ArrayRef.h",
)


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
        ("mlir/lib/Transforms", "mlir/Pass/Pass.h"),
        ("llvm/lib/Transforms/Utils", "llvm/IR/PatternMatch.h"),
        ("llvm/lib/CodeGen", "llvm/CodeGen/TargetLowering.h"),
        ("llvm/lib/Support", "llvm/ADT/ArrayRef.h"),
        ("mlir/lib/TableGen", "llvm/ADT/ArrayRef.h"),
    ],
)
def test_the_folder_decides_the_level(tmp_path: Path, include: Path, folder: str, header: str) -> None:
    found = recipe.choose_header(library(tmp_path / folder), tmp_path, (include,))
    assert found is not None
    assert f'#include "{header}"\n' in found.text


def test_headers_that_this_llvm_does_not_have_are_left_out(tmp_path: Path, include: Path) -> None:
    found = recipe.choose_header(library(tmp_path / "mlir/lib/IR"), tmp_path, (tmp_path / "none", include))
    assert found is not None
    assert found.text == '#include "mlir/Pass/Pass.h"\n'


def test_a_header_of_all_dialects_pays_from_more_files_on(tmp_path: Path) -> None:
    (tmp_path / "mlir/Pass").mkdir(parents=True)
    (tmp_path / "mlir/Pass/Pass.h").touch()
    names = tuple(f"{number}.cpp" for number in range(_enough()))
    core, dialect = (library(tmp_path / name, *names) for name in ("mlir/lib/IR", "mlir/lib/Dialect/Arith"))
    assert recipe.choose_header(core, tmp_path, (tmp_path,))
    assert recipe.choose_header(dialect, tmp_path, (tmp_path,)) is None


def test_few_files_do_not_pay(tmp_path: Path, include: Path) -> None:
    names = tuple(f"{number}.cpp" for number in range(_enough()))
    of = library(tmp_path / "mlir/lib/IR", *names[1:], "fast.c")
    assert recipe.choose_header(of, tmp_path, (include,)) is None


def test_files_that_do_not_compile_with_it_and_those_in_c_go_without(tmp_path: Path, include: Path) -> None:
    names = tuple(f"{number}.cpp" for number in range(_enough()))
    folder = tmp_path / "llvm/lib/Demangle"
    found = recipe.choose_header(library(folder, *names, "RustDemangle.cpp", "fast.c"), tmp_path, (include,))
    assert found is not None
    assert found.sources == {folder / name for name in names}


def test_a_folder_without_a_level(tmp_path: Path, include: Path) -> None:
    assert recipe.choose_header(library(tmp_path / "flang/lib"), tmp_path, (include,)) is None


def test_the_edges_of_a_precompiled_header(tree: LlvmTree, project: Path) -> None:
    twice = project / "mlir/lib/Mini/Twice.cpp"
    header = recipe.Header("", frozenset({twice}))
    lines = recipe.render(compilation(tree, project, header=header)).splitlines()
    compile_ = next(line for line in lines if "c++-header" in line)
    assert "-fno-pch-timestamp" in compile_, "or the compiler cache never answers"
    assert "-frtti" not in compile_
    assert "-std=c++17" in compile_
    edge = next(at for at, line in enumerate(lines) if line.startswith("build objects/Twice.cpp.o"))
    assert "| precompiled.h.pch || " in lines[edge]
    assert lines[edge + 1] == "  header = -include-pch precompiled.h.pch"
    assert sum("precompiled.h.pch" in line for line in lines) == 3


def test_without_one_nothing_of_it_is_there(tree: LlvmTree, project: Path) -> None:
    assert "precompiled" not in recipe.render(compilation(tree, project))
