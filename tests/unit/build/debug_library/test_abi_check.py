"""What must agree: each point that differs is refused by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.build.debug_library import abi_check
from tritonsmith.build.debug_library.abi_check import AbiRow, LlvmSources, Traits
from tritonsmith.build.debug_library.resolve import Library, Reached
from tritonsmith.core.errors import FactError
from tritonsmith.facts.llvm_tree import LlvmTree

TRAITS = Traits(
    strong=frozenset({"f", "g"}),
    hidden=frozenset({"g"}),
    assertions=False,
    checks=False,
    rtti=True,
    exceptions=False,
    cxx11=True,
    libcxx=False,
)


def before(tree: LlvmTree, project: Path, **changes: Any) -> dict[str, AbiRow]:
    sources = abi_check.sources(project)
    library = Library("Mini", project, (project / "Twice.cpp",), (), (), hidden=False, tables=())
    given: dict[str, Any] = {
        "options": abi_check.read(tree),
        "sources": sources,
        "library": library,
        "reached": Reached(frozenset(), frozenset()),
        "old": TRAITS,
        "members": ("Twice.cpp.o",),
        **changes,
    }
    return {row.what: row for row in abi_check.rows_before(tree, **given)}


def wrong(rows: dict[str, AbiRow]) -> list[str]:
    return [what for what, row in rows.items() if not row.agrees]


def test_the_same_release_agrees(tree: LlvmTree, project: Path) -> None:
    assert wrong(before(tree, project)) == []


@pytest.mark.parametrize(
    ("of_tree", "of_sources", "what"),
    [
        ({"version": "19.1.6"}, {}, ["release"]),
        ({"commit": "a" * 40}, {"commit": "b" * 40}, ["commit"]),
        ({"commit": "a" * 40}, {"commit": "a" * 12}, []),
        ({"commit": "a" * 40}, {"commit": ""}, []),
    ],
)
def test_release_and_commit(
    tree: LlvmTree, project: Path, of_tree: dict[str, str], of_sources: dict[str, str], what: list[str]
) -> None:
    sources: LlvmSources = replace(abi_check.sources(project), **of_sources)  # type: ignore[arg-type]
    changed: LlvmTree = replace(tree, **of_tree)  # type: ignore[arg-type]
    assert wrong(before(changed, project, sources=sources)) == what


@pytest.mark.parametrize(
    ("of_tree", "of_objects", "what"),
    [
        ({"assertions": False}, {"assertions": True}, ["assertions"]),
        ({"assertions": True}, {"assertions": False}, []),  # a library without any
        ({"rtti": False}, {"rtti": True}, ["RTTI"]),
        ({}, {"exceptions": True}, ["exceptions"]),
        ({}, {"checks": True}, ["ABI-breaking checks"]),
        ({}, {"checks": None}, []),
    ],
)
def test_what_the_package_claims_must_not_be_refuted_by_its_objects(
    tree: LlvmTree, project: Path, of_tree: dict[str, bool], of_objects: dict[str, Any], what: list[str]
) -> None:
    changed: LlvmTree = replace(tree, **of_tree)  # type: ignore[arg-type]
    assert wrong(before(changed, project, old=replace(TRAITS, **of_objects))) == what


def test_a_source_that_the_archive_has_no_object_of(tree: LlvmTree, project: Path) -> None:
    rows = before(tree, project, members=("Other.cpp.o",))
    assert wrong(rows) == ["objects"]
    assert "Twice.cpp.o" in rows["objects"].here


def headers(tree: LlvmTree, project: Path, count: int, other: int) -> Reached:
    for number in range(count):
        name = f"llvm/Mini/{number}.h"
        for root, text in ((tree.prefix, "one"), (project / "llvm", "another" if number < other else "one")):
            path = root / "include" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return Reached(frozenset(f"llvm/Mini/{number}.h" for number in range(count)), frozenset())


@pytest.mark.parametrize(
    ("version", "count", "other", "agrees"),
    [
        ("19.1.7", 100, 0, True),
        ("19.1.7", 100, 2, True),  # a distribution's patches
        ("19.1.7", 100, 3, False),
        ("19.1.7", 1, 1, False),
        ("19.1.7git", 100, 1, False),  # a development version is many commits
    ],
)
def test_headers_tell_another_commit(
    tree: LlvmTree, project: Path, version: str, count: int, other: int, *, agrees: bool
) -> None:
    reached = headers(tree, project, count, other)
    rows = before(replace(tree, version=version), project, reached=reached)
    row = rows["included headers"]
    assert row.agrees is agrees
    assert row.llvm == f"{count - other} identical"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, []),
        ({"strong": frozenset({"f", "g", "mine"})}, []),  # somebody edits the source
        ({"strong": frozenset({"g"})}, ["symbols"]),
        ({"hidden": frozenset()}, ["visibility"]),
        ({"assertions": True}, ["assertions"]),
        ({"checks": True}, ["ABI-breaking checks"]),
        ({"exceptions": True}, ["exceptions"]),
        ({"cxx11": False}, ["std::string with the new ABI"]),
        ({"libcxx": True}, ["libc++"]),
        ({"rtti": False}, []),
    ],
)
def test_new_objects_against_the_old(change: dict[str, Any], what: list[str]) -> None:
    rows = {row.what: row for row in abi_check.rows_after(TRAITS, replace(TRAITS, **change))}
    assert wrong(rows) == what


def test_new_rtti_in_an_llvm_without(tmp_path: Path) -> None:
    rows = abi_check.rows_after(replace(TRAITS, rtti=False), TRAITS)
    with pytest.raises(FactError, match="cannot be linked") as caught:
        abi_check.enforce(rows, "cannot be linked", tmp_path, ["a hint"])
    assert "RTTI: the LLVM has no, here yes" in str(caught.value)
    assert "a hint" in str(caught.value)


def test_sources_that_do_not_tell_their_version(tmp_path: Path) -> None:
    (tmp_path / "llvm").mkdir()
    (tmp_path / "llvm" / "CMakeLists.txt").write_text("project(LLVM)\n", encoding="utf-8")
    with pytest.raises(FactError, match="cannot determine the LLVM version of these sources"):
        abi_check.sources(tmp_path)


def test_the_version_of_older_sources_lies_in_the_top_file(tmp_path: Path) -> None:
    (tmp_path / "llvm").mkdir()
    text = "set(CMAKE_CXX_STANDARD 14)\n" + "".join(
        f"  set(LLVM_VERSION_{part} {number})\n"
        for part, number in (("MAJOR", 14), ("MINOR", 0), ("PATCH", 6))
    )
    (tmp_path / "llvm" / "CMakeLists.txt").write_text(text, encoding="utf-8")
    found = abi_check.sources(tmp_path)
    assert (found.version, found.standard) == ("14.0.6", "14")


# Symbols tell how objects were compiled.

_LINES = """
/lib/libMini.a(Twice.cpp.o):	file format elf64-x86-64

SYMBOL TABLE:
0000000000000000 l    df *ABS*	0000000000000000 Twice.cpp
0000000000000000 g     F .text	0000000000000042 _ZN4mlir4mini5twiceB5cxx11Ei
0000000000000050 g     F .text	0000000000000042 .hidden _ZN4mlir4mini4halfEi
0000000000000000  w    F .text._ZN1aE	0000000000000010 _ZN1aE
0000000000000000 u     O .bss	0000000000000008 _ZGVunique
0000000000000000         *UND*	0000000000000000 _ZN4llvm24DisableABIBreakingChecksE
0000000000000000  w    O .data.rel.ro	0000000000000018 _ZTIN4mlir4PassE
""".splitlines()


def test_what_symbols_show() -> None:
    traits = abi_check.parse_traits(_LINES)
    assert traits.strong == {"_ZN4mlir4mini5twiceB5cxx11Ei", "_ZN4mlir4mini4halfEi"}
    assert traits.hidden == {"_ZN4mlir4mini4halfEi"}
    assert (traits.checks, traits.rtti, traits.cxx11) == (False, True, True)
    assert (traits.assertions, traits.exceptions, traits.libcxx) == (False, False, False)


@pytest.mark.parametrize(
    ("name", "trait", "value"),
    [
        ("__assert_fail", "assertions", True),
        ("___assert_rtn", "assertions", True),
        ("_ZN4llvm23EnableABIBreakingChecksE", "checks", True),
        ("__gxx_personality_v0", "exceptions", True),
        ("_ZNSsC1EPKcRKSaIcE", "cxx11", False),
        ("_ZNSt3__112basic_stringIcE", "libcxx", True),
        ("puts", "cxx11", None),
        ("puts", "checks", None),
    ],
)
def test_a_symbol_that_is_asked_for(name: str, trait: str, value: bool | None) -> None:
    traits = abi_check.parse_traits([f"0000000000000000         *UND*\t0000000000000000 {name}"])
    assert getattr(traits, trait) is value


def test_mach_o_prints_no_size() -> None:
    traits = abi_check.parse_traits(
        ["0000000000000000 g     F __TEXT,__text _main", "0000000000000000  *UND* _puts"]
    )
    assert traits.strong == {"_main"}
