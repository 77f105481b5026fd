"""A study as a static folder: a page with a small chart of each number of each kernel, and the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.resources.table import CAN_LAUNCH, LAUNCH
from tritonsmith.core import untrusted
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import html_page
from tritonsmith.lab.study import report
from tritonsmith.lab.study.report import METRICS
from tritonsmith.lab.study.study import StudyCell

PAGE = "index.html"
_TEMPLATE = Path(__file__).with_name("study.html")
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

    @property
    def text(self) -> str:
        """The number; `x` for a failure, `?` for what was not compiled, `-` for nothing to compile."""
        if not self.compiled:
            return "?"
        if self.value is None:
            return "x" if self.mark else "-"
        return str(self.value) if isinstance(self.value, int) else f"{self.value:.{_DIGITS}g}"


@dataclass(frozen=True)
class Dot:
    """A point as it is drawn.

    Attributes:
        x: in pixels from the left.
        y: in pixels from the top.
        title: its text, while the pointer is over it.
        colour: a colour of CSS.
        ring: not filled: the kernel's file is not that of the version before.
    """

    x: str
    y: str
    title: str
    colour: str
    ring: bool


@dataclass(frozen=True)
class Figure:
    """The chart of one number of one kernel.

    Attributes:
        name: of the number.
        last: the last value.
        lines: points of each stretch without a gap, as SVG takes them.
        dots: all points.
    """

    name: str
    last: str
    lines: tuple[str, ...]
    dots: tuple[Dot, ...]


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
    """Write the folder; return the page's path.

    Raises:
        SmithError: it cannot be written.
    """
    names = report.versions(cells)
    page = html_page.render(
        _TEMPLATE,
        f"Kernels, Triton {names[0]} to {names[-1]}" if len(names) > 1 else f"Kernels, Triton {names[0]}",
        mark=_MARK,
        names=names,
        changes=list(_changes(cells, names)) if len(names) > 1 else [],
        not_compiled=_not_compiled(cells),
        targets=list(_targets(cells, names)),
        width=_WIDTH,
        height=_HEIGHT,
        bottom=_HEIGHT - _EDGE,
    )
    content = {"study.json": json.dumps(report.as_json(cells), indent=1), "study.csv": report.as_csv(cells)}
    try:
        for name, data in {**content, PAGE: page}.items():
            files.write_atomically(folder / name, data)
    except OSError as error:
        raise SmithError("cannot write the site", where=folder, why=error.strerror) from error
    return folder / PAGE


def _by_kernel(cells: Sequence[StudyCell], target: str) -> Iterator[tuple[str, dict[str, StudyCell]]]:
    """Yield each kernel of a target, with its cells by their Triton."""
    here = [cell for cell in cells if cell.row.target == target]
    for kernel in dict.fromkeys(cell.row.kernel for cell in here):
        yield kernel, {cell.triton: cell for cell in here if cell.row.kernel == kernel}


def _targets(
    cells: Sequence[StudyCell], names: Sequence[str]
) -> Iterator[tuple[str, list[tuple[str, list[Figure]]]]]:
    for target in report.targets(cells):
        kernels = []
        for kernel, own in _by_kernel(cells, target):
            changed = frozenset(_new_sources(own, names))
            figures = [_figure(name, points, changed) for name, points in _series(own, names)]
            kernels.append((kernel, figures))
        yield target, kernels


def _changes(cells: Sequence[StudyCell], names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the changes by the last Triton, except compile times, which are of one run each."""
    for target in report.targets(cells):
        for kernel, own in _by_kernel(cells, target):
            for name, (old, new) in _series(own, names[-2:]):
                if not (old.compiled and new.compiled):
                    continue  # nothing is known, so nothing has changed
                if name != _TIME and (old.value, old.mark) != (new.value, new.mark) and new.triton in own:
                    yield {
                        "kernel": kernel,
                        "target": target,
                        "metric": name,
                        "change": f"{old.text} → {new.text}",
                        "verdict": _verdict(old, new),
                    }


def _not_compiled(cells: Sequence[StudyCell]) -> Mapping[str, list[str]]:
    """Return each reason why kernels were not compiled, with the kernels and versions that it concerns."""
    about: dict[str, list[str]] = {}
    for cell in cells:
        if not cell.compiled:
            about.setdefault(cell.row.error, []).append(f"{cell.row.kernel} {cell.triton} {cell.row.target}")
    return about


def _new_sources(own: Mapping[str, StudyCell], names: Sequence[str]) -> Iterator[str]:
    """Yield the Tritons whose kernel's file is not that of the one before."""
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


def _series(
    own: Mapping[str, StudyCell], names: Sequence[str]
) -> Iterator[tuple[str, tuple[ChartPoint, ...]]]:
    """Yield the numbers of a kernel, each over all versions."""
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


def _figure(name: str, points: Sequence[ChartPoint], changed: Container[str]) -> Figure:
    """Place the points between zero and the largest value."""
    most = max((point.value for point in points if point.value is not None), default=0.0) or 1.0
    step = (_WIDTH - 2 * _EDGE) / max(1, len(points) - 1)
    lines: list[list[str]] = [[]]
    dots = []
    for number, point in enumerate(points):
        x = f"{_EDGE + number * step:.1f}"
        title = f"{point.triton}: {point.text}" + (f"; {point.mark}" if point.mark else "")
        if point.value is None:
            lines.append([])  # a gap
            if point.mark:  # red is for the compiler's failures only
                colour = "var(--worse)" if point.compiled else "var(--soft)"
                dots.append(Dot(x, f"{_HEIGHT / 2:.1f}", title, colour, ring=False))
            continue
        y = f"{_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * point.value / most:.1f}"
        lines[-1].append(f"{x},{y}")
        colour = "var(--worse)" if point.mark else "var(--accent)"
        dots.append(Dot(x, y, title, colour, ring=point.triton in changed))
    return Figure(name, points[-1].text, tuple(" ".join(line) for line in lines if line), tuple(dots))
