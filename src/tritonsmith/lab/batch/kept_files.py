"""The files of kept results: written where somebody looks at them, disassembled where needed, and measured.

A result of the database has a folder (`kernels/releases/3.6.0/KEY`), but its files are there only where
somebody wants to see them: see `restore`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import tritonsmith
from tritonsmith.compiler import interpreter, source_tree
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler.interpreter import Disassembler
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.resources import measure
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import digest, files
from tritonsmith.inspect import show as show_stage
from tritonsmith.lab import metrics
from tritonsmith.lab.batch import store
from tritonsmith.lab.batch.store import PackedFile, ResultStore
from tritonsmith.lab.metrics import Measured

RELEASES, COMMITS, OTHERS = "releases", "commits", "rehearsed"
METRICS = "metrics.json"
DATABASE = "results.db"
J = TypeVar("J")
_SCHEMA = 3  # of METRICS: a change of what is measured, and how, changes it
_TABLES = ("gpu-limits", "gpus", "kernel-metrics", "kernel-resources", "known-issues")


def database() -> ResultStore:
    """Return the database of this workspace, opened once.

    Raises:
        SmithError: it cannot be used.
    """
    space = workspace.default()
    path = space.root / "kernels" / DATABASE
    # By its inode: a file that was removed meanwhile would take results that nobody finds again.
    try:
        inode = path.stat().st_ino
    except FileNotFoundError:
        space.claim()
        inode = 0
    return _opened(path, inode, os.getpid())


@functools.lru_cache(maxsize=1)
def _opened(path: Path, _inode: int, _pid: int) -> ResultStore:
    return ResultStore(path)


@dataclass(frozen=True)
class PackedPart:
    """The files of a unit of work for one target, as the database keeps them.

    Attributes:
        target: the target.
        files: the files.
        measured: their metrics; None if they cannot be measured, which is an error of whoever wants them.
    """

    target: str
    files: tuple[PackedFile, ...]
    measured: FolderMetrics | None


def pack(manifest: Manifest, *, code: bool = True) -> tuple[PackedPart, ...]:
    """Measure and compress what was compiled into a folder, for the process that keeps all results.

    Args:
        manifest: of the folder.
        code: see `measured_now`.
    """
    packed = []
    for target, part in by_target(manifest):
        measured = None
        with suppress(SmithError):
            measured = measured_now(part, code=code)
        packed.append(PackedPart(target, store.pack(dict(_files(part))), measured))
    return tuple(packed)


def add(folder: Path, target: str, part: Manifest, packed: Sequence[PackedPart]) -> None:
    """Keep the files of a target and their metrics.

    Args:
        folder: of the job.
        target: the target.
        part: its part of a manifest.
        packed: its files; empty for a kernel that was refused.

    Raises:
        StepError: the database cannot be written.
    """
    every = [each.measured for each in packed] or [measured_now(part)]
    whole = [measured for measured in every if measured]
    text = _metrics_text(part, _merged(whole)) if len(whole) == len(every) else ""
    rows = [row for each in packed for row in each.files]
    database().keep(*address(folder), target, part.render(indent=None), rows, text)


def _merged(every: Sequence[FolderMetrics]) -> FolderMetrics:
    """Return the metrics of all points, of which each unit of work has measured its own."""
    return FolderMetrics(
        {name: measured for each in every for name, measured in each.points.items()},
        tuple(dict.fromkeys(note for each in every for note in each.notes)),
        frozenset[str]().union(*(each.unread for each in every)),
        {name: ids for each in every for name, ids in each.issues.items()},
    )


def write_packed(folder: Path, packed: Sequence[PackedPart]) -> None:
    """Write files that are not kept into the folder of their job."""
    for row in (row for each in packed for row in each.files):
        path = folder / untrusted.place_in(row.path)
        files.make_folder(path.parent)
        files.write_atomically(path, row.content(folder.name))


def by_target(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield each target with its part of a manifest."""
    every = dict.fromkeys(point.target for point in manifest.points)
    if len(every) == 1:
        yield next(iter(every)), manifest
        return
    for target in every:
        points = tuple(point for point in manifest.points if point.target == target)
        yield target, replace(manifest, points=points)


def _files(manifest: Manifest) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the points of a folder, by their relative paths."""
    for point in manifest.points:
        for path in sorted((manifest.folder / point.id).glob("*")):
            yield f"{point.id}/{path.name}", untrusted.read_bytes(path, untrusted.OURS)


def restore(manifest: Manifest) -> None:
    """Write the files of a kept result into its folder, unless they are there.

    Raises:
        FactError: they are damaged, or were removed meanwhile.
    """
    place = _address_if_any(manifest.folder)
    # Whoever looks into the folder expects what every compile writes there.
    manifest = disassemble(manifest)
    lacking = [point for point in manifest.points if place and not _as_compiled(manifest.folder, point)]
    if not lacking or place is None:
        return
    places = dict.fromkeys(point.target for point in lacking)
    write = files.write_atomically
    if not sum(_write_contents(place, target, manifest.folder, write) for target in places):
        raise _gone(manifest.folder)
    # Last, and of all that is there now: a folder with a manifest is one that other commands can read.
    points = {point.id: point for point in manifest.points}
    with suppress(FactError):
        points = {point.id: point for point in manifests.read(manifest.folder).points} | points
    whole = replace(manifest, points=tuple(points.values()))
    files.write_atomically(manifest.folder / manifests.FILE, whole.render())


def stage_text(manifest: Manifest, point: Point, stage: str) -> str:
    """Return the text of a stage, also of a kept result whose files are in no folder.

    Raises:
        SmithError: the point has no such stage, or it is a binary, or cannot be read.
    """
    place, stage_file = _address_if_any(manifest.folder), point.stages.get(stage)
    if place and stage_file and stage not in show_stage.BINARY:
        for row in database().packed_files(*place, point.target):
            # By content: a compile that a variable steered has its files in the folder.
            if (row.path, row.sha256) == (stage_file.path, stage_file.sha256):
                return row.content(manifest.folder.name).decode(errors="replace")
    return show_stage.stage_text(manifest, point, stage)


def unread_targets(manifest: Manifest) -> frozenset[str]:
    """Return the targets of a kept result whose code was not disassembled, since nothing needed that yet."""
    # Where no program could read the code, the metrics say that it was tried.
    return frozenset(name for name, _, row in _unread_parts(manifest) if row and row.unread)


def _unread_parts(manifest: Manifest) -> Iterator[tuple[str, Manifest, FolderMetrics | None]]:
    """Yield the targets that lack a disassembly, each with its part of a manifest and the kept metrics."""
    place = _address_if_any(manifest.folder)
    # Most results of an experiment that disassembles have their texts, so that nothing need be asked.
    parts = {name: part for name, part in by_target(manifest) if any(map(_is_unread, part.points))}
    if place and parts:
        texts = database().metrics(*place, list(parts))
        for name, part in parts.items():
            yield name, part, _read_metrics(texts.get(name, ""), part)


def _is_unread(point: Point) -> bool:
    return any(name in point.stages and text not in point.stages for name, text in show_stage.BINARY.items())


def disassemble(manifest: Manifest) -> Manifest:
    """Disassemble all code of a kept result: see `disassemble_all`."""
    return next(disassemble_all([(manifest, None)]))


def disassemble_all(
    rows: Sequence[tuple[Manifest, Collection[str] | None]], packages: Sequence[Path] = ()
) -> Iterator[Manifest]:
    """Disassemble code of kept results that were compiled without, and keep the texts and their metrics.

    Args:
        rows: manifests, each with the targets that are wanted; all of them if None.
        packages: Triton packages whose disassemblers may be used, besides that of the compile.

    Yields:
        Each manifest with the texts, where a disassembler could be found.

    Raises:
        FactError: a file of a result is damaged, or it was removed meanwhile.
    """
    points = [{point.id: point for point in manifest.points} for manifest, _ in rows]
    # Those whose program is of the same package are read at once.
    unread: defaultdict[tuple[Path, ...], list[tuple[int, UnreadCode]]] = defaultdict(list)
    for number, (manifest, chosen) in enumerate(rows):
        for target, part, measured in _unread_parts(manifest):
            if chosen is not None and target not in chosen:
                continue
            if measured is None:
                # Of what was read into this manifest before somebody else disassembled it.
                points[number] |= {point.id: point for point in _points_now(part, target)}
            elif measured.unread:
                own = manifests.trusted_package(manifest, workspace.default())
                # Its own first: it is as new as the binary.
                unread[*([own] if own else []), *packages].append((number, _packed_code(part, target)))
    for tried, codes in unread.items():
        results = read_code([code for _, code in codes], tried)
        for (number, _), read in zip(codes, results, strict=True):
            keep_code(read)
            points[number] |= {point.id: point for point in read.part.points}
    for (manifest, _), known in zip(rows, points, strict=True):
        yield replace(manifest, points=tuple(known.values()))


def _points_now(part: Manifest, target: str) -> tuple[Point, ...]:
    """Return the points of a part as the database has them, if they have the files of the part and more."""
    text = database().find(*address(part.folder), [target]).get(target, "")
    with suppress(FactError, ValueError):
        now = manifests.parse(untrusted.json_of(text), part.folder).points
        pairs = zip(part.points, now, strict=True)
        if all(old.id == new.id and old.stages.items() <= new.stages.items() for old, new in pairs):
            return now
    return part.points


@dataclass(frozen=True)
class UnreadCode:
    """The manifest and files of a kept result for one target, to be disassembled here or elsewhere.

    Attributes:
        part: the manifest of that target.
        target: the target.
        files: all files of the result.
    """

    part: Manifest
    target: str
    files: tuple[PackedFile, ...]


@dataclass(frozen=True)
class ReadCode:
    """A result for one target that was disassembled.

    Attributes:
        part: the manifest of that target, with the texts that a program could make.
        target: the target.
        metrics: as the database has them.
        texts: relative path to the content of each text.
    """

    part: Manifest
    target: str
    metrics: str
    texts: Mapping[str, bytes]


def unread_code(manifest: Manifest, chosen: Collection[str]) -> tuple[UnreadCode, ...]:
    """Return the parts of a kept result that have to be disassembled, for these targets.

    Raises:
        FactError: the result was removed meanwhile.
    """
    rows = _unread_parts(manifest)
    return tuple(
        _packed_code(part, name) for name, part, row in rows if row and row.unread and name in chosen
    )


def _packed_code(part: Manifest, target: str) -> UnreadCode:
    if not (rows := database().packed_files(*address(part.folder), target)):
        raise _gone(part.folder)
    return UnreadCode(part, target, tuple(rows))


def keep_code(read: ReadCode) -> None:
    """Keep the texts and metrics of a result that was disassembled, here or elsewhere."""
    # In the place of what was measured without the code, also where no program can read it: it is not tried
    # again each time.
    database().add(*address(read.part.folder), read.target, read.part.render(), read.metrics, read.texts)


def read_code(codes: Sequence[UnreadCode], packages: Sequence[Path]) -> Iterator[ReadCode]:
    """Disassemble kept results, many binaries at once; nothing is kept.

    Args:
        codes: the results.
        packages: Triton packages whose disassemblers may be used.

    Raises:
        FactError: a file of a result is damaged.
    """
    tools = interpreter.locate_programs(workspace.default()).disassemblers
    # Not in the folders of the results, which have files only where somebody looks at them.
    with files.scratch("code-") as folder:
        places = [folder / str(number) for number in range(len(codes))]
        for code, place in zip(codes, places, strict=True):
            for row in code.files:
                path = place / untrusted.place_in(row.path)
                files.make_folder(path.parent)
                files.write(path, row.content(code.part.folder.name))
        for tool in tools:
            binaries = (
                place / point.stages[tool.binary].path
                for code, place in zip(codes, places, strict=True)
                for point in code.part.points
                if _is_unread(point) and tool.binary in point.stages
            )
            tool.read_ahead(filter(Path.is_file, binaries), packages)
        for code, place in zip(codes, places, strict=True):
            yield _read_part(code, place, tools, packages)


def _read_part(
    code: UnreadCode, place: Path, tools: Sequence[Disassembler], packages: Sequence[Path]
) -> ReadCode:
    """Disassemble a result whose files are in a folder."""
    points, texts = [], dict[str, bytes]()
    for point in code.part.points:
        stages = dict(point.stages)
        for tool in tools if _is_unread(point) else ():
            binary = stages.get(tool.binary)
            text = tool.as_compiled(place / binary.path, packages) if binary else None
            if binary and text is not None:
                name = f"{binary.path.removesuffix(tool.binary)}{tool.stage}"
                stages[tool.stage] = Stage(name, len(text), sha256(text).hexdigest())
                texts[name] = text
                files.write(place / name, text)
        points.append(replace(point, stages=stages))
    read = replace(code.part, folder=place, points=tuple(points))
    measured = _metrics_text(read, measured_now(read))
    return ReadCode(replace(read, folder=code.part.folder), code.target, measured, texts)


def answer(members: Sequence[tuple[Manifest, Point]], more: object, work_out: Callable[[], J]) -> J:
    """Return what follows from the texts of compiles, which is worked out once where their results are kept.

    Args:
        members: the compiles.
        more: the question, and what the answer depends on besides the texts.
        work_out: returns the answer, of which JSON is a faithful copy.

    """
    if not all(_address_if_any(manifest.folder) for manifest, _ in members):
        return work_out()
    texts = [
        (manifest.kernel, point.target, {name: stage.sha256 for name, stage in point.stages.items()})
        for manifest, point in members
    ]
    question = digest(_worked_out_by(), texts, more)
    if (kept := database().answer(question)) is not None:
        with suppress(ValueError):  # a stranger's: worked out again
            answer_of: J = untrusted.json_of(kept)
            return answer_of
    result = work_out()
    database().keep_answer(question, json.dumps(result))
    return result


@functools.cache
def _worked_out_by() -> str:
    """Return a digest of the code and the tables that answers about texts come from."""
    # Of all that could take part: a kept answer of older code would be as wrong as any other wrong answer.
    folder = Path(tritonsmith.__file__).parent
    sources = (
        path
        for name in ("compiler", "inspect", "ir", "lab/compare")
        for path in (folder / name).rglob("*.py")
    )
    code = [(str(path.relative_to(folder)), untrusted.read_bytes(path).decode()) for path in sorted(sources)]
    return digest(code, [configs.load(name) for name in (*_TABLES, "kernels", "layouts", "lint", "ptx")])


def _write_contents(
    place: tuple[str, str], target: str, folder: Path, write: Callable[[Path, bytes], None]
) -> int:
    """Write the files of a kept result into a folder; return their number."""
    parts = list(database().contents(*place, target))
    for name, content in parts:
        path = folder / untrusted.place_in(name)
        files.make_folder(path.parent)
        write(path, content)
    return len(parts)


def _gone(folder: Path) -> FactError:
    hints = ["run the same command again"]
    return FactError("this result is not kept any more", where=folder, hints=hints)


def _as_compiled(folder: Path, point: Point) -> bool:
    # By content: a run whose compiles were steered by a variable may have left other files.
    paths = ((folder / stage.path, stage.sha256) for stage in point.stages.values())
    return all(path.is_file() and source_tree.sum_of(path) == content for path, content in paths)


def address(folder: Path) -> tuple[str, str]:
    """Return the columns `triton` and `key` of a keyed job's folder."""
    return f"{folder.parent.parent.name}/{folder.parent.name}", folder.name


def _address_if_any(folder: Path) -> tuple[str, str] | None:
    """Return the same of any folder; None for one whose results are not in the database."""
    kind = folder.parent.parent
    known = kind.name in (RELEASES, COMMITS, OTHERS) and kind.parent == workspace.default().root / "kernels"
    return address(folder) if known else None


@dataclass(frozen=True)
class FolderMetrics:
    """Metrics of all points of an output folder.

    Attributes:
        points: by the point's id; empty for one that did not compile.
        notes: what a person should know.
        unread: the points whose instructions are None because nothing has disassembled them yet, though it
            could be done: see `disassemble`.
        issues: the ids of the known issues of a point, by its id; points without any are left out.
    """

    points: Mapping[str, Measured]
    notes: tuple[str, ...]
    unread: frozenset[str] = frozenset()
    issues: Mapping[str, Sequence[str]] = field(default_factory=dict)


def metrics_of(manifest: Manifest, *, code: bool = True) -> FolderMetrics:
    """Return the metrics of a folder: those kept with its manifest, or else new ones, which are kept there.

    Args:
        manifest: of the folder.
        code: disassemble what was kept without; otherwise it is `unread`.

    Raises:
        FactError: a file of a compile cannot be read.
    """
    # To read the binaries again would take longer than all the rest of an experiment that compiles nothing.
    if _address_if_any(manifest.folder):
        return _metrics_in_database(disassemble(manifest) if code else manifest)
    path = manifest.folder / METRICS
    key = digest(_SCHEMA, manifest.render(), [configs.load(name) for name in _TABLES])
    with suppress(OSError, ValueError, KeyError, TypeError):  # there are none yet, or not ours
        content = untrusted.read_json(path, untrusted.OURS)
        if content["key"] == key:
            return FolderMetrics(content["points"], tuple(content["notes"]), issues=content["issues"])
    measured = measured_now(manifest)
    text = json.dumps(_content(key, measured), indent=1)
    files.write_atomically(path, f"{text}\n")
    return measured


def _metrics_in_database(manifest: Manifest) -> FolderMetrics:
    points: dict[str, Measured] = {}
    notes: list[str] = []
    unread: set[str] = set()
    issues: dict[str, Sequence[str]] = {}
    targets_of_points = dict.fromkeys(point.target for point in manifest.points)
    texts = database().metrics(*address(manifest.folder), list(targets_of_points))
    for target, part in by_target(manifest):
        measured = _read_metrics(texts.get(target, ""), part)
        if measured is None and any(point.stages for point in part.points):
            restore(part)
            measured = measured_now(part)
            database().keep_metrics(*address(part.folder), target, _metrics_text(part, measured))
        elif measured is None:  # nothing that was kept: a compile that crashed, say
            measured = measured_now(part)
        points |= {point.id: measured.points.get(point.id, {}) for point in part.points}
        notes += measured.notes
        unread |= measured.unread
        issues |= {
            point.id: measured.issues[point.id] for point in part.points if point.id in measured.issues
        }
    return FolderMetrics(points, tuple(dict.fromkeys(notes)), frozenset(unread), issues)


def _metrics_text(part: Manifest, measured: FolderMetrics) -> str:
    # An older version of this tool finds no metrics under the key of unread code, and measures for itself.
    key = _metrics_key(part, *sorted(measured.unread))
    return json.dumps(_content(key, measured))


def _content(key: str, measured: FolderMetrics) -> dict[str, Any]:
    """Return what a file or the database keeps of metrics."""
    return {"key": key, "points": measured.points, "notes": measured.notes, "issues": measured.issues}


def _read_metrics(text: str, part: Manifest) -> FolderMetrics | None:
    with suppress(ValueError, KeyError, TypeError):  # there are none yet, or not ours
        content = untrusted.json_of(text)
        bare = sorted(point.id for point in part.points if _is_unread(point))
        unread = content["key"] != _metrics_key(part)
        if not unread or (bare and content["key"] == _metrics_key(part, *bare)):
            # Thousands of results have the same hundred names.
            points = {
                point: {sys.intern(name): value for name, value in measured.items()}
                for point, measured in content["points"].items()
            }
            return FolderMetrics(
                points, tuple(content["notes"]), frozenset(bare if unread else ()), content["issues"]
            )
    return None


def _metrics_key(part: Manifest, *unread: str) -> str:
    # Of its files, too: a compile that a variable steered has the place of the result that is kept.
    sums = {
        point.id: [point.status, {name: stage.sha256 for name, stage in point.stages.items()}]
        for point in part.points
    }
    return digest(_measured_by(), sums, *([unread] if unread else ()))


@functools.cache
def _measured_by() -> str:
    """Return a digest of all that metrics depend on besides the compile."""
    return digest(_SCHEMA, [configs.load(name) for name in _TABLES])


def measured_now(manifest: Manifest, *, code: bool = True) -> FolderMetrics:
    """Measure all points of a folder, and write nothing to it.

    Args:
        manifest: of the folder.
        code: false for compiles that disassembled nothing, for what may be disassembled later.

    Raises:
        FactError: a file of a compile cannot be read.
    """
    table = measure.of_manifest(manifest)
    unread = frozenset(() if code else (point.id for point in manifest.points if _is_unread(point)))
    # Those of AMD's assembly would do, but are not those of the disassembly: of two sides that are compared,
    # one may have been disassembled before.
    rows = [replace(row, instructions={}) if row.point in unread else row for row in table.rows]
    points = {
        point.id: metrics.measure(manifest, point, row) if point.status == "ok" else {}
        for point, row in zip(manifest.points, rows, strict=True)
    }
    notes = [*manifest.warnings, *table.warnings, *table.notes]
    notes += measure.without_disassembly(manifest) if code else ()
    issues = {
        point.id: tuple(match.issue.id for match in show_stage.known_issues(manifest, point))
        for point in manifest.points
        if point.status == "ok"
    }
    known = {point: ids for point, ids in issues.items() if ids}
    return FolderMetrics(points, tuple(dict.fromkeys(notes)), unread, known)
