"""Tables: what a person would rather look at than read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tritonsmith.ui import secrets
from tritonsmith.ui.format import duration

STATUS_STYLES = {
    "ok": "green",
    "not applicable": "dim",
    "note": "cyan",
    "warning": "yellow",
    "error": "bold red",
    "crashed": "bold magenta",
}


def plain(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> Table:
    """A table.

    Args:
        title: above it.
        columns: their heads.
        rows: cells as text.
        right: heads of columns that are set to the right.
    """
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        fixed = column in right
        table.add_column(column, justify="right" if fixed else "left", overflow="fold", no_wrap=fixed)
    for row in rows:
        table.add_row(*(Text(secrets.hidden(cell)) for cell in row))  # a `[toolchain]` in it is no markup
    return table


def stages(answer: Mapping[str, Any]) -> Table:
    """The worker's answer: one line per target, one column per stage, sizes in the cells."""
    names = list(dict.fromkeys(name for result in answer["results"] for name in result["stages"]))
    rows = []
    for result in answer["results"]:
        sizes = {name: f"{stage['bytes'] / 1024:.1f}" for name, stage in result["stages"].items()}
        cells = [sizes.get(name, "") for name in names]
        rows.append([result["target"], *cells, duration(result["seconds"])])
    title = f"vector_add by Triton {answer['triton']} on Python {answer['python']}, no GPU; sizes in KiB"
    table = plain(title, ["target", *names, "time"], rows, right=[*names, "time"])
    table.columns[0].no_wrap = True
    return table


def phases(seconds: Mapping[str, float]) -> Table:
    """How long each phase took, and its share."""
    whole = sum(seconds.values()) or 1.0
    rows = [[phase, duration(took), f"{100 * took / whole:.0f} %"] for phase, took in seconds.items()]
    return plain(
        "phases", ["phase", "time", "share"], [*rows, ["all", duration(whole), ""]], right=["time", "share"]
    )
