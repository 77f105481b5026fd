"""What a tree tells of itself, whether it still holds, and trees that somebody else built."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build.store import made, operations
from tests.unit.core.plan import thin
from tests.unit.facts import fakes
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store import transfer as store_adopt
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import Closure, Compiler, LlvmNeeds, StoreEntry, StoreManifest
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan.steps.pack import CHECKSUMS
from tritonsmith.facts import llvm_tree, tools

CACHE = """
CMAKE_HOME_DIRECTORY:INTERNAL={source}/llvm
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/clang++-19
LLVM_ENABLE_PROJECTS:STRING=mlir;lld
LLVM_USE_LINKER:STRING=lld
LLVM_USE_SANITIZER:STRING={sanitizer}
BUILD_SHARED_LIBS:BOOL={shared}
{cached}
"""
BUILD_TYPE = "CMAKE_CXX_FLAGS_DEBUG:STRING=-g\n"
LESS = "TRITONSMITH_OPTIONS_rest:STRING="
SPLIT = "set(LLVM_USE_SPLIT_DWARF ON)"


def build_tree(
    path: Path, *, cached: str = "", sanitizer: str = "", shared: str = "OFF", more: str = ""
) -> Path:
    made.tree(path, (*made.FILES, "include/llvm/Config/abi-breaking.h"), build_type="Debug")
    thin.write(path / "lib" / "libLLVMSupport.a", operations.OBJECTS)
    (path / "include" / "llvm" / "Config" / "abi-breaking.h").write_text(
        "/* x */\n#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1\n"
    )
    with (path / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake").open("a") as config:
        config.write(f"set(LLVM_ENABLE_EH ON)\n{more}\n")
    text = CACHE.format(source=path.parent / "source", cached=cached, sanitizer=sanitizer, shared=shared)
    (path / "CMakeCache.txt").write_text(text)
    return path


def test_a_build_tree_tells_most(tmp_path: Path) -> None:
    tree = llvm_tree.read(build_tree(tmp_path / "build", sanitizer="Address", shared="ON"))
    have = describe_tree.manifest("one", "built", tree, made.MACHINE)
    assert (have.version, have.build_type, have.rtti, have.exceptions) == ("19.1.7", "Debug", True, True)
    assert (have.abi_breaking_checks, have.sanitizer, have.shared) == (True, "address", True)
    assert have.compiler == Compiler("/usr/bin/clang++-19")
    assert (have.linker, have.projects) == ("lld", ("mlir", "lld"))
    assert have.source == str(tmp_path / "source")
    assert have.abi == made.HERE
    assert (have.packages, have.scope, have.tools) == (("mlir",), "all", ("FileCheck", "mlir-tblgen"))
    assert have.made.startswith("20")


@pytest.mark.parametrize(
    ("cached", "more", "info"),
    [
        (BUILD_TYPE, "", "full"),
        (BUILD_TYPE, SPLIT, "split"),
        (f"{BUILD_TYPE}CMAKE_CXX_FLAGS:STRING=-g0", "", "full"),  # the build type's -g comes after it
        ("CMAKE_CXX_FLAGS_DEBUG:STRING=-O0 -gline-tables-only", SPLIT, "lines"),
        ("CMAKE_CXX_FLAGS_DEBUG:STRING=-O0", SPLIT, "none"),
        ("CMAKE_CXX_FLAGS_DEBUG:STRING=-ggdb3 -O0", "", "full"),
        (f"{BUILD_TYPE}TRITONSMITH_OPTIONS:STRING=tables;rest\n{LESS}-g1", "", "lines"),
        (f"{BUILD_TYPE}TRITONSMITH_OPTIONS:STRING=rest\n{LESS}-g0", "", "none"),
        (f"{BUILD_TYPE}TRITONSMITH_OPTIONS:STRING=whole;rest\n{LESS}-g1;-gno-split-dwarf", SPLIT, "mlir"),
        (f"{BUILD_TYPE}{LESS}-g1", SPLIT, "split"),  # of an earlier configure
    ],
)
def test_debug_information(tmp_path: Path, cached: str, more: str, info: str) -> None:
    tree = llvm_tree.read(build_tree(tmp_path / "build", cached=cached, more=more))
    assert describe_tree.manifest("one", "built", tree, made.MACHINE).debug_info == info
    known = Known(debug_info="lines")
    assert describe_tree.manifest("one", "built", tree, made.MACHINE, known).debug_info == "lines"


def test_an_installed_tree_tells_less(tmp_path: Path) -> None:
    have = made.described(made.tree(tmp_path / "llvm"))
    assert (have.debug_info, have.abi_breaking_checks, have.source, have.projects) == ("none", None, "", ())
    assert (have.kind, have.tree, have.abi.cxx11) == ("adopted", str(tmp_path / "llvm"), None)


def test_nobody_knows_the_libraries_of_the_machine_that_made_a_prebuilt_one(tmp_path: Path) -> None:
    tree = llvm_tree.read(made.tree(tmp_path / "llvm"))
    have = describe_tree.manifest("one", "prebuilt", tree, made.MACHINE, Known(commit=made.COMMIT))
    assert (have.commit, have.abi.arch, have.abi.glibc, have.abi.glibcxx) == (made.COMMIT, "x86_64", "", "")


@pytest.mark.parametrize(
    ("symbol", "newer"),
    [(b"_ZNSs4b", False), (b"_ZNSt3__112basic", None), (b"main", None), (b"__cxx11", True)],
)
def test_which_string_an_archive_uses(tmp_path: Path, symbol: bytes, newer: bool | None) -> None:
    index = b"\0\0\0\1\0\0\0\0" + symbol + b"\0"
    (tmp_path / "lib").mkdir()
    content = b"!<arch>\n" + thin.header("/", len(index)) + thin.even(index)
    (tmp_path / "lib" / "libLLVMSupport.a").write_bytes(content)
    assert describe_tree.cxx11(tmp_path) is newer


def test_what_was_built_before_is_still_there(tmp_path: Path) -> None:
    tree = llvm_tree.read(build_tree(tmp_path / "build"))
    one = Known(scope="python-module", closures=(Closure("a", "python-module"),))
    two = Known(scope="closure", closures=(Closure("b", "closure"),))
    first = describe_tree.built(made.key(), tree, made.MACHINE, known=one)
    assert (first.name, first.key, first.scope) == (made.key().name, made.key().digest, "python-module")
    second = describe_tree.built(made.key(), tree, made.MACHINE, known=two, before=first)
    assert second.closures == (*one.closures, *two.closures)
    assert (
        describe_tree.built(made.key(), tree, made.MACHINE, known=two, before=second).closures
        == second.closures
    )
    everything = replace(second, scope="all")
    assert describe_tree.built(made.key(), tree, made.MACHINE, known=one, before=everything).scope == "all"


@pytest.fixture
def built(tmp_path: Path) -> StoreEntry:
    tree = operations.a_build(tmp_path / "one")
    have = describe_tree.manifest("one", "built", llvm_tree.read(tree), made.MACHINE)
    return StoreEntry("one", tree, "ready", have)


def changed(entry: StoreEntry, **changes: object) -> StoreEntry:
    assert entry.manifest is not None
    return replace(entry, manifest=replace(entry.manifest, **changes))  # type: ignore[arg-type]


def test_a_whole_one(built: StoreEntry) -> None:
    assert describe_tree.problems(built) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "18.1.0"}, "version: the manifest says 18.1.0, the tree 19.1.7"),
        ({"build_type": "Debug"}, "build type: the manifest says Debug, the tree RelWithDebInfo"),
        ({"assertions": True}, "assertions: the manifest says yes, the tree no"),
        ({"targets": ("X86",)}, "code generators: the manifest says X86, the tree AMDGPU, NVPTX, X86"),
        ({"packages": ()}, "CMake packages: the manifest says none, the tree mlir"),
        ({"tools": ("FileCheck", "opt", "llc")}, "programs in the manifest, but missing: llc, opt"),
    ],
)
def test_a_tree_that_is_another(built: StoreEntry, changes: dict[str, object], words: str) -> None:
    assert describe_tree.problems(changed(built, **changes)) == (words,)


def test_another_commit(built: StoreEntry) -> None:
    header = built.path / "include" / "llvm" / "Support" / "VCSRevision.h"
    header.parent.mkdir(parents=True)
    header.write_text(f'#define LLVM_REVISION "{made.COMMIT}"\n')
    assert describe_tree.problems(changed(built, commit=made.COMMIT)) == ()
    assert "commit: the manifest says" in describe_tree.problems(changed(built, commit="f" * 40))[0]


def test_archives_that_are_not_whole(built: StoreEntry) -> None:
    lib = built.path / "lib"
    (lib / "libNone.a").write_text("none")
    (lib / "libCut.a").write_bytes((lib / "libLLVMSupport.a").read_bytes()[:100])
    (lib / "obj" / "A.cpp.o").unlink()
    problems = describe_tree.problems(changed(built, libraries=("libLLVMSupport.a", "libMLIRIR.a")))
    assert problems == (
        "lib/libMLIRIR.a is missing",
        "lib/libCut.a: libCut.a is truncated: a member ends after the end of the file",
        "lib/libLLVMSupport.a names an object that is missing or was changed: obj/A.cpp.o",
        "lib/libNone.a is not an archive",
    )


def test_files_that_were_changed_since_they_were_imported(built: StoreEntry) -> None:
    sums = built.path / CHECKSUMS
    sums.write_text(json.dumps({"schema": 1, "sha256": {"bin/FileCheck": "0" * 64, "gone": "0" * 64}}))
    assert describe_tree.problems(built) == (
        "bin/FileCheck was changed since it was imported",
        "gone: No such file or directory",
    )
    assert describe_tree.problems(built, quick=True) == ()
    sums.write_text("{")
    assert "cannot read" in describe_tree.problems(built)[0]


def test_one_that_is_not_ready() -> None:
    assert describe_tree.problems(StoreEntry("x", Path("/x"), "unfinished", None, "half")) == ("half",)


def test_adopting_and_forgetting(store: Store, space: Workspace, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "their build")
    manifest, plan = store_adopt.adopt(store, tree, made.MACHINE)
    assert manifest.name.startswith("their-build-19.1.7-Debug-")
    made.act(space, *plan.steps)
    made.act(space, *store_adopt.adopt(store, tree, made.MACHINE)[1].steps)  # once more: as it is by now
    entry = store.entry(manifest.name)
    assert (entry.status, entry.path) == ("ready", tree)
    with pytest.raises(UsageError, match=f"already in the store as {manifest.name}"):
        store_adopt.adopt(store, tree, made.MACHINE, "other")
    with pytest.raises(UsageError, match="is taken"):
        store_adopt.adopt(store, build_tree(tmp_path / "two"), made.MACHINE, manifest.name)
    made.act(space, *store_adopt.forget(store, entry).steps)
    assert store.entries() == ()
    assert llvm_tree.is_tree(tree)


GRAPH = """
rule touch
  command = touch $out
rule cmake
  command = touch $out
  generator = 1
build build.ninja: cmake
build bin/FileCheck: touch
build bin/mlir-tblgen: touch
build all: phony bin/FileCheck bin/mlir-tblgen
default all
"""


def ninja_tree(path: Path) -> Path:
    """A build tree of which Ninja has built all."""
    (build_tree(path) / "build.ninja").write_text(GRAPH)
    for name in ("FileCheck", "mlir-tblgen"):
        (path / "bin" / name).unlink()
    run_ninja(path)
    return path


def run_ninja(path: Path) -> None:
    ninja = tools.own("ninja")
    assert ninja is not None
    subprocess.run((ninja.path, "-C", path), check=True, capture_output=True)


def adopt(store: Store, space: Workspace, tree: Path) -> tuple[StoreManifest, tuple[str, ...]]:
    manifest, plan = store_adopt.adopt(store, tree, made.MACHINE)
    made.act(space, *plan.steps)
    return manifest, plan.notes


def why_not(store: Store, wanted: LlvmNeeds) -> str:
    ((_, why),) = store.find(wanted).refused
    return why


def test_a_build_tree_is_all_of_it_once_ninja_has_nothing_left_to_do(
    store: Store, space: Workspace, tmp_path: Path
) -> None:
    tree = ninja_tree(tmp_path / "build")
    (tmp_path / "source" / "llvm").mkdir(parents=True)
    manifest, notes = adopt(store, space, tree)
    assert (manifest.scope, notes) == ("all", ())
    (tree / "bin" / "mlir-tblgen").unlink()
    manifest, notes = adopt(store, space, tree)
    assert manifest.scope == "python-module"
    assert notes[0].startswith("build steps left: 1")
    assert "its build is incomplete" in why_not(store, LlvmNeeds(triton=made.TRITON))
    run_ninja(tree)
    assert adopt(store, space, tree)[0].scope == "all"
    (tree / "build.ninja").unlink()
    assert "Ninja cannot check" in adopt(store, space, tree)[1][0]


def test_an_installed_one_is_what_it_is(store: Store, space: Workspace, tmp_path: Path) -> None:
    manifest, notes = adopt(store, space, made.tree(tmp_path / "llvm"))
    assert (manifest.scope, manifest.source, notes) == ("all", "", ())
    assert store.find(LlvmNeeds(tools=frozenset({"FileCheck"}))).entry
    assert why_not(store, LlvmNeeds(tools=frozenset({"clang++"}))) == "programs clang++"


def test_changes_of_the_sources_are_written_down_and_looked_for(
    store: Store, space: Workspace, tmp_path: Path
) -> None:
    tree, source = ninja_tree(tmp_path / "build"), tmp_path / "source"
    (source / "llvm").mkdir(parents=True)
    (source / "llvm" / "a.h").write_text("int a;\n")
    commit = fakes.commit(source)
    manifest, _ = adopt(store, space, tree)
    assert (manifest.commit, manifest.diff, manifest.source) == (commit, "", str(source))
    assert store.find(LlvmNeeds(commit=commit)).entry
    (source / "llvm" / "a.h").write_text("int b;\n")
    assert "have been modified" in why_not(store, LlvmNeeds(commit=commit))
    manifest, notes = adopt(store, space, tree)
    assert len(manifest.diff) == 16
    assert "are modified" in notes[0]
    assert why_not(store, LlvmNeeds(commit=commit)) == "its sources were modified"


@pytest.mark.parametrize("file", ["bin/mlir-tblgen", "CMakeCache.txt", "lib/cmake/llvm/LLVMConfig.cmake"])
def test_one_that_was_built_anew_is_not_given_out_until_it_is_adopted_again(
    store: Store, space: Workspace, tmp_path: Path, file: str
) -> None:
    tree = ninja_tree(tmp_path / "their build")
    manifest, _ = adopt(store, space, tree)
    made.age(tree / file, 100)
    entry = store.entry(manifest.name)
    assert (entry.status, entry.manifest) == ("changed", manifest)
    assert f"invoke store --adopt '{tree}'" in entry.problem
    assert store.find(LlvmNeeds()).entry is None
    assert describe_tree.problems(entry) == (entry.problem,)
    adopt(store, space, tree)
    assert store.entry(manifest.name).status == "ready"


def test_one_that_became_another_llvm_gets_another_name(
    store: Store, space: Workspace, tmp_path: Path
) -> None:
    tree = made.tree(tmp_path / "llvm")
    before, _ = adopt(store, space, tree)
    shutil.rmtree(tree)
    made.tree(tree, version="20.1.0")
    after, _ = adopt(store, space, tree)
    assert [entry.name for entry in store.entries()] == [after.name]
    assert after.name != before.name
    made.act(space, *store_adopt.forget(store, store.entry(after.name)).steps)
    made.act(space, *store_adopt.adopt(store, tree, made.MACHINE, "chosen")[1].steps)
    assert adopt(store, space, tree)[0].name == "chosen"


def test_what_cannot_be_adopted(store: Store, space: Workspace, tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no LLVM"):
        store_adopt.adopt(store, tmp_path, made.MACHINE)
    with pytest.raises(FactError, match="configured, but not built"):
        store_adopt.adopt(store, made.tree(tmp_path / "bare", ()), made.MACHINE)
    made.put(store, space)
    with pytest.raises(UsageError, match="in the store already"):
        store_adopt.adopt(store, store.path("one"), made.MACHINE)
    with pytest.raises(UsageError, match="is not an adopted entry"):
        store_adopt.forget(store, store.entry("one"))
    with pytest.raises(UsageError, match="not a valid entry name"):
        store_adopt.adopt(store, build_tree(tmp_path / "named"), made.MACHINE, "../up")
