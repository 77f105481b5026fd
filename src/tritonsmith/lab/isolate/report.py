"""The answers of `passes.isolate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.lab import failure
from tritonsmith.lab.isolate.failing_pass import Isolated
from tritonsmith.lab.reduce import report
from tritonsmith.lab.reduce.reduce_ir import Reduced


def summary(isolated: Isolated) -> str:
    """Name the pass and its failure; for a crash, the topmost frames, too."""
    names = (
        f"{isolated.names} fails alone"
        if len(isolated.links) == 1
        else f"{isolated.names} fail only together"
    )
    outcome = (
        f"as in the dump: {isolated.failure}"
        if isolated.same
        else f"but not as in the dump: {isolated.failure}"
    )
    text = f"{names}, {outcome}" if isolated.same else f"{names}, {outcome} instead of {isolated.recorded}"
    frames = () if isolated.failure.kind == "signal" else failure.top_frames(isolated.log)
    return f"{text}\ntop frames: {', '.join(frames)}" if frames else text


def as_json(isolated: Isolated, reduced: Reduced | None, out: Path) -> dict[str, Any]:
    """The result as JSON data."""
    return {
        "schema": 1,
        "kernel": isolated.seen.kernel.name,
        "numbers": [link.dump.number for link in isolated.links],
        "passes": [link.dump.argument for link in isolated.links],
        "pipeline": isolated.way.pipeline,
        "kind": isolated.failure.kind,
        "failure": isolated.failure.text,
        "same": isolated.same,
        "frames": failure.top_frames(isolated.log),
        "stripped": isolated.stripped,
        "notes": list(isolated.notes),
        "reduced": report.as_json(reduced) if reduced else None,
        "folder": str(out),
    }
