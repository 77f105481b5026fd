"""Measure the resources of compiled kernels from the files of a compile: one table row for each.

Numbers come from the binary. Spills of NVIDIA's kernels may need ptxas: only `ptxas -v` distinguishes them
from arrays in local memory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler.manifest import Manifest, Point, read, trusted_package
from tritonsmith.compiler.resources import occupancy
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import query
from tritonsmith.ir import gpu_binary
from tritonsmith.ir.gpu_binary import Cubin
from tritonsmith.ir.normalize.assembly import count

Value = int | float | str | None
_ARRAY = re.compile(r"^\s*\.local\s", re.MULTILINE)
_TARGET = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
# A value of the option before it. Neither a path nor another option matches.
_VALUE = re.compile(r"\w[\w,.]*", re.ASCII)
# The line of the PTX would tell two points apart that have one remark.
_IN_LINE = re.compile(r" in line \d+$")
_OCCUPANCY = re.compile(r"^; Occupancy: (\d+)", re.MULTILINE)
_STACK = "stack_bytes"
_NAMED = 5  # points that a note names
BINARIES = {"cubin": "sass", "hsaco": "amd"}  # stage to the language of its disassembly


@dataclass(frozen=True)
class ResourceColumn:
    """One column.

    Attributes:
        key: its key in JSON and CSV, which ends with the unit.
        head: its head on the screen, above the unit.
        unit: its unit on the screen, below the head.
    """

    key: str
    head: str
    unit: str = ""

    @property
    def title(self) -> str:
        """The head of the column on the screen."""
        return f"{self.head}\n{self.unit}" if self.unit else self.head


COLUMNS = (
    ResourceColumn("registers_per_thread", "registers", "per thread"),
    ResourceColumn("sgprs_per_wave", "SGPRs", "per wave"),
    ResourceColumn("vgprs_per_lane", "VGPRs", "per lane"),
    ResourceColumn("agprs_per_lane", "of which\nAGPRs"),
    ResourceColumn("stack_bytes", "stack", "B/thread"),
    ResourceColumn("scratch_bytes", "scratch", "B/lane"),
    ResourceColumn("spill_store_bytes", "spill\nstores", "B/thread"),
    ResourceColumn("spill_load_bytes", "spill\nloads", "B/thread"),
    ResourceColumn("sgpr_spills", "SGPRs\nspilled"),
    ResourceColumn("vgpr_spills", "VGPRs\nspilled"),
    ResourceColumn("shared_static_bytes", "static\nshared", "B/block"),
    ResourceColumn("shared_dynamic_bytes", "dynamic\nshared", "B/block"),
    ResourceColumn("lds_bytes", "LDS", "B/group"),
    ResourceColumn("barriers", "barriers"),
    ResourceColumn("constant_bytes", "constant\nbank 0", "B"),
    ResourceColumn("wave_size", "wave", "lanes"),
    ResourceColumn("threads_per_block", "threads", "per block"),
    ResourceColumn("code_bytes", "code", "B"),
    ResourceColumn("blocks_per_sm", "blocks", "per SM"),
    ResourceColumn("waves_per_simd", "waves", "per SIMD"),
    ResourceColumn("compiler_waves_per_simd", "LLVM\nsays", "waves"),
    ResourceColumn("occupancy_percent", "occupancy", "%"),
    ResourceColumn("limiter", "limited by"),
    ResourceColumn("launch", "launch"),
)
WORDS = ("limiter", "launch")  # columns with text values
LAUNCH, CAN_LAUNCH = "launch", "yes"
SPILLS = ("spill_store_bytes", "spill_load_bytes", "sgpr_spills", "vgpr_spills")


@dataclass(frozen=True)
class ResourceRow:
    """One compiled kernel.

    Attributes:
        kernel: name of the function.
        point: the compile, or the cache entry.
        target: `cuda:90:32`.
        options: options and constants that differ from those of other rows.
        values: by the keys of `COLUMNS`.
        instructions: instruction class to count; empty without a disassembly.
        error: reason why there are no values.
        notes: limits of the numbers.
        axes: values that a sweep varied: name to value, as text.
        remarks: remarks of ptxas on the code; None if unknown.
    """

    kernel: str
    point: str
    target: str
    options: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    instructions: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    remarks: Sequence[str] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reason why the kernel cannot be launched, if any, and the remarks of ptxas."""
        launch = str(self.values.get(LAUNCH) or CAN_LAUNCH)
        refused = () if launch == CAN_LAUNCH else (f"cannot launch: {launch.removeprefix('no: ')}",)
        return (*refused, *(f"ptxas: {_IN_LINE.sub('', text)}" for text in self.remarks or ()))

    @property
    def backend(self) -> str:
        """The backend: `cuda` or `hip`."""
        return self.target.partition(":")[0]

    @property
    def spilled(self) -> int:
        """The sort key of `--spills`: bytes, or registers; a stack of unknown use counts as bytes."""
        known = [self.values.get(key) for key in SPILLS]
        numbers = [value for value in known if isinstance(value, int)]
        stack = self.values.get(_STACK)
        return sum(numbers) if numbers else stack if isinstance(stack, int) else 0


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
    # A manifest does not say what was swept: it is what differs between points.
    axes = _axes(manifest)
    rows, notes = [], []
    for point in manifest.points:
        row, point_notes = _of_point(manifest, point, axes)
        rows.append(row)
        notes += point_notes
    return Measured(tuple(rows), tuple(dict.fromkeys([*notes, *row_notes(rows)])))


def of_compile(manifest: Manifest, notes: Iterable[str] = ()) -> Measured:
    """Measure the output of a compile that has just run.

    Args:
        manifest: its manifest.
        notes: remarks of the compile, which come first.
    """
    measured = of_manifest(manifest)
    return replace(measured, notes=(*notes, *measured.notes, *without_remarks(manifest)))


def of_folder(folder: Path) -> Measured:
    """Measure the output folder of an earlier compile.

    Raises:
        FactError: it is not such a folder.
    """
    manifest = read(folder)
    measured = of_manifest(manifest)
    # Some values come from texts that were not kept: the notes say which.
    more = (*without_disassembly(manifest), *without_remarks(manifest))
    return replace(measured, notes=(*measured.notes, *more))


def of_all(results: Mapping[str, Measured]) -> Measured:
    """Merge kernels into one table; if there are several, points and notes carry the name of their kernel."""
    if len(results) == 1:
        return next(iter(results.values()))
    # By the name in the kernels file, of which a function may have several.
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


def row_notes(rows: Sequence[ResourceRow]) -> Iterator[str]:
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


def ignored_by_occupancy(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe uses that occupancy ignores: `num_ctas` and `tmem_size` of Triton's metadata."""
    blocks, columns = metadata.get("num_ctas"), metadata.get("tmem_size")
    texts = []
    if isinstance(blocks, int) and blocks > 1:
        texts.append(f"its blocks are launched in clusters of {blocks}; occupancy is for single blocks")
    if isinstance(columns, int) and columns > 0:
        texts.append("it uses tensor memory, which occupancy does not consider: fewer blocks may fit")
    return tuple(texts)


def without_disassembly(manifest: Manifest) -> Iterator[str]:
    """Yield a note for each kind of binary without disassembly: its instructions are not counted."""
    for binary, row in configs.load("kernels")["disassemblers"].items():
        stage = row["stage"]
        ids = [point.id for point in manifest.points if binary in point.stages and stage not in point.stages]
        if not ids:
            continue
        counted = "are counted before the assembler adds padding" if binary == "hsaco" else "are not counted"
        yield (
            f"no {stage} for {', '.join(ids)}: instructions {counted}; "
            f"invoke kernel.compile creates it with {row['program']}: {row['remedy']}"
        )


def without_remarks(manifest: Manifest) -> Iterator[str]:
    """Yield a note about cubins without recorded ptxas remarks (compiled by an older tritonsmith)."""
    ids = [point.id for point in manifest.points if "cubin" in point.stages and point.remarks is None]
    if ids:
        yield f"{_some(ids)}: the remarks of ptxas were not recorded; compile again to get them"


def spilling(rows: Iterable[ResourceRow]) -> tuple[ResourceRow, ...]:
    """Return the rows that spill, the worst first."""
    spilled = [row for row in rows if row.spilled]
    return tuple(sorted(spilled, key=lambda row: (-row.spilled, row.kernel, row.target, row.point)))


def columns(rows: Sequence[ResourceRow]) -> tuple[ResourceColumn, ...]:
    """Return the columns that at least one row has a value for."""
    return tuple(column for column in COLUMNS if any(row.values.get(column.key) is not None for row in rows))


def classes(rows: Sequence[ResourceRow], known: Sequence[str]) -> tuple[str, ...]:
    """Return the known instruction classes, in their order, that at least one row has."""
    here = {name for row in rows for name in row.instructions}
    return tuple(name for name in dict.fromkeys(known) if name in here)


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
        origin = trusted_package(manifest, workspace.default())
        spills = assemble_again(ptx, gpu_binary.read_cubin(gpu_binary.load(binary)), origin, point.metadata)
        if spills:
            measured |= {"spill_store_bytes": spills.stores, "spill_load_bytes": spills.loads}
        else:
            why = "no available ptxas reproduces this cubin from its PTX"
            if origin is None:
                why = "it was not compiled here, so the ptxas that it names is not run"
            notes = [f"{point.id}: its spills are unknown: {why}"]
    assembly = _text(manifest.path(point, "amdgcn"))
    # LLVM's own number does not know the shared memory that Triton's launch requests.
    if occupancy_ := _OCCUPANCY.search(assembly):
        measured["compiler_waves_per_simd"] = int(occupancy_[1])
    text = _text(manifest.path(point, "sass" if stage == "cubin" else "gcnasm"))
    # The assembler changes no instruction, and adds padding behind the kernel: counted on 12 kernels of real
    # packages for gfx942, all other classes were the same. A newer GPU has no llvm-objdump for a while.
    text = text or (assembly if stage == "hsaco" else "")
    counted = count(text, BINARIES[stage]) if text else {}
    row = replace(
        row,
        values=measured,
        instructions=counted,
        notes=ignored_by_occupancy(point.metadata),
        remarks=point.remarks,
    )
    # Not an empty cell alone: it would pass for a kernel that can be launched.
    if measured["launch"] is None:
        text = "the limits of this GPU are unknown: launchability is not checked"
        row = replace(row, notes=(*row.notes, text))
    return row, notes


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
    # Triton's `shared` is what the launch requests. A stranger's manifest may have anything there.
    dynamic = metadata.get("shared")
    shared = dynamic if isinstance(dynamic, int) else 0
    try:
        content = gpu_binary.load(binary)
        if content.backend == "cuda":
            return _nvidia(gpu_binary.read_cubin(content), arch, shared, metadata, ptx)
        return _amd(gpu_binary.read_code_object(content), arch, shared, metadata)
    except FactError as error:
        raise FactError(error.what, where=binary, why=error.why, hints=error.hints) from error


def _nvidia(
    kernel: gpu_binary.Cubin, arch: str, dynamic: int, metadata: Mapping[str, Any], ptx: Path | None
) -> dict[str, Value]:
    # Machine code does not distinguish spills from arrays that the PTX keeps in local memory, so with such
    # arrays the spills are None.
    arrays = bool(kernel.frame) and ptx is not None and has_arrays(_text(ptx))
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
    # Triton's own shared memory is dynamic: the code object has only what LLVM allocated besides.
    lds = kernel.lds + shared
    # The code object's number of threads is at most 1024, whatever is launched.
    warps = metadata.get("num_warps")
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


@dataclass(frozen=True)
class PtxasReport:
    """The report of ptxas about a kernel.

    Attributes:
        registers: registers per thread.
        frame: bytes of stack.
        stores: bytes of spill stores.
        loads: bytes of spill loads.
    """

    registers: int
    frame: int
    stores: int
    loads: int


def assemble_again(
    ptx: Path, cubin: Cubin, origin: Path | None, metadata: Mapping[str, Any]
) -> PtxasReport | None:
    """Assemble the PTX as Triton did, and parse the report of ptxas.

    Args:
        ptx: the file.
        cubin: the result of Triton's ptxas.
        origin: Triton's package; None if its programs may not be run.
        metadata: Triton's metadata of the kernel; it may be foreign.

    Returns:
        The report; None if no ptxas reproduces the cubin, or if an option in the metadata is not allowed.
    """
    table = configs.load("kernel-resources")["ptxas"]
    target = _TARGET.search(untrusted.read_text(ptx, untrusted.OURS))
    if target is None:
        return None
    options = [] if metadata.get("enable_fp_fusion", True) else [table["no-fusion"]]
    options += str(metadata.get(table["options"]) or "").split()
    # The metadata may be a stranger's, and an option of ptxas may name a file to write.
    if any(word.partition("=")[0] not in table["allowed"] and not _VALUE.fullmatch(word) for word in options):
        return None
    for program in _programs(origin, table):
        for flags in table["flags"]:
            files = (f"--gpu-name={target[1]}", str(ptx), "-o", os.devnull)
            argv = (str(program), "-v", *flags, *options, *files)
            answer = query(argv, timeout=table["timeout"])
            if answer is None or answer.code:
                # A ptxas that does not know the GPU, or the PTX version: other flags do not help it.
                break
            report = parse_report(answer.err + answer.out)
            # Another ptxas, or other flags, would report the spills of another kernel.
            if (report.registers, report.frame) == (cubin.registers, cubin.frame):
                return report
    return None


def parse_report(text: str) -> PtxasReport:
    """Parse the output of `ptxas -v` for one kernel.

    Raises:
        FactError: it contains no report.
    """
    frame, registers = _FRAME.search(text), _REGISTERS.search(text)
    if frame is None or registers is None:
        raise FactError("the output of ptxas -v has no kernel", why=text.strip()[-500:] or None)
    return PtxasReport(int(registers[1]), *map(int, frame.groups()))


def has_arrays(ptx: str) -> bool:
    """Report whether the PTX itself uses local memory, as libdevice's sin and cos do."""
    return bool(_ARRAY.search(ptx))


def _programs(origin: Path | None, table: Mapping[str, Any]) -> Iterator[Path]:
    # First the one that Triton itself would take before its own.
    if named := os.environ.get(table["variable"]):
        yield Path(named)
    if origin:
        yield from (origin / name for name in table["programs"] if (origin / name).is_file())
