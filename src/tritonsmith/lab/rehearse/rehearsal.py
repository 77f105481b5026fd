"""Compile a list of kernels by two Tritons; what a release has compiled before is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.run import CompileJob
from tritonsmith.lab.compare import inputs, matching
from tritonsmith.lab.compare.diff import Compared, Comparison


@dataclass(frozen=True)
class RehearsedKernel:
    """One kernel, by both Tritons.

    Attributes:
        name: in the list.
        a: its compile by the first.
        b: by the second.
    """

    name: str
    a: CompileJob
    b: CompileJob


@dataclass(frozen=True)
class UpgradeRehearsal:
    """The compiles of an upgrade's rehearsal.

    Attributes:
        file: the list of kernels.
        a: the Triton of today.
        b: the Triton to upgrade to.
        kernels: in the order of the list.
        skipped: names of kernels that are not for both.
    """

    file: Path
    a: Triton
    b: Triton
    kernels: tuple[RehearsedKernel, ...]
    skipped: tuple[str, ...]

    @property
    def jobs(self) -> tuple[CompileJob, ...]:
        """All compiles; entries that ask for the same share one."""
        every = [one.a for one in self.kernels] + [one.b for one in self.kernels]
        return tuple({job.out: job for job in every}.values())

    @property
    def folders(self) -> tuple[Path, Path]:
        """The folders of both results."""
        return kept.folder_of(self.a), kept.folder_of(self.b)

    def plan(self) -> Plan:
        """All of it, what is kept too."""
        return run.plan(self.jobs)


@dataclass(frozen=True)
class RehearsalResult:
    """The result of a rehearsal.

    Attributes:
        comparison: pairs of compiles; their kernels have the names of the list.
        compiled: how many kernels were compiled now, by either Triton.
        kept: how many were not, because nothing has changed.
        skipped: names of kernels that are not for both.
        assumed: names of kernels that stand-ins for missing modules decide about.
    """

    comparison: Comparison
    compiled: int
    kept: int
    skipped: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def parse_side(text: str, flag: str) -> Triton:
    """A Triton: a version, an environment or an interpreter.

    Raises:
        UsageError: nothing of these, or more than that.
    """
    if not text:
        raise UsageError(f"{flag} is missing", hints=["invoke compare --from 3.6.0 --to 3.9.0"])
    side = tritons.parse(text)
    if side.folder or side.targets or side.options:
        hints = ["a version, an environment or an interpreter: --from 3.6.0 --to debug"]
        raise UsageError(f"{flag} cannot be {text!r}", hints=hints)
    return side


def prepare(
    entries: Sequence[ListedKernel],
    file: Path,
    flags: CompileRequest,
    a: Triton,
    b: Triton,
    *,
    base: Path | None = None,
) -> UpgradeRehearsal:
    """Return the kernels to compile, and those that are skipped.

    Args:
        entries: the kernels.
        file: the list that they are from.
        flags: targets of kernels that name none, and what else flags ask for.
        a: the Triton of today.
        b: the Triton to upgrade to.
        base: folder that the kernels' files are relative to; that of the list if None.

    Raises:
        SmithError: a kernel cannot be asked for, or none is for both Tritons.
    """
    if a == b:
        raise UsageError("--from and --to are the same Triton", hints=["--from 3.6.0 --to 3.9.0"])
    try:
        asked = inputs.listed(entries, (base or file.parent) / file.name, flags)
    except FactError as error:
        if base is not None or error.what != "no such file":
            raise
        hints = [*error.hints, "if the list names files of a checkout of Triton: --source DIR"]
        raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
    wanted, skipped = [], []
    for entry, one in zip(entries, asked, strict=True):
        if entry.fits(a.triton) and entry.fits(b.triton):
            jobs = (kept.keyed(one.asked, side, entry.module) for side in (a, b))
            wanted.append(RehearsedKernel(entry.name, *jobs))
        else:
            skipped.append(entry.name)
    if not wanted:
        hints = ["check versions = ... in the list"]
        raise UsageError(f"no kernel is for both {a.label} and {b.label}", where=file, hints=hints)
    return UpgradeRehearsal(file, a, b, tuple(wanted), tuple(skipped))


def execute(
    rehearsal: UpgradeRehearsal,
    scheduler: str = "",
    *,
    count: int | None = None,
    timeout: int | None = None,
    silent: bool = False,
) -> RehearsalResult:
    """Compile what is not kept, and measure all.

    Raises:
        LockedError: another rehearsal runs.
        SmithError: as `batch.run.run`.
    """
    jobs = rehearsal.jobs
    purpose = f"rehearse from {rehearsal.a.label} to {rehearsal.b.label}"
    with kept.held(rehearsal.folders, workspace.default(), purpose):
        known = sum(kept.rest(job, kept.find(job, "")) is None for job in jobs)
        made = run.run(jobs, scheduler, count=count, timeout=timeout, resume=True, silent=silent)
        manifests = {job.out: manifest for job, manifest in zip(jobs, made, strict=True)}
        notes: dict[str, None] = {}
        compared: list[Compared] = []
        for one in rehearsal.kernels:
            compared += _compared(one, manifests[one.a.out], manifests[one.b.out], notes)
    comparison = Comparison(rehearsal.a.label, rehearsal.b.label, tuple(compared), notes=tuple(notes))
    assumed = tuple(
        one.name
        for one in rehearsal.kernels
        if manifests[one.a.out].warnings or manifests[one.b.out].warnings
    )
    return RehearsalResult(comparison, len(jobs) - known, known, rehearsal.skipped, assumed)


def _compared(
    kernel: RehearsedKernel, a: Manifest, b: Manifest, notes: dict[str, None]
) -> Iterator[Compared]:
    measured = [kept.metrics_of(manifest) for manifest in (a, b)]
    for name, found in zip(("from", "to"), measured, strict=True):
        notes.update(dict.fromkeys(f"{kernel.name}, --{name}: {text}" for text in found.notes))
    for pair in matching.pair([a], [b]).pairs:
        first, second = (
            one.points.get(member.point.id, {})
            for one, member in zip(measured, (pair.a, pair.b), strict=True)
        )
        yield Compared(replace(pair, kernel=kernel.name), first, second)
