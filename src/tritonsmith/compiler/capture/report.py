"""Show a captured kernel list on the screen and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid


def table(kernels: Sequence[Mapping[str, Any]], title: str) -> Grid:
    """Return a table with one row per kernel."""
    rows = [
        (
            kernel["name"],
            str(kernel["count"]),
            str(len(kernel.get("configs", ())) or ""),
            "x".join(map(str, kernel["grid"][0])) + _more(kernel["grid"]),
            kernel["where"][0] + _more(kernel["where"]),
        )
        for kernel in kernels
    ]
    return tables.plain(
        title, ("kernel", "launches", "configs", "grid", "where"), rows, right=["launches", "configs"]
    )


def _more(parts: Sequence[object]) -> str:
    return f" +{len(parts) - 1}" if len(parts) > 1 else ""


def as_json(
    kernels: Sequence[Mapping[str, Any]], notes: Sequence[str], out: Path, code: int
) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {"schema": 1, "file": str(out), "kernels": list(kernels), "notes": list(notes), "exit": code}
