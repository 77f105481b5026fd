"""Any table on any screen."""

from __future__ import annotations

import random

import pytest
from rich.text import Text

from tests.unit.core.ui.fitting import check, check_rows, shown
from tritonsmith.core.ui import console, tables

WORDS = (
    "cuda-90-32,BLOCK_M=64,num_warps=4",
    "shared",
    "memory",
    "_attn_fwd_inner_tma",
    "/usr/lib/x",
    "a",
    "né",
)


def made(seed: int) -> tables.Grid:
    """A table like none that anybody thought of."""
    dice = random.Random(seed)  # noqa: S311 - nobody's secret
    columns = [
        f"{dice.choice(('registers', 'spill', 'of them'))}\nc{number}"
        for number in range(dice.randint(1, 14))
    ]
    right = [head for head in columns[1:] if dice.random() < 0.6]

    def cell(head: str) -> str:
        if head in right:
            return dice.choice(("", "0", "1,024", "65536", "+12  -3.5 %"))
        return " ".join(dice.choices(WORDS, k=dice.randint(0, 5)))

    rows = [[cell(head) for head in columns] for _ in range(dice.randint(1, 7))]
    rest = [head for head in columns[1:] if head not in right]
    cut = {head: 14 for head in rest if dice.random() < 0.3}
    spare = [head for head in columns[1:] if dice.random() < 0.2]
    title = " ".join(dice.choices(WORDS, k=dice.randint(0, 9)))
    return tables.plain(title, columns, rows, right=right, cut=cut, spare=spare, across=dice.random() < 0.2)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_every_table_fits(width: int) -> None:
    for seed in range(60):
        check(made(seed), width)


@pytest.mark.slow
def test_a_terminal_of_no_width_is_no_bug() -> None:
    for width in (1, 2, 7, 20):
        assert all(shown(made(seed), width) for seed in range(20))


def test_what_fits_is_left_alone() -> None:
    table = tables.plain("title", ["name", "size"], [["a b", "1"], ["c", "22"]], right=["size"])
    assert shown(table, 80) == ["title", "name  size", "──────────", "a b      1", "c       22", ""]


def test_texts_fold_before_a_table_is_turned() -> None:
    table = tables.plain(
        "", ["name", "what", "size"], [["a", "one two three four five", "12"]], right=["size"]
    )
    assert shown(table, 28) == [
        "name  what              size",
        "────────────────────────────",
        "a     one two three       12",
        "      four five",
        "",
    ]


def test_a_table_is_turned_where_all_rows_fit_side_by_side() -> None:
    heads = ["target", *(f"metric {number}" for number in range(9))]
    table = tables.plain("", heads, [["a", *"123456789"], ["b", *"987654321"]], right=heads[1:])
    assert shown(table, 30)[:4] == [
        "target    a  b",
        "──────────────",
        "metric 0  1  9",
        "metric 1  2  8",
    ]


def test_more_columns_than_fit_follow_below_beside_the_same_keys() -> None:
    heads = ["target", "regs\nper thread", "spill\nstores", "empty"]
    rows = [["cuda:90:32", "255", "0", ""], ["cuda:100:32", "64", "8", ""]]
    table = tables.plain("resources", heads, rows, right=heads[1:])
    assert shown(table, 24) == [
        "resources",
        "                   regs",
        "target       per thread",
        "───────────────────────",
        "cuda:90:32          255",
        "cuda:100:32          64",
        "",
        "              spill",
        "target       stores",
        "───────────────────",
        "cuda:90:32        0",
        "cuda:100:32       8",
        "",
    ]


def test_many_rows_stay_rows_however_narrow_the_screen() -> None:
    """`pipeline --target h100,b200` once took 463 lines of 80 columns for 70 passes."""
    rows = [
        [
            "ttgir",
            f"tritongpu-automatic-warp-specialization-{number}",
            "yes",
            "numStages=3",
            "capability >= 90",
        ]
        for number in range(70)
    ]
    heads = ["stage", "pass", "cuda:90:32", "cuda:100:32", "when"]
    table = tables.plain("", heads, rows, keys=2, cut={"when": 24})
    for width in (60, 80, 100):
        check_rows(table, width)
    assert len(shown(table, 80)) < 3 * len(rows)


def test_a_word_that_is_too_long_breaks_behind_a_hyphen() -> None:
    table = tables.plain("", ["pass"], [["tritongpu-automatic-warp-specialization"]])
    assert shown(table, 30)[2:] == ["tritongpu-automatic-warp-", "specialization", ""]


def test_lines_wrap_between_words_and_paths_stay_whole() -> None:
    line = Text("  x name  some words and /a/very/long/path/that/nobody/breaks then")
    assert [one.plain for one in tables.wrapped(line, 24, 10)] == [
        "  x name  some words and",
        "          /a/very/long/path/that/nobody/breaks",
        "          then",
    ]
    assert tables.wrapped(line, None, 10) == [line]


def test_what_is_left_out_is_told() -> None:
    table = tables.plain(
        "", ["a", "long one", "more"], [["x", "y" * 20, "z" * 20]], spare=["more"], right=["more"]
    )
    assert shown(table, 30)[:2] == ["not shown: more; --wide", "a  long one"]
    assert "z" * 20 in shown(table, None)[2]


def test_colours_stay() -> None:
    table = tables.plain("", ["a"], [[Text("red one", style="red")]])
    (line,) = [line for line in table.lines(80) if "red" in line.plain]
    assert "red" in [str(span.style) for span in line.spans]


def test_control_characters_of_cells_do_not_move_columns() -> None:
    table = tables.plain("t\x1b[2J", ["a", "b"], [["\x1b[31mx", "1"]])
    assert shown(table, 80) == ["t\\x1b[2J", "a          b", "────────────", "\\x1b[31mx  1", ""]


@pytest.mark.parametrize(
    ("columns", "wide", "widest"), [("60", False, 60), ("60", True, 118), ("", False, 100), ("", True, 118)]
)
def test_the_width_of_what_is_no_terminal(
    columns: str, wide: bool, widest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COLUMNS counts; without it a file or a pipe has 100 columns, and --wide any number."""
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    console.out.cache_clear()
    monkeypatch.setattr(tables._Screen, "wide", wide)
    console.out().print(tables.plain("", ["a", "b"], [["12345", "word " * 21 + "words."]]))
    assert max(map(len, capsys.readouterr().out.splitlines())) == widest
