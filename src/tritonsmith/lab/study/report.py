"""The study as a table for each target and metric, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.compiler.resources.table import CAN_LAUNCH, COLUMNS, LAUNCH
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab.study.study import SKIPPED, StudyCell, order

_NONE = "-"  # that kernel is not for that version
_FAILED = "x"
_NOT_COMPILED = "?"  # its file could not be had
_STUCK = "!"  # compiled, and cannot be launched


@dataclass(frozen=True)
class StudyMetric:
    """One number of a compiled kernel.

    Attributes:
        title: with its unit.
        keys: columns of compiler/resources/table.py that are added up.
        scale: of the plot's axis; `symlog` has a zero.
    """

    title: str
    keys: tuple[str, ...]
    scale: Literal["linear", "log", "symlog"] = "linear"

    def of(self, cell: StudyCell) -> int | None:
        """Return the number; None where there is none."""
        numbers = [cell.row.values.get(key) for key in self.keys]
        known = [number for number in numbers if isinstance(number, int)]
        return sum(known) if known else None


METRICS = {
    "cuda": (
        StudyMetric("registers per thread", ("registers_per_thread",)),
        StudyMetric("spills, bytes per thread", ("spill_store_bytes", "spill_load_bytes"), "symlog"),
        StudyMetric("code, bytes", ("code_bytes",), "log"),
    ),
    "hip": (
        StudyMetric("VGPRs per lane", ("vgprs_per_lane",)),
        StudyMetric("registers spilled", ("vgpr_spills", "sgpr_spills"), "symlog"),
        StudyMetric("code, bytes", ("code_bytes",), "log"),
    ),
}


def versions(cells: Sequence[StudyCell]) -> list[str]:
    """Return the names of the Tritons, releases first and by their numbers."""
    return sorted({cell.triton for cell in cells}, key=order)


def targets(cells: Sequence[StudyCell]) -> list[str]:
    """Return the targets, in order."""
    return list(dict.fromkeys(cell.row.target for cell in cells))


def tables_of(cells: Sequence[StudyCell]) -> Iterator[Grid]:
    """Yield a table for each target and metric, with a line for each kernel and a column for each Triton."""
    names = versions(cells)
    for target in targets(cells):
        here = [cell for cell in cells if cell.row.target == target]
        kernels = list(dict.fromkeys(cell.row.kernel for cell in here))
        by_place = {(cell.row.kernel, cell.triton): cell for cell in here}
        for metric in METRICS[here[0].row.backend]:
            lines = [
                [kernel, *(_cell(by_place.get((kernel, name)), metric) for name in names)]
                for kernel in kernels
            ]
            yield tables.plain(f"{target}: {metric.title}", ["kernel", *names], lines, right=names)


def warnings(cells: Sequence[StudyCell]) -> tuple[str, ...]:
    """Return the kernels that cannot be launched, and the remarks of ptxas."""
    rows = (replace(cell.row, point=f"{cell.row.kernel} {cell.triton} {cell.row.target}") for cell in cells)
    return Measured(tuple(rows)).warnings


def failures(cells: Sequence[StudyCell]) -> Iterator[str]:
    """Yield each reason once, with the cells that it concerns."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        if cell.row.error and cell.row.error != SKIPPED:
            about.setdefault(cell.row.error, []).append(f"{cell.row.kernel} {cell.triton} {cell.row.target}")
    for reason, where in about.items():
        yield f"{reason}\n  {', '.join(where)}"


def as_json(cells: Sequence[StudyCell]) -> dict[str, Any]:
    """Return every row, with units in the names of its values."""
    rows = [
        {
            "triton": cell.triton,
            "compiled": cell.compiled,
            "file_sha256": cell.source,
            "compile_seconds": cell.seconds,
            **asdict(cell.row),
        }
        for cell in cells
    ]
    return {"schema": 1, "rows": rows, "warnings": list(warnings(cells))}


def as_csv(cells: Sequence[StudyCell]) -> str:
    """Return one line for each row; the columns are always the same."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    keys = [column.key for column in COLUMNS]
    heads = ["kernel", "target", "triton", "error", "compile_seconds", "file_sha256"]
    writer.writerow([*heads, *keys, "remarks"])
    for cell in cells:
        row = cell.row
        head = [row.kernel, row.target, cell.triton, row.error, cell.seconds, cell.source]
        writer.writerow([*head, *(row.values.get(key) for key in keys), "; ".join(row.remarks or ())])
    return stream.getvalue()


def _cell(cell: StudyCell | None, metric: StudyMetric) -> str:
    if cell is None:
        return _NONE
    number = metric.of(cell)
    mark = _STUCK if cell.row.values.get(LAUNCH, CAN_LAUNCH) not in (CAN_LAUNCH, None) else ""
    if not cell.compiled:
        return _NOT_COMPILED
    return _FAILED if cell.row.error else "" if number is None else f"{number}{mark}"
