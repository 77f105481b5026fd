"""Measure the kernels in a Triton cache, and show resources as tables, JSON, CSV and heat maps."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from math import isnan
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.compiler import from_cache
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import (
    COLUMNS,
    WORDS,
    Measured,
    ResourceRow,
    Value,
    classes,
    columns,
)
from tritonsmith.core import command_line, configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Write, digest, files
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import machine, triton_cache
from tritonsmith.facts.triton_cache import CacheEntry, Root
from tritonsmith.ir import gpu_binary
from tritonsmith.ir.normalize import assembly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ALL = "all"
_KINDS = ("jit", "env", "inductor", "named")  # the others hold no cubins that run
_ALONE = 256  # entries that one process reads before others have started
_CHUNK = 64  # entries that a process takes at once
_NAME_WIDTH = 12  # characters of an entry's name that a table shows

Known = dict[str, Any]  # name of an entry to its stamp and its row


def read_cache(which: str, space: Workspace) -> Measured:
    """Measure each kernel of all caches, of one cache, or of one entry.

    Args:
        which: `all`, the folder of a cache, the folder of an entry, or the beginning of an entry's name.
        space: the workspace, which caches the results.

    Raises:
        FactError: there is no such entry.
        SmithError: the workspace cannot be written to.
    """
    if which == ALL:
        roots = triton_cache.find(os.environ, space)
        return _measured([known for root in roots if root.kind in _KINDS for known in _of_root(root, space)])
    path = Path(which).expanduser()
    # A folder with an index is an entry; any other is a cache, even an empty one.
    index = triton_cache.index().prefix
    if path.is_dir() and not any(name.startswith(index) for name in os.listdir(path)):  # noqa: PTH208
        return _measured(_of_root(Root("named", path.absolute(), "--from-cache"), space))
    folder = from_cache.find(which)
    content = triton_cache.scan(Root("named", folder.parent, "--from-cache"))
    entries = [entry for entry in content.entries if entry.name == folder.name and entry.kind == "kernel"]
    if not entries:
        raise FactError("not a complete kernel entry", where=folder, hints=["invoke cache.list"])
    # The user named this entry, so a failure is an error here; among the thousands of a cache it is a note.
    results = [_read(entry) for entry in entries]
    if why := results[0]["row"].get("error"):
        raise FactError("cannot read this entry", where=folder, why=why)
    return _measured(results)


def _of_root(root: Root, space: Workspace) -> list[Known]:
    """Return the data of each kernel, in the order of names; cache it if something is new."""
    # Reading an ELF takes milliseconds, and a cache may have 100,000 of them: unchanged entries are read
    # from our own file, in the workspace and not in Triton's cache, which others share.
    entries = [entry for entry in triton_cache.scan(root).entries if entry.kind == "kernel"]
    file = space.root / "kernels" / "resources" / f"{digest(root.real)}.json"
    known = _load(file)
    new = [entry for entry in entries if known.get(entry.name, {}).get("stamp") != _stamp(entry)]
    current = {entry.name: known[entry.name] for entry in entries if entry.name in known}
    current |= {entry.name: data for entry, data in zip(new, _read_all(new), strict=True)}
    if new or len(current) != len(known):
        _save(file, current, space)
    return [current[name] for name in sorted(current)]


def _read_all(entries: Sequence[CacheEntry]) -> Iterator[Known]:
    if len(entries) <= _ALONE:
        yield from map(_read, entries)
        return
    # Spawned, not forked: this process may have threads, whose locks a fork would copy as they are.
    with ProcessPoolExecutor(machine.read().cores, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_read, entries, chunksize=_CHUNK)


def _read(entry: CacheEntry) -> Known:
    """Return the data to cache for an entry: its stamp and its row."""
    metadata = triton_cache.read_metadata(entry)
    row: Known = {
        "kernel": entry.kernel,
        "point": entry.name,
        "target": metadata.target,
        "options": ", ".join(f"{name}={value}" for name, value in metadata.options),
    }
    folder = Path(entry.path)
    binary = next(
        (path for kind in measure.BINARIES if (path := folder / f"{entry.kernel}.{kind}").is_file()), None
    )
    try:
        if binary is None:
            raise FactError("the entry has neither a cubin nor an hsaco")  # noqa: TRY301 - shown like the others
        about = untrusted.read_json(folder / f"{entry.kernel}.json")
        backend, _, arch = metadata.target.partition(":")
        if backend not in gpu_binary.MACHINES.values():
            raise FactError("its metadata does not record the target")  # noqa: TRY301
        ptx = folder / f"{entry.kernel}.ptx"
        arch = arch.partition(":")[0]
        row["values"] = measure.values(binary, arch, about, ptx if ptx.is_file() else None)
        row["notes"] = list(measure.ignored_by_occupancy(about))
    except FactError as error:
        # An entry that cannot be read is a row, too, and is kept as one, so it is not read again at each
        # call.
        row["error"] = ": ".join(filter(None, (error.what, error.why)))
    except (OSError, ValueError) as error:
        row["error"] = f"cannot read its metadata: {error}"
    return {"stamp": _stamp(entry), "row": row}


def _measured(read: Sequence[Known]) -> Measured:
    rows = [ResourceRow(**data["row"]) for data in read]
    good = [row for row in rows if not row.error]
    notes = [f"{row.kernel} in {row.point[:_NAME_WIDTH]}: {row.error}" for row in rows if row.error]
    # Mostly a cache of another machine or format: one line says as much as a thousand.
    if len(notes) > len(good) + 1:
        notes = [f"{len(notes)} entries cannot be read; the first: {notes[0]}"]
    arrays = [row for row in good if row.values.get("spill_store_bytes", 0) is None]
    if arrays:
        notes.append(
            f"{len(arrays)} kernels keep arrays in local memory, which only ptxas distinguishes from spills: "
            "invoke kernel.compile --resources --from-cache ENTRY --target ... recompiles an entry"
        )
    good.sort(key=lambda row: (row.kernel, row.target, row.options, row.point))
    return Measured(tuple(good), (*notes, *measure.row_notes(good)))


def _stamp(entry: CacheEntry) -> list[Any]:
    """Return the stamp of an entry, which changes with its content."""
    # Triton only adds files to an entry's folder, and changes none.
    return [entry.changed, entry.bytes, entry.files]


def _load(file: Path) -> Known:
    try:
        content = untrusted.read_json(file, untrusted.OURS)
        if content["edition"] == _edition():
            entries: Known = content["entries"]
            return entries
    except (OSError, ValueError, KeyError, TypeError):
        pass  # a missing or damaged file costs time, nothing else
    return {}


def _save(file: Path, entries: Known, space: Workspace) -> None:
    space.claim()
    text = json.dumps({"edition": _edition(), "entries": entries}, separators=(",", ":"))
    steps = (MakeDir(file.parent, phase="resources"), Write(file, text, phase="resources"))
    space.run(Plan("resources", steps), "kernel.resources", quiet=True)


@cache
def _edition() -> str:
    """Return a digest of everything that decides the content of a row."""
    # Sources, not the tool's version: a checkout of the tool keeps its version for months.
    limits = configs.data_dir("configs") / "gpu-limits.toml"
    sources = (Path(__file__), *sorted(Path(measure.__file__).parent.glob("*.py")), Path(gpu_binary.__file__))
    return digest([path.read_text("utf-8") for path in (*sources, limits)])


_MOST = 50  # rows on the screen; --json and --csv have all of them
_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}
_ENTRY_WIDTH = 12  # characters of a cache entry's name
_OF_ERROR = 60
_CSV = ("kernel", "point", "target", "options", "error", "notes", "remarks")


def tables_of(rows: Sequence[ResourceRow], *, cached: bool) -> Iterator[Grid]:
    """Yield for each vendor a table of resources, and one of instructions if there is a disassembly.

    Args:
        rows: the rows to show.
        cached: they are entries of a cache, of many kernels.
    """
    for backend, vendor in _VENDORS.items():
        # The vendors' resources have different names and units, so one table would be half empty.
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
    """Return one line per row of CSV; only the instruction classes vary between tables."""
    # Columns of both vendors, always: a script that reads several files must not guess.
    known = (assembly.TOTAL, *assembly.names("sass"), *assembly.names("amd"))
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
            *([row.point[:_ENTRY_WIDTH]] if cached else []),
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
    names = classes(rows, (assembly.TOTAL, *assembly.names(language)))
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


KINDS = (".png", ".svg")
_CELL = 0.7  # inches
_BRIGHT = 0.6  # of the range of values; above it the colour is a bright one


def check_plot(path: Path) -> None:
    """Check that a plot can be drawn, before anything is compiled for it.

    Raises:
        UsageError: the name is of another kind of file.
        FactError: matplotlib is not installed.
    """
    if path.suffix not in KINDS:
        raise UsageError(f"--plot cannot write {path.name}", hints=["give a .png or .svg file"])
    # Looked up, not imported: an import takes a second, and what follows may end in another error.
    if find_spec("matplotlib") is None:
        raise FactError("--plot needs matplotlib", hints=[command_line.installing("plot")])


def plot(rows: Sequence[ResourceRow], path: Path) -> None:
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
    save_figure(figure, path)


def save_figure(figure: Figure, path: Path, dpi: float | str = "figure") -> None:
    """Write a picture.

    Raises:
        SmithError: the file cannot be written.
    """
    picture = io.BytesIO()
    # Without the date, equal figures give equal files, which a repository of results needs.
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
    # By value, not by name: a map of 64 between 512 and 1024 would show no gradient.
    lines = sorted({_down(row, across) for row in rows}, key=_order)
    # NaN leaves a cell without colour: a combination that did not compile, or that the user did not request.
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
