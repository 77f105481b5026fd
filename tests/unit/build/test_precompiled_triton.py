"""Which headers Triton's build precompiles, and what CMake is told."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build import precompiled_headers
from tritonsmith.build.triton import recipe
from tritonsmith.core.envs.settings import CacheSettings, Headers, Settings, TritonSettings
from tritonsmith.core.errors import UsageError
from tritonsmith.facts.tools import Compilers, Tool

BACKENDS = ("nvidia",)
HEADERS = "TRITONSMITH_PCH_compiler_HEADERS"
GCC = made.compilers(cxx=Tool("g++", Path("/usr/bin/g++-12"), "12.2.0"))
OLD_CLANG = made.compilers(cxx=Tool("clang++", Path("/usr/bin/clang++-14"), "14.0.6"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Eleven sources: all but one include the dialect, four a rarer header of MLIR, two a rare one."""
    files = {
        "include/triton/Types.h": '#include "mlir/IR/Types.h"\n#include "Types.inc"\n',
        "include/triton/Dialect.h": '#include "triton/Types.h"\n',
        "include/triton/Rare.h": '#include "mlir/IR/Rare.h"\n',
        "lib/Plain.cpp": "",
        "lib/Both.cpp": '#include "triton/Dialect.h"\nusing namespace llvm;\nusing namespace mlir;\n',
        "python/src/main.cc": '#include "pybind11/pybind11.h"\n',
    }
    for number in range(9):
        extra = '#include "triton/Rare.h"\n' if number < 2 else ""
        extra += '#include "mlir/Pass/Pass.h"\n' if number < 4 else ""
        files[f"lib/Pass{number}.cpp"] = '#include "triton/Dialect.h"\n' + extra
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def settings(wanted: Headers = "auto", cache: CacheSettings | None = None) -> Settings:
    return Settings("dev", triton=TritonSettings(precompiled_headers=wanted), cache=cache or CacheSettings())


def test_what_most_sources_reach_goes_in_and_of_triton_only_what_nearly_all_do(root: Path) -> None:
    chosen = precompiled_headers.choose_headers(root, BACKENDS, {})
    assert chosen["TRITONSMITH_PCH"] == "compiler"  # one source of Python's does not pay for a header
    assert chosen[HEADERS] == '"mlir/IR/Types.h";"mlir/Pass/Pass.h";"triton/Dialect.h"'
    assert chosen["TRITONSMITH_PCH_WITHOUT"] == "lib/Both.cpp;lib/Plain.cpp"
    assert "third_party/nvidia/lib" in chosen["TRITONSMITH_PCH_compiler_FOLDERS"].split(";")


def test_a_choice_stays_while_its_headers_and_the_backends_do(root: Path) -> None:
    chosen = precompiled_headers.choose_headers(root, BACKENDS, {})
    for number in range(4):
        (root / f"lib/Pass{number}.cpp").write_text('#include "triton/Dialect.h"\n', encoding="utf-8")
    fresh = precompiled_headers.choose_headers(root, BACKENDS, {})
    assert "mlir/Pass/Pass.h" not in fresh[HEADERS]
    assert (
        precompiled_headers.choose_headers(root, BACKENDS, {**chosen, "CMAKE_BUILD_TYPE": "Debug"}) == chosen
    )
    assert precompiled_headers.choose_headers(root, ("amd",), chosen)[HEADERS] == fresh[HEADERS]
    (root / "include/triton/Dialect.h").unlink()
    assert "triton/Dialect.h" not in str(precompiled_headers.choose_headers(root, BACKENDS, chosen))


def test_few_sources_pay_for_no_header(tmp_path: Path) -> None:
    assert precompiled_headers.choose_headers(tmp_path, BACKENDS, {}) == {}
    assert precompiled_headers.triton_variables({}, ("-x",)) == {}


@pytest.mark.parametrize(
    ("cache", "compilers", "reason"),
    [
        (CacheSettings(), GCC, "not clang"),
        (CacheSettings(), OLD_CLANG, "before 15"),
        (CacheSettings(remote="redis://cache"), made.compilers(), "absolute paths"),
    ],
)
def test_where_they_would_hurt_they_are_left_out_and_on_is_refused(
    cache: CacheSettings, compilers: Compilers, reason: str
) -> None:
    assert not precompiled_headers.used_for_triton(settings(cache=cache), compilers, shared=True)
    with pytest.raises(UsageError, match=reason):
        precompiled_headers.used_for_triton(settings("on", cache), compilers, shared=True)


def test_with_clang_they_are_used_unless_the_env_says_off() -> None:
    assert precompiled_headers.used_for_triton(settings(), made.compilers(), shared=True)
    assert precompiled_headers.used_for_triton(settings("on"), OLD_CLANG, shared=False)
    assert not precompiled_headers.used_for_triton(settings("off"), made.compilers(), shared=True)


def test_worktrees_share_them_through_the_cache_and_without_a_cache_they_are_plain() -> None:
    inputs = made.inputs(precompiled=made.precompiled())
    told = recipe.cache_variables(inputs)
    assert Path(told["CMAKE_PROJECT_INCLUDE"]).is_file()
    assert f"-Xclang=-isysroot{inputs.env.build}" in told["TRITONSMITH_PCH_OPTIONS"].split(";")
    launcher = told["CMAKE_CXX_COMPILER_LAUNCHER"].split(";")
    assert "CCACHE_IGNOREOPTIONS=-Xclang=-isysroot*" in launcher
    assert "CCACHE_SLOPPINESS=pch_defines,time_macros" in launcher
    bare = recipe.cache_variables(replace(inputs, compilers=made.compilers(launcher=None)))
    assert bare["TRITONSMITH_PCH_OPTIONS"] == ""
    assert bare["CMAKE_CXX_COMPILER_LAUNCHER"].split(";") == list(precompiled_headers.RETRY)


def test_without_them_cmake_hears_nothing() -> None:
    told = recipe.cache_variables(made.inputs())
    assert not [name for name in told if "PCH" in name or name == "CMAKE_PROJECT_INCLUDE"]
    assert not [word for word in told["CMAKE_CXX_COMPILER_LAUNCHER"].split(";") if "IGNOREOPTIONS" in word]


PCH = ("-Xclang", "-include-pch", "-Xclang", "a b.pch", "-Xclang", "-include", "-Xclang", "a b.hxx")
NOTE = "tritonsmith: compiled without the precompiled header, with which it fails"
COMPILER = """#!/bin/sh
printf '%s\\n' "$@" > words
case " $* " in
    *"-include-pch"*) echo "x.cpp:1: ambiguous" >&2; exit $WITH ;;
    *) echo "x.cpp:1: a warning" >&2; exit $WITHOUT ;;
esac
"""


@pytest.mark.parametrize(
    ("given", "codes", "said"),
    [
        (PCH, (0, 9), ["x.cpp:1: ambiguous"]),
        (
            PCH,
            (1, 0),
            [
                "x.cpp:1: a warning",
                "tritonsmith: compiled without the precompiled header, with which it fails",
            ],
        ),
        (PCH, (1, 2), ["x.cpp:1: a warning"]),
        (PCH, (130, 0), ["x.cpp:1: ambiguous"]),
        ((), (9, 3), ["x.cpp:1: a warning"]),
    ],
    ids=["compiles", "without", "neither", "stopped", "no header"],
)
def test_a_compile_that_fails_with_the_header_runs_again_without(
    tmp_path: Path, given: tuple[str, ...], codes: tuple[int, int], said: list[str]
) -> None:
    """What it prints and how it ends is what the source deserves; its other words stay as they are."""
    compiler = tmp_path / "clang++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    environ = os.environ | {"WITH": str(codes[0]), "WITHOUT": str(codes[1])}
    words = ("-Xclang", "-isysroot/x y", "-DA='1'", *given, "-O0", "-c", "x.cpp", "-Xclang")
    argv = (*precompiled_headers.RETRY, str(compiler), *words)
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    with_header = given and codes[0] in (0, 130)
    assert done.returncode == (codes[0] if with_header else codes[1])
    assert done.stderr.splitlines() == said
    ran = (tmp_path / "words").read_text().splitlines()
    assert ran == list(words if with_header else [*words[:3], *words[3 + len(given) :]])
