from __future__ import annotations

import io

from rich.console import Console

from tritonsmith.core.ui import tables


def render(table: tables.Grid) -> list[list[str]]:
    """Lines of a table, split where two blanks are."""
    file = io.StringIO()
    Console(file=file, width=200, emoji=False).print(table)
    lines = [line.strip() for line in file.getvalue().splitlines()]
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines if line]


def test_plain() -> None:
    table = tables.plain("title", ["name", "size"], [["a", "1"], ["b", "22"]], right=["size"])
    assert render(table)[0] == ["title"]
    assert render(table)[1] == ["name", "size"]
    assert render(table)[3:] == [["a", "1"], ["b", "22"]]


def test_cells_are_no_markup() -> None:
    cell = "a [toolchain] of [/x] and [red]cuda:100:32[/red]"
    table = tables.plain("env [dev] [/x]", ["one"], [[cell]])
    assert render(table) == [["env [dev] [/x]"], ["one"], render(table)[2], [cell]]


def test_stages() -> None:
    answer = {
        "triton": "3.5.0",
        "python": "3.11.7",
        "results": [
            {
                "target": "cuda:100:32",
                "seconds": 1.25,
                "stages": {"ttir": {"bytes": 1024}, "ptx": {"bytes": 512}},
            },
            {
                "target": "hip:gfx942:64",
                "seconds": 2,
                "stages": {"ttir": {"bytes": 0}, "hsaco": {"bytes": 10_240}},
            },
        ],
    }
    *title, head, _, one, other = render(tables.stages(answer))
    assert "vector_add by Triton 3.5.0 on Python 3.11.7" in " ".join(" ".join(line) for line in title)
    assert head == ["target", "ttir", "ptx", "hsaco", "time"]
    assert one == ["cuda:100:32", "1.0", "0.5", "1.2 s"]
    assert other == ["hip:gfx942:64", "0.0", "10.0", "2.0 s"]


def test_phases() -> None:
    rows = render(tables.phases({"configure": 30, "build": 90}))[3:]
    assert rows == [["configure", "30.0 s", "25 %"], ["build", "1 min 30 s", "75 %"], ["all", "2 min 00 s"]]
    assert render(tables.phases({"skipped": 0}))[3] == ["skipped", "0.0 s", "0 %"]
