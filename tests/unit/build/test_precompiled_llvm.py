"""When precompiled headers are injected into LLVM, and what CMake is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build import precompiled_headers
from tritonsmith.build.llvm import source
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import CacheSettings, Headers, LlvmSettings, Settings
from tritonsmith.core.errors import UsageError
from tritonsmith.facts.tools import Compilers, Tool

GCC = made.compilers(cxx=Tool("g++", Path("/usr/bin/g++-12"), "12.2.0"))
REMOTE = CacheSettings(remote="redis://cache")


def settings(wanted: Headers = "auto", cache: CacheSettings | None = None) -> Settings:
    return Settings("dev", llvm=LlvmSettings(precompiled_headers=wanted), cache=cache or CacheSettings())


def test_with_clang_and_a_cache_on_this_machine_they_are_used() -> None:
    assert precompiled_headers.used_for_llvm(settings(), made.compilers())
    assert not precompiled_headers.used_for_llvm(settings("off"), made.compilers())


@pytest.mark.parametrize(
    ("cache", "compilers", "reason"),
    [
        (CacheSettings(), GCC, "not clang"),
        (CacheSettings(), made.compilers(cxx=None), "not clang"),
        (REMOTE, made.compilers(), "absolute paths"),
        (CacheSettings(distribute="icecc"), made.compilers(), "icecc does not send"),
        (CacheSettings(launcher="sccache"), made.compilers(), "sccache does not cache"),
    ],
)
def test_where_they_would_hurt_they_are_left_out_and_on_is_refused(
    cache: CacheSettings, compilers: Compilers, reason: str
) -> None:
    assert not precompiled_headers.used_for_llvm(settings(cache=cache), compilers)
    with pytest.raises(UsageError, match=reason):
        precompiled_headers.used_for_llvm(settings("on", cache), compilers)


def test_every_level_reaches_cmake() -> None:
    told = source.cache_variables(made.request(), made.means())
    levels = told["TRITONSMITH_PCH"].split(";")
    assert levels == [level["name"] for level in configs.load("precompiled-headers")["level"]]
    for name in levels:
        headers = told[f"TRITONSMITH_PCH_{name}_HEADERS"].split(";")
        assert all(header[0] + header[-1] in ('""', "<>") for header in headers), headers
        assert told[f"TRITONSMITH_PCH_{name}_OF"].startswith(("LLVM", "MLIR"))
        assert told[f"TRITONSMITH_PCH_{name}_FOLDERS"]
    assert Path(told["CMAKE_PROJECT_LLVM_INCLUDE"]).is_file()


def test_without_them_cmake_hears_nothing() -> None:
    told = source.cache_variables(made.request(), replace(made.means(), precompiled=False))
    assert not [name for name in told if "PCH" in name or name == "CMAKE_PROJECT_LLVM_INCLUDE"]
