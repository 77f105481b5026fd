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

from tritonsmith.compiler import interpreter
from tritonsmith.compiler.dump.index import COMPILED, DumpIndex
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.resources import measure
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.facts import installed_tritons, triton_cache
from tritonsmith.facts.triton_cache import CacheEntry, Root
from tritonsmith.ir import ir_text

FILE = "binaries.json"
SCHEMA = 1
TEXTS = ("ptx", "amdgcn", "sass", "gcnasm")
_KEPT = (*measure.BINARIES, *TEXTS)
# It is in every text of Triton's own dialects. Texts of LLVM's dialect and below are never a kernel's TTGIR.
_TRITON = b"tt.func"


@dataclass(frozen=True)
class Binary:
    """A compiled kernel.

    Attributes:
        point: id of the point of a sweep, or name of the cache entry.
        target: such as `cuda:90:32`.
        values: GPU resources that it uses, by the keys of `compiler.resources.measure`.
        instructions: instruction class to count; empty without a disassembly.
        notes: limits of the numbers, and what to do if there is no disassembly.
        error: reason why there are no numbers.
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
    """Copy the compiled binaries into the output folder, next to the dumps of the same run."""
    by_kernel = {}
    folder = index.folder / COMPILED
    for kernel, manifest, point in _paired(index, compiled):
        kept = {}
        for stage in _KEPT:
            path = manifest.path(point, stage)
            if path is not None:
                files.copy(path, folder / f"{kernel}.{stage}")
                kept[stage] = f"{COMPILED}/{kernel}.{stage}"
        by_kernel[kernel] = _counted(manifest, point, kept)
    if by_kernel:
        files.make_folder(folder)
        content = {"schema": SCHEMA, "kernels": {name: asdict(binary) for name, binary in by_kernel.items()}}
        files.write(folder / FILE, json.dumps(content) + "\n")


def read(index: DumpIndex) -> dict[str, Binary]:
    """Read the compiled kernels, by their names in the index; empty if none was kept.

    Raises:
        FactError: the files cannot be read.
    """
    path = index.folder / COMPILED / FILE
    try:
        content = untrusted.read_json(path, untrusted.OURS)
        if content["schema"] != SCHEMA:
            raise ValueError("written by another version of tritonsmith")  # noqa: TRY301 - one error for all
        return {name: untrusted.shaped(Binary, row) for name, row in content["kernels"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = "cannot read the compiled kernels of this dump"
        raise FactError(what, where=path, why=str(error)) from error


def names(index: DumpIndex) -> tuple[str, ...]:
    """Return the files that `keep` wrote, relative to the output folder; none if they are unreadable."""
    try:
        paths = [path for binary in read(index).values() for path in binary.files.values()]
    except FactError:
        return ()
    return (*paths, f"{COMPILED}/{FILE}")


def none_because(index: DumpIndex, kernel: str) -> str:
    """Explain why a kernel has no binary, and what to run to get one."""
    failed = next((entry.failed for entry in index.kernels if entry.name == kernel), "")
    if failed:
        return f"no machine code: the compile failed ({failed})"
    if not index.environ:
        return "no machine code: logs do not contain it; passes.dump compiles the kernel and keeps it"
    if (index.folder / COMPILED).is_dir():
        return "no machine code: the compile produced none for these passes"
    return "no machine code was kept: run passes.dump again to keep it"


def of_cache(cache: Path, python: str, space: Workspace) -> list[Manifest]:
    """Read the results of a program's compiles from a cache that only this run used, and disassemble them.

    Args:
        cache: Triton's cache.
        python: the program's interpreter; empty if the program is not Python.
        space: the workspace, which may have disassemblers.
    """
    triton = installed_tritons.of_python(Path(python)) if python else None
    # A folder that does not exist: then Triton's own disassemblers are not tried.
    origin = triton.where / "triton" if triton else Path("/nonexistent")
    entries = triton_cache.scan(Root("named", cache, "TRITON_CACHE_DIR")).entries
    manifests = []
    for entry in sorted(
        (candidate for candidate in entries if candidate.kind == "kernel"),
        key=lambda candidate: candidate.changed,
    ):
        point = _point(entry)
        point = replace(point, stages={**point.stages, **_disassembled(point, cache, origin, space)})
        manifests.append(Manifest(cache, entry.kernel, "", "", "", str(origin), python, "", (point,)))
    return manifests


def _point(entry: CacheEntry) -> Point:
    folder = Path(entry.path)
    paths = {stage: folder / f"{entry.kernel}.{stage}" for stage in triton_cache.entry_stages(entry)}
    stages = {
        stage: Stage(f"{entry.name}/{path.name}", path.stat().st_size, "")
        for stage, path in paths.items()
        if path.is_file()
    }
    # Read as it is: only this run has written it, and resources need more of it than the cache's own fields.
    metadata = triton_cache.read_metadata(entry)
    about = json.loads((folder / f"{entry.kernel}.json").read_bytes())
    return Point(entry.name, metadata.target, {}, {}, {}, dict(metadata.options), "ok", 0.0, stages, about)


def _disassembled(point: Point, cache: Path, origin: Path, space: Workspace) -> dict[str, Stage]:
    for tool in interpreter.locate_programs(space).disassemblers:
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
    notes = list(measure.without_disassembly(alone))
    try:
        measured = measure.of_manifest(alone)
    # The dump is whole without the numbers of one kernel.
    except FactError as error:
        why = ": ".join(filter(None, (error.what, error.why)))
        return Binary(point.id, point.target, notes=notes, error=why, files=files)
    (row,) = measured.rows
    notes += measured.notes
    return Binary(point.id, point.target, row.values, row.instructions, notes, row.error, files)


def _paired(index: DumpIndex, compiled: Sequence[Manifest]) -> Iterator[tuple[str, Manifest, Point]]:
    """Yield each compile with the kernel of the index whose TTGIR it lowered."""
    # Order and names do not identify a compile: threads finish in any order, and a program may compile one
    # function many times. Only equal TTGIR does.
    waiting = [(kernel.name, _texts(index, kernel.name)) for kernel in index.kernels]
    # Each kernel of the index is taken once: a program may compile one text for two kernels.
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
    # Without locations, which a dump has and a stage of the cache may not have.
    return hashlib.sha256(ir_text.without_locations("mlir", text).strip()).digest()
