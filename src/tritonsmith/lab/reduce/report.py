"""The answers of `reduce`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import duration
from tritonsmith.lab.reduce.reduce_ir import Reduced, Size


def progress() -> Callable[[Size, int], None]:
    """Shows each smaller size on a terminal."""
    err = console.err()

    def show(size: Size, tried: int) -> None:
        if err.is_terminal:
            err.print(f"{size.ops} operations, {size.lines} lines, {tried} candidates", style="dim", end="\r")

    return show


def sizes(reduced: Reduced) -> Grid:
    """Before and after."""
    rows = [
        [name, str(getattr(reduced.before, key)), str(getattr(reduced.after, key))]
        for name, key in (("operations", "ops"), ("lines", "lines"), ("bytes", "size"))
    ]
    return tables.plain(str(reduced.failure), ["", "before", "after"], rows, right=["before", "after"])


def summary(reduced: Reduced) -> str:
    """Candidates, time, and why the search stopped early."""
    text = f"{reduced.tried} candidates in {duration(reduced.seconds)}"
    if len(reduced.steps) > 1:
        text += "; " + ", ".join(f"{left} operations after {name}" for name, left in reduced.steps)
    if reduced.why:
        text += f"; {reduced.why}: this is the best result so far"
    return f"{text}; fails in the same way in a new process"


def as_json(reduced: Reduced) -> dict[str, Any]:
    """The result as JSON data."""
    return {
        "schema": 1,
        "kind": reduced.failure.kind,
        "failure": reduced.failure.text,
        "before": vars(reduced.before),
        "after": vars(reduced.after),
        "candidates": reduced.tried,
        "seconds": reduced.seconds,
        "done": not reduced.why,
        "why": reduced.why,
        "steps": [{"by": name, "ops": left} for name, left in reduced.steps],
    }
