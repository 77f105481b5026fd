from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.build.store import made
from tritonsmith.build.store.entry import Abi, Closure, LlvmNeeds, StoreEntry, choose_entry, lacks

WANTED = LlvmNeeds(
    commit=made.COMMIT,
    build_type="Release",
    assertions=True,
    targets=frozenset({"Native", "NVPTX"}),
    packages=frozenset({"mlir"}),
    tools=frozenset({"FileCheck"}),
    triton=made.TRITON,
    machine=made.HERE,
)
CLOSURE = (Closure(made.TRITON, "closure"),)
MODULE = (Closure(made.TRITON, "python-module"),)


def entry(name: str = "one", **changes: Any) -> StoreEntry:
    return StoreEntry(name, Path("/store") / name, "ready", made.manifest(name, **changes))


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ({}, {}),
        ({}, {"commit": ""}),
        ({}, {"commit": made.COMMIT[:8]}),
        ({"build_type": "RelWithDebInfo"}, {}),
        ({"build_type": "RelWithDebInfo", "debug_info": "full"}, {"build_type": "RelWithDebInfo"}),
        ({}, {"build_type": ""}),
        ({}, {"assertions": None}),
        ({}, {"debug_info": "split"}),  # a Release has none, whatever is asked for
        ({"build_type": "Debug", "debug_info": "full"}, {"build_type": "Debug", "debug_info": "split"}),
        ({"build_type": "Debug", "debug_info": "split"}, {"build_type": "Debug", "debug_info": "mlir"}),
        ({"scope": "closure", "closures": CLOSURE}, {}),
        ({"scope": "closure", "closures": CLOSURE}, {"scope": "python-module"}),
        ({}, {"scope": "all"}),
        ({"abi": Abi("Linux", "x86_64", "2.31", "3.4.28", cxx11=None)}, {}),
        ({"abi": Abi()}, {}),
        ({"targets": ("Native", "NVPTX")}, {}),
        ({"kind": "prebuilt", "build": 2}, {"build": 2}),
        ({"kind": "prebuilt", "build": 1}, {}),
        ({}, {"build": 2}),  # built here, of that very commit
    ],
)
def test_it_serves(have: dict[str, Any], want: dict[str, Any]) -> None:
    assert lacks(entry(**have), replace(WANTED, **want)) == []


@pytest.mark.parametrize(
    ("have", "want", "words"),
    [
        ({"commit": "f" * 40}, {}, "it is at ffffffffffff; required: 0123456789ab"),
        ({"commit": ""}, {}, "its commit is unknown; required: 0123456789ab"),
        ({"kind": "prebuilt", "build": 1}, {"build": 2}, "it is upstream's build 1; required: build 2"),
        ({"kind": "imported", "build": 1}, {"build": 2}, "it is upstream's build 1; required: build 2"),
        (
            {"kind": "prebuilt"},
            {"build": 2},
            "it is upstream's build of an unknown number; required: build 2",
        ),
        ({"diff": "d"}, {}, "its sources were modified"),
        ({}, {"build_type": "RelWithDebInfo"}, "it is Release; required: RelWithDebInfo"),
        ({"build_type": "RelWithDebInfo"}, {"build_type": "Debug"}, "it is RelWithDebInfo; required: Debug"),
        ({"assertions": False}, {}, "it has no assertions"),
        ({}, {"assertions": False}, "it has assertions"),
        ({"sanitizer": "address"}, {}, "it is instrumented by the sanitizer address"),
        ({"shared": True}, {"shared": False}, "it has shared libraries only"),
        ({}, {"shared": True}, "it has no shared libraries"),
        ({}, {"targets": frozenset({"AVR", "ARM", "X86"})}, "code generators ARM, AVR"),
        ({"targets": ("X86",)}, {}, "code generators NVPTX"),
        ({}, {"packages": frozenset({"clang"})}, "CMake packages clang"),
        ({}, {"tools": frozenset({"opt", "llc"})}, "programs llc, opt"),
        (
            {"build_type": "Debug", "debug_info": "lines"},
            {"build_type": "Debug", "debug_info": "split"},
            "its debug information is 'lines'; required: 'split'",
        ),
        (
            {"build_type": "Debug", "debug_info": "mlir"},
            {"build_type": "Debug", "debug_info": "split"},
            "its debug information is 'mlir'; required: 'split'",
        ),
        (
            {"build_type": "Debug", "debug_info": "lines"},
            {"build_type": "Debug", "debug_info": "mlir"},
            "its debug information is 'lines'; required: 'mlir'",
        ),
        ({"abi": Abi("Linux", "aarch64")}, {}, "it is for Linux on aarch64"),
        (
            {"abi": Abi("Linux", "x86_64", "2.39")},
            {},
            "it was built with glibc 2.39, this machine has glibc 2.36",
        ),
        (
            {"abi": Abi(glibcxx="3.4.32")},
            {},
            "it was built with GLIBCXX_3.4.32, this machine has GLIBCXX_3.4.30",
        ),
        ({"abi": Abi(cxx11=False)}, {}, "its std::string is libstdc++'s older one"),
        (
            {"scope": "closure", "closures": MODULE},
            {},
            "the closure of Triton 46550ab18e8f is not built in it (built: python-module of 46550ab18e8f)",
        ),
        (
            {"scope": "closure", "closures": CLOSURE},
            {"scope": "all"},
            "all of LLVM is not built in it (built: closure of 46550ab18e8f)",
        ),
        (
            {"scope": "closure", "closures": ()},
            {"triton": ""},
            "the closure of Triton  is not built in it (built: unknown)",
        ),
    ],
)
def test_it_does_not_and_says_why(have: dict[str, Any], want: dict[str, Any], words: str) -> None:
    assert lacks(entry(**have), replace(WANTED, **want)) == [words]


def test_what_is_not_ready_serves_nothing() -> None:
    assert lacks(StoreEntry("one", Path("/x"), "unfinished", None, "resume it"), LlvmNeeds()) == ["resume it"]


def growing(tmp_path: Path, name: str = "one", **changes: Any) -> StoreEntry:
    source, build = tmp_path / "source", tmp_path / name
    (source / "llvm").mkdir(parents=True, exist_ok=True)
    build.mkdir()
    (build / "build.ninja").touch()
    plain = {"scope": "python-module", "closures": MODULE, "source": str(source)}
    return StoreEntry(name, build, "ready", made.manifest(name, **{**plain, **changes}))


def test_a_build_tree_with_its_sources_serves_any_scope(tmp_path: Path) -> None:
    tree = growing(tmp_path)
    for scope in ("closure", "all"):
        want = replace(WANTED, scope=scope, tools=frozenset({"opt"}))
        assert lacks(tree, want) == []
        assert not choose_entry([tree], want).complete
    found = choose_entry([tree], replace(WANTED, scope="python-module"))
    assert (found.entry, found.complete) == (tree, True)


def test_it_does_not_once_its_sources_are_gone(tmp_path: Path) -> None:
    tree = growing(tmp_path)
    (tmp_path / "source" / "llvm").rmdir()
    assert lacks(tree, WANTED)
    assert lacks(growing(tmp_path, "two", kind="imported"), WANTED)


def test_the_best_comes_first_and_of_the_others_it_is_said_why_not(tmp_path: Path) -> None:
    tree = growing(tmp_path, "grows", made="2026-05-05")
    more = entry("more", build_type="RelWithDebInfo", made="2026-04-04")
    like = entry("like", made="2026-02-02")
    older = entry("older")
    other = entry("other", assertions=False)
    found = choose_entry([older, tree, other, more, like], WANTED)
    assert found.entry == like
    assert found.complete
    assert dict(found.refused) == {
        "other": "it has no assertions",
        "older": "suitable, but like is better",
        "more": "suitable, but like is better",
        "grows": "suitable, but like is better",
    }
    keyed = entry("keyed", key="k", made="2025-01-01")
    assert choose_entry([like, keyed], replace(WANTED, key="k")).entry == keyed
    nothing = choose_entry([other], WANTED)
    assert (nothing.entry, nothing.complete) == (None, False)
