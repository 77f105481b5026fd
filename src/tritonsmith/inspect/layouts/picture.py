"""Draw a layout: each element in the colour of its warp, or of its bank."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.inspect.layouts.converted import ConvertedLayout
from tritonsmith.inspect.resources import plot
from tritonsmith.ir.linear import LinearLayout

_CELL = 0.34  # inches
_MOST = 128  # elements that a picture shows in each direction
_NAMED = 64  # up to here a cell has room for its holder
_TITLE = 90  # characters of a line
_LIGHT = 12  # colours that the lightest map has
_DARKER = 0.82  # of the colour of every second thread


def write(one: ConvertedLayout, path: Path) -> None:
    """Draw the last two dimensions of a layout, and write the picture.

    Raises:
        UsageError: it has too many elements to see.
        SmithError: the file cannot be written.
    """
    linear = one.linear
    assert linear is not None  # noqa: S101 - the caller has reported the error
    *_, rows, columns = (1, *linear.shape)
    if max(rows, columns) > _MOST:
        hints = [f"--shape {min(rows, _MOST)}x{min(columns, _MOST)} shows the pattern: it repeats"]
        raise UsageError(f"--plot draws up to {_MOST} elements in each direction", hints=hints)
    from matplotlib import colormaps  # noqa: PLC0415 - takes a second, and only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(columns * _CELL + 1.2, rows * _CELL + 1.4), layout="constrained")
    axes = figure.subplots()
    elements = [[_element(linear, row, column) for column in range(columns)] for row in range(rows)]
    numbers = [[_groups(linear, one.type.bits, element) for element in line] for line in elements]
    most = 1 + max(group for line in numbers for group, _ in line)
    colours = colormaps["Set3"] if most <= _LIGHT else colormaps["Spectral"].resampled(most)
    axes.imshow([[_shade(colours(group % most), odd=odd) for group, odd in line] for line in numbers])
    if max(rows, columns) <= _NAMED:
        for row, line in enumerate(elements):
            for column, element in enumerate(line):
                text = linear.spelled(element).replace("|", "\n")
                size = 6.5 / max(1, text.count("\n") + 1, len(text.partition("\n")[0]) / 6)
                axes.text(column, row, text, ha="center", va="center", fontsize=size)
    what = "warp, shade: thread" if linear.distributed else "bank" if "offset" in linear.bases else "row"
    axes.set_title("\n".join([*wrap(one.type.text, _TITLE), f"colour: {what}"]), fontsize=8)
    axes.tick_params(labelsize=6)
    plot.save(figure, path)


def _element(linear: LinearLayout, row: int, column: int) -> tuple[int, ...]:
    if len(linear.shape) == 1:
        return (column,)
    return (*(0,) * (len(linear.shape) - 2), row, column)


def _groups(linear: LinearLayout, bits: int, element: tuple[int, ...]) -> tuple[int, bool]:
    """Return the number of the first warp that holds an element, or of its bank; and True for an odd lane."""
    place = dict(zip(linear.inputs, linear.holders(element)[0], strict=True))
    if linear.distributed:
        return place["warp"] + linear.size("warp") * place.get("block", 0), place["lane"] % 2 == 1
    if "offset" not in place:
        return place["row"], False
    facts = configs.load("layouts")["banks"]
    return linear.offset(element) * bits // 8 // facts["bytes"] % facts["count"], False


def _shade(colour: tuple[float, ...], *, odd: bool) -> tuple[float, ...]:
    return tuple(part * (_DARKER if odd else 1) for part in colour[:3])
