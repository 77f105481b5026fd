"""The compiled kernels of a dump: the GPU resources of each, and its machine code.

OUT/compiled/binaries.json        for each kernel of the index
OUT/compiled/matmul.cubin         what its compile left: the binary, its disassembly, PTX or AMD's assembly

All of it is created with the dump, by the tools of that Triton. Whoever reads the dump later, perhaps someone
else's, runs nothing that it names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tritonsmith.compiler import disassemblers
from tritonsmith.compiler.dump.index import COMPILED, DumpIndex
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.resources import measure
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.facts import installed_tritons, triton_cache, triton_metadata
from tritonsmith.facts.cache_roots import Root
from tritonsmith.facts.triton_cache import CacheEntry
from tritonsmith.ir import strip_locations

FILE = "binaries.json"
SCHEMA = 1
TEXTS = ("ptx", "amdgcn", "sass", "gcnasm")
_KEPT = (*measure.BINARIES, *TEXTS)
_TRITON = b"tt.func"  # in every text of Triton's own dialects, which are all that is compared


@dataclass(frozen=True)
class Binary:
    """A compiled kernel.

    Attributes:
        point: what of a sweep it is, or the cache's entry.
        target: `cuda:90:32`.
        values: what it takes, by the keys of `kernels.resources.rows`.
        instructions: class to number; empty without a disassembly.
        notes: what the numbers do not say; what to do where there is no disassembly.
        error: why there are no numbers.
        files: stage to file, relative to the output folder.
    """

    point: str
    target: str
    values: Mapping[str, int | float | str | None] = field(default_factory=dict)
    instructions: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    error: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def keep(index: DumpIndex, compiled: Sequence[Manifest]) -> None:
    """Copy what was compiled into the output folder, next to the dumps that were printed meanwhile."""
    found = {}
    folder = index.folder / COMPILED
    for kernel, manifest, point in _paired(index, compiled):
        kept = {}
        for stage in _KEPT:
            path = manifest.path(point, stage)
            if path is not None:
                files.copy(path, folder / f"{kernel}.{stage}")
                kept[stage] = f"{COMPILED}/{kernel}.{stage}"
        found[kernel] = _counted(manifest, point, kept)
    if found:
        files.make_folder(folder)
        content = {"schema": SCHEMA, "kernels": {name: asdict(one) for name, one in found.items()}}
        files.write(folder / FILE, json.dumps(content) + "\n")


def read(index: DumpIndex) -> dict[str, Binary]:
    """The compiled kernels, by the names of the index; empty if none was kept.

    Raises:
        FactError: what was kept cannot be read.
    """
    path = index.folder / COMPILED / FILE
    try:
        content = untrusted.read_json(path, untrusted.OURS)
        if content["schema"] != SCHEMA:
            raise ValueError("written by another version of tritonsmith")  # noqa: TRY301 - told like the others
        return {name: untrusted.shaped(Binary, one) for name, one in content["kernels"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = "cannot read the compiled kernels of this dump"
        raise FactError(what, where=path, why=str(error)) from error


def names(index: DumpIndex) -> tuple[str, ...]:
    """The files that `keep` wrote, relative to the output folder; those that cannot be known are left out."""
    try:
        found = [path for one in read(index).values() for path in one.files.values()]
    except FactError:
        return ()
    return (*found, f"{COMPILED}/{FILE}")


def none_because(index: DumpIndex, kernel: str) -> str:
    """Why a kernel has no binary, and what to run for one."""
    failed = next((one.failed for one in index.kernels if one.name == kernel), "")
    if failed:
        return f"no machine code: the compile failed ({failed})"
    if not index.environ:
        return "no machine code: logs do not contain it; passes.dump compiles the kernel and keeps it"
    if (index.folder / COMPILED).is_dir():
        return "no machine code: the compile produced none for these passes"
    return "no machine code was kept: run passes.dump again to keep it"


def of_cache(cache: Path, python: str, space: Workspace) -> list[Manifest]:
    """The results of a program's compiles, from the cache of this run alone, disassembled.

    Args:
        cache: Triton's cache.
        python: the program's interpreter; empty if it is none.
        space: the workspace, which may have disassemblers.
    """
    triton = installed_tritons.of_python(Path(python)) if python else None
    origin = triton.where / "triton" if triton else Path("/nonexistent")
    entries = triton_cache.scan(Root("named", cache, "TRITON_CACHE_DIR")).entries
    found = []
    for entry in sorted((one for one in entries if one.kind == "kernel"), key=lambda one: one.changed):
        point = _point(entry)
        point = replace(point, stages={**point.stages, **_disassembled(point, cache, origin, space)})
        found.append(Manifest(cache, entry.kernel, "", "", "", str(origin), python, "", (point,)))
    return found


def _point(entry: CacheEntry) -> Point:
    folder = Path(entry.path)
    paths = {stage: folder / f"{entry.kernel}.{stage}" for stage in triton_metadata.stages(entry)}
    stages = {
        stage: Stage(f"{entry.name}/{path.name}", path.stat().st_size, "")
        for stage, path in paths.items()
        if path.is_file()
    }
    said = triton_metadata.read(entry)
    about = json.loads((folder / f"{entry.kernel}.json").read_bytes())
    return Point(entry.name, said.target, {}, {}, {}, dict(said.options), "ok", 0.0, stages, about)


def _disassembled(point: Point, cache: Path, origin: Path, space: Workspace) -> dict[str, Stage]:
    for tool in disassemblers.locate(space).disassemblers:
        binary = point.stages.get(tool.binary)
        if binary is None:
            continue
        text = tool.text(cache / binary.path, origin)
        if text:
            path = (cache / binary.path).with_suffix(f".{tool.stage}")
            files.write(path, text)
            return {tool.stage: Stage(str(path.relative_to(cache)), len(text), "")}
    return {}


def _counted(manifest: Manifest, point: Point, files: Mapping[str, str]) -> Binary:
    alone = replace(manifest, points=(point,))
    notes = list(measure.without_text(alone))
    try:
        found = measure.of_manifest(alone)
    except FactError as error:  # of one kernel; the dump is whole without it
        why = ": ".join(filter(None, (error.what, error.why)))
        return Binary(point.id, point.target, notes=notes, error=why, files=files)
    (row,) = found.rows
    notes += found.notes
    return Binary(point.id, point.target, row.values, row.instructions, notes, row.error, files)


def _paired(index: DumpIndex, compiled: Sequence[Manifest]) -> Iterator[tuple[str, Manifest, Point]]:
    """Each compile with the kernel of the index that was given its TTGIR to lower.

    Threads may compile in any order, and a program compile one function many times: the text is what tells.
    """
    waiting = [(kernel.name, _texts(index, kernel.name)) for kernel in index.kernels]
    for manifest in compiled:
        for point in manifest.points:
            path = manifest.path(point, "ttgir")
            if path is None or not set(measure.BINARIES) & set(point.stages):
                continue
            text = _digest(untrusted.read_bytes(path, untrusted.OURS))
            place = next((at for at, (_, texts) in enumerate(waiting) if text in texts), None)
            if place is not None:
                yield waiting.pop(place)[0], manifest, point


def _texts(index: DumpIndex, kernel: str) -> set[bytes]:
    known: dict[str, bytes] = {}
    for dump in index.of(kernel):
        if dump.sha256 not in known and dump.path.endswith(".mlir"):
            text = index.content(dump)
            known[dump.sha256] = _digest(text) if _TRITON in text else b""
    return set(known.values()) - {b""}


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(strip_locations.without("mlir", text).strip()).digest()
