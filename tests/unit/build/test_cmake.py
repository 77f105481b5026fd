"""The initial-cache file: what CMake reads from it is what was meant, whatever the value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build import cmake
from tritonsmith.build.cmake import CmakeTools
from tritonsmith.core.plan import Run, Write
from tritonsmith.facts.tools import Tool

OWN = Path(sys.executable).with_name("cmake")
VALUES = {
    "PLAIN": "ON",
    "EMPTY": "",
    "SPACES": "/Users/dev/Library/Application Support/a  b",
    "LIST": "mlir;lld;clang",
    "BRACKETS": "a]]b",
    "LAST_BRACKET": "x[0]",
    "FENCE": "a]]b]=]c",
    "FENCE_AT_THE_END": "a]]b]=",
    "QUOTES": "say \"hi\" and 'ho'",
    "REFERENCE": "${PLAIN} $ENV{HOME} @PLAIN@ $<CONFIG>",
    "BACKSLASH": "C:\\new\\table",
    "COMMENT": "a # b #[[c",
    "PAREN": "-DX=(1) -fuse-ld=/opt/my ld/ld.lld",
}


@pytest.mark.skipif(not OWN.is_file(), reason="missing: cmake")
def test_cmake_reads_back_what_was_meant(tmp_path: Path) -> None:
    text = cmake.render(Path("/src"), tmp_path, VALUES, CmakeTools(OWN, Path("/usr/bin/ninja")))
    script = [text, *(f'file(WRITE "{tmp_path}/{name}" "${{{name}}}")' for name in VALUES)]
    (tmp_path / "read.cmake").write_text("\n".join(script), encoding="utf-8")
    subprocess.run((OWN, "-P", tmp_path / "read.cmake"), check=True, timeout=60)
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in VALUES} == VALUES


def test_order_is_kept_and_ninja_comes_first() -> None:
    variables = {"B": "1", "A": "2"}
    lines = cmake.render(Path("/src"), Path("/build"), variables, made.tools()).splitlines()
    assert [line.split(" ")[0] for line in lines if not line.startswith("#")] == [
        "set(CMAKE_MAKE_PROGRAM",
        "set(B",
        "set(A",
    ]


def test_the_file_says_how_to_replay_it() -> None:
    text = cmake.render(Path("/my src"), Path("/my build"), {}, made.tools())
    assert f"#   {made.tools().cmake} -C {cmake.CACHE_FILE} -G Ninja -S '/my src' -B '/my build'" in text


def stamp(variables: dict[str, str], tools: CmakeTools) -> str:
    write, run = cmake.configure(Path("/src"), Path("/build"), variables, tools, phase="configure")
    assert isinstance(write, Write)
    assert isinstance(run, Run)
    assert write.path == Path("/build") / cmake.CACHE_FILE
    assert run.argv[1:4] == ("--fresh", "-C", str(write.path))
    assert write.stamp == run.stamp is not None
    return run.stamp.key


def test_a_changed_call_configures_again() -> None:
    tools = made.tools()
    keys = [
        stamp({"A": "1"}, tools),
        stamp({"A": "2"}, tools),
        stamp({"A": "1"}, CmakeTools(Path("/usr/bin/cmake"), tools.ninja)),
        stamp({"A": "1"}, CmakeTools(tools.cmake, Path("/usr/bin/ninja"))),
    ]
    assert len(set(keys)) == 4
    assert stamp({"A": "1"}, tools) == keys[0]


def test_again_configures_what_is_configured(tmp_path: Path) -> None:
    def stamps(*, again: bool) -> list[bool]:
        steps = cmake.configure(Path("/src"), tmp_path, {}, made.tools(), phase="configure", again=again)
        for stamp in (step.stamp for step in steps):
            assert stamp is not None
            stamp.path.write_text(stamp.key, encoding="utf-8")
        return [bool(step.stamp and step.stamp.holds()) for step in steps]

    (tmp_path / "CMakeCache.txt").touch()
    assert stamps(again=False) == [True, True]
    assert stamps(again=True) == [False, False]


def test_a_changed_include_of_the_tools_own_configures_again(tmp_path: Path) -> None:
    included = tmp_path / "hook.cmake"
    included.write_text("# one\n", encoding="utf-8")
    before = stamp({"CMAKE_PROJECT_LLVM_INCLUDE": str(included)}, made.tools())
    included.write_text("# two\n", encoding="utf-8")
    assert stamp({"CMAKE_PROJECT_LLVM_INCLUDE": str(included)}, made.tools()) != before


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/llvm-19/bin/ld.lld", "lld"),
        ("/usr/bin/mold", "mold"),
        ("/usr/bin/ld.lld-19", "/usr/bin/ld.lld-19"),
        ("/usr/bin/ld.gold", "/usr/bin/ld.gold"),
    ],
)
def test_linker_name(path: str, name: str) -> None:
    found = made.compilers(linker=Tool("ld.lld", Path(path)))
    assert cmake.linker_name(found) == name
    flags = cmake.compiler_variables(found, system="Linux")
    assert flags["CMAKE_MODULE_LINKER_FLAGS"] == f"-fuse-ld={name}"


@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("/usr/lib/llvm-19/bin/ld.lld", " -Wl,--gdb-index"),
        ("/usr/bin/ld.lld-19", " -Wl,--gdb-index"),
        ("/usr/bin/mold", " -Wl,--gdb-index"),
        ("/usr/bin/ld.gold", " -Wl,--gdb-index"),
        ("/usr/bin/ld.bfd", ""),
    ],
)
def test_gdbs_index_where_the_linker_makes_one(path: str, index: str) -> None:
    found = made.compilers(linker=Tool("linker", Path(path)))
    flags = cmake.compiler_variables(found, system="Linux", gdb_index=True)
    assert flags["CMAKE_EXE_LINKER_FLAGS"] == f"-fuse-ld={cmake.linker_name(found)}{index}"


def test_what_was_not_found_is_not_said() -> None:
    nothing = made.compilers(cc=None, cxx=None, linker=None, launcher=None)
    assert cmake.compiler_variables(nothing, system="Linux") == {}
    words = ("env", "A=1", "ccache")
    assert cmake.compiler_variables(made.compilers(cc=None), system="Darwin", launcher=words) == {
        "CMAKE_C_COMPILER_LAUNCHER": "env;A=1;ccache",
        "CMAKE_CXX_COMPILER_LAUNCHER": "env;A=1;ccache",
    }
    assert "CMAKE_EXE_LINKER_FLAGS" not in cmake.compiler_variables(
        made.compilers(), system="Linux", linker_flags=False
    )


def test_ninja_gets_its_jobs_and_a_status_that_the_runner_reads() -> None:
    run = cmake.build_targets(Path("/build"), made.tools(), targets=("triton-opt",), jobs=3, phase="build")
    assert run.argv == (str(made.tools().ninja), "-C", "/build", "-j3", "triton-opt")
    assert run.env == (("NINJA_STATUS", "[%f/%t] "),)
