"""The answers of `reduce`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import duration
from tritonsmith.lab.triage.reduce.kernel_search import SourceCounts
from tritonsmith.lab.triage.reduce.reduce_kernel import KernelReduced


def progress() -> Callable[[SourceCounts, int], None]:
    """Shows each smaller size on a terminal."""
    err = console.err()

    def show(size: SourceCounts, tried: int) -> None:
        if err.is_terminal:
            text = f"{size.lines} lines, {size.statements} statements, {size.arguments} arguments"
            err.print(f"{text}, {tried} tries  ", style="dim", end="\r")

    return show


def sizes(reduced: KernelReduced) -> Grid:
    """Before and after."""
    rows = [
        [name, str(getattr(reduced.before, name)), str(getattr(reduced.after, name))]
        for name in ("lines", "statements", "arguments")
    ]
    return tables.plain(reduced.expected, ["", "before", "after"], rows, right=["before", "after"])


def summary(reduced: KernelReduced) -> str:
    """Tries, time, and whether the search stopped early."""
    text = f"{reduced.tried} tries in {duration(reduced.seconds)}"
    if reduced.interrupted:
        text += "; interrupted: this is the best result so far"
    text += "; shows the same in a new process"
    if not reduced.alone:
        return text
    about = "; `python {}` compiles it" if reduced.compiles else ", and by `python {}`"
    return text + about.format(reduced.file.name)


def as_json(reduced: KernelReduced) -> dict[str, Any]:
    """The result as JSON data."""
    return {
        "schema": 1,
        "path": str(reduced.file),
        "expected": reduced.expected,
        "before": vars(reduced.before),
        "after": vars(reduced.after),
        "tries": reduced.tried,
        "seconds": reduced.seconds,
        "alone": reduced.alone,
        "done": not reduced.interrupted,
    }
