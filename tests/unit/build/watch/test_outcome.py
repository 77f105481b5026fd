"""What counts as a difference between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.build.watch.outcome import WatchedRun, WatchReport, compare
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid


def table(*rows: Sequence[str], title: str = "resources") -> Grid:
    return tables.plain(title, ["target", "registers", "spills", "time"], rows)


def text(*lines: str) -> WatchedRun:
    return WatchedRun(0, lines)


def cells(grid: Grid) -> list[list[str]]:
    heads = [column.head.plain for column in grid.columns]
    return [heads, *([cell.plain for cell in row] for row in grid.rows)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("compiled in 1.2 s", "compiled in 13.4 s"),
        ("compiled in 59.0 s", "compiled in 1 min 05 s"),
        ("PASS (120ms)", "PASS (90ms)"),
        ("began 2026-01-02T03:04:05+00:00", "began 2027-01-02 13:04:05"),
        ("log: logs/20260102-030405-passes.replay-17.log", "log: logs/20260102-040405-passes.replay-18.log"),
        ("#0 0x00007f1234567890 in run()", "#0 0x00007f12345678a0 in run()"),
        ("in /scratch/tmpab12_x9z/a.ll", "in /scratch/tmpzz12_x9z/a.ll"),
    ],
)
def test_times_and_addresses_are_no_difference(before: str, after: str) -> None:
    change = compare(text(before), text(after))
    assert (change.any, change.hidden) == (False, True)


def test_tables_of_the_same_title_are_compared_in_their_order() -> None:
    first, second = table(("h100", "128", "0", "")), table(("h100", "64", "0", ""))
    assert not compare(WatchedRun(0, (first, second)), WatchedRun(0, (first, second))).any
    (grid,) = compare(WatchedRun(0, (first, second)), WatchedRun(0, (first, first))).grids
    assert cells(grid)[1][-1] == "64 → 128"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("128 registers", "96 registers"),
        ("%0 = arith.constant 0xFF800000 : f32", "%0 = arith.constant 0x7F800000 : f32"),
        ("f64 0x7FF0000000000000", "f64 0xFFF0000000000000"),
        ("i32", "i64"),
    ],
)
def test_numbers_are_one(before: str, after: str) -> None:
    change = compare(text("same", before), text("same", after))
    assert change.diffs[""][-2:] == (f"-{before}", f"+{after}")


def test_a_table_shows_the_cells_that_changed() -> None:
    before = WatchedRun(0, (table(("h100", "128", "0", "1.0 s"), ("a100", "64", "0", "2.0 s")), "note"))
    after = WatchedRun(0, (table(("h100", "96", "0", "3.0 s"), ("a100", "64", "0", "4.0 s")), "note"))
    (grid,) = compare(before, after).grids
    assert grid.title == "resources"
    assert cells(grid) == [["target", "registers"], ["h100", "128 → 96"]]
    assert not compare(before, before).any


def test_rows_and_tables_come_and_go() -> None:
    one, two = ("h100", "96", "0", ""), ("a100", "64", "8", "")
    (grid,) = compare(WatchedRun(0, (table(one),)), WatchedRun(0, (table(two),))).grids
    assert cells(grid) == [
        ["target", "registers", "spills"],
        ["a100", "→ 64", "→ 8"],
        ["h100", "96 →", "0 →"],
    ]
    gone = compare(WatchedRun(0, (table(one), table(two, title="more"))), WatchedRun(0, (table(one),)))
    assert [cells(one)[1:] for one in gone.grids] == [[["a100", "64 →", "8 →"]]]


def test_rows_of_one_name_are_told_apart_by_their_order() -> None:
    before = table(("h100", "96", "0", ""), ("h100", "64", "0", ""))
    after = table(("h100", "96", "0", ""), ("h100", "65", "0", ""))
    (grid,) = compare(WatchedRun(0, (before,)), WatchedRun(0, (after,))).grids
    assert cells(grid)[1:] == [["h100", "64 → 65"]]


def test_a_table_comes_through_a_pipe_as_it_was() -> None:
    made = replace(table(("h100", "96", "0", "1 s")), styles=("red",), across=True)
    assert Grid.of_json(made.as_json()) == made


def test_ir_is_compared_without_the_names_of_its_values() -> None:
    ir = "module {{\n  %{0} = tt.load %p, {1} : i32\n  tt.return %{0} : i32\n}}\n"

    def run(*values: object) -> WatchedRun:
        return WatchedRun(0, (), {"out/018-pass.mlir": ir.format(*values)})

    assert not compare(run("c", 1), run("other", 1)).any
    lines = compare(run("c", 1), run("other", 2)).diffs["out/018-pass.mlir"]
    removed, added = (line for line in lines if line[0] in "+-" and "tt.load" in line)
    assert removed.endswith(", 1 : i32")
    assert added.endswith(", 2 : i32")


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (WatchedRun(0), "ok"),
        (WatchedRun(1), "exit code 1"),
        (WatchedRun(-11), "signal 11"),
        (WatchedRun(1, what="build"), "build, exit code 1"),
    ],
)
def test_how_a_run_ended_in_words(made: WatchedRun, verdict: str) -> None:
    assert made.verdict == verdict


@pytest.mark.parametrize("name", ["after.mlir", "after.txt"])
def test_a_file_that_only_one_run_made_is_a_change(name: str) -> None:
    ran, ended = WatchedRun(0, files={name: "module {\n}\n"}), WatchedRun(0)
    assert [line for line in compare(ended, ran).diffs[name] if line.startswith("+")] == ["+module {", "+}"]
    assert [line for line in compare(ran, ended).diffs[name] if line.startswith("-")] == ["-module {", "-}"]
    assert compare(ran, ran).diffs == {}


def test_changed_lines_are_as_they_were_printed_and_the_others_without_times() -> None:
    before = WatchedRun(0, ("ready in 1.2 s", "took 3.1 s, answer 1"))
    after = WatchedRun(0, ("ready in 1.4 s", "took 2.9 s, answer 2"))
    lines = compare(before, after).diffs[""]
    assert lines[1:] == (" ready in …", "-took 3.1 s, answer 1", "+took 2.9 s, answer 2")


@pytest.mark.parametrize("rest", ["", "what a kernel prints", "[1]", '{"other": 1}', "[" * 100_000])
def test_a_line_that_only_begins_as_a_record_is_text(rest: str) -> None:
    assert console.parse_record(f"\x1e{rest}") == {}


# What is printed after a run.


class Screen:
    """A report, and what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._report, self._capsys = WatchReport(), capsys

    def after(self, made: WatchedRun, *saved: str) -> list[str]:
        """The lines of a run, without the time of day."""
        for part in made.parts if not made.what else ():
            self._report.part(part)
        self._report.run(made, map(Path, saved), {"run": 1.0})
        lines = self._capsys.readouterr().out.splitlines()
        return [line.split(" ", 1)[1] if line[2:3] == ":" else line for line in lines]


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(capsys)


def lit_run(result: str, *lines: str, code: int = 0) -> WatchedRun:
    rows = [("a.mlir", result), ("b.mlir", "PASS")]
    return WatchedRun(code, (tables.plain("lit tests", ["test", "result"], rows), *lines))


def test_the_first_run_is_shown_as_it_comes(screen: Screen) -> None:
    assert screen.after(WatchedRun(0, ("one", "two"))) == ["one", "two", "ok (run 1.0 s)"]


def test_later_runs_show_what_has_changed(screen: Screen) -> None:
    screen.after(WatchedRun(0, ("one", "two")))
    assert screen.after(WatchedRun(0, ("one", "two")), "a.py") == ["a.py: unchanged, ok (run 1.0 s)"]
    lines = screen.after(WatchedRun(0, ("one", "three")), "/there/a.py", "b.py")
    assert lines == ["a.py, b.py: changed, ok (run 1.0 s)", "@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    names = screen.after(WatchedRun(0), "a", "b", "c", "d", "e")[0]
    assert names == "a, b, c, 2 more: changed, ok (run 1.0 s)"


def test_times_that_are_not_shown_are_not_denied(screen: Screen) -> None:
    screen.after(WatchedRun(0, ("matmul: 12.5 us",)))
    made = WatchedRun(0, ("matmul: 99.5 us",))
    assert screen.after(made, "a.py") == ["a.py: unchanged except for times, ok (run 1.0 s)"]
    assert screen.after(made, "a.py") == ["a.py: unchanged, ok (run 1.0 s)"]


def test_a_failure_is_shown_whole_and_the_next_one_as_a_difference(screen: Screen) -> None:
    screen.after(WatchedRun(0, ("one",)))
    failed = WatchedRun(1, ("error: this", "why"))
    assert screen.after(failed, "a.py") == ["a.py: ok → exit code 1 (run 1.0 s)", "error: this", "why"]
    assert screen.after(failed, "a.py") == ["a.py: unchanged, still exit code 1 (run 1.0 s)"]
    other = screen.after(WatchedRun(1, ("error: that", "why")), "a.py")
    assert other[0] == "a.py: changed, still exit code 1 (run 1.0 s)"
    assert other[-3:] == ["-error: this", "+error: that", " why"]
    assert screen.after(WatchedRun(0, ("one",)), "a.py") == ["a.py: exit code 1 → ok, unchanged (run 1.0 s)"]


def test_the_results_of_tests_that_begin_to_fail(screen: Screen) -> None:
    screen.after(lit_run("PASS"))
    lines = screen.after(lit_run("FAIL", "a.mlir:3: expected", code=1), "Pass.cpp")
    assert lines[0] == "Pass.cpp: ok → exit code 1 (run 1.0 s)"
    assert [line.split() for line in lines if line.startswith("a.mlir ")] == [["a.mlir", "PASS", "→", "FAIL"]]
    assert not any(line.startswith("b.mlir") for line in lines)
    assert lines[-1] == "a.mlir:3: expected"


def test_a_first_build_that_fails_is_shown(screen: Screen) -> None:
    failed = WatchedRun(1, ("error: build triton-opt failed",), what="build")
    assert screen.after(failed) == ["error: build triton-opt failed", "build, exit code 1 (run 1.0 s)"]


def test_ir_is_compared_with_the_last_that_there_was(screen: Screen) -> None:
    def ran(value: int) -> WatchedRun:
        return WatchedRun(0, (), {"out/3-pass.txt": f"{value}\n"})

    screen.after(ran(1))
    screen.after(WatchedRun(1, ("error",)), "a.cpp")
    assert screen.after(ran(2), "a.cpp")[-3:] == ["@@ -1 +1 @@", "-1", "+2"]


def test_a_long_diff_is_cut(screen: Screen) -> None:
    screen.after(WatchedRun(0, tuple(f"a{number}" for number in range(200))))
    lines = screen.after(WatchedRun(0, tuple(f"b{number}" for number in range(200))), "a.py")
    assert len(lines) == 201
    assert lines[-1].startswith("-a")
