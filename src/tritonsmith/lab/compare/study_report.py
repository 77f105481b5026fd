"""A study as tables, JSON, CSV and a picture; `farm --site` makes pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tritonsmith.compiler.resources.measure import CAN_LAUNCH, COLUMNS, LAUNCH, Measured
from tritonsmith.core.errors import SmithError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.resources import save_figure
from tritonsmith.lab.compare.study import SKIPPED, StudyCell, order

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


_NONE = "-"  # that kernel is not for that version
_FAILED = "x"
_NOT_COMPILED = "?"  # its file could not be had
_STUCK = "!"  # compiled, and cannot be launched
# Okabe and Ito's colours, which all kinds of colour vision tell apart (jfly.uni-koeln.de/color), without
# their yellow, which white swallows.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"))
_PANEL = (4.3, 3.1)  # inches
_LEGEND = 2.6  # inches, beside the panels
_GREY = "#888888"


@dataclass(frozen=True)
class StudyMetric:
    """One number of a compiled kernel.

    Attributes:
        title: with its unit.
        keys: columns of compiler/resources/measure.py that are added up.
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
        # A person who skips a cell knows the reason.
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
    # Of both vendors in each file: whoever joins the files of several studies needs the same columns.
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


def write_plot(cells: Sequence[StudyCell], path: Path) -> None:
    """Draw a study, and write the picture.

    Raises:
        SmithError: there is nothing to draw, or the file cannot be written.
    """
    if not any(cell.row.values for cell in cells):
        raise SmithError("there is nothing to plot", hints=["omit --plot"])
    import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows = targets(cells)
    kernels = list(dict.fromkeys(cell.row.kernel for cell in cells))
    columns = max(len(METRICS[target.partition(":")[0]]) for target in rows)
    size = (columns * _PANEL[0] + _LEGEND, len(rows) * _PANEL[1])
    # A fixed salt: the ids in an SVG are random otherwise, and each run would change the file.
    with mpl.rc_context({"svg.hashsalt": "tritonsmith", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, sharex=True)
        for line, target in zip(grid, rows, strict=True):
            here = [cell for cell in cells if cell.row.target == target]
            # Each vendor has as many metrics; if not, a panel would stay empty, and `strict` says so.
            for axes, metric in zip(line, METRICS[here[0].row.backend], strict=True):
                draw(axes, here, metric, kernels, versions(cells))
            line[0].set_title(target, loc="left", fontweight="bold")
        handles, labels = _all_of(list(grid.flat))
        figure.legend(handles, labels, loc="outside right upper", frameon=False, handlelength=3.2)
        save_figure(figure, path, dpi=110)


def draw(
    axes: Axes, cells: Sequence[StudyCell], metric: StudyMetric, kernels: Sequence[str], names: Sequence[str]
) -> None:
    """Draw one metric of one target into a panel.

    Args:
        axes: the panel.
        cells: of that target.
        metric: the metric.
        kernels: a line each.
        names: of the Tritons, from left to right.
    """
    by_place = {(cell.row.kernel, cell.triton): metric.of(cell) for cell in cells}
    at_zero = 0
    for number, kernel in enumerate(kernels):
        known = [by_place.get((kernel, name)) for name in names]
        if metric.scale == "symlog" and not any(known):
            at_zero += any(value is not None for value in known)  # a dozen lines at zero hide the others
            continue
        values = [float("nan") if value is None else float(value) for value in known]
        # The colour changes first, then the style: so neighbouring lines never share a colour.
        style, marker = _STYLES[number // len(_COLOURS) % len(_STYLES)]
        axes.plot(
            range(len(names)),
            values,
            style,
            marker=marker,
            color=_COLOURS[number % len(_COLOURS)],
            label=kernel,
            linewidth=1.3,
            markersize=3.5,
            clip_on=False,  # a point on the axis is drawn whole
        )
    axes.set_title(metric.title, fontsize="medium", color=_GREY, loc="right")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if metric.scale == "symlog":  # zero is the best of values here
        axes.set_yscale("symlog", linthresh=10)
        axes.set_ylim(0, 2 * max(10, *(value or 0 for value in by_place.values())))
        if at_zero:
            about = f"0 throughout: {at_zero} of {len(kernels)} kernels"
            axes.text(0.5, 0.06, about, transform=axes.transAxes, ha="center", fontsize="small", color=_GREY)
    elif metric.scale == "log":
        _widen(axes, [value for value in by_place.values() if value])
    else:
        axes.set_ylim(bottom=0)
    axes.margins(x=0.03)


def _widen(axes: Axes, values: Sequence[float]) -> None:
    """Give a logarithmic axis a decade at least: on a narrower one a step of 2 % looks like a cliff."""
    from matplotlib.ticker import LogLocator, ScalarFormatter  # noqa: PLC0415 - as above

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter("")
    if values:
        low, high = min(values) / 1.2, max(values) * 1.2
        more = max(1.0, (10 * low / high) ** 0.5)
        axes.set_ylim(low / more, high * more)


def _all_of(panels: Sequence[Axes]) -> tuple[list[Artist], list[str]]:
    """Return each kernel once, in order, from whichever panel has it."""
    artists: dict[str, Artist] = {}
    # A kernel whose spills are zero throughout has no line in that panel, so no single one has all labels.
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            artists.setdefault(label, handle)
    return list(artists.values()), list(artists)
