"""Show the resource table as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.compiler.resources.table import COLUMNS, WORDS, ResourceRow, Value, classes, columns
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir import instructions

_MOST = 50  # rows on the screen
_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}
_NAME = 12  # characters of a cache entry's name
_OF_ERROR = 60
_CSV = ("kernel", "point", "target", "options", "error", "notes", "remarks")


def tables_of(rows: Sequence[ResourceRow], *, cached: bool) -> Iterator[Grid]:
    """Yield for each vendor a table of resources, and one of instructions if there is a disassembly.

    Args:
        rows: the rows to show.
        cached: they are entries of a cache, of many kernels.
    """
    for backend, vendor in _VENDORS.items():
        here = [row for row in rows if row.backend == backend]
        if here:
            yield _resources(vendor, here[:_MOST], cached=cached)
            if any(row.instructions for row in here):
                yield _instructions(vendor, here, "sass" if backend == "cuda" else "amd")


def left_out(rows: Sequence[ResourceRow]) -> int:
    """Return the number of rows that `tables_of` does not show."""
    counts = (sum(row.backend == backend for row in rows) for backend in _VENDORS)
    return sum(max(0, count - _MOST) for count in counts)


def as_json(measured: Measured) -> dict[str, Any]:
    """Return every row as JSON data, with units in the names of its values."""
    rows = [asdict(row) for row in measured.rows]
    return {"schema": 1, "rows": rows, "notes": list(measured.notes), "warnings": list(measured.warnings)}


def as_csv(rows: Sequence[ResourceRow]) -> str:
    """Return one line per row; only the instruction classes vary between tables."""
    known = (instructions.TOTAL, *instructions.names("sass"), *instructions.names("amd"))
    counted = classes(rows, known)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = [column.key for column in COLUMNS]
    writer.writerow([*_CSV, *heads, *(f"instructions {each}" for each in counted)])
    for row in rows:
        cells = [row.values.get(key) for key in heads]
        numbers = [row.instructions.get(name) for name in counted]
        about = [row.kernel, row.point, row.target, row.options, row.error]
        texts = ["; ".join(row.notes), "; ".join(row.remarks or ())]
        writer.writerow([*about, *texts, *cells, *numbers])
    return stream.getvalue()


def _resources(vendor: str, rows: Sequence[ResourceRow], *, cached: bool) -> Grid:
    shown = columns(rows)
    heads = [column.title for column in shown]
    failed = any(row.error for row in rows)
    many = len({row.kernel for row in rows}) > 1
    names = [*(["kernel"] if many or cached else []), *(["entry"] if cached else []), "target", "options"]
    cells = [
        [
            *([row.kernel] if many or cached else []),
            *([row.point[:_NAME]] if cached else []),
            *[row.target, row.options],
            *(spelled(row.values.get(column.key)) for column in shown),
            *([tables.clipped(row.error, _OF_ERROR)] if failed else []),
        ]
        for row in rows
    ]
    right = [column.title for column in shown if column.key not in WORDS]
    columns_ = [*names, *heads, *(["error"] if failed else [])]
    return tables.plain(f"resources, {vendor}", columns_, cells, right=right, keys=len(names))


def _instructions(vendor: str, rows: Sequence[ResourceRow], language: str) -> Grid:
    """Return a table with classes down and kernels across: there are more classes than fit side by side."""
    names = classes(rows, (instructions.TOTAL, *instructions.names(language)))
    counted = [row for row in rows if row.instructions]
    many = len({row.kernel for row in counted}) > 1
    cells = [
        [
            (f"{row.kernel}\n" if many else "")
            + row.target.removesuffix(":32")
            + "".join(f"\n{part}" for part in row.options.split(", ")),
            *(spelled(row.instructions.get(name)) for name in names),
        ]
        for row in counted
    ]
    title = f"instructions, {vendor}; widths in bits per thread"
    return tables.plain(title, ["class", *names], cells, right=names, across=True)


def spelled(value: Value) -> str:
    """Return the text of a cell; floats are rounded, unknown values are empty."""
    if value is None:
        return ""
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)


def metrics(backend: str, rows: Sequence[ResourceRow]) -> Mapping[str, Sequence[float | None]]:
    """Return the data of a plot of a backend's rows: a title with the unit to one number per row."""
    if backend == "cuda":
        registers, spills = ("registers_per_thread", "registers per thread"), "spills, bytes per thread"
    else:
        registers, spills = ("vgprs_per_lane", "VGPRs per lane"), "registers spilled"
    return {
        registers[1]: [_number(row.values.get(registers[0])) for row in rows],
        spills: [None if row.error else float(row.spilled) for row in rows],
        "occupancy, %": [_number(row.values.get("occupancy_percent")) for row in rows],
    }


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
