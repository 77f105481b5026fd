"""Compile many kernels with many Tritons in a pool; existing results are reused."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import source_tree, tritons
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import FILE, Manifest, Point, Status
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import applied
from tritonsmith.core import configs
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Run, Write
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import machine
from tritonsmith.lab.batch import executor, work_unit
from tritonsmith.lab.batch import resume as batch_resume
from tritonsmith.lab.batch.executor import DiedError, ExecutorPool
from tritonsmith.lab.batch.resume import CompileJob
from tritonsmith.lab.batch.work_unit import RemoteResult
from tritonsmith.wheels import ptxas

__all__ = ["CompileJob", "run"]

_MOST = 32  # points of a unit: a larger sweep is cut, so that many can work at it
_PHASE = "compile"
_MIB = 1 << 20

Result = Manifest | SmithError


@dataclass(frozen=True)
class _Unit:
    """A part of a job.

    Attributes:
        job: it.
        asked: this part of its points.
        place: who compiles it here; None if somebody else does.
    """

    job: CompileJob
    asked: CompileRequest
    place: Interpreter | None


def run(
    jobs: Sequence[CompileJob],
    scheduler: str = "",
    *,
    count: int | None = None,
    timeout: int | None = None,
    env: str = "wheel",
    resume: bool = False,
    silent: bool = False,
) -> list[Manifest]:
    """Compile all of them.

    A kernel that a Triton refuses, or whose process dies, is a row of its manifest.

    Args:
        jobs: what is wanted; their folders are all different.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the usual.
        env: of sides that name no Triton.
        resume: points that are there already are not compiled again: see `resume.kept`.
        silent: show no progress.

    Returns:
        The manifest of each job's folder, in the order of the jobs.

    Raises:
        SmithError: there is no such Triton or scheduler, or every job was refused for the same reason.
        InterruptedRunError: ^C; folders that are complete are kept.
    """
    workspace.default().claim()
    wanted = [replace(job, asked=applied(job.asked, job.side)) for job in jobs]
    old = {job.out: batch_resume.kept(job, env) if resume else None for job in wanted}
    left = [rest for job in wanted if (rest := batch_resume.rest(job, old[job.out]))]
    made = {out: [known] for out, known in old.items() if known}
    if left:
        try:
            refused = _compile(left, wanted, made, scheduler, count, timeout, env, silent=silent)
        except KeyboardInterrupt:
            if not resume:
                raise InterruptedRunError("interrupted") from None
            hints = ["run the same command again to continue"]
            raise InterruptedRunError("interrupted; completed results are kept", hints=hints) from None
        if len(refused) == len(wanted) and len(set(map(str, refused))) == 1:
            raise refused[0]
    return [batch_resume.merged(job, env, made[job.out]) for job in wanted]


def plan(jobs: Sequence[CompileJob], env: str = "wheel") -> Plan:
    """The steps of `run` for a single process: create environments, then compile job by job.

    Raises:
        SmithError: a side is wrong.
    """
    versions = dict.fromkeys(job.side.version for job in jobs if job.side.version)
    whole = Plan("compile kernels")
    for version in versions:
        whole += tritons.plan(version)
    for version in dict.fromkeys(job.side.ptxas for job in jobs if job.side.ptxas):
        whole += ptxas.prepare(version, workspace.default(), machine.read(), Path(sys.executable)).plan
    for job in jobs:
        one = replace(job, asked=applied(job.asked, job.side))
        argv = tuple(shlex.split(batch_resume.command(one, env)))
        whole += Plan(whole.title, (Run(argv, cwd=Path(), phase=_PHASE),))
    return whole


def _compile(
    left: Sequence[CompileJob],
    wanted: Sequence[CompileJob],
    made: dict[Path, list[Manifest]],
    scheduler: str,
    count: int | None,
    timeout: int | None,
    env: str,
    *,
    silent: bool,
) -> list[SmithError]:
    """Fill `made` with what comes; each folder gets its manifest when all of it is there.

    Returns:
        Why units were refused.
    """
    whole = {job.out: job for job in wanted}
    number = count or _fitting()
    parts = [(job, asked) for job in left for asked in _cut(job.asked)]
    places: dict[str, Interpreter] = {}
    if not scheduler:  # before the bars: an environment that is made shows its own
        each = max(1, number // len(parts))
        for job in left:
            if job.side.label not in places:
                places[job.side.label] = tritons.place_of(job.side, each, timeout, env)
    todo = [_Unit(job, asked, places.get(job.side.label)) for job, asked in parts]
    open_parts = {job.out: sum(one.job.out == job.out for one in todo) for job in left}
    refused: list[SmithError] = []
    with (
        executor.opened(scheduler, min(number, len(todo))) as workers,
        PhaseProgress(live=False if silent else None, silent=silent) as progress,
    ):
        progress.begin(_PHASE)
        began = time.monotonic()
        for unit, result in _results(todo, workers, timeout, env, progress):
            out = unit.job.out
            if isinstance(result, SmithError):
                refused += [] if isinstance(result, DiedError) else [result]
                result = _row(unit, result, env)  # noqa: PLW2901
            made.setdefault(out, []).append(result)
            open_parts[out] -= 1
            if not open_parts[out]:
                _write(batch_resume.merged(whole[out], env, made[out]))
        progress.end(time.monotonic() - began)
    return refused


def _results(
    todo: Sequence[_Unit], workers: ExecutorPool, timeout: int | None, env: str, progress: PhaseProgress
) -> Iterator[tuple[_Unit, Result]]:
    """Yield the result of each unit as it arrives."""
    pending: dict[Future[Result | RemoteResult], _Unit] = {}
    for unit in todo:
        try:
            pending[_submit(unit, workers, timeout, env)] = unit
        except SmithError as error:  # what cannot be sent
            yield unit, error
    over = len(todo) - len(pending)
    for number, (unit, found) in enumerate(workers.results(pending), over + 1):
        yield unit, work_unit.unpack(found, unit.job.out) if isinstance(found, RemoteResult) else found
        progress.update(number, len(todo), unit.job.title)


def _submit(
    unit: _Unit, workers: ExecutorPool, timeout: int | None, env: str
) -> Future[Result | RemoteResult]:
    if unit.place:
        return workers.executor.submit(work_unit.compile_here, unit.asked, unit.place, unit.job.out)
    parcel = work_unit.pack(unit.asked, unit.job.side, timeout, env)
    return workers.executor.submit(work_unit.compile_there, parcel)


def _row(unit: _Unit, error: SmithError, env: str) -> Manifest:
    """A refusal or a death, as one point for each target that nothing came of.

    Without the file's checksum: so it is tried again. Unless the kernel itself was refused, and the job's key
    says that nothing has changed since.
    """
    final = unit.job.keyed and isinstance(error, (FactError, UsageError))
    digest = source_tree.sum_of(unit.asked.file) if final else ""
    status: Status = "crashed" if isinstance(error, DiedError) else "failed"
    said = "\n".join(filter(None, (error.what, error.why)))
    asked, job = unit.asked, unit.job
    points = tuple(
        Point(name.replace(":", "-"), name, {}, {}, {}, dict(asked.options), status, 0.0, error=said)
        for name in map(str, asked.targets)
    )
    command = batch_resume.command(job, env)
    return Manifest(job.out, asked.kernel, str(asked.file), digest, job.side.triton, "", "", command, points)


def _write(made: Manifest) -> None:
    step = Write(made.folder / FILE, made.render(), phase="manifest")
    workspace.default().run(Plan("manifest", (step,)), "kernel.unit", quiet=True)


def _cut(asked: CompileRequest) -> tuple[CompileRequest, ...]:
    """Halves, and halves of halves, along what has the most values, until none has too many points."""
    sizes = [len(asked.targets), *(len(sweep.texts) for sweep in asked.sweeps)]
    if math.prod(sizes) <= _MOST:
        return (asked,)
    axis = sizes.index(max(sizes))
    middle = (max(sizes) + 1) // 2
    if axis == 0:
        halves = [replace(asked, targets=part) for part in (asked.targets[:middle], asked.targets[middle:])]
    else:
        before, sweep, after = asked.sweeps[: axis - 1], asked.sweeps[axis - 1], asked.sweeps[axis:]
        parts = (replace(sweep, texts=part) for part in (sweep.texts[:middle], sweep.texts[middle:]))
        halves = [replace(asked, sweeps=(*before, part, *after)) for part in parts]
    return tuple(one for half in halves for one in _cut(half))


def _fitting() -> int:
    """As many processes as cores and memory allow."""
    here = machine.read()
    each: int = configs.load("kernels")["jobs"]["memory"] * _MIB
    return max(1, min(here.cores, here.memory // each))
