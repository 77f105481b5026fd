"""The answers of `passes.isolate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.passes.isolate.failing_pass import Isolated
from tritonsmith.passes.reduce import report
from tritonsmith.passes.reduce.command import Reduced


def summary(made: Isolated) -> str:
    """Which pass, how."""
    who = f"{made.names} fails alone" if len(made.links) == 1 else f"{made.names} fail only together"
    if made.same:
        return f"{who}, as in the dump: {made.failure}"
    return f"{who}, but not as in the dump: {made.failure} instead of {made.recorded}"


def as_json(made: Isolated, reduced: Reduced | None, out: Path) -> dict[str, Any]:
    """The result as JSON data."""
    return {
        "schema": 1,
        "kernel": made.seen.kernel.name,
        "numbers": [link.dump.number for link in made.links],
        "passes": [link.dump.argument for link in made.links],
        "pipeline": made.way.pipeline,
        "kind": made.failure.kind,
        "failure": made.failure.text,
        "same": made.same,
        "stripped": made.stripped,
        "notes": list(made.notes),
        "reduced": report.as_json(reduced) if reduced else None,
        "folder": str(out),
    }
