"""Compare a replay with the dump."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tritonsmith.ir import normalize

# exact: byte by byte. same: but for locations and names of values. alone: the dump ends here.
ReplayStatus = Literal[
    "exact", "same", "differs", "alone", "no binding", "inside", "failed", "crashed", "timeout"
]
RAN: tuple[ReplayStatus, ...] = ("exact", "same", "differs", "alone")


def verdict(made: Path, after: Path | None) -> ReplayStatus:
    """Compare the file of a result with that of the next dump, if there is one."""
    if after is None:
        return "alone"
    mine, theirs = (path.read_text(encoding="utf-8", errors="replace").strip() for path in (made, after))
    if mine == theirs:
        return "exact"
    return "same" if normalize.text(mine, "mlir") == normalize.text(theirs, "mlir") else "differs"
