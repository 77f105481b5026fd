"""A manifest for the terminal: a table of points and stages, and the failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tritonsmith import configs, worker
from tritonsmith.kernels.compile.manifest import Manifest, Point
from tritonsmith.ui import tables
from tritonsmith.ui.tables import Grid
from tritonsmith.ui.units import duration

_OF_LOG = 12  # lines, of a crash
_OURS = (str(worker.FOLDER), "runpy")  # in the path of a frame: runpy starts the folder
_LINES = 40  # of an error on the screen; the manifest has all of it


def table(manifest: Manifest) -> Iterator[Grid]:
    """A table for each vendor: one line per point, one column per stage, sizes in the cells."""
    for backend in dict.fromkeys(point.backend for point in manifest.points):
        yield _table(manifest, [point for point in manifest.points if point.backend == backend])


def _table(manifest: Manifest, points: Sequence[Point]) -> Grid:
    here = {name for point in points for name in point.stages} - {"source"}  # the ttir, before the first pass
    names = [name for name in stages(manifest) if name in here]
    failed = any(point.status != "ok" for point in points)
    rows = []
    for point in points:
        sizes = [f"{point.stages[name].size / 1024:.1f}" if name in point.stages else "" for name in names]
        rows.append([point.id, *([point.status] if failed else []), *sizes, duration(point.seconds)])
    title = f"{manifest.kernel} by Triton {manifest.triton} on Python {manifest.python}; sizes in KiB"
    columns = ["point", *(["status"] if failed else []), *names, "time"]
    return tables.plain(title, columns, rows, right=[*names, "time"])


def stages(manifest: Manifest) -> tuple[str, ...]:
    """Names of the stages that any point has, in the order of the pipeline."""
    known = configs.load("kernels")["stages"]
    here = {name for point in manifest.points for name in point.stages}
    rank = {name: number for number, name in enumerate((*known["compiler"], *known["disassembled"]))}
    after = {
        row["stage"]: rank[binary] + 0.5 for binary, row in configs.load("kernels")["disassemblers"].items()
    }
    return tuple(sorted(here, key=lambda name: (after.get(name, rank.get(name, len(rank))), name)))


def failures(manifest: Manifest) -> Iterator[str]:
    """The failures, each message once, with the points that it concerns."""
    about: dict[str, list[Point]] = {}
    for point in manifest.points:
        if point.status != "ok":
            about.setdefault(_words(point), []).append(point)
    for text, points in about.items():
        ids = ", ".join(point.id for point in points)
        yield f"{ids}: {points[0].status}\n{text}"


def _words(point: Point) -> str:
    lines = point.error.strip().splitlines()
    if point.status == "crashed":  # the worker's own frames tell nobody anything
        log = (line for line in point.log.splitlines() if line.strip() and line.strip() not in lines)
        lines += [line for line in log if not any(name in line for name in _OURS)][:_OF_LOG]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"... {len(lines) - _LINES} more lines in the manifest"]
    return "\n".join(f"  {line}" for line in lines)


def as_json(manifest: Manifest, notes: tuple[str, ...]) -> dict[str, Any]:
    """The manifest, where it lies, and the notes."""
    content: dict[str, Any] = json.loads(manifest.render())
    return content | {"folder": str(manifest.folder), "notes": list(notes)}
