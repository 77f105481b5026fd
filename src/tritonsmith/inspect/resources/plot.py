"""Draw a heat map of a sweep: one row of maps per target."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.inspect.resources.report import metrics, spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (".png", ".svg")
_CELL = 0.7  # inches
_BRIGHT = 0.6  # of the range of values; above it the colour is a bright one


def check(path: Path) -> None:
    """Check that a plot can be drawn, before anything is compiled for it.

    Raises:
        UsageError: the name is of another kind of file.
        FactError: matplotlib is not installed.
    """
    if path.suffix not in KINDS:
        raise UsageError(f"--plot cannot write {path.name}", hints=["give a .png or .svg file"])
    if find_spec("matplotlib") is None:
        hints = ["pip install matplotlib, into the Python that runs the tool"]
        hints += ["where pipx installed the tool: pipx inject tritonsmith matplotlib"]
        raise FactError("--plot needs matplotlib", hints=hints)


def write(rows: Sequence[ResourceRow], path: Path) -> None:
    """Draw the rows of one kernel, and write the picture.

    Raises:
        SmithError: there is nothing to draw, or the file cannot be written.
    """
    good = [row for row in rows if row.values]
    if not good:
        raise SmithError("there is nothing to plot", hints=["omit --plot"])
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second, and only a plot needs it

    targets = list(dict.fromkeys(row.target for row in good))
    across = _across(good)
    width = max(len({row.axes.get(across, "") for row in good}), 3)
    height = max(len({_down(row, across) for row in good}), 2)
    maps = len(metrics("cuda", good))
    size = (maps * (width * _CELL + 2), len(targets) * (height * _CELL + 1.2))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(targets), maps, squeeze=False)
    for line, target in zip(grid, targets, strict=True):
        here = [row for row in good if row.target == target]
        for axes, (title, values) in zip(line, metrics(here[0].backend, here).items(), strict=True):
            _draw(axes, f"{target}: {title}", here, values, across)
    figure.suptitle(good[0].kernel)
    save(figure, path)


def save(figure: Figure, path: Path, dpi: float | str = "figure") -> None:
    """Write a picture; equal figures give equal files.

    Raises:
        SmithError: the file cannot be written.
    """
    picture = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(picture, format=path.suffix[1:], metadata=metadata, dpi=dpi)
    try:
        files.write(path, picture.getvalue())
    except OSError as error:
        raise SmithError("cannot write the plot", where=path, why=error.strerror) from error


def _across(rows: Sequence[ResourceRow]) -> str:
    """Return the axis with the most values."""
    names = dict.fromkeys(name for row in rows for name in row.axes)
    return max(names, key=lambda name: len({row.axes.get(name) for row in rows}), default="")


def _down(row: ResourceRow, across: str) -> str:
    return "\n".join(f"{name}={value}" for name, value in row.axes.items() if name != across)


def _draw(
    axes: Axes, title: str, rows: Sequence[ResourceRow], values: Sequence[float | None], across: str
) -> None:
    columns = sorted({row.axes.get(across, "") for row in rows}, key=_order)
    lines = sorted({_down(row, across) for row in rows}, key=_order)
    cells: list[list[float]] = [[float("nan")] * len(columns) for _ in lines]
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            cells[lines.index(_down(row, across))][columns.index(row.axes.get(across, ""))] = value
    axes.imshow(cells, aspect="auto", cmap="viridis")
    axes.set_title(title, fontsize="small")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(lines)), lines)
    axes.set_xlabel(across)
    known = [number for line in cells for number in line if not isnan(number)]
    bright = min(known, default=0) + _BRIGHT * (max(known, default=0) - min(known, default=0))
    for y, line in enumerate(cells):
        for x, number in enumerate(line):
            text = "" if isnan(number) else spelled(number)
            color = "black" if number > bright else "white"
            axes.text(x, y, text, ha="center", va="center", fontsize="small", color=color)


def _order(text: str) -> Any:
    """Return a sort key: numbers by their value, before words."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)
