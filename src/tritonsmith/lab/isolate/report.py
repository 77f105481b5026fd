"""The answers of `passes.isolate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.lab import failure
from tritonsmith.lab.isolate.failing_pass import Isolated
from tritonsmith.lab.reduce import report
from tritonsmith.lab.reduce.command import Reduced


def summary(made: Isolated) -> str:
    """Name the pass and its failure; for a crash, the topmost frames, too."""
    who = f"{made.names} fails alone" if len(made.links) == 1 else f"{made.names} fail only together"
    how = f"as in the dump: {made.failure}" if made.same else f"but not as in the dump: {made.failure}"
    said = f"{who}, {how}" if made.same else f"{who}, {how} instead of {made.recorded}"
    frames = () if made.failure.kind == "signal" else failure.top_frames(made.answer.log)
    return f"{said}\ntop frames: {', '.join(frames)}" if frames else said


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
        "frames": failure.top_frames(made.answer.log),
        "stripped": made.stripped,
        "notes": list(made.notes),
        "reduced": report.as_json(reduced) if reduced else None,
        "folder": str(out),
    }
