"""Compile many kernels with many Tritons in a pool, here or on a cluster; existing results are reused."""

from __future__ import annotations

import functools
import itertools
import math
import re
import shlex
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler import source, source_tree, tritons
from tritonsmith.compiler.interpreter import Interpreter, UnavailableError
from tritonsmith.compiler.manifest import FILE, Manifest, Point, Status
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton, applied
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Run, Write
from tritonsmith.core.ui import console
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import machine
from tritonsmith.lab.batch import kept, kept_files, pool, work_unit
from tritonsmith.lab.batch.kept import CompileJob, ResultFinder
from tritonsmith.lab.batch.kept_files import PackedPart
from tritonsmith.lab.batch.pool import DiedError, ExecutorPool, LostError
from tritonsmith.lab.batch.work_unit import (
    PackedResult,
    RemoteCode,
    RemoteJob,
    RemoteResult,
    Result,
    UnfitWorkerError,
)
from tritonsmith.wheels import ptxas

_PHASE, _DISASSEMBLE = "compile", "disassemble"
_FEW = 4  # disassemblies that take less than to start a process for them
_PORTION = 32  # of them, for one process
_MOST = 32  # points of a unit: a larger sweep is cut, so that many can work at it
_CONSTANT = re.compile(r"(?:^|[,=])\s*(\d{1,9})(?=\s*(?:,|$))")  # of a signature: `64`, `BLOCK=64`
_REFUSALS = 5  # of workers that cannot compile a unit, until it is given up
_MIB = 1 << 20
J = TypeVar("J")
K = TypeVar("K")
R = TypeVar("R")
UnitResult = Result | RemoteResult | PackedResult


@dataclass(frozen=True)
class BatchOptions:
    """The way in which many kernels are compiled.

    Attributes:
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the usual.
        env: of Tritons that name none.
        resume: points that are there already are not compiled again: see `kept.ResultFinder`.
        silent: show no progress.
        strict: raise an error if every job is refused for the same reason; if false, only note it in the
            manifests.
        only_kernels: note refusals of kernels in the manifests, and raise any other error, such as a full
            disk.
        disassemble: results that are kept have the disassembly of their code. If false, it is left to
            `disassembled`, for those that need it. Of other results, the request says it.
    """

    scheduler: str = ""
    count: int | None = None
    timeout: int | None = None
    env: str = "wheel"
    resume: bool = False
    silent: bool = False
    strict: bool = True
    disassemble: bool = True
    only_kernels: bool = False


@dataclass(frozen=True)
class _Unit:
    """A part of a job.

    Attributes:
        job: the job.
        request: this part of its points.
        place: the interpreter that compiles it here; None if a cluster does.
        fingerprint: of the Triton that a worker of a cluster must have; empty if that need not be checked.
    """

    job: CompileJob
    request: CompileRequest
    place: Interpreter | None
    fingerprint: str = ""


def compile_all(
    jobs: Sequence[CompileJob],
    scheduler: str = "",
    *,
    count: int | None = None,
    timeout: int | None = None,
    env: str = "wheel",
    resume: bool = False,
    silent: bool = False,
    only_kernels: bool = False,
) -> list[Manifest]:
    """Compile many kernels; see `compiled` and `BatchOptions`.

    Returns:
        The manifest of each job's folder, in the order of the jobs.
    """
    options = BatchOptions(
        scheduler, count, timeout, env, resume, silent, strict=not only_kernels, only_kernels=only_kernels
    )
    manifests = {job.out: manifest for job, manifest, _ in compiled(jobs, options)}
    return [manifests[job.out] for job in jobs]


def compiled(
    jobs: Sequence[CompileJob], options: BatchOptions
) -> Iterator[tuple[CompileJob, Manifest, bool]]:
    """Compile jobs, and yield each with the manifest of its folder as soon as that is written.

    The third value is whether something was compiled; results that are there come first. A kernel that a
    Triton refuses, or whose process dies, is a row of its manifest.

    Args:
        jobs: the jobs; their folders are all different.
        options: see `BatchOptions`.

    Raises:
        SmithError: there is no such Triton or scheduler, or every job was refused for the same reason.
        InterruptedRunError: ^C; folders that are complete are kept.
    """
    space = workspace.default()
    space.claim()
    whole = {job.out: replace(job, request=applied(job.request, job.triton)) for job in jobs}
    # The jobs as they came, without what their Tritons add: these are what the caller knows.
    by_folder = {job.out: job for job in jobs}
    there: dict[Path, tuple[Manifest, ...]] = {}
    left: list[CompileJob] = []
    finder = ResultFinder(options.env)
    for out, old in _found(whole, finder, options):
        job = whole[out]
        there[out] = (old,) if old else ()
        if rest := kept.rest(job, old):
            left.append(rest)
        # That of a keyed job was merged when it was found.
        elif job.keyed and old:
            yield by_folder[out], old, False
        else:
            yield by_folder[out], kept.merged(job, options.env, there[out]), False
    if not left:
        return
    refused: dict[Path, list[SmithError]] = {}
    # Before the compile: an import that is edited meanwhile is then not taken for what was compiled.
    sources = {job.out: finder.sources(job) for job in left}
    known = _seconds(manifest for old in there.values() for manifest in old)
    with _interruptible(options):
        for out, parts, packed in _filled(left, known, refused, options):
            if whole[out].keyed:
                # Its files go to the database, and need not wait for the end of the run.
                fresh = kept.keep(whole[out], kept.merged(whole[out], options.env, parts), packed)
                merged = kept.merged(whole[out], options.env, [*there[out], fresh])
            else:
                merged = kept.merged(whole[out], options.env, [*there[out], *parts])
            manifest = replace(merged, sources=sources[out])
            if not whole[out].keyed:
                _write(manifest)
            yield by_folder[out], manifest, True
    # An option that no release has is a mistake in the command: a table with it in each cell would hide that.
    reasons = {str(error): error for errors in refused.values() for error in errors}
    if options.strict and len(refused) == len(whole) and len(reasons) == 1:
        raise reasons.popitem()[1]


@contextmanager
def _interruptible(options: BatchOptions) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if not options.resume:
            raise InterruptedRunError("interrupted") from None
        hints = ["run the same command again to continue"]
        raise InterruptedRunError("interrupted; completed results are kept", hints=hints) from None


def _found(
    jobs: Mapping[Path, CompileJob], finder: ResultFinder, options: BatchOptions
) -> Iterator[tuple[Path, Manifest | None]]:
    """Yield the folder of each job with its points that are there, disassembled if the options say so."""
    unread: dict[Path, UnreadResult] = {}
    for out, job in jobs.items():
        old = finder.find(job) if options.resume else None
        chosen = kept_files.unread_targets(old) if old and options.disassemble else ()
        if old and chosen:
            unread[out] = UnreadResult(old, tuple(sorted(chosen)), job.triton)
        else:
            yield out, old
    for manifest in disassembled(unread, options):
        yield manifest.folder, manifest


@dataclass(frozen=True)
class UnreadResult:
    """A kept result whose code has to be disassembled.

    Attributes:
        manifest: of the result.
        targets: the targets that need it.
        triton: the Triton that compiled it.
    """

    manifest: Manifest
    targets: tuple[str, ...]
    triton: Triton


def disassembled(work: Mapping[Path, UnreadResult], options: BatchOptions) -> Iterator[Manifest]:
    """Disassemble kept results that were compiled without, in processes of this machine or by the workers.

    Args:
        work: the results by their folders.
        options: of the pool.

    Raises:
        SmithError: a result is damaged, or was removed meanwhile.
        InterruptedRunError: ^C.
    """
    space = workspace.default()
    every = (manifests.trusted_package(row.manifest, space) for row in work.values())
    # A result of another machine names a Triton that is not here, and that of the other side will do.
    packages = tuple(dict.fromkeys(filter(None, every)))
    # Triton by Triton, since each has a disassembler of its own, which reads many binaries at once.
    rows = sorted(work.values(), key=lambda row: row.triton.label)
    with _interruptible(options):
        # With a cluster, the binaries are of other machines: this one need not have the programs for them.
        if len(rows) <= _FEW and not options.scheduler:
            yield from kept_files.disassemble_all([(row.manifest, row.targets) for row in rows], packages)
            return
        if not rows:
            return
        count = min(options.count or _fitting(), math.ceil(len(rows) / _FEW))
        with (
            pool.opened(options.scheduler, count) as workers,
            PhaseProgress(live=False if options.silent else None, silent=options.silent) as progress,
        ):
            progress.begin(_DISASSEMBLE)
            began = time.monotonic()
            by_workers = _read_there if options.scheduler else _read_here
            for number, result in enumerate(by_workers(rows, packages, workers, options), 1):
                progress.update(number, len(rows), f"{result.kernel} by {result.triton}")
                yield result
            progress.end(time.monotonic() - began)


def _portions(rows: Sequence[UnreadResult], workers: ExecutorPool) -> Iterator[Sequence[UnreadResult]]:
    """Yield parts of the results, each of one Triton."""
    size = max(1, min(_PORTION, math.ceil(len(rows) / workers.slots)))
    for _, own in itertools.groupby(rows, key=lambda row: row.triton.label):
        whole = list(own)
        for begin in range(0, len(whole), size):
            yield whole[begin : begin + size]


def _read_here(
    rows: Sequence[UnreadResult], packages: Sequence[Path], workers: ExecutorPool, _: BatchOptions
) -> Iterator[Manifest]:
    pending = {
        workers.executor.submit(_disassembled_here, portion, packages): portion
        for portion in _portions(rows, workers)
    }
    for _portion, result in workers.results(pending):
        if isinstance(result, SmithError):
            raise result
        yield from result


def _read_there(
    rows: Sequence[UnreadResult], packages: Sequence[Path], workers: ExecutorPool, options: BatchOptions
) -> Iterator[Manifest]:
    """Have the workers of a cluster disassemble, and keep what they answer; what none can do is done here."""
    prints = {row.triton.label: _fingerprint(row.triton, options.env) for row in rows}

    def code(portion: Sequence[UnreadResult]) -> RemoteCode:
        parts = tuple(part for row in portion for part in kept_files.unread_code(row.manifest, row.targets))
        triton = portion[0].triton
        return RemoteCode(
            triton, options.timeout, options.env, prints[triton.label], work_unit.tool_key(), parts
        )

    pending = {
        workers.executor.submit(work_unit.disassemble_there, code(portion)): portion
        for portion in _portions(rows, workers)
    }
    again = _resubmitter(workers, work_unit.disassemble_there, lambda portion: portion[0].triton, code)
    patience = float(tritons.PATIENCE + (options.timeout or configs.load("kernels")["jobs"]["timeout"]))
    for portion, result in workers.results(pending, again, patience):
        for read in () if isinstance(result, SmithError) else result:
            kept_files.keep_code(read)
        # It finds in the database what has been kept just now.
        yield from kept_files.disassemble_all([(row.manifest, row.targets) for row in portion], packages)


def _disassembled_here(rows: Sequence[UnreadResult], packages: Sequence[Path]) -> list[Manifest] | SmithError:
    try:
        return list(kept_files.disassemble_all([(row.manifest, row.targets) for row in rows], packages))
    except SmithError as error:
        return work_unit.plain(error)


def _seconds(manifests: Iterable[Manifest]) -> dict[str, float]:
    """Return the mean seconds of a compile, by the name of the folder, which no Triton changes."""
    points: defaultdict[str, list[float]] = defaultdict(list)
    for manifest in manifests:
        points[manifest.folder.name] += [point.seconds for point in manifest.points]
    return {name: statistics.fmean(seconds) for name, seconds in points.items() if seconds}


def plan(jobs: Sequence[CompileJob], env: str = "wheel") -> Plan:
    """Return the steps of `run` for a single process: create environments, then compile job by job.

    Raises:
        SmithError: a Triton is wrong.
    """
    versions = dict.fromkeys(job.triton.version for job in jobs if job.triton.version)
    whole = Plan("compile kernels")
    for version in versions:
        whole += tritons.plan(version)
    for version in dict.fromkeys(job.triton.ptxas for job in jobs if job.triton.ptxas):
        whole += ptxas.prepare(version, workspace.default(), machine.read(), Path(sys.executable)).plan
    for job in jobs:
        argv = tuple(shlex.split(kept.command(replace(job, request=applied(job.request, job.triton)), env)))
        whole += Plan(whole.title, (Run(argv, cwd=Path(), phase=_PHASE),))
    return whole


def _filled(
    left: Sequence[CompileJob],
    known: Mapping[str, float],
    refused: dict[Path, list[SmithError]],
    options: BatchOptions,
) -> Iterator[tuple[Path, list[Manifest], list[PackedPart]]]:
    """Compile the jobs that are left, and yield each when it is complete.

    The values are the job's folder, the manifests of its parts, and the files of a keyed job: those of
    others are in the folder.

    Args:
        left: the jobs, without the targets that are compiled already.
        known: see `_in_order`.
        refused: gets the reasons why all units of a job were refused, by its folder.
        options: of the batch.
    """
    number = options.count or _fitting()
    requests = [(job, request) for job in left for request in _cut(job.request)]
    # The workers of a cluster have environments of their own, so none is made here for them.
    places = {} if options.scheduler else _interpreters(left, max(1, number // len(requests)), options)
    prints: dict[str, str] = {}
    for job in left if options.scheduler else ():
        if job.triton.label not in prints:
            prints[job.triton.label] = _fingerprint(job.triton, options.env)
    todo = [
        _Unit(job, request, places.get(job.triton.label), prints.get(job.triton.label, ""))
        for job, request in requests
    ]
    parts: dict[Path, list[Manifest]] = {job.out: [] for job in left}
    packed: defaultdict[Path, list[PackedPart]] = defaultdict(list)
    units = Counter(unit.job.out for unit in todo)
    missing, reasons = dict(units), {job.out: list[SmithError]() for job in left}
    lengths = _in_order(todo, known)
    with (
        pool.opened(options.scheduler, min(number, len(todo))) as workers,
        PhaseProgress(live=False if options.silent else None, silent=options.silent) as progress,
    ):
        progress.begin(_PHASE)
        began = time.monotonic()
        for unit, result in _results(lengths, workers, options, progress):
            out = unit.job.out
            if isinstance(result, SmithError):
                _check_of_kernel(result, options)
                reasons[out] += [] if isinstance(result, DiedError) else [result]
                parts[out].append(_refusal(unit, result, options.env))
            elif isinstance(result, PackedResult):
                parts[out].append(replace(result.manifest, folder=out))
                packed[out] += result.parts
            else:
                parts[out].append(result)
            missing[out] -= 1
            if not missing[out]:
                # A job is refused as a whole: a large one has many units, which are not as many jobs.
                if len(reasons[out]) == units[out]:
                    refused[out] = reasons[out]
                yield out, parts.pop(out), packed.pop(out, [])
        progress.end(time.monotonic() - began)


def _interpreters(jobs: Sequence[CompileJob], each: int, options: BatchOptions) -> dict[str, Interpreter]:
    """Return the interpreters of the jobs by the labels of their Tritons, and make their environments.

    Args:
        jobs: the jobs.
        each: points that a unit compiles at once: with fewer units than cores, there are several.
        options: of the batch.
    """
    pool.prepare()
    # Before the bars: an environment that is made shows its own.
    tritons.make_all(job.triton.version for job in jobs)
    chosen = {job.triton.label: job.triton for job in jobs}
    return {
        label: tritons.place_of(triton, each, options.timeout, options.env)
        for label, triton in chosen.items()
    }


def _results(
    todo: Sequence[tuple[float, _Unit]],
    workers: ExecutorPool,
    options: BatchOptions,
    progress: PhaseProgress,
) -> Iterator[tuple[_Unit, Result | PackedResult]]:
    """Yield the result of each unit as it arrives.

    Args:
        todo: the units in their order, each with its expected length.
        workers: the pool.
        options: of the batch.
        progress: shows how many are done.
    """
    pending: dict[Future[UnitResult], tuple[float, _Unit]] = {}
    for length, unit in todo:
        try:
            pending[_submit(unit, workers, options)] = (length, unit)
        except SmithError as error:  # what cannot be sent
            yield unit, error
    whole, done = sum(length for length, _ in todo), 0.0
    over = len(todo) - len(pending)
    there: Callable[[RemoteJob], UnitResult] = work_unit.compile_there

    def triton_of(row: tuple[float, _Unit]) -> Triton:
        return row[1].job.triton

    def sent(row: tuple[float, _Unit]) -> RemoteJob:
        return _remote(row[1], options)

    again = _resubmitter(workers, there, triton_of, sent)
    patience = _patience(todo, options) if options.scheduler else math.inf
    for number, ((length, unit), result) in enumerate(workers.results(pending, again, patience), over + 1):
        yield unit, work_unit.unpack(result, unit.job.out) if isinstance(result, RemoteResult) else result
        # Not by their number: the first ones are the longest, and would promise an end that is far too late.
        done += length
        progress.update(number, len(todo), unit.job.title, done / whole if whole else None)


def _patience(todo: Sequence[tuple[float, _Unit]], options: BatchOptions) -> float:
    """Return the seconds that a unit may take on a worker, which first installs the Triton."""
    each = options.timeout or configs.load("kernels")["jobs"]["timeout"]
    points = max((_points(unit.request) for _, unit in todo), default=0)
    # Once more for the question that may precede the compiles of each target.
    return float(tritons.PATIENCE + each * 2 * points)


def _in_order(units: Sequence[_Unit], known: Mapping[str, float]) -> list[tuple[float, _Unit]]:
    """Return the units in the order in which they begin, each with its expected seconds.

    Args:
        units: the units.
        known: seconds of a compile by the name of the kernel's folder, for another Triton or target.
    """
    rows = [(known.get(unit.job.out.name), size_of(unit.request), unit) for unit in units]
    both = [(seconds, size) for seconds, size, _ in rows if seconds is not None]
    # Sizes become seconds by the units of which both are known; without any, they are only compared.
    scale = sum(seconds for seconds, _ in both) / max(1.0, sum(size for _, size in both)) if both else 1.0
    lengths = [
        (_points(unit.request) * (size * scale if seconds is None else seconds), unit)
        for seconds, size, unit in rows
    ]
    # Triton by Triton: the second one finds the stages that the first has made (`SharedStages`), and not one
    # that is being made at the same time. Of each, the longest first: one that began last would leave all
    # other cores idle until its end.
    order = {
        label: place for place, label in enumerate(dict.fromkeys(unit.job.triton.label for unit in units))
    }
    return sorted(lengths, key=lambda row: (order[row[1].job.triton.label], -row[0]))


def size_of(request: CompileRequest) -> float:
    """Return a number that grows with the time that one compile of a request takes.

    For 75 kernels of the public corpus, the rank correlation with that time was 0.82; by the length of the
    source alone 0.44, by the constants alone 0.75.
    """
    # Constants are mostly the sizes of tiles: the larger, the more registers and unrolled code.
    texts = (request.signature, *(text for sweep in request.sweeps for text in sweep.texts[:1]))
    constants = sum(math.log(int(digits) + 1) for text in texts for digits in _CONSTANT.findall(text))
    return _length(request.file, request.kernel) * (1 + constants)


def _points(request: CompileRequest) -> int:
    return math.prod((len(request.targets), *(len(sweep.texts) for sweep in request.sweeps)))


@functools.cache
def _length(file: Path, kernel: str) -> int:
    """Return the characters of a kernel's function, or of its file."""
    try:
        text = source.read(file)
    except FactError:
        return 0
    # Not parsed, which takes longer for a large file than a small kernel takes to compile.
    match = re.search(rf"^def {re.escape(kernel)}\b.*?(?=^[^\s)#]|\Z)", text, re.DOTALL | re.MULTILINE)
    return len(match[0]) if match and kernel else len(text)


def _submit(unit: _Unit, workers: ExecutorPool, options: BatchOptions) -> Future[UnitResult]:
    if unit.place:
        shared = work_unit.stages_of(unit.place) if _shares(unit) else None
        request = _request(unit, options, keeps=shared is not None)
        return workers.executor.submit(
            work_unit.compile_here, request, unit.place, unit.job.out, shared=shared, packs=unit.job.keyed
        )
    return workers.executor.submit(work_unit.compile_there, _remote(unit, options))


def _request(unit: _Unit, options: BatchOptions, *, keeps: bool) -> CompileRequest:
    """Return the request of a unit, which itself says whether a result that is not kept is disassembled."""
    # Of a kept result, that can be done later.
    return replace(unit.request, disassemble=options.disassemble if keeps else unit.request.disassemble)


def _shares(unit: _Unit) -> bool:
    # Not of a job that is compiled to see whether the outcome is the same, as for `--confirm`. Nor with a
    # plugin, say: its variable tells its path, and not what somebody builds there.
    return unit.job.keyed and not kept.is_steered() and not kept.links(unit.request)


def _remote(unit: _Unit, options: BatchOptions) -> RemoteJob:
    triton, shares = unit.job.triton, _shares(unit)
    request = _request(unit, options, keeps=shares)
    return work_unit.pack(
        request,
        triton,
        options.timeout,
        options.env,
        unit.fingerprint,
        shares=shares,
        packs=unit.job.keyed,
    )


def _resubmitter(
    workers: ExecutorPool,
    fn: Callable[[J], R],
    triton_of: Callable[[K], Triton],
    job_of: Callable[[K], J],
) -> Callable[[K, R], Future[R] | None]:
    """Return what submits a unit to another worker if one could not run it; None if its result counts.

    Args:
        workers: the pool.
        fn: runs a unit on a worker.
        triton_of: returns the Triton of a unit.
        job_of: returns what is sent for a unit.
    """
    unfit: defaultdict[str, set[str]] = defaultdict(set)  # by the Triton's name, the workers that lack it
    refusals: defaultdict[int, int] = defaultdict(int)  # by the unit's identity

    def again(unit: K, result: R) -> Future[R] | None:
        if not isinstance(result, UnfitWorkerError):
            return None
        label = triton_of(unit).label
        known = unfit[label]
        if result.worker not in known:  # once, and not for each of its units
            known.add(result.worker)
            console.warn(f"worker {result.worker} cannot compile by {label}: {result.line}")
        refusals[id(unit)] += 1
        # A worker that refuses is done sooner than one that compiles, and would draw all units to itself:
        # that costs nothing but the way, since each goes on to another one.
        if refusals[id(unit)] >= _REFUSALS:
            return None
        return workers.submit_elsewhere(known, fn, job_of(unit))

    return again


def _fingerprint(triton: Triton, env: str) -> str:
    """Return the fingerprint of a Triton that workers must have, too; empty for one that cannot differ."""
    # A release is the same wherever it is installed, and each worker installs it for itself.
    if triton.version:
        return ""
    try:
        place = tritons.place_of(replace(triton, ptxas=""), env=env)
    except UnavailableError:  # an environment that only the workers have
        return ""
    return tritons.fingerprint(place.python)


def _check_of_kernel(error: SmithError, options: BatchOptions) -> None:
    """Raise an error that is not noted in a manifest: see `BatchOptions.only_kernels`."""
    if options.only_kernels and not (_is_of_kernel(error) or isinstance(error, DiedError)):
        raise error


def _is_of_kernel(error: SmithError) -> bool:
    """Report whether an error is a refusal of the kernel, and not of a machine that is full or busy."""
    return isinstance(error, (FactError, UsageError)) and not isinstance(error, UnavailableError)


def _refusal(unit: _Unit, error: SmithError, env: str) -> Manifest:
    """Return a refusal or a death as one point for each target that nothing came of."""
    job, request = unit.job, unit.request
    # Without the file's checksum it is tried again. Unless the kernel itself was refused, and the job's key
    # says that nothing has changed since. A busy machine, or one without the interpreter, refuses no kernel.
    final = _is_of_kernel(error) and job.keyed
    content = source_tree.sum_of(request.file) if final else ""
    untested = isinstance(error, LostError | UnavailableError)
    status: Status = "crashed" if isinstance(error, DiedError) else "lost" if untested else "failed"
    message = "\n".join(filter(None, (error.what, error.why)))
    points = tuple(
        Point(name.replace(":", "-"), name, {}, {}, {}, dict(request.options), status, 0.0, error=message)
        for name in map(str, request.targets)
    )
    command = kept.command(job, env)
    return Manifest(
        job.out,
        request.kernel,
        str(request.file),
        content,
        job.triton.triton,
        "",
        "",
        command,
        points,
        reads=error.reads,
    )


def _write(manifest: Manifest) -> None:
    step = Write(manifest.folder / FILE, manifest.render(), phase="manifest")
    workspace.default().run(Plan("manifest", (step,)), "kernel.unit", quiet=True)


def _cut(request: CompileRequest) -> tuple[CompileRequest, ...]:
    """Cut a request into halves, along what has the most values, until none has too many points."""
    if _points(request) <= _MOST:
        return (request,)
    sizes = [len(request.targets), *(len(sweep.texts) for sweep in request.sweeps)]
    axis = sizes.index(max(sizes))
    middle = (max(sizes) + 1) // 2
    if axis == 0:
        halves = [
            replace(request, targets=part) for part in (request.targets[:middle], request.targets[middle:])
        ]
    else:
        before, sweep, after = request.sweeps[: axis - 1], request.sweeps[axis - 1], request.sweeps[axis:]
        parts = (replace(sweep, texts=part) for part in (sweep.texts[:middle], sweep.texts[middle:]))
        halves = [replace(request, sweeps=(*before, part, *after)) for part in parts]
    return tuple(part for half in halves for part in _cut(half))


def _fitting() -> int:
    """Return as many processes as cores and memory allow."""
    here = machine.read()
    each: int = configs.load("kernels")["jobs"]["memory"] * _MIB
    return max(1, min(here.cores, here.memory // each))
