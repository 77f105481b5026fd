from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.core.errors import FactError
from tritonsmith.facts import llvm_tree

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_an_install(tmp_path: Path) -> None:
    files = (
        "lib/cmake/mlir/MLIRConfig.cmake",
        "lib/cmake/lld/LLDConfig.cmake",
        "lib/libLLVMSupport.a",
        "lib/libMLIRIR.a",
        "bin/FileCheck",
        "bin/clang++",
        "bin/unrelated",
    )
    seen = llvm_tree.read(fakes.llvm(tmp_path, files=files))
    assert (seen.prefix, seen.version, seen.major) == (tmp_path, "19.1.7", 19)
    assert (seen.build_type, seen.assertions, seen.rtti) == ("RelWithDebInfo", False, True)
    assert seen.targets == {"X86", "NVPTX", "AMDGPU"}
    assert seen.packages == {"mlir", "lld"}
    assert seen.tools == {"FileCheck", "clang++"}
    assert (seen.static, seen.build_tree, seen.commit) == (True, False, "")
    assert seen.bin == tmp_path / "bin"
    assert seen.cmake_dir("mlir") == tmp_path / "lib" / "cmake" / "mlir"


@pytest.mark.parametrize("ending", ["so", "dylib"])
def test_one_of_shared_libraries(tmp_path: Path, ending: str) -> None:
    files = tuple(f"lib/lib{name}.{ending}" for name in ("LLVMSupport", "MLIRIR"))
    seen = llvm_tree.read(fakes.llvm(tmp_path / "whole", files=files))
    assert (seen.static, seen.shared) == (False, True)
    assert not llvm_tree.read(fakes.llvm(tmp_path / "part", files=files[:1])).shared


def test_the_least_that_there_can_be(tmp_path: Path) -> None:
    seen = llvm_tree.read(fakes.llvm(tmp_path, build_type="", targets="", assertions="ON"))
    assert (seen.build_type, seen.targets, seen.assertions, seen.static) == ("", frozenset(), True, False)


@pytest.mark.parametrize(
    ("line", "commit"),
    [
        (f'#define LLVM_REVISION "{COMMIT}"', COMMIT),
        ('#define LLVM_REVISION "0123456789ab"', "0123456789ab"),
        ("#undef LLVM_REVISION", ""),
        ('#define LLVM_REVISION ""', ""),
    ],
)
def test_the_commit_of_an_install(tmp_path: Path, line: str, commit: str) -> None:
    header = "include/llvm/Support/VCSRevision.h"
    fakes.llvm(tmp_path, files=(header,))
    (tmp_path / header).write_text(f"{line}\n")
    assert llvm_tree.read(tmp_path).commit == commit


def test_the_commit_of_a_build_folder_is_its_sources(tmp_path: Path) -> None:
    require("git")
    source = tmp_path / "llvm-project"
    (source / "llvm").mkdir(parents=True)
    (source / "llvm" / "CMakeLists.txt").touch()
    prefix = fakes.llvm(tmp_path / "build")
    cache = prefix / "CMakeCache.txt"
    cache.write_text(f"A:STRING=1\nCMAKE_HOME_DIRECTORY:INTERNAL={source / 'llvm'}\n")
    assert llvm_tree.read(prefix).build_tree
    assert llvm_tree.read(prefix).commit == ""
    assert llvm_tree.read(prefix).commit == llvm_tree.source_commit(source) == ""
    commit = fakes.commit(source)
    assert llvm_tree.read(prefix).commit == llvm_tree.source_commit(source) == commit
    cache.write_text("A:STRING=1\n")
    assert llvm_tree.read(prefix).commit == ""


def test_no_llvm_there(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no LLVM to build against") as caught:
        llvm_tree.read(tmp_path / "nothing")
    assert "lib/cmake/llvm/LLVMConfig.cmake is missing" in str(caught.value)


def test_installed_ones_come_newest_first_and_the_named_one_before_them(tmp_path: Path) -> None:
    for version in ("9.0.1", "19.1.7", "20.1.0"):
        fakes.llvm(tmp_path / f"llvm-{version}", version=version)
    (tmp_path / "llvm-broken").mkdir()
    named = fakes.llvm(tmp_path / "mine", version="3.0")
    patterns = [str(tmp_path / "llvm-*")]
    found = llvm_tree.installed({}, patterns)
    assert [one.version for one in found] == ["20.1.0", "19.1.7", "9.0.1"]
    found = llvm_tree.installed({"LLVM_SYSPATH": str(named)}, patterns)
    assert [one.version for one in found] == ["3.0", "20.1.0", "19.1.7", "9.0.1"]
    assert llvm_tree.installed({"LLVM_SYSPATH": ""}, []) == ()
    with pytest.raises(FactError):
        llvm_tree.installed({"LLVM_SYSPATH": str(tmp_path / "llvm-broken")}, patterns)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (COMMIT, COMMIT, True),
        (COMMIT, COMMIT.upper(), True),
        (COMMIT, COMMIT[:12], True),
        (COMMIT[:7], COMMIT, True),
        (COMMIT[:6], COMMIT, False),
        (COMMIT, "0123456", True),
        (COMMIT, "0123457", False),
        ("", "", False),
        ("", COMMIT, False),
    ],
)
def test_same_commit(one: str, other: str, same: bool) -> None:
    assert llvm_tree.same_commit(one, other) is same


def test_whether_there_is_one(tmp_path: Path) -> None:
    assert not llvm_tree.is_tree(tmp_path)
    assert not llvm_tree.is_tree(tmp_path / "nowhere")
    (tmp_path / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake").mkdir(parents=True)
    assert not llvm_tree.is_tree(tmp_path)
    assert llvm_tree.is_tree(fakes.llvm(tmp_path / "llvm"))


def test_the_sources_of_a_build_folder(tmp_path: Path) -> None:
    prefix = fakes.llvm(tmp_path / "build")
    assert llvm_tree.source_of(prefix) is None
    fakes.cmake_cache(prefix, "CMAKE_BUILD_TYPE:STRING=Release")
    assert llvm_tree.source_of(prefix) is None
    fakes.cmake_cache(prefix, f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path / 'llvm project' / 'llvm'}")
    with (prefix / "CMakeCache.txt").open("ab") as file:
        file.write(b"//\xe9\n")
    assert llvm_tree.source_of(prefix) == tmp_path / "llvm project"
    assert llvm_tree.source_commit(tmp_path / "llvm project") == ""
