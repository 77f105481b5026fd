"""A panel for each target and metric: one line for each kernel, over versions of Triton."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core.errors import SmithError
from tritonsmith.inspect.resources.plot import save
from tritonsmith.lab.study.report import METRICS, StudyMetric, targets, versions
from tritonsmith.lab.study.study import StudyCell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which all kinds of colour vision tell apart (jfly.uni-koeln.de/color), without
# their yellow, which white swallows.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ("-", "v"))
_PANEL = (4.3, 3.1)  # inches
_LEGEND = 2.6  # inches, beside the panels
_GREY = "#888888"


def write(cells: Sequence[StudyCell], path: Path) -> None:
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
    with mpl.rc_context({"svg.hashsalt": "tritonsmith", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, sharex=True)
        for line, target in zip(grid, rows, strict=True):
            here = [cell for cell in cells if cell.row.target == target]
            for axes, metric in zip(line, METRICS[here[0].row.backend], strict=True):
                draw(axes, here, metric, kernels, versions(cells))
            line[0].set_title(target, loc="left", fontweight="bold")
        handles, labels = _all_of(list(grid.flat))
        figure.legend(handles, labels, loc="outside right upper", frameon=False, handlelength=3.2)
        save(figure, path, dpi=110)


def draw(
    axes: Axes, cells: Sequence[StudyCell], metric: StudyMetric, kernels: Sequence[str], names: Sequence[str]
) -> None:
    """Draw one metric of one target into a panel.

    Args:
        axes: the panel.
        cells: of that target.
        metric: what is drawn.
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
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            artists.setdefault(label, handle)
    return list(artists.values()), list(artists)
