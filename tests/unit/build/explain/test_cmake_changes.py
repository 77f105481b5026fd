from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.build import made
from tritonsmith.build import cmake
from tritonsmith.build.explain import cmake_changes
from tritonsmith.build.explain.cmake_changes import CMakeChange
from tritonsmith.core.plan import Plan, Remove, Run, Write

SOURCE, ABOUT = Path("/src"), {"LLVM": "19.1.7, commit unknown, assertions OFF", "compiler": "clang++ 19.1.7"}


def text(variables: dict[str, str], about: dict[str, str] = ABOUT) -> str:
    return cmake.render(SOURCE, Path("/build"), variables, made.tools(), about)


def test_what_was_written_is_read_back() -> None:
    variables = {"A": "x]]y", "EMPTY": "", "LINES": "one\ntwo", "LIST": "amd;nvidia"}
    assert (
        cmake_changes.values(text(variables))
        == ABOUT | {"CMAKE_MAKE_PROGRAM": str(made.tools().ninja)} | variables
    )


def test_changes_in_words() -> None:
    old = text({"CMAKE_BUILD_TYPE": "Debug", "LIST": "amd;nvidia", "FLAGS": "-g -Wall", "GONE": "1"})
    about = ABOUT | {"LLVM": "19.1.7, commit unknown, assertions ON"}
    new = text(
        {"CMAKE_BUILD_TYPE": "Release", "LIST": "amd", "FLAGS": "-gsplit-dwarf -Wall", "NEW": "2"}, about
    )
    assert [change.in_words for change in cmake_changes.changes(old, new)] == [
        "LLVM: assertions OFF -> assertions ON",
        "CMAKE_BUILD_TYPE: Debug -> Release",
        "LIST: without nvidia",
        "FLAGS: -g -> -gsplit-dwarf",
        "NEW: new, 2",
        "GONE: removed, was 1",
    ]
    assert cmake_changes.changes(old, old) == ()


def test_only_what_will_happen_is_pending(tmp_path: Path) -> None:
    def plan(kind: str) -> Plan:
        steps = cmake.configure(
            SOURCE, tmp_path, {"KIND": kind}, made.tools(), phase="configure", root=tmp_path
        )
        return Plan("plan", steps)

    first = plan("Debug")
    assert list(cmake_changes.pending(first)) == []  # there was none before
    for step in first.steps:
        if isinstance(step, Write):
            step.path.write_text(step.text, encoding="utf-8")
        assert step.stamp is not None
        step.stamp.path.write_text(step.stamp.key, encoding="utf-8")
    (tmp_path / "CMakeCache.txt").touch()
    assert list(cmake_changes.pending(plan("Debug"))) == []
    assert list(cmake_changes.pending(plan("Release"))) == [CMakeChange("KIND", "Debug", "Release")]


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
