from __future__ import annotations

from pathlib import Path

from tritonsmith.build import explain as explain_reasons
from tritonsmith.build.explain import DryRun, Reason

FLAGS = ["clang++", "-g", "-c"]


def why(
    *reasons: Reason, before: dict[str, list[str]] | None = None, after: dict[str, list[str]] | None = None
) -> list[str]:
    rows = explain_reasons.rows(
        reasons, before or {}, after or {}, {"CSE.cpp": 120.0}.get, lambda path: Path(path).name
    )
    return [row.why for row in rows]


def test_a_newer_input() -> None:
    assert why(Reason("newer", "lib/CSE.cpp.o", "CSE.cpp")) == [
        "CSE.cpp is newer than CSE.cpp.o (changed 2 min ago)"
    ]
    assert why(Reason("newer", "a.o", "gone.h")) == ["gone.h is newer than a.o (deleted)"]


def test_one_flag_is_one_line_and_the_largest_group_comes_first() -> None:
    names = [f"lib/{number}.cpp.o" for number in range(189)]
    found = why(
        Reason("missing", "bin/triton-opt"),
        *(Reason("command", name) for name in names),
        before=dict.fromkeys(names, FLAGS),
        after={name: ["clang++", "-gsplit-dwarf", "-c"] for name in names},
    )
    assert found == [
        "command line of 189 objects (0.cpp.o, ...) changed: -g -> -gsplit-dwarf",
        "triton-opt is missing",
    ]


def test_a_command_whose_former_self_is_not_known() -> None:
    assert why(Reason("command", "a.o"), after={"a.o": FLAGS}) == [
        (
            "command line of a.o changed: the old command line is not recorded "
            "(no build by tritonsmith has succeeded here)"
        )
    ]
    assert why(Reason("command", "a.o"), before={"a.o": FLAGS}, after={"a.o": FLAGS}) == [
        "command line of a.o changed: before the last successful build, which did not include this file"
    ]


def test_the_other_kinds() -> None:
    assert why(
        Reason("unrecorded", "a.o"), Reason("headers", "b.o"), Reason("other", "a later Ninja's words")
    ) == [
        "a.o: Ninja has no record of building it",
        "b.o: the list of its included headers is missing or out of date",
        "a later Ninja's words",
    ]


def test_totals() -> None:
    steps = (
        "Building CXX object lib/a.cpp.o",
        "Building C object c.c.o",
        "Linking CXX static library lib/liba.a",
        "Linking CXX shared library /src/libtriton.so",
        "Building Ops.h.inc...",
        "Copying something",
    )
    found = explain_reasons.totals(
        DryRun((), steps),
        {"Building Ops.h.inc...": "include/Ops.h.inc"},
        {"lib/a.cpp.o": 30.0, "lib/liba.a": 0.5, "include/Ops.h.inc": 0.25},
    )
    assert (found.compiles, found.links, found.others, found.seconds, found.unknown) == (2, 2, 2, 30.75, 3)


def test_paths_are_short(tmp_path: Path) -> None:
    source, build = tmp_path / "src", tmp_path / "build"
    (source / "lib").mkdir(parents=True)
    build.mkdir()
    (build / "source").symlink_to(source)
    short = explain_reasons.shortener(build, source)
    assert short("lib/CMakeFiles/x.dir/CSE.cpp.o") == "CSE.cpp.o"
    assert short("bin/triton-opt") == "bin/triton-opt"
    assert short(str(build / "bin" / "x")) == "bin/x"
    assert short(str(source / "lib" / "CSE.cpp")) == "lib/CSE.cpp"
    assert short("source/lib/CSE.cpp") == "lib/CSE.cpp"
    assert short("/usr/include/stdio.h") == "/usr/include/stdio.h"


def test_one_sentence_for_two_reasons_of_ninja() -> None:
    own = (Reason("newer", "build.ninja", "/src/CMakeLists.txt"),) * 2
    told = explain_reasons.regeneration(DryRun((), (), own), lambda _: 2.0, lambda path: path)
    assert told == ["/src/CMakeLists.txt is newer than build.ninja (changed 2 s ago)"]


def test_a_precompiled_header_has_a_sentence_of_its_own() -> None:
    made = "CMakeFiles/tritonsmith_pch_compiler.dir/cmake_pch.hxx.pch"
    seen = (Reason("newer", made, "/src/Dialect.h"), Reason("newer", "lib/A.cpp.o", "/src/Dialect.h"))
    told = [row.why for row in explain_reasons.rows(seen, {}, {}, lambda _: 2.0, lambda path: path)]
    why = "/src/Dialect.h is newer than {} (changed 2 s ago)"
    header = f"the precompiled header `compiler` is made again, because {why.format('it')}"
    assert told == [header, why.format("lib/A.cpp.o")]
