"""The initial-cache file: what CMake reads from it is what was meant, whatever the value."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build import cmake
from tritonsmith.build.cmake import CMakeChange, CmakeTools, Jobs, bounded_jobs
from tritonsmith.core.envs.settings import DebugInfo, ToolchainSettings
from tritonsmith.core.plan import Plan, Remove, Run, Write
from tritonsmith.facts import machine
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


SOURCE, ABOUT = Path("/src"), {"LLVM": "19.1.7, commit unknown, assertions OFF", "compiler": "clang++ 19.1.7"}


def text(variables: dict[str, str], about: dict[str, str] = ABOUT) -> str:
    return cmake.render(SOURCE, Path("/build"), variables, made.tools(), about)


def test_what_was_written_is_read_back() -> None:
    variables = {"A": "x]]y", "EMPTY": "", "LINES": "one\ntwo", "LIST": "amd;nvidia"}
    assert (
        cmake.recorded_values(text(variables))
        == ABOUT | {"CMAKE_MAKE_PROGRAM": str(made.tools().ninja)} | variables
    )


def test_changes_in_words() -> None:
    old = text({"CMAKE_BUILD_TYPE": "Debug", "LIST": "amd;nvidia", "FLAGS": "-g -Wall", "GONE": "1"})
    about = ABOUT | {"LLVM": "19.1.7, commit unknown, assertions ON"}
    new = text(
        {"CMAKE_BUILD_TYPE": "Release", "LIST": "amd", "FLAGS": "-gsplit-dwarf -Wall", "NEW": "2"}, about
    )
    assert [change.in_words for change in cmake.call_changes(old, new)] == [
        "LLVM: assertions OFF -> assertions ON",
        "CMAKE_BUILD_TYPE: Debug -> Release",
        "LIST: without nvidia",
        "FLAGS: -g -> -gsplit-dwarf",
        "NEW: new, 2",
        "GONE: removed, was 1",
    ]
    assert cmake.call_changes(old, old) == ()


def test_only_what_will_happen_is_pending(tmp_path: Path) -> None:
    def plan(kind: str) -> Plan:
        steps = cmake.configure(
            SOURCE, tmp_path, {"KIND": kind}, made.tools(), phase="configure", root=tmp_path
        )
        return Plan("plan", steps)

    first = plan("Debug")
    assert list(cmake.pending_changes(first)) == []  # there was none before
    for step in first.steps:
        if isinstance(step, Write):
            step.path.write_text(step.text, encoding="utf-8")
        assert step.stamp is not None
        step.stamp.path.write_text(step.stamp.key, encoding="utf-8")
    (tmp_path / "CMakeCache.txt").touch()
    assert list(cmake.pending_changes(plan("Debug"))) == []
    assert list(cmake.pending_changes(plan("Release"))) == [CMakeChange("KIND", "Debug", "Release")]


def test_only_cmakes_own_memory_goes_and_headers_are_forgotten_for_another_llvm() -> None:
    def stamps(about: dict[str, str]) -> list[str]:
        steps = cmake.configure(
            SOURCE, Path("/b"), {}, made.tools(), phase="configure", about=about, root=Path("/b")
        )
        headers, memory, write, run = steps
        assert isinstance(headers, Remove)
        assert isinstance(memory, Remove)
        assert isinstance(write, Write)
        assert isinstance(run, Run)
        assert headers.paths == (Path("/b/.ninja_deps"),)
        assert memory.paths == (Path("/b/CMakeCache.txt"), Path("/b/CMakeFiles") / made.tools().cmake_version)
        assert "--fresh" not in run.argv
        return [step.stamp.key for step in steps if step.stamp]

    one, other = stamps({"LLVM": "a"}), stamps({"LLVM": "b"})
    assert one[0] != other[0]
    assert one[1] != other[1]
    assert one[1:] == [one[1]] * 3
    assert stamps({"LLVM": "a"}) == one


def test_a_cmake_that_does_not_tell_its_version_forgets_all_as_fresh_does() -> None:
    tools = replace(made.tools(), cmake_version="")
    memory = cmake.configure(SOURCE, Path("/b"), {}, tools, phase="x", root=Path("/b"))[0]
    assert isinstance(memory, Remove)
    assert memory.paths == (Path("/b/CMakeCache.txt"), Path("/b/CMakeFiles"))


# Jobs from cores and memory, the cgroup's limits included.

NO_WISH = ToolchainSettings()


@pytest.mark.parametrize(
    ("cores", "gib", "debug_info", "wanted"),
    [
        (16, 64, "split", Jobs(16, 16)),
        (16, 64, "full", Jobs(16, 5)),  # 12 GiB a link
        (16, 64, "lines", Jobs(16, 16)),
        (64, 32, "split", Jobs(21, 10)),  # 1.5 GiB a compile, 3 a link
        (64, 32, "none", Jobs(21, 16)),
        (8, 4, "split", Jobs(2, 1)),
        (8, 4, "full", Jobs(2, 1)),
        (1, 64, "split", Jobs(1, 1)),
        (4, 1, "full", Jobs(1, 1)),  # never none at all
    ],
)
def test_what_cores_and_memory_allow(cores: int, gib: int, debug_info: DebugInfo, wanted: Jobs) -> None:
    host = made.machine(cores=cores, memory=gib * made.GIB)
    assert bounded_jobs(host, NO_WISH, debug_info) == wanted


def test_settings_override() -> None:
    host = made.machine(cores=16, memory=64 * made.GIB)
    assert bounded_jobs(host, ToolchainSettings(jobs=40), "split") == Jobs(40, 21)
    assert bounded_jobs(host, ToolchainSettings(link_jobs=30), "split") == Jobs(16, 30)
    assert bounded_jobs(host, ToolchainSettings(jobs=2, link_jobs=1), "none") == Jobs(2, 1)


def test_a_container_gets_what_its_cgroup_grants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "capture", lambda _: None)  # libstdc++ is of no concern here
    free = machine.read(tmp_path)  # no limits there
    (tmp_path / "memory.max").write_text(f"{3 * made.GIB}\n", encoding="ascii")
    (tmp_path / "cpu.max").write_text("100000 100000\n", encoding="ascii")
    limited = machine.read(tmp_path)
    assert (limited.cores, limited.memory) == (1, min(free.memory, 3 * made.GIB))
    assert bounded_jobs(limited, NO_WISH, "split") == Jobs(1, 1)
