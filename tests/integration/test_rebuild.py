"""What is built again, and why: a touched file, another LLVM, a moved pin; what `build.explain` says."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import CMAKE, LLVM, Smith, capture, commit, plant, ready, require_llvm

OLD, NEW = "1" * 40, "2" * 40  # commits of LLVM
NINJA = CMAKE.with_name("ninja")
PIN = "cmake/llvm-hash.txt"
SOURCE = "lib/Dialect/Triton/IR/Dialect.cpp"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """Mini-Triton, built against an LLVM at its pin. Each test may go on from where the one before ended."""
    require_llvm()
    root = tmp_path_factory.mktemp("pinned")  # mlir-tblgen writes spaces into dependency files as they are
    smith = ready(
        Smith(root, cwd=plant("mini_triton", root / "checkout", {PIN: f"{OLD}\n"})), tmp_path_factory
    )
    smith("setup-mlir", "--provider", "system", "--llvm-dir", llvm_at(root / "old-llvm", OLD))
    smith("build-triton", "--debug")
    return smith


def llvm_at(prefix: Path, revision: str, version: str = "19.1.7") -> Path:
    """The distribution's LLVM once more, by links, with a commit of its own."""
    cmake, support = Path("lib/cmake/llvm"), Path("include/llvm/Support")
    for folder in (
        Path(),
        Path("lib"),
        Path("lib/cmake"),
        cmake,
        Path("include"),
        Path("include/llvm"),
        support,
    ):
        (prefix / folder).mkdir(parents=True, exist_ok=True)
        for path in (LLVM / folder).iterdir():
            place = prefix / folder / path.name
            if not place.exists():
                place.symlink_to(path)
        for inner in ("lib", "lib/cmake", cmake, "include", "include/llvm", support):
            place = prefix / inner
            if place.is_symlink():
                place.unlink()
                place.mkdir()
    _write(prefix / support / "VCSRevision.h", f'#define LLVM_REVISION "{revision}"\n')
    config = (LLVM / cmake / "LLVMConfig.cmake").read_text(encoding="utf-8")
    text = config.replace("set(LLVM_PACKAGE_VERSION 19.1.7)", f"set(LLVM_PACKAGE_VERSION {version})")
    _write(prefix / cmake / "LLVMConfig.cmake", text)
    return prefix


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


def steps(smith: Smith) -> list[str]:
    """What Ninja ran last, as it prints it."""
    return re.findall(
        r"^\[\d+/\d+\] (.*)$", smith.log("build-triton").split("## build Triton: ninja")[-1], re.MULTILINE
    )


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file of a folder, with its time stamp and size."""
    found = {}
    for path in folder.rglob("*"):
        seen = path.lstat()
        found[str(path)] = (seen.st_mtime_ns, seen.st_size)
    return found


def test_nothing_changed(pinned: Smith) -> None:
    pinned("build-triton", "--debug")
    assert "ninja: no work to do." in pinned.log("build-triton")
    assert "nothing to do in" in pinned("build.explain").out


def test_one_source_touched_is_one_compile_and_the_links(pinned: Smith) -> None:
    source = pinned.cwd / SOURCE
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    before = state(pinned.build())
    told = pinned("build.explain").out
    assert f"{SOURCE} is newer than Dialect.cpp.o (changed " in told
    assert "1 compile, 2 links, 0 other steps" in told
    assert state(pinned.build()) == before
    stamps = [pinned.build() / ".tritonsmith-configured", pinned.env("dev") / "venv" / ".requirements.done"]
    written = [path.stat().st_mtime_ns for path in stamps]
    pinned("build-triton", "--debug")
    done = steps(pinned)
    assert len(done) == 3
    assert next(name for name in done if name.startswith("Building")).endswith("Dialect.cpp.o")
    log = pinned.log("build-triton")
    assert "Re-running CMake" not in log
    assert "cmake -C" not in log
    assert "pip" not in log
    assert [path.stat().st_mtime_ns for path in stamps] == written


def test_a_touched_header_is_told_with_all_that_reads_it(pinned: Smith) -> None:
    header = pinned.cwd / "include/triton/Dialect/Triton/IR/Dialect.h"
    os.utime(header)
    told = json.loads(pinned("build.explain", "--json").out)
    assert told["schema"] == 1
    [row] = told["rows"]
    assert len(row["files"]) == 2
    assert row["why"].startswith("include/triton/Dialect/Triton/IR/Dialect.h is newer than Dialect.cpp.o, ")
    assert told["totals"]["compiles"] == 2
    pinned("build-triton", "--debug")
    assert json.loads(pinned("build.explain", "--json").out)["rows"] == []


def test_a_changed_flag_in_cmakes_files_is_told_before_and_after_cmake_ran(pinned: Smith) -> None:
    lists = pinned.cwd / "CMakeLists.txt"
    whole = lists.read_text(encoding="utf-8")
    lists.write_text(whole.replace("-Werror)", "-Wall)"), encoding="utf-8")
    told = pinned("build.explain").out
    assert "Ninja runs CMake first: CMakeLists.txt is newer than build.ninja (changed " in told
    capture(NINJA, "-C", pinned.build(), "build.ninja", env=pinned.environ)
    told = pinned("build.explain").out
    assert re.search(r"command line of 6 objects \(.+, ...\) changed: -Werror -> -Wall\n", told)
    kept = pinned.build() / "tritonsmith-built"
    kept.rename(kept.with_name("other"))
    assert "the old command line is not recorded" in pinned("build.explain").out
    lists.write_text(whole, encoding="utf-8")
    pinned("build-triton", "--debug")
    assert steps(pinned) == ["Re-running CMake..."] or steps(pinned) == []
    shutil.rmtree(kept.with_name("other"))


def test_a_missing_output(pinned: Smith) -> None:
    program = pinned.build() / "bin" / "triton-opt"
    program.unlink()
    told = pinned("build.explain").out
    assert "bin/triton-opt is missing" in told
    assert "0 compiles, 1 link, " in told
    assert "nothing to do in" in pinned("build.explain", "--target", "mini-overflow").out
    pinned("build-triton", "--debug")


def test_why_the_compiler_cache_did_not_answer(pinned: Smith, tmp_path: Path) -> None:
    def build(folder: str, text: str) -> None:
        source = pinned.cwd / "third_party/amd/amd.c"
        source.write_text(text, encoding="utf-8")
        debug = {"CCACHE_DEBUG": "1", "CCACHE_DEBUGDIR": str(tmp_path / folder)}
        replace(pinned, more=debug)("build-triton", "--debug")

    whole = (pinned.cwd / "third_party/amd/amd.c").read_text(encoding="utf-8")
    build("one", f"{whole}int one;\n")
    build("two", f"{whole}int two;\n")
    told = pinned("build.explain", "--cache-debug", tmp_path / "two", "--cache-before", tmp_path / "one").out
    assert "- amd.c.o: the preprocessed source changed, first in " in told
    assert "amd.c\n0 cache hits, 1 misses\n" in told
    build("three", f"{whole}int one;\n")
    told = pinned(
        "build.explain", "--cache-debug", tmp_path / "three", "--cache-before", tmp_path / "one"
    ).out
    assert told == "1 cache hits, 0 misses\n"
    error = pinned(
        "build.explain", "--cache-debug", tmp_path, "--cache-before", pinned.root / "gone", code=1
    ).error
    assert "ccache recorded no compile here" in error
    build("four", whole)


def test_changed_settings_are_told_by_name(pinned: Smith) -> None:
    (pinned.build() / ".tritonsmith-configured").write_text("another", encoding="utf-8")
    cache = pinned.build() / "tritonsmith-cache.cmake"
    text = cache.read_text(encoding="utf-8")
    cache.write_text(text.replace("[amd;nvidia]", "[amd]").replace("[nvidia;amd]", "[amd]"), encoding="utf-8")
    assert "CMake runs again: TRITON_CODEGEN_BACKENDS: " in pinned("build.explain").out
    pinned("build-triton", "--debug")
    assert steps(pinned) == []


def test_a_moved_pin_without_its_llvm_says_what_to_run(pinned: Smith) -> None:
    _write(pinned.cwd / PIN, f"{NEW}\n")
    commit(pinned.cwd, "Move the pin")
    error = pinned("build-triton", "--debug", code=1).error
    assert f"LLVM pin changed from {OLD[:12]} to {NEW[:12]} ({PIN})" in error
    assert "run `tritonsmith setup-mlir --env dev`" in error
    assert f"LLVM pin changed from {OLD[:12]}" in pinned("build.explain", code=1).error


@pytest.mark.slow
def test_a_moved_pin_takes_the_llvm_that_setup_mlir_gives_and_says_so(pinned: Smith) -> None:
    new = llvm_at(pinned.root / "new-llvm", NEW)
    pinned("setup-mlir", "--provider", "system", "--llvm-dir", new)
    done = pinned("build-triton", "--debug")
    assert f"the checkout's LLVM pin changed from {OLD[:12]} to {NEW[:12]} ({PIN})" in done.err
    assert f"the LLVM changed: {pinned.root / 'old-llvm'} -> {new}" in done.err
    assert "CMake runs again: LLVM_DIR: " in done.err
    cache = (pinned.build() / "CMakeCache.txt").read_text(encoding="utf-8")
    assert str(new) in cache
    assert "old-llvm" not in cache
    compiled = [name for name in steps(pinned) if name.startswith("Building")]
    assert any("Dialect.cpp.o" in name for name in compiled)


def test_another_llvm_at_the_same_path_is_seen_though_its_headers_are_older(pinned: Smith) -> None:
    prefix = llvm_at(pinned.root / "new-llvm", NEW, version="19.1.8")
    told = pinned("build.explain").out
    assert "CMake runs again: LLVM: 19.1.7 -> 19.1.8" in told
    assert "everything is recompiled, through the compiler cache" in told
    before = pinned.ccache()
    done = pinned("build-triton", "--debug")
    assert "CMake runs again: LLVM: 19.1.7 -> 19.1.8" in done.err
    assert any("Dialect.cpp.o" in name for name in steps(pinned))
    assert pinned.ccache()["cache_miss"] == before["cache_miss"]
    assert f"LLVM_DIR:UNINITIALIZED={prefix}" in _cached(pinned) or str(prefix) in _cached(pinned)
    pinned("build-triton", "--debug")
    assert "ninja: no work to do." in pinned.log("build-triton")


def _cached(smith: Smith) -> str:
    return (smith.build() / "CMakeCache.txt").read_text(encoding="utf-8")
