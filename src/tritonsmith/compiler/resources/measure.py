"""Measure the resources of compiled kernels from the files of a compile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler.manifest import Manifest, Point, package
from tritonsmith.compiler.resources import occupancy, ptxas_report
from tritonsmith.compiler.resources.table import ResourceRow, Value
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.ir import gpu_binary, gpu_elf, instructions

BINARIES = {"cubin": "sass", "hsaco": "amd"}  # stage to the language of its disassembly
_NAMED = 5  # points that a note names
_SAYS = re.compile(r"^; Occupancy: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Measured:
    """The resources of one or more kernels.

    Attributes:
        rows: one per kernel.
        notes: messages for the user.
    """

    rows: tuple[ResourceRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The kernels that cannot be launched, and the remarks of ptxas."""
        return tuple(_grouped((row.point, row.warnings) for row in self.rows))


def of_manifest(manifest: Manifest) -> Measured:
    """Measure each point of an output folder, in its order.

    Raises:
        FactError: a binary cannot be read.
    """
    axes = _axes(manifest)
    rows, notes = [], []
    for point in manifest.points:
        row, point_notes = _of_point(manifest, point, axes)
        rows.append(row)
        notes += point_notes
    return Measured(tuple(rows), tuple(dict.fromkeys([*notes, *told(rows)])))


def of_all(results: Mapping[str, Measured]) -> Measured:
    """Merge kernels into one table; if there are several, points and notes carry the name of their kernel."""
    if len(results) == 1:
        return next(iter(results.values()))
    rows = [
        replace(row, kernel=name, point=f"{name}/{row.point}")
        for name, measured in results.items()
        for row in measured.rows
    ]
    about: dict[str, list[str]] = {}
    for name, measured in results.items():
        for text in measured.notes:
            about.setdefault(text, []).append(name)
    return Measured(tuple(rows), tuple(f"{', '.join(names)}: {text}" for text, names in about.items()))


def told(rows: Sequence[ResourceRow]) -> Iterator[str]:
    """Yield the notes of rows, each once, with the points that it is about."""
    return _grouped((row.point, row.notes) for row in rows)


def _grouped(remarks: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    about: dict[str, list[str]] = {}
    for point, texts in remarks:
        for text in texts:
            about.setdefault(text, []).append(point)
    for text, points in about.items():
        yield f"{_some(points)}: {text}"


def _some(points: Sequence[str]) -> str:
    return ", ".join(points) if len(points) <= _NAMED else f"{len(points)} points"


def unseen(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe uses that occupancy ignores: `num_ctas` and `tmem_size` of Triton's metadata."""
    blocks, columns = metadata.get("num_ctas"), metadata.get("tmem_size")
    texts = []
    if isinstance(blocks, int) and blocks > 1:
        texts.append(f"its blocks are launched in clusters of {blocks}; occupancy is for single blocks")
    if isinstance(columns, int) and columns > 0:
        texts.append("it uses tensor memory, which occupancy does not consider: fewer blocks may fit")
    return tuple(texts)


def without_text(manifest: Manifest) -> Iterator[str]:
    """Yield a note for each kind of binary without disassembly: its instructions are not counted."""
    for binary, row in configs.load("kernels")["disassemblers"].items():
        stage = row["stage"]
        ids = [point.id for point in manifest.points if binary in point.stages and stage not in point.stages]
        if ids:
            yield (
                f"no {stage} for {', '.join(ids)}: instructions are not counted; "
                f"invoke kernel.compile creates it with {row['program']}: {row['remedy']}"
            )


def unheard(manifest: Manifest) -> Iterator[str]:
    """Yield a note about cubins without recorded ptxas remarks (compiled by an older tritonsmith)."""
    ids = [point.id for point in manifest.points if "cubin" in point.stages and point.remarks is None]
    if ids:
        yield f"{_some(ids)}: the remarks of ptxas were not recorded; compile again to get them"


def values(binary: Path, arch: str, metadata: Mapping[str, Any], ptx: Path | None) -> dict[str, Value]:
    """Return the resources of a cubin or a code object.

    Args:
        binary: the file.
        arch: `90`, `gfx942`.
        metadata: Triton's metadata of the kernel.
        ptx: its PTX.

    Raises:
        FactError: it cannot be read.
    """
    dynamic = metadata.get("shared")
    shared = dynamic if isinstance(dynamic, int) else 0
    try:
        content = gpu_elf.load(binary)
        # Machine code does not distinguish spills from arrays that the PTX keeps in local memory, so with
        # such arrays the spills are None.
        if content.backend == "cuda":
            return _nvidia(gpu_binary.read_cubin(content), arch, shared, metadata, ptx)
        return _amd(gpu_binary.read_code_object(content), arch, shared, metadata)
    except FactError as error:
        raise FactError(error.what, where=binary, why=error.why, hints=error.hints) from error


def _of_point(manifest: Manifest, point: Point, axes: tuple[str, ...]) -> tuple[ResourceRow, list[str]]:
    swept = {name: _spell(value) for name, value in _all(point).items() if name in axes}
    options = ", ".join(f"{name}={value}" for name, value in swept.items())
    row = ResourceRow(manifest.kernel, point.id, point.target, options, axes=swept)
    stage = next((name for name in BINARIES if name in point.stages), None)
    if stage is None:
        why = point.gist or "no binary"
        error = f"{point.status}: {why}" if point.status != "ok" else why
        return replace(row, error=error), []
    binary = manifest.path(point, stage)
    assert binary is not None  # noqa: S101 - for the type checker
    ptx = manifest.path(point, "ptx")
    measured = values(binary, point.arch, point.metadata, ptx)
    notes = []
    # Only ptxas tells spills and arrays apart, in its -v output, which was not kept: it runs once more.
    if stage == "cubin" and measured["spill_store_bytes"] is None and ptx:
        origin = package(manifest, workspace.default())
        spills = ptxas_report.again(ptx, gpu_binary.read_cubin(gpu_elf.load(binary)), origin, point.metadata)
        if spills:
            measured |= {"spill_store_bytes": spills.stores, "spill_load_bytes": spills.loads}
        else:
            why = "no available ptxas reproduces this cubin from its PTX"
            if origin is None:
                why = "it was not compiled here, so the ptxas that it names is not run"
            notes = [f"{point.id}: its spills are unknown: {why}"]
    assembly = _text(manifest.path(point, "amdgcn"))
    if says := _SAYS.search(assembly):
        measured["compiler_waves_per_simd"] = int(says[1])
    text = _text(manifest.path(point, "sass" if stage == "cubin" else "gcnasm"))
    counted = instructions.count(text, BINARIES[stage]) if text else {}
    row = replace(
        row, values=measured, instructions=counted, notes=unseen(point.metadata), remarks=point.remarks
    )
    if measured["launch"] is None:
        text = "the limits of this GPU are unknown: launchability is not checked"
        row = replace(row, notes=(*row.notes, text))
    return row, notes


def _nvidia(
    kernel: gpu_binary.Cubin, arch: str, dynamic: int, metadata: Mapping[str, Any], ptx: Path | None
) -> dict[str, Value]:
    arrays = bool(kernel.frame) and ptx is not None and ptxas_report.has_arrays(_text(ptx))
    fits = occupancy.nvidia(
        arch,
        registers=kernel.registers,
        threads=kernel.threads,
        static=kernel.shared,
        dynamic=dynamic,
        barriers=kernel.barriers,
        tensor_columns=metadata.get("tmem_size") or 0,
    )
    return {
        "registers_per_thread": kernel.registers,
        "stack_bytes": kernel.frame,
        "spill_store_bytes": None if arrays else kernel.local_stores,
        "spill_load_bytes": None if arrays else kernel.local_loads,
        "shared_static_bytes": kernel.shared,
        "shared_dynamic_bytes": dynamic,
        "barriers": kernel.barriers,
        "constant_bytes": kernel.constant,
        "threads_per_block": kernel.threads,
        "code_bytes": kernel.code,
        "blocks_per_sm": fits.blocks if fits else None,
        "occupancy_percent": fits.percent if fits else None,
        "limiter": fits.limiter if fits else None,
        "launch": fits.launch if fits else None,
    }


def _amd(
    kernel: gpu_binary.CodeObject, arch: str, shared: int, metadata: Mapping[str, Any]
) -> dict[str, Value]:
    lds = kernel.lds + shared
    warps = metadata.get("num_warps")  # the code object's number is at most 1024, whatever is launched
    threads = max(kernel.threads, warps * kernel.wave) if isinstance(warps, int) else kernel.threads
    fits = occupancy.amd(
        arch, wave=kernel.wave, vgprs=kernel.vgprs, sgprs=kernel.sgprs, threads=threads, lds=lds
    )
    return {
        "sgprs_per_wave": kernel.sgprs,
        "vgprs_per_lane": kernel.vgprs,
        "agprs_per_lane": kernel.agprs,
        "scratch_bytes": kernel.scratch,
        "sgpr_spills": kernel.sgpr_spills,
        "vgpr_spills": kernel.vgpr_spills,
        "lds_bytes": lds,
        "wave_size": kernel.wave,
        "threads_per_block": threads,
        "code_bytes": kernel.code,
        "waves_per_simd": fits.warps / occupancy.simds(arch) if fits else None,
        "occupancy_percent": fits.percent if fits else None,
        "limiter": fits.limiter if fits else None,
        "launch": fits.launch if fits else None,
    }


def _axes(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of options and constants that differ between points, in the order of the points."""
    tables = [_all(point) for point in manifest.points]
    names = dict.fromkeys(name for table in tables for name in table)
    return tuple(name for name in names if len({_spell(table.get(name)) for table in tables}) > 1)


def _all(point: Point) -> dict[str, Any]:
    return {**point.constexprs, **point.options}


def _spell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return untrusted.read_text(path, untrusted.OURS)
    except OSError:
        return ""
