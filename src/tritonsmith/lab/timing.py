"""Plan the timing of compiled kernels, and run the plan on the GPU that is here, or write it for another.

Binaries come from output folders of `kernel.compile` or `compare --triton`. What a compiler does not know,
the sizes of tensors, the values of scalars and the grid, comes from a captured kernels file or from flags.
The folder of a plan has everything that a machine with a GPU and a Python needs: the job, its binaries, and
the worker (`worker/time_binaries.py`).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import manifest, signature
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest, Point, folder_name
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.targets import Target
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Copy, Plan, Run, Step, Write
from tritonsmith.core.text import counted, version_key
from tritonsmith.inspect.c_types import scratch_names
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import study
from tritonsmith.lab.experiment import Rules
from tritonsmith.worker import time_binaries
from tritonsmith.worker.time_binaries import Buffer, Job, Method, Parameter, TimedBinary, TimedKernel

TASK = "kernel.time"
JOB, TIMES, WORKER = "time.json", "times.json", "time_binaries.py"
_STAGES = {"cuda": "cubin", "hip": "hsaco"}
_ONE = 1  # a hint: the parameter is a constant of the code, and no parameter of the binary
_AXES = 3
_USUAL = Method()
_GRID = "--grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1'"


@dataclass(frozen=True)
class TensorContents:
    """The memory behind a pointer: its elements; random numbers from `low` to `high`, or its values."""

    elements: int
    low: float | None = None
    high: float | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class LaunchArguments:
    """The arguments of a launch, by the names of the parameters.

    Attributes:
        grid: an expression over scalars and constants: `cdiv(n, BLOCK), 1`.
        captured: the grid is that of a launch of one config.
        tensors: what each pointer leads to.
        scalars: the value of each other parameter.
    """

    grid: str = ""
    captured: bool = False
    tensors: Mapping[str, TensorContents] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TimedMember:
    """One compile to time: its label in tables, the output folder it is in, and what its code needs."""

    label: str
    manifest: Manifest
    point: Point
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> str:
        """The values that a sweep chose; empty without one."""
        return ",".join(self.point.id.split(",")[1:])


@dataclass(frozen=True)
class PreparedTiming:
    """A plan to time kernels.

    Attributes:
        folder: where the plan is written.
        job: for the worker.
        files: the binary of each path in the job.
        notes: what is not known about the arguments.
    """

    folder: Path
    job: Job
    files: Mapping[str, Path]
    notes: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """Return the steps that write the folder."""
        text = json.dumps({"schema": time_binaries.SCHEMA, **asdict(self.job)}, indent=1) + "\n"
        written: list[Step] = [
            Copy(path, self.folder / name, phase="binaries") for name, path in self.files.items()
        ]
        worker = Path(time_binaries.__file__)
        written += [
            Copy(worker, self.folder / WORKER, phase="job"),
            Write(self.folder / JOB, text, phase="job"),
        ]
        return Plan(TASK, tuple(written))

    def run(self) -> Plan:
        """Return the step that measures."""
        argv = (sys.executable, str(self.folder / WORKER), JOB, TIMES)
        return Plan(TASK, (Run(argv, self.folder, phase="time"),))


@dataclass(frozen=True)
class LaunchFlags:
    """Arguments of flags: `--grid`, `--size`, and the kernels file of `--launches`."""

    grid: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)
    launches: Path | None = None

    def entries(self) -> tuple[ListedKernel, ...]:
        """Return the kernels of the file; none without one."""
        return kernel_list.read(self.launches) if self.launches else ()


def entry_of(name: str, group: Sequence[TimedMember], entries: Sequence[ListedKernel]) -> ListedKernel | None:
    """Return the entry of a kernels file that is about a kernel: the one of its name, or of its function."""
    functions = {member.manifest.kernel for member in group}
    named = [entry for entry in entries if folder_name(entry.name) == name]
    return next(iter((*named, *(entry for entry in entries if entry.kernel in functions))), None)


def arguments_of(entry: ListedKernel | None, flags: LaunchFlags) -> LaunchArguments:
    """Return the arguments that a kernels file and flags give; flags win.

    Args:
        entry: what was captured of the kernel; None without a kernels file.
        flags: the flags.
    """
    tensors: dict[str, TensorContents] = {}
    # A captured launch; else the largest value that each integer had in any.
    scalars: dict[str, float] = dict(entry.largest) if entry else {}
    launch: Mapping[str, Any] = entry.launch if entry else {}
    for name, value in launch.get("arguments", {}).items():
        if isinstance(value, Mapping):
            tensors[name] = _contents(name, value)
        else:
            scalars[name] = value
    # A name may be a scalar or a tensor: which of them, the signature of the binary says later.
    for name, value in flags.sizes.items():
        scalars[name] = value
        if isinstance(value, int):
            before = tensors.get(name)
            tensors[name] = replace(before, elements=value) if before else TensorContents(value)
    # The grid belongs to the arguments of that launch; without them, the most frequent is a guess.
    captured = launch.get("grid") or (entry.grids[0] if entry and entry.grids else ())
    grid = flags.grid or ", ".join(map(str, captured))
    return LaunchArguments(grid, not flags.grid, tensors, scalars)


def _contents(name: str, table: Mapping[str, Any]) -> TensorContents:
    """Return what a kernels file has about a tensor.

    Raises:
        UsageError: it is something else.
    """
    values = tuple(table.get("values", ()))
    try:
        low, high = (float(table[end]) if end in table else None for end in ("low", "high"))
        return TensorContents(int(table.get("elements", len(values))), low, high, values)
    except (ValueError, TypeError) as error:
        hints = [f"{name} = {{ elements = 65536, low = 0, high = 31 }}"]
        raise UsageError(f"this is no tensor of a launch: {name}", why=str(error), hints=hints) from error


def manifests_below(folder: Path) -> tuple[Manifest, ...]:
    """Read an output folder, or all output folders below a folder, releases in their order.

    Raises:
        FactError: there is none, or one cannot be read.
    """
    own = folder / manifest.FILE
    # A folder may hold kernels by releases, or sides by any name: both have manifests somewhere below.
    folders = [folder] if own.is_file() else [path.parent for path in folder.rglob(manifest.FILE)]
    if not folders:
        hints = ["invoke compare KERNELS --triton 3.6.0,3.9.0 --target h100 --out DIR creates such folders"]
        raise FactError("this folder has no compiled kernel", where=folder, hints=hints)
    return tuple(
        sorted(map(manifest.read, folders), key=lambda read: (version_key(read.triton), str(read.folder)))
    )


def compiled(
    plan: study.StudyPlan, jobs: int | None, timeout: int | None, *, silent: bool
) -> dict[str, list[TimedMember]]:
    """Compile with each Triton what is missing, and return the compiles of each kernel.

    Raises:
        SmithError: as `study.execute`.
    """
    options = BatchOptions(count=jobs, timeout=timeout, resume=True, silent=silent, disassemble=False)
    study.execute(plan, options, Rules())
    # In the order of `--triton`, the first of which is what others are compared with.
    return members([manifest.read(job.out) for _, job in plan.jobs], plan.out, ())


def members(
    manifests: Sequence[Manifest], root: Path, targets: Sequence[Target]
) -> dict[str, list[TimedMember]]:
    """Return the compiles of each kernel, by the kernel's name in tables.

    Args:
        manifests: the output folders, in the order of the sides.
        root: the folder that they are below.
        targets: those to take; all that a kernel has if empty.

    Raises:
        UsageError: a kernel was compiled for several targets, and none is chosen.
    """
    # Below `compare --triton --out` a kernel's folder has its name, below each Triton's; otherwise folders
    # have the names of the sides, and the kernel is the function.
    folders = Counter(each.folder.name for each in manifests)
    several = len(manifests) > 1
    groups: dict[str, list[Manifest]] = {}
    for each in manifests:
        name = each.folder.name if several and folders[each.folder.name] > 1 else each.kernel
        groups.setdefault(name, []).append(each)
    chosen = {str(target) for target in targets}
    result = {}
    for name, group in groups.items():
        versions = Counter(each.triton for each in group)
        compiles = []
        for each in group:
            rows = measure.of_manifest(each).rows
            by_version = versions[each.triton] == 1
            side = each.triton if by_version else _side(each.folder, root, name)
            for point, row in zip(each.points, rows, strict=True):
                if chosen and point.target not in chosen:
                    continue
                figures = {key: value for key, value in row.values.items() if value is not None}
                compiles.append(TimedMember(side, each, point, figures))
        # An empty table would read as if there were nothing to compare.
        if not compiles:
            why = f"it was compiled for {', '.join({p.target for each in group for p in each.points})}"
            raise UsageError(f"{name} was not compiled for {', '.join(sorted(chosen))}", why=why)
        if len(chips := {each.point.target for each in compiles}) > 1:
            hints = [f"choose one: --target {min(chips)}"]
            raise UsageError(
                f"{name} was compiled for several targets", why=", ".join(sorted(chips)), hints=hints
            )
        result[name] = _labelled(compiles)
    return result


def _side(folder: Path, root: Path, name: str) -> str:
    """Return what tells an output folder from others of the same Triton."""
    parts = folder.relative_to(root).parts if folder.is_relative_to(root) else (folder.name,)
    return "/".join(part for part in parts if part != name) or folder.name


def _labelled(compiles: Sequence[TimedMember]) -> list[TimedMember]:
    """Return the compiles, the configs of a sweep in their labels."""
    # Without a sweep, a label is short: it is a row of a table and the name of a file.
    swept = any(count > 1 for count in Counter(each.label for each in compiles).values())
    if not swept:
        return list(compiles)
    return [replace(each, label=f"{each.label} {each.config}".strip()) for each in compiles]


def prepare(
    groups: Mapping[str, Sequence[TimedMember]],
    arguments: Mapping[str, LaunchArguments],
    folder: Path,
    method: Method,
) -> PreparedTiming:
    """Return the plan.

    Args:
        groups: the compiles of each kernel; the first is what others are compared with.
        arguments: of each kernel.
        folder: where the plan is written.
        method: how to measure.

    Raises:
        FactError: nothing of a kernel compiled.
        UsageError: an argument is missing, or cannot be passed.
    """
    kernels: list[TimedKernel] = []
    files: dict[str, Path] = {}
    notes: list[str] = []
    for name, group in groups.items():
        good = [each for each in group if each.manifest.path(each.point, _STAGES[each.point.backend])]
        # What did not compile stays in the table: a release that fails is no winner.
        bad = [each for each in group if each not in good]
        notes += _not_compiled(name, bad)
        if not good:
            raise FactError(f"no compile of {name} has a binary", where=group[0].manifest.folder)
        lost = tuple((each.label, f"no binary: {each.point.gist}") for each in bad)
        kernel = replace(timed_kernel(name, good, arguments[name]), lost=lost)
        kernels.append(kernel)
        for member, binary in zip(good, kernel.binaries, strict=True):
            if path := member.manifest.path(member.point, _STAGES[member.point.backend]):
                files[binary.path] = path
        notes += _assumed(kernel)
    # One driver is opened for the whole job.
    backends = {each.point.backend for group in groups.values() for each in group}
    if len(backends) > 1:
        hints = ["choose the target that is here: --target h100"]
        raise UsageError("these kernels are for GPUs of two vendors", hints=hints)
    return PreparedTiming(folder, Job(backends.pop(), tuple(kernels), method), files, tuple(notes))


def _not_compiled(kernel: str, bad: Sequence[TimedMember]) -> Iterator[str]:
    """Yield the compiles without a binary, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for member in bad:
        reasons.setdefault(member.point.gist or "no reason is known", []).append(member.label)
    for reason, labels in reasons.items():
        yield f"{kernel}: {counted(len(labels), 'compile')} failed ({reason}): {', '.join(labels)}"


def timed_kernel(name: str, group: Sequence[TimedMember], arguments: LaunchArguments) -> TimedKernel:
    """Return a kernel of a job.

    Args:
        name: its name in tables.
        group: its compiles that have a binary.
        arguments: of all of them.

    Raises:
        UsageError: an argument is missing, or has a type that cannot be passed.
    """
    # Binaries may leave out parameters, as hints or configs make them constants: all that any takes are
    # listed.
    # A parameter that only some of them take has a number, too.
    kinds: dict[str, str] = {}
    for member in group:
        kinds |= {each: kind for each, kind in member.point.signature.items() if kind != signature.CONSTEXPR}
    _require_names(name, group, arguments)
    # A hint of 1 says the value.
    ones = {each: _ONE for member in group for each, hint in member.point.hints.items() if hint == _ONE}
    arguments = replace(arguments, scalars={**ones, **arguments.scalars})
    for member in group:
        _require_hints(name, member, arguments)
    buffers: list[Buffer] = []
    parameters = [_parameter(name, each, kind, arguments, buffers) for each, kind in kinds.items()]
    numbers = {parameter.name: number for number, parameter in enumerate(parameters)}
    binaries = tuple(_binary(name, member, numbers, arguments) for member in group)
    return TimedKernel(name, tuple(buffers), tuple(parameters), binaries)


def _require_names(kernel: str, group: Sequence[TimedMember], arguments: LaunchArguments) -> None:
    """Refuse an argument that no compile of the kernel has; a captured entry may have more."""
    known = {each for member in group for each in member.point.signature}
    configs = {json.dumps(dict(member.point.constexprs), default=str) for member in group}
    if arguments.captured and len(configs) > 1:
        raise UsageError(
            f"{kernel}: the grid of each config is not known",
            why=f"captured was {arguments.grid or 'none'}, of one config",
            hints=[_GRID],
        )
    if not arguments.grid:
        raise UsageError(f"{kernel}: the grid is not known", hints=[_GRID, "or a captured kernels file"])
    for name in arguments.tensors:
        if name not in known:
            raise UsageError(f"{kernel} has no parameter {name}", hints=did_you_mean(name, known))


def _require_hints(kernel: str, member: TimedMember, arguments: LaunchArguments) -> None:
    """Refuse a value for which a binary was not compiled: its results would be wrong, silently."""
    for name, hint in member.point.hints.items():
        value = arguments.scalars.get(name, hint)
        if (hint == _ONE and value != _ONE) or value % hint:
            rule = "is 1" if hint == _ONE else f"is divisible by {hint}"
            raise UsageError(
                f"{kernel} {member.label}: {name} cannot be {value:g}",
                why=f"this binary was compiled for a {name} that {rule}",
                hints=[f"--size {name}={hint * 64 if hint > _ONE else 1}", "or compile with other hints"],
            )


def _parameter(
    kernel: str, name: str, kind: str, arguments: LaunchArguments, buffers: list[Buffer]
) -> Parameter:
    if kind.startswith("*"):
        dtype = kind[1:].removeprefix("k")
        held = arguments.tensors.get(name)
        if held is None:
            hints = [f"say how many elements it has: --size {name}=65536", "kernel.capture records them"]
            raise UsageError(f"{kernel}: the size of {name} ({kind}) is not known", hints=hints)
        buffers.append(_buffer(name, dtype, held))
        return Parameter(name, kind, buffer=len(buffers) - 1)
    try:
        time_binaries.element_size(kind)
    except ValueError:
        hints = ["time a kernel that takes pointers and strides instead"]
        raise UsageError(
            f"{kernel}: {name} has the type {kind}, which cannot be passed by the driver alone", hints=hints
        ) from None
    if name not in arguments.scalars:
        raise UsageError(
            f"{kernel}: the value of {name} ({kind}) is not known", hints=[f"--size {name}=1024"]
        )
    try:
        time_binaries.encoded(kind, arguments.scalars[name])
    except ValueError as error:
        raise UsageError(f"{kernel}: {name} cannot be {arguments.scalars[name]:g}", why=str(error)) from None
    return Parameter(name, kind, value=arguments.scalars[name])


def _buffer(name: str, dtype: str, held: TensorContents) -> Buffer:
    if held.values:
        return Buffer(name, dtype, held.elements, "values", values=held.values)
    if held.low is not None and held.high is not None:
        return Buffer(name, dtype, held.elements, "random", held.low, held.high)
    # An index out of its range would be an illegal address; 0 is in every range.
    return Buffer(name, dtype, held.elements, "zeros" if dtype[:1] in "iu" else "random")


def _assumed(kernel: TimedKernel) -> Iterator[str]:
    """Yield what is not known about the arguments of a kernel."""
    zeros = [buffer.name for buffer in kernel.buffers if buffer.fill == "zeros"]
    if zeros:
        yield (
            f"{kernel.name}: {', '.join(zeros)} {'is' if len(zeros) == 1 else 'are'} all 0, as the integers "
            "that the kernel needs there are not known (launch = ... of a kernels file)"
        )


def _binary(
    kernel: str, member: TimedMember, numbers: Mapping[str, int], arguments: LaunchArguments
) -> TimedBinary:
    point, known = member.point, member.point.metadata
    warp = int(known.get("warp_size") or point.target.rsplit(":", 1)[1])
    taken = [
        numbers[each]
        for each, kind in point.signature.items()
        if kind != signature.CONSTEXPR and point.hints.get(each) != _ONE
    ]
    # Up to 3.5 the metadata has the sizes of a cluster, since 3.6 the number of its blocks.
    ctas = 1
    for size in known.get("cluster_dims") or [known.get("num_ctas") or 1]:
        ctas *= int(size)
    stage = _STAGES[point.backend]
    return TimedBinary(
        label=member.label,
        path=f"binaries/{folder_name(kernel)}/{folder_name(member.label)}.{stage}",
        symbol=str(known.get("name") or member.manifest.kernel),
        parameters=tuple(taken),
        grid=_grid(arguments, point),
        threads=int(known.get("num_warps") or 4) * warp,
        shared=int(known.get("shared") or 0),
        ctas=ctas,
        cooperative=bool(known.get("launch_cooperative_grid")),
        scratch=tuple(
            int(known.get(f"{each}_size") or 0) for each in scratch_names(member.manifest.triton, point)
        ),
        figures=member.figures,
    )


def _grid(arguments: LaunchArguments, point: Point) -> tuple[int, int, int]:
    """Return the grid of a compile, whose constants the expression may name."""
    names: dict[str, Any] = {**arguments.scalars, **point.constexprs}
    numbers = signature.evaluated(arguments.grid, names, "--grid")
    if not 0 < len(numbers) <= _AXES or min(numbers) < 1:
        why = f"it is {', '.join(map(str, numbers))}"
        raise UsageError(f"--grid cannot be {arguments.grid!r}", why=why, hints=[_GRID])
    x, y, z = [*numbers, 1, 1][:_AXES]
    return x, y, z


def measure_here(prepared: PreparedTiming, space: Workspace, *, silent: bool) -> dict[str, Any]:
    """Write the folder, and measure on this machine's GPU.

    Raises:
        FactError: there is no GPU: the error says how to measure elsewhere.
    """
    space.claim()
    space.run(prepared.plan() + prepared.run(), TASK, quiet=silent)
    times = read_times(prepared.folder / TIMES)
    if error := times.get("error"):
        folder = prepared.folder
        raise FactError(
            "no GPU of these binaries is here",
            where=folder,
            why=str(error),
            hints=[
                f"copy this folder to the machine with the GPU, and run there: python {WORKER} {JOB} {TIMES}",
                f"then copy {TIMES} back: invoke {TASK} {folder} --times {folder / TIMES}",
                "that machine needs a Python from 3.8 on and the driver; no Triton, no torch",
            ],
        )
    return times


def read_times(path: Path) -> dict[str, Any]:
    """Read what the worker has measured.

    Raises:
        FactError: it is no such file.
    """
    try:
        content = untrusted.read_json(path, untrusted.OURS)
    except (OSError, ValueError) as error:
        raise FactError("cannot read these times", where=path, why=str(error)) from error
    if not isinstance(content, dict) or content.get("schema") != time_binaries.SCHEMA:
        hints = [f"python {WORKER} {JOB} {TIMES} writes them"]
        raise FactError("this file has no times of kernels", where=path, hints=hints)
    return content


def parse_sizes(texts: Iterable[str]) -> dict[str, float]:
    """Parse `NAME=VALUE` of `--size`: a number, 4096*4096 or 1e-5.

    Raises:
        UsageError: a text has another form.
    """
    sizes: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value:
            hints = ["--size n=4096", "--size x=4096*4096, the elements of a tensor", "--size eps=1e-5"]
            raise UsageError(f"--size cannot be {text!r}", hints=hints)
        (number,) = signature.evaluated(value.replace("_", ""), {}, "--size", whole=False)
        sizes[name] = number
    return sizes


def method_of(seconds: int | None, tolerance: str, *, warm: bool, before: Method = _USUAL) -> Method:
    """Return how to measure, as flags say; what they do not say is as before.

    Raises:
        UsageError: `--tolerance` is no number.
    """
    (largest,) = signature.evaluated(tolerance or "0", {}, "--tolerance", whole=False)
    return replace(
        before,
        warm=warm or before.warm,
        seconds=float(seconds or before.seconds),
        tolerance=float(largest) or before.tolerance,
    )


def is_plan(folder: Path) -> bool:
    """Report whether an earlier `--out` is in a folder."""
    return untrusted.is_file(folder / JOB)


def reopen(folder: Path, flags: LaunchFlags) -> PreparedTiming:
    """Return the plan that a folder has.

    Raises:
        FactError: it cannot be read.
        UsageError: flags give arguments: the plan has its own.
    """
    if flags != LaunchFlags():
        hints = ["omit --grid, --size and --launches", "or give the folder of compiled kernels"]
        raise UsageError("this plan has its arguments already", where=folder / JOB, hints=hints)
    try:
        job = time_binaries.read_job(untrusted.read_json(folder / JOB, untrusted.OURS))
        for kernel in job.kernels:
            for binary in kernel.binaries:
                untrusted.place_in(binary.path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FactError("cannot read this plan", where=folder / JOB, why=str(error)) from error
    return PreparedTiming(folder, job, {})


def figures(job: Job) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return what is known about the code, by kernel and label."""
    return {kernel.name: {each.label: each.figures for each in kernel.binaries} for kernel in job.kernels}
