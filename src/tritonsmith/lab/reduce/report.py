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


def sizes(found: Reduced) -> Grid:
    """Before and after."""
    rows = [
        [name, str(getattr(found.before, key)), str(getattr(found.after, key))]
        for name, key in (("operations", "ops"), ("lines", "lines"), ("bytes", "size"))
    ]
    return tables.plain(str(found.failure), ["", "before", "after"], rows, right=["before", "after"])


def summary(found: Reduced) -> str:
    """Candidates, time, and why the search stopped early."""
    text = f"{found.tried} candidates in {duration(found.seconds)}"
    if len(found.steps) > 1:
        text += "; " + ", ".join(f"{left} operations after {name}" for name, left in found.steps)
    if found.why:
        text += f"; {found.why}: this is the best result so far"
    return f"{text}; fails in the same way in a new process"


def as_json(found: Reduced) -> dict[str, Any]:
    """The result as JSON data."""
    return {
        "schema": 1,
        "kind": found.failure.kind,
        "failure": found.failure.text,
        "before": vars(found.before),
        "after": vars(found.after),
        "candidates": found.tried,
        "seconds": found.seconds,
        "done": not found.why,
        "why": found.why,
        "steps": [{"by": name, "ops": left} for name, left in found.steps],
    }
