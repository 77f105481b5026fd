"""Flags and edges of one library's build.ninja."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.build import made
from tests.unit.build.debug_library.test_abi_check import TRAITS
from tritonsmith.build.debug_library import includes, llvm_options, ninja_file
from tritonsmith.build.debug_library.cmake_lists import Library, Table
from tritonsmith.build.debug_library.ninja_file import Compilation
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
        options=llvm_options.read(tree),
        sources=llvm_options.sources(project),
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
    given = ninja_file.flags(compilation(tree, project))
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
    text = ninja_file.render(compilation(tree, project))
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
    given = {"options": replace(llvm_options.read(tree), **of_options), **changes}
    text = ninja_file.render(compilation(changed, project, **given))
    assert has in text
    assert lacks not in text


def test_gcc_knows_no_standalone_debug(tree: LlvmTree, project: Path) -> None:
    assert "-fstandalone-debug" in ninja_file.flags(compilation(tree, project))
    gcc = made.compilers(cxx=Tool("g++", Path("/usr/bin/g++"), "14.2.0"))
    assert "-fstandalone-debug" not in ninja_file.flags(compilation(tree, project, compilers=gcc))


def test_paths_with_spaces_are_escaped_for_ninja_and_quoted_for_the_shell(
    tree: LlvmTree, project: Path
) -> None:
    text = ninja_file.render(compilation(tree, project))
    escaped = str(project).replace(" ", "$ ")
    assert f"build objects/Twice.cpp.o: cxx {escaped}/mlir/lib/Mini/Twice.cpp || " in text
    assert f"'-I{project}/mlir/lib/Mini'" in text


def test_objects_lie_below_the_folder_wherever_their_source_is(tree: LlvmTree, project: Path) -> None:
    text = ninja_file.render(compilation(tree, project))
    assert "build objects/__/Other/Far.cpp.o: cxx" in text
    assert "build objects/fast.c.o: cc" in text
    assert "objects/.." not in text


def test_kept_objects_come_from_the_llvms_own_archive(tree: LlvmTree, project: Path) -> None:
    text = ninja_file.render(compilation(tree, project, kept=(Path("a.S.o"), Path("b.S.o"))))
    assert "x $in a.S.o b.S.o" in text
    assert "build kept/a.S.o kept/b.S.o: take" in text
    assert "kept/b.S.o\ndefault" in text


def test_objects_that_a_thin_archive_names_are_taken_from_where_they_lie(
    tree: LlvmTree, project: Path
) -> None:
    text = ninja_file.render(compilation(tree, project, kept=(Path("/a build/lib/a.S.o"),)))
    assert "objects/fast.c.o /a$ build/lib/a.S.o\ndefault" in text
    assert ": take" not in text


def test_an_archive_gets_its_name_after_the_comparison(tree: LlvmTree, project: Path) -> None:
    command = next(
        line for line in ninja_file.render(compilation(tree, project)).splitlines() if "qcs" in line
    )
    assert command.index("$out.new") < command.index("debug_library.compare") < command.index("mv -f")


def test_tables_are_made_by_the_llvms_own_program(tree: LlvmTree, project: Path) -> None:
    text = ninja_file.render(compilation(tree, project))
    assert "mlir-tblgen' -gen-enum-decls" in text
    assert f"-I{project}/mlir/include'" in text


def test_includes_are_followed_to_what_is_generated(tree: LlvmTree, project: Path) -> None:
    header = tree.prefix / "include/mlir/Mini/Twice.h"
    header.parent.mkdir(parents=True)
    header.write_text('#include "llvm/Mini/Other.h"\n#  include <vector>\n', encoding="utf-8")
    folder = project / "mlir/lib/Mini"
    reached = includes.follow([folder / "Twice.cpp"], (folder,), (tree.prefix / "include",))
    assert reached.public == {"mlir/Mini/Twice.h"}
    assert {"Colors.h.inc", "Colors.cpp.inc", "llvm/Mini/Other.h", "vector"} <= reached.missing


def test_a_header_beside_the_source_is_found_through_folders(project: Path) -> None:
    folder = project / "mlir/lib/Mini"
    (folder / "Near.h").write_text('#include "../Far.h"\n', encoding="utf-8")
    (folder.parent / "Far.h").write_text('#include "Generated.inc"\n', encoding="utf-8")
    (folder / "New.cpp").write_text('#include "Near.h"\n', encoding="utf-8")
    reached = includes.follow([folder / "New.cpp"], (folder,), ())
    assert reached.missing == {"Generated.inc"}


def test_some_files_get_an_archive_of_their_own_that_links_first(tree: LlvmTree, project: Path) -> None:
    assert "first.a" not in ninja_file.render(compilation(tree, project))
    text = ninja_file.render(compilation(tree, project, kept=(Path("Down.cpp.o"),), some=True))
    edge = next(line for line in text.splitlines() if line.startswith("build first.a: first "))
    assert "objects/Twice.cpp.o" in edge
    assert "Down.cpp.o" not in edge
