"""What counts as a difference between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tritonsmith.build.watch.outcome import RunOutcome, compare
from tritonsmith.core.ui import recording, tables
from tritonsmith.core.ui.tables import Grid


def table(*rows: Sequence[str], title: str = "resources") -> Grid:
    return tables.plain(title, ["target", "registers", "spills", "time"], rows)


def text(*lines: str) -> RunOutcome:
    return RunOutcome(0, lines)


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
    assert not compare(RunOutcome(0, (first, second)), RunOutcome(0, (first, second))).any
    (grid,) = compare(RunOutcome(0, (first, second)), RunOutcome(0, (first, first))).grids
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
    before = RunOutcome(0, (table(("h100", "128", "0", "1.0 s"), ("a100", "64", "0", "2.0 s")), "note"))
    after = RunOutcome(0, (table(("h100", "96", "0", "3.0 s"), ("a100", "64", "0", "4.0 s")), "note"))
    (grid,) = compare(before, after).grids
    assert grid.title == "resources"
    assert cells(grid) == [["target", "registers"], ["h100", "128 → 96"]]
    assert not compare(before, before).any


def test_rows_and_tables_come_and_go() -> None:
    one, two = ("h100", "96", "0", ""), ("a100", "64", "8", "")
    (grid,) = compare(RunOutcome(0, (table(one),)), RunOutcome(0, (table(two),))).grids
    assert cells(grid) == [
        ["target", "registers", "spills"],
        ["a100", "→ 64", "→ 8"],
        ["h100", "96 →", "0 →"],
    ]
    gone = compare(RunOutcome(0, (table(one), table(two, title="more"))), RunOutcome(0, (table(one),)))
    assert [cells(one)[1:] for one in gone.grids] == [[["a100", "64 →", "8 →"]]]


def test_rows_of_one_name_are_told_apart_by_their_order() -> None:
    before = table(("h100", "96", "0", ""), ("h100", "64", "0", ""))
    after = table(("h100", "96", "0", ""), ("h100", "65", "0", ""))
    (grid,) = compare(RunOutcome(0, (before,)), RunOutcome(0, (after,))).grids
    assert cells(grid)[1:] == [["h100", "64 → 65"]]


def test_a_table_comes_through_a_pipe_as_it_was() -> None:
    made = replace(table(("h100", "96", "0", "1 s")), styles=("red",), across=True)
    assert Grid.of_json(made.as_json()) == made


def test_ir_is_compared_without_the_names_of_its_values() -> None:
    ir = "module {{\n  %{0} = tt.load %p, {1} : i32\n  tt.return %{0} : i32\n}}\n"

    def run(*values: object) -> RunOutcome:
        return RunOutcome(0, (), {"out/018-pass.mlir": ir.format(*values)})

    assert not compare(run("c", 1), run("other", 1)).any
    lines = compare(run("c", 1), run("other", 2)).diffs["out/018-pass.mlir"]
    removed, added = (line for line in lines if line[0] in "+-" and "tt.load" in line)
    assert removed.endswith(", 1 : i32")
    assert added.endswith(", 2 : i32")


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (RunOutcome(0), "ok"),
        (RunOutcome(1), "exit code 1"),
        (RunOutcome(-11), "signal 11"),
        (RunOutcome(1, what="build"), "build, exit code 1"),
    ],
)
def test_how_a_run_ended_in_words(made: RunOutcome, verdict: str) -> None:
    assert made.verdict == verdict


@pytest.mark.parametrize("name", ["after.mlir", "after.txt"])
def test_a_file_that_only_one_run_made_is_a_change(name: str) -> None:
    ran, ended = RunOutcome(0, files={name: "module {\n}\n"}), RunOutcome(0)
    assert [line for line in compare(ended, ran).diffs[name] if line.startswith("+")] == ["+module {", "+}"]
    assert [line for line in compare(ran, ended).diffs[name] if line.startswith("-")] == ["-module {", "-}"]
    assert compare(ran, ran).diffs == {}


def test_changed_lines_are_as_they_were_printed_and_the_others_without_times() -> None:
    before = RunOutcome(0, ("ready in 1.2 s", "took 3.1 s, answer 1"))
    after = RunOutcome(0, ("ready in 1.4 s", "took 2.9 s, answer 2"))
    lines = compare(before, after).diffs[""]
    assert lines[1:] == (" ready in …", "-took 3.1 s, answer 1", "+took 2.9 s, answer 2")


@pytest.mark.parametrize("rest", ["", "what a kernel prints", "[1]", '{"other": 1}', "[" * 100_000])
def test_a_line_that_only_begins_as_a_record_is_text(rest: str) -> None:
    assert recording.parse(f"\x1e{rest}") == {}
