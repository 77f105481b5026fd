"""CMake reads LLVM's lists: conditions, variables, tables and folders come out as in LLVM's own build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.debug_library import resolve
from tritonsmith.build.debug_library.resolve import Library
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.facts import tools
from tritonsmith.facts.llvm_tree import LlvmTree


def read(name: str, project: Path, tree: LlvmTree) -> Library:
    cmake = tools.own("cmake")
    assert cmake is not None
    folder = resolve.index(project)[name]
    return resolve.read(name, folder, project, tree, project / "generated", cmake.path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_index_names_every_library_and_its_folder(project: Path) -> None:
    write(project / "llvm/lib/Target/Toy/CMakeLists.txt", "add_llvm_target(ToyCodeGen\n  Toy.cpp)\n")
    found = resolve.index(project)
    assert found["MLIRMini"] == project / "mlir/lib/Mini"
    assert found["MLIRMiniBits"] == project / "mlir/lib/Mini/Bits"
    assert found["LLVMToyCodeGen"] == project / "llvm/lib/Target/Toy"
    assert not any("TableGen" in name for name in found)


def test_sources_tables_and_folders(project: Path, tree: LlvmTree) -> None:
    library = read("MLIRMini", project, tree)
    folder = project / "mlir/lib/Mini"
    assert library.sources == (folder / "Quotient.cpp", folder / "Twice.cpp")
    assert [table.output.name for table in library.tables] == ["Colors.h.inc", "Colors.cpp.inc"]
    table = library.tables[0]
    assert (table.project, table.definitions) == ("MLIR", folder / "Colors.td")
    assert table.arguments == ("-gen-enum-decls",)
    assert library.includes[:2] == (folder, project / "generated/Mini")


# As the lists of LLVM 14 to main write them: around the sources, and what kind of library it is.
_FORMS = (
    "add_mlir_library(MLIRAny A.cpp B.cpp PARTIAL_SOURCES_INTENDED LINK_LIBS PUBLIC MLIRIR)",
    "add_mlir_library(MLIRAny SHARED EXCLUDE_FROM_LIBMLIR A.cpp B.cpp ENABLE_AGGREGATION)",
    "add_mlir_library(MLIRAny OBJECT A.cpp B.cpp DISABLE_INSTALL)",
    "add_mlir_dialect_library(MLIRAny\n  A.cpp\n  B.cpp\n  DEPENDS MLIRAnyIncGen)",
    "add_mlir_interface_library(MLIRAny A.cpp B.cpp)",
    "add_mlir_conversion_library(MLIRAny A.cpp B.cpp LINK_COMPONENTS Core)",
    "add_mlir_extension_library(MLIRAny A.cpp B.cpp)",
    "add_mlir_translation_library(MLIRAny A.cpp B.cpp)",
    "add_mlir_upstream_c_api_library(MLIRAny\n  A.cpp\n  B.cpp\n  ENABLE_AGGREGATION)",
    "add_mlir_public_c_api_library(MLIRAny A.cpp B.cpp)",
    "add_mlir_library(MLIRAny A.cpp)\ntarget_sources(obj.MLIRAny PRIVATE B.cpp)",
    "add_mlir_library(MLIRAny A.cpp)\ntarget_sources(MLIRAny PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/B.cpp)",
    (
        "set(more B.cpp)\nadd_llvm_component_library(LLVMAny A.cpp ${more}\n"
        "  ADDITIONAL_HEADER_DIRS\n  ${LLVM_MAIN_INCLUDE_DIR}/llvm/Any\n)"
    ),
    "add_llvm_component_library(LLVMAny A.cpp B.cpp PRECOMPILE_HEADERS <vector> LINK_COMPONENTS Support)",
    "add_llvm_target(AnyCodeGen A.cpp B.cpp LINK_COMPONENTS AnyDesc ADD_TO_COMPONENT Any)",
    "add_llvm_library(LLVMAny STATIC A.cpp B.cpp BUILDTREE_ONLY)",
    "llvm_add_library(LLVMAny OBJECT STATIC A.cpp B.cpp)",
)


@pytest.mark.parametrize("text", _FORMS)
def test_the_ways_to_write_a_library(project: Path, tree: LlvmTree, text: str) -> None:
    name = next(name for name in ("MLIRAny", "LLVMAny", "AnyCodeGen") if name in text)
    name = f"LLVM{name}" if "add_llvm_target" in text else name
    folder = project / ("mlir/lib/Any" if name.startswith("MLIR") else "llvm/lib/Any")
    write(folder / "CMakeLists.txt", f"{text}\n")
    write(folder / "A.cpp", "")
    write(folder / "B.cpp", "")
    assert [source.name for source in read(name, project, tree).sources] == ["A.cpp", "B.cpp"]


def test_sources_for_those_who_link_it_are_not_its_own(project: Path, tree: LlvmTree) -> None:
    text = "add_mlir_library(MLIRAny A.cpp)\ntarget_sources(MLIRAny PRIVATE B.cpp INTERFACE C.cpp)\n"
    write(project / "mlir/lib/Any/CMakeLists.txt", text)
    for name in ("A", "B", "C"):
        write(project / f"mlir/lib/Any/{name}.cpp", "")
    assert [source.name for source in read("MLIRAny", project, tree).sources] == ["A.cpp", "B.cpp"]


def test_conditions_are_decided_by_the_options_of_the_llvm(project: Path, tree: LlvmTree) -> None:
    (project / "llvm/lib/Mini/Asserted.cpp").touch()
    assert [source.name for source in read("LLVMMini", project, tree).sources] == ["Metals.cpp"]
    config = tree.cmake_dir("llvm") / "LLVMConfig.cmake"
    config.write_text("set(LLVM_ENABLE_ASSERTIONS ON)\n", encoding="utf-8")
    names = [source.name for source in read("LLVMMini", project, tree).sources]
    assert names == ["Metals.cpp", "Asserted.cpp"]


def test_a_target_inherits_folders_visibility_and_flags_from_above(project: Path, tree: LlvmTree) -> None:
    write(project / "llvm/lib/CMakeLists.txt", "add_subdirectory(Target)\n")
    write(
        project / "llvm/lib/Target/CMakeLists.txt",
        "list(APPEND LLVM_TABLEGEN_FLAGS -I ${LLVM_MAIN_SRC_DIR}/lib/Target)\n"
        "SET(CMAKE_CXX_VISIBILITY_PRESET hidden)\n"
        "foreach(t ${LLVM_TARGETS_TO_BUILD})\n  add_subdirectory(${t})\nendforeach()\n",
    )
    write(project / "llvm/lib/Target/X86/CMakeLists.txt", "")
    write(
        project / "llvm/lib/Target/NVPTX/CMakeLists.txt",
        "set(LLVM_TARGET_DEFINITIONS NVPTX.td)\ntablegen(LLVM Gen.inc -gen-instr-info)\n"
        "add_subdirectory(Desc)\n"
        "tablegen(LLVM Later.inc -gen-subtarget)\n",
    )
    write(
        project / "llvm/lib/Target/NVPTX/Desc/CMakeLists.txt",
        "include(SomeModule)\nadd_definitions(-DMINE=1)\ninclude_directories(${CMAKE_CURRENT_SOURCE_DIR}/..)\n"
        "add_llvm_component_library(LLVMNVPTXDesc A.cpp)\n"
        "target_compile_definitions(LLVMNVPTXDesc PRIVATE ALSO)\nno_such_command(\n  x)\n",
    )
    write(project / "llvm/lib/Target/NVPTX/Desc/A.cpp", "")
    library = read("LLVMNVPTXDesc", project, tree)
    assert library.hidden
    assert [source.name for source in library.sources] == ["A.cpp"]
    assert library.definitions == ("-DMINE=1", "-DALSO")
    first, later = library.tables
    target = project / "llvm/lib/Target/NVPTX"
    assert first.arguments == ("-I", str(project / "llvm/lib/Target"), "-gen-instr-info")
    assert later.definitions == target / "NVPTX.td", "CMake forgets its folder at the end of `include`"
    assert later.output == project / "generated/Target/NVPTX/Later.inc"
    assert {target, project / "generated/Target/NVPTX"} <= set(library.includes)


def test_a_folder_that_the_lists_above_leave_out_is_read_all_the_same(project: Path, tree: LlvmTree) -> None:
    write(project / "llvm/lib/Support/CMakeLists.txt", "add_llvm_component_library(LLVMSupport S.cpp)\n")
    write(project / "llvm/lib/Support/S.cpp", "")
    assert [source.name for source in read("LLVMSupport", project, tree).sources] == ["S.cpp"]


def test_a_library_that_the_options_leave_out_is_refused(project: Path, tree: LlvmTree) -> None:
    lists_file = project / "mlir/lib/Mini/CMakeLists.txt"
    text = lists_file.read_text(encoding="utf-8")
    lists_file.write_text(f"if(NO_SUCH_OPTION)\n{text}endif()\n", encoding="utf-8")
    with pytest.raises(FactError, match="configured without it"):
        read("MLIRMini", project, tree)


def test_lists_that_cmake_cannot_read_are_named(project: Path, tree: LlvmTree) -> None:
    write(project / "mlir/lib/Mini/CMakeLists.txt", "add_mlir_library(MLIRMini\nTwice.cpp)\nif(\n")
    with pytest.raises(SmithError, match="CMake cannot read") as caught:
        read("MLIRMini", project, tree)
    assert "mlir/lib/Mini/CMakeLists.txt" in str(caught.value)
