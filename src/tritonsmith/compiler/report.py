"""Show a manifest on the terminal: a table of points and stages, the failures, and notes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tritonsmith.compiler import call, interpreter
from tritonsmith.compiler.manifest import SCHEMA, Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs
from tritonsmith.core.text import duration
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.worker.messages import CompileHead

# The manifest has all of these.
_OF_LOG = 12  # lines, of a crash
_SHOWN = 4  # names of a package
_LINES = 40  # of an error


def table(manifest: Manifest) -> Iterator[Grid]:
    """Yield a table per vendor: one row per point, one column per stage, sizes in the cells."""
    for backend in dict.fromkeys(point.backend for point in manifest.points):
        yield _table(manifest, [point for point in manifest.points if point.backend == backend])


def _table(manifest: Manifest, points: Sequence[Point]) -> Grid:
    # `source` is the ttir before the first pass, whose size tells nothing about the result.
    here = {name for point in points for name in point.stages} - {"source"}
    names = [name for name in stages(manifest) if name in here]
    failed = any(point.status != "ok" for point in points)
    rows = []
    for point in points:
        sizes = [f"{point.stages[name].size / 1024:.1f}" if name in point.stages else "" for name in names]
        rows.append([point.id, *([point.status] if failed else []), *sizes, duration(point.seconds)])
    by = f"by Triton {manifest.triton} on Python {manifest.python}; sizes in KiB"
    title = f"{manifest.kernel} {by if manifest.triton else 'was refused'}"
    columns = ["point", *(["status"] if failed else []), *names, "time"]
    return tables.plain(title, columns, rows, right=[*names, "time"])


def stages(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of the stages that any point has, in the order of the pipeline."""
    known = configs.load("kernels")["stages"]
    here = {name for point in manifest.points for name in point.stages}
    rank = {name: number for number, name in enumerate((*known["compiler"], *known["disassembled"]))}
    # A disassembly belongs to its binary, though it is made when all stages are.
    after = {
        row["stage"]: rank[binary] + 0.5 for binary, row in configs.load("kernels")["disassemblers"].items()
    }
    return tuple(sorted(here, key=lambda name: (after.get(name, rank.get(name, len(rank))), name)))


def failures(manifest: Manifest) -> Iterator[str]:
    """Yield the failures, each message once, with its points."""
    # A kernel that cannot be compiled fails for every config in the same words.
    about: dict[str, list[Point]] = {}
    for point in manifest.points:
        if point.status != "ok":
            about.setdefault(_words(point), []).append(point)
    for text, points in about.items():
        ids = ", ".join(point.id for point in points)
        yield f"{ids}: {points[0].status}\n{text}"


def _words(point: Point) -> str:
    lines = point.error.strip().splitlines()
    # A crash has no message of the compiler's: what it printed last is all that explains it, but for the
    # frames of the worker.
    if point.status == "crashed":
        log = (line for line in point.log.splitlines() if line.strip() and line.strip() not in lines)
        lines += [line for line in log if not call.in_own_frame(line)][:_OF_LOG]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"... {len(lines) - _LINES} more lines in the manifest"]
    return "\n".join(f"  {line}" for line in lines)


def failures_of_all(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield the failures of several kernels, each with the name of the kernel's folder."""
    for manifest in manifests:
        place = f"{manifest.folder.name}/" if len(manifests) > 1 else ""
        yield from (f"{place}{text}" for text in failures(manifest))


def as_json(manifest: Manifest, notes: tuple[str, ...]) -> dict[str, Any]:
    """Return the manifest as JSON data, with its folder and the notes."""
    content: dict[str, Any] = json.loads(manifest.render())
    return content | {"folder": str(manifest.folder), "notes": list(notes)}


def as_json_of_all(results: Sequence[tuple[Manifest, tuple[str, ...]]]) -> dict[str, Any]:
    """Return `as_json` of one kernel; for several, a list of these."""
    kernels = [as_json(manifest, notes) for manifest, notes in results]
    return kernels[0] if len(kernels) == 1 else {"schema": SCHEMA, "kernels": kernels}


def notes(head: CompileHead, manifest: Manifest, request: CompileRequest) -> Iterator[str]:
    """Yield notes about a successful run.

    Args:
        head: the worker's line about Triton.
        manifest: the result.
        request: the request.
    """
    yield from manifest.warnings
    yield from head.notes
    yield from _replaced(manifest.stand_ins)
    texts = configs.load("kernels")["disassemblers"]
    for binary, row in texts.items() if request.disassemble else ():
        stage = row["stage"]
        without = [point for point in manifest.points if binary in point.stages and stage not in point.stages]
        # Only a missing program has a remedy; where it ran and failed, the point's log has its message.
        if without and stage in head.missing:
            yield interpreter.remedy(stage)
        elif without and not request.stages:
            yield f"no {stage} for {', '.join(point.id for point in without)}: see the log of each point"
    good = [point for point in manifest.points if point.status == "ok"]
    here = {name for point in good for name in point.stages}
    binaries = {row["stage"]: binary for binary, row in texts.items()}
    for name in request.stages if good else ():
        if name not in here and binaries.get(name) not in here:
            yield f"no point has a stage {name}: none of these targets produces it"


def _replaced(stand_ins: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per package that stand-ins replaced, with the first names."""
    packages: dict[str, list[str]] = {}
    for name, place in stand_ins.items():
        packages.setdefault(name.partition(".")[0], []).append(f"{name} ({place})")
    for package, names in packages.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"{package} is not installed, and stand-ins replaced {', '.join(names[:_SHOWN])}{more}"
