"""A study as a static folder: a page with a small chart of each number of each kernel, and the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.resources.table import CAN_LAUNCH, LAUNCH
from tritonsmith.core import untrusted
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui.html_page import document, table, tag, text
from tritonsmith.lab.study import report
from tritonsmith.lab.study.report import METRICS
from tritonsmith.lab.study.study import StudyCell

PAGE = "index.html"
_MARK = "Written by kernel.study of tritonsmith"
_TIME = "compile time, s"
_WIDTH, _HEIGHT, _EDGE = 200, 46, 6  # of a chart, in pixels
_DIGITS = 3  # of a number on the page


@dataclass(frozen=True)
class ChartPoint:
    """One number of one kernel by one Triton.

    Attributes:
        triton: the version.
        value: None if there is none.
        mark: why: `does not compile`; or what else is to be said of it.
        compiled: whether a compile was tried at all.
    """

    triton: str
    value: float | None
    mark: str = ""
    compiled: bool = True


def check(folder: Path) -> None:
    """Check that a site may be written there, before anything is compiled.

    Raises:
        UsageError: it is a file, or has a page of somebody else's.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("--site is a file, not a folder", where=folder)
    page = folder / PAGE
    if page.exists() and _MARK not in untrusted.text_if_any(page):
        hints = ["choose another folder: --site DIR"]
        raise UsageError("this folder has a page that `--site` did not write", where=page, hints=hints)


def write(cells: Sequence[StudyCell], folder: Path) -> Path:
    """Write the folder; the page's path.

    Raises:
        SmithError: it cannot be written.
    """
    names = report.versions(cells)
    title = f"Kernels, Triton {names[0]} to {names[-1]}" if len(names) > 1 else f"Kernels, Triton {names[0]}"
    page = document(title, [tag("h1", text(title)), *_body(cells, names)])
    content = {"study.json": json.dumps(report.as_json(cells), indent=1), "study.csv": report.as_csv(cells)}
    try:
        for name, data in {**content, PAGE: page}.items():
            files.write_atomically(folder / name, data)
    except OSError as error:
        raise SmithError("cannot write the site", where=folder, why=error.strerror) from error
    return folder / PAGE


def _body(cells: Sequence[StudyCell], names: Sequence[str]) -> Iterator[str]:
    links = (tag("a", name, href=name) for name in ("study.json", "study.csv"))
    yield tag("p", f"{_MARK}. No kernel was run. Data: {', '.join(links)}.", of="soft")
    about = (
        "Charts start at zero. A ring marks a version in which the kernel's source changed; red marks a "
        "compile that fails or code that cannot be launched. Hover over a point for details."
    )
    yield tag("p", text(f"From left to right: {', '.join(names)}. {about}"), of="soft")
    yield from _latest(cells, names)
    yield from _not_compiled(cells)
    for target in report.targets(cells):
        here = [cell for cell in cells if cell.row.target == target]
        yield tag("h2", text(target))
        for kernel in dict.fromkeys(cell.row.kernel for cell in here):
            own = {cell.triton: cell for cell in here if cell.row.kernel == kernel}
            changed = frozenset(_changed(own, names))
            charts = (_figure(name, points, changed) for name, points in _series(own, names))
            yield tag("div", tag("h3", text(kernel)), *charts, of="row")


def _latest(cells: Sequence[StudyCell], names: Sequence[str]) -> Iterator[str]:
    """Yield the changes by the last Triton, except compile times, which are of one run each."""
    if len(names) < 2:  # noqa: PLR2004 - a change needs two
        return
    rows = []
    for target in report.targets(cells):
        for kernel in dict.fromkeys(cell.row.kernel for cell in cells if cell.row.target == target):
            own = {one.triton: one for one in cells if (one.row.kernel, one.row.target) == (kernel, target)}
            for name, points in _series(own, names[-2:]):
                old, new = points
                if not (old.compiled and new.compiled):
                    continue  # nothing is known, so nothing has changed
                if name != _TIME and (old.value, old.mark) != (new.value, new.mark) and new.triton in own:
                    style = _verdict(old, new)
                    change = tag("span", text(f"{_spelled(old)} → {_spelled(new)}"), of=style)
                    rows.append([text(kernel), text(target), text(name), change])
    yield tag("h2", text(f"Changed by {names[-1]}"))
    yield table(["kernel", "target", "metric", "change"], rows) if rows else tag("p", "nothing")


def _not_compiled(cells: Sequence[StudyCell]) -> Iterator[str]:
    """List each reason why kernels were not compiled, with the kernels and versions that it concerns."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        if not cell.compiled:
            about.setdefault(cell.row.error, []).append(f"{cell.row.kernel} {cell.triton} {cell.row.target}")
    if about:
        yield tag("h2", "Not compiled")
        rows = [[text(reason), text(", ".join(places))] for reason, places in about.items()]
        yield table(["reason", "kernels"], rows)


def _changed(own: dict[str, StudyCell], names: Sequence[str]) -> Iterator[str]:
    """Tritons whose kernel's file is not that of the one before."""
    before = ""
    for name in names:
        source = own[name].source if name in own else ""
        if before and source and source != before:
            yield name
        before = source or before


def _verdict(old: ChartPoint, new: ChartPoint) -> str:
    if old.value is None or new.value is None:
        return "worse" if new.value is None else "better"
    return "worse" if new.value > old.value else "better" if new.value < old.value else ""


def _series(own: dict[str, StudyCell], names: Sequence[str]) -> Iterator[tuple[str, tuple[ChartPoint, ...]]]:
    """The numbers of a kernel, each over all versions."""
    backend = next(iter(own.values())).row.backend
    for metric in METRICS[backend]:
        yield metric.title, tuple(_point(own.get(name), name, metric.of) for name in names)
    yield _TIME, tuple(_point(own.get(name), name, lambda cell: cell.seconds or None) for name in names)


def _point(cell: StudyCell | None, name: str, value: Callable[[StudyCell], float | None]) -> ChartPoint:
    if cell is None:
        return ChartPoint(name, None)
    if not cell.compiled:
        return ChartPoint(name, None, cell.row.error, compiled=False)
    if cell.row.error:
        return ChartPoint(name, None, f"does not compile: {cell.row.error}")
    launch = cell.row.values.get(LAUNCH, CAN_LAUNCH)
    return ChartPoint(name, value(cell), "" if launch in (CAN_LAUNCH, None) else f"cannot launch: {launch}")


def _figure(name: str, points: Sequence[ChartPoint], changed: Container[str]) -> str:
    known = [point.value for point in points if point.value is not None]
    last = tag("span", text(_spelled(points[-1])))
    caption = tag("figcaption", tag("span", text(name)), last)
    return tag("figure", caption, _chart(points, max(known, default=0.0), changed), of="chart")


def _chart(points: Sequence[ChartPoint], most: float, changed: Container[str]) -> str:
    """A line from zero to the largest value, with a gap where there is no number."""
    step = (_WIDTH - 2 * _EDGE) / max(1, len(points) - 1)
    lines: list[list[str]] = [[]]
    dots = []
    for number, point in enumerate(points):
        x = f"{_EDGE + number * step:.1f}"
        if point.value is None:
            lines.append([])
            if point.mark:
                colour = "var(--worse)" if point.compiled else "var(--soft)"
                dots.append(_dot(x, f"{_HEIGHT / 2:.1f}", point, colour, ring=False))
            continue
        y = f"{_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * point.value / (most or 1.0):.1f}"
        lines[-1].append(f"{x},{y}")
        colour = "var(--worse)" if point.mark else "var(--accent)"
        dots.append(_dot(x, y, point, colour, ring=point.triton in changed))
    drawn = (
        tag("polyline", points=" ".join(line), fill="none", stroke="var(--accent)") for line in lines if line
    )
    bottom = _HEIGHT - _EDGE
    axis = tag("line", x1=0, x2=_WIDTH, y1=bottom, y2=bottom, stroke="var(--line)")
    return tag("svg", axis, *drawn, *dots, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img")


def _dot(x: str, y: str, point: ChartPoint, colour: str, *, ring: bool) -> str:
    title = tag(
        "title", text(f"{point.triton}: {_spelled(point)}" + (f"; {point.mark}" if point.mark else ""))
    )
    fill = "var(--page)" if ring else colour
    return tag("circle", title, cx=x, cy=y, r=2.6, fill=fill, stroke=colour)


def _spelled(point: ChartPoint) -> str:
    if not point.compiled:
        return "?"
    if point.value is None:
        return "x" if point.mark else "-"
    return str(point.value) if isinstance(point.value, int) else f"{point.value:.{_DIGITS}g}"
