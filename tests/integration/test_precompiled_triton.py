"""Precompiled headers of Triton: derived, injected, shared by worktrees, made again, and what they hide."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, commit, git, plant, ready, require_llvm
from tests.integration.team import env_file

PASSES = 7
HEADER = "include/triton/Dialect/Triton/IR/Dialect.h"
_NAMES = " ".join(f"Pass{number}.cpp" for number in range(PASSES))
_LIBRARY = f"""\
add_mlir_library(TritonIR Dialect.cpp {_NAMES} DISABLE_INSTALL DEPENDS TritonTableGen LINK_LIBS PUBLIC MLIRIR)
add_library(headers INTERFACE)
target_include_directories(headers SYSTEM INTERFACE "${{CMAKE_CURRENT_SOURCE_DIR}}/linked folder")
target_link_libraries(obj.TritonIR PRIVATE headers)
target_compile_definitions(obj.TritonIR PRIVATE NUMBER=1)
"""
_SOURCE = """\
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "pybind11/linked.h"
int pass{number}(mlir::MLIRContext *context) {{
  return context->getOrLoadDialect<mlir::triton::TritonDialect>() ? {number} : linked();
}}
"""
_LINKED = "#pragma once\ninline int linked() { return NUMBER; }\n"  # found only by what links it
CHANGES = {
    "lib/Dialect/Triton/IR/CMakeLists.txt": _LIBRARY,
    "lib/Dialect/Triton/IR/linked folder/pybind11/linked.h": _LINKED,
    **{f"lib/Dialect/Triton/IR/Pass{number}.cpp": _SOURCE.format(number=number) for number in range(PASSES)},
}
BUILD = ("build-triton", "--debug", "--llvm-dir", LLVM, "--precompiled-headers", "on", "--target", "TritonIR")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """A checkout with enough sources for a header, built."""
    require_llvm()
    root = tmp_path_factory.mktemp("with headers")
    smith = Smith(root, cwd=plant("mini_triton", root / "my checkout", CHANGES))
    ready(smith, tmp_path_factory, "first", "second")
    smith(*BUILD, "--env", env_file(smith, "first", ""))
    return smith


@pytest.fixture(scope="module")
def second(first: Smith) -> Smith:
    """Another worktree, built in an environment of its own, which must not compile anything anew."""
    path = first.root / "another worktree"
    git(first.cwd, "worktree", "add", "--quiet", "--detach", str(path))
    there, before = replace(first, cwd=path), first.ccache()
    there(*BUILD, "--env", env_file(first, "second", ""))
    after = first.ccache()
    assert after["cache_miss"] == before["cache_miss"]
    assert after["direct_cache_hit"] >= before["direct_cache_hit"] + PASSES + 1
    return there


def header_of(smith: Smith, env: str) -> Path:
    """The precompiled header of the compiler's sources."""
    return smith.build(env) / "CMakeFiles" / "tritonsmith_pch_compiler.dir" / "cmake_pch.hxx.pch"


def test_sources_that_reach_the_dialect_use_the_header(first: Smith) -> None:
    rows = json.loads((first.build("first") / "compile_commands.json").read_text(encoding="utf-8"))
    users = {Path(row["file"]).name for row in rows if "-include-pch" in row["command"]}
    assert {f"Pass{number}.cpp" for number in range(PASSES)} <= users
    assert "mini-overflow.cpp" not in users
    told = (header_of(first, "first").parent / "cmake_pch.hxx").read_text(encoding="utf-8")
    assert '#include "mlir/IR/Builders.h"' in told
    assert '#include "pybind11/linked.h"' in told
    assert '#include "triton/Dialect/Triton/IR/Dialect.h"' in told


def test_a_configure_alone_makes_nothing_of_the_header_again(first: Smith) -> None:
    def made() -> dict[Path, int]:
        folder = header_of(first, "first").parent
        return {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.suffix in {".o", ".pch"}}

    before = made()
    first(*BUILD, "--env", first.root / "first.toml", "--reconfigure")
    assert before == made()
    assert before


def test_a_second_worktree_takes_the_header_and_its_users_from_the_cache(second: Smith) -> None:
    one, other = header_of(second, "first"), header_of(second, "second")
    assert one.read_bytes() == other.read_bytes()
    (compiled,) = second.build("second").rglob("Pass0.cpp.o")
    assert str(second.root).encode() not in compiled.with_suffix(".dwo").read_bytes()
    assert str(second.root).encode() not in compiled.read_bytes()


@pytest.mark.slow
def test_a_worktree_whose_header_changed_gets_its_own(second: Smith) -> None:
    header = second.cwd / HEADER
    header.write_text(header.read_text("utf-8") + "\nint onlyHere();\n", encoding="utf-8")
    explained = second("build.explain", "--env", second.root / "second.toml", "--target", "TritonIR").out
    assert "the precompiled header `compiler` is made again, because" in explained.replace("\n", " ")
    user = second.cwd / "lib/Dialect/Triton/IR/Pass0.cpp"
    user.write_text(user.read_text("utf-8") + "int there() { return onlyHere(); }\n", encoding="utf-8")
    second(*BUILD, "--env", second.root / "second.toml")
    assert header_of(second, "first").read_bytes() != header_of(second, "second").read_bytes()
    git(second.cwd, "checkout", "--quiet", ".")


@pytest.mark.slow
def test_a_missing_include_is_found_before_upstream_finds_it(first: Smith) -> None:
    source = first.cwd / "lib/Dialect/Triton/IR/Pass1.cpp"
    git(first.cwd, "checkout", "--quiet", "-b", "topic")
    text = '#include "mlir/IR/Types.h"\nvoid *hidden(mlir::OpBuilder &b) { return b.getContext(); }\n'
    source.write_text(text, encoding="utf-8")
    commit(first.cwd, "Include too little")
    check = (*BUILD[:-2], "--env", first.root / "first.toml", "--check-includes")
    first(*BUILD, "--env", first.root / "first.toml")  # the precompiled header hides it
    told = " ".join(first(*check, code=1).error.split())
    assert "without the precompiled header, 1 of 1 files fail to compile" in told
    assert 'OpBuilder: #include "mlir/IR/Builders.h"' in told
    source.write_text(text.replace("Types.h", "Builders.h"), encoding="utf-8")
    assert "changed since main" in first(*check).out
    header = first.cwd / "include/triton/Dialect/Triton/IR/Needy.h"
    header.write_text("using Needed = mlir::OpBuilder;\n", encoding="utf-8")
    source.write_text('#include "mlir/IR/Builders.h"\n#include "triton/Dialect/Triton/IR/Needy.h"\n', "utf-8")
    commit(first.cwd, "Include a header that includes too little")
    told = " ".join(first(*check, code=1).error.split())
    assert "1 of 2 files fail to compile" in told
    assert "Needy.h:1" in told
    assert "no meaning" in first(*check, "--for", "opt", code=2).error
    git(first.cwd, "checkout", "--quiet", "--force", "main")
