"""A rehearsal: a list of kernels by two Tritons, and the question whether the second one is worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, digest
from tritonsmith.lab import product
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import diff, inputs, matching
from tritonsmith.lab.compare.diff import Compared, Comparison
from tritonsmith.lab.compare.thresholds import Threshold, WorseThanBaseline
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation
from tritonsmith.lab.product import Cell, CompiledKernels
from tritonsmith.lab.rehearse import assessment

TASK = "rehearse"


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
    def name(self) -> str:
        """The name of its page and of its folder."""
        return f"{folder_name(self.a.label)}-{folder_name(self.b.label)}".replace("/", "_")

    @property
    def folder(self) -> Path:
        """The folder of its journal; another list of kernels has another one."""
        return workspace.default().root / "rehearsals" / f"{self.name}-{digest(str(self.file))[:8]}"

    @property
    def jobs(self) -> tuple[CompileJob, ...]:
        """All compiles; entries that ask for the same share one."""
        every = [kernel.a for kernel in self.kernels] + [kernel.b for kernel in self.kernels]
        return tuple({job.out: job for job in every}.values())

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The compiles target by target, each by the second Triton with its baseline by the first."""
        return tuple(
            cell
            for kernel in self.kernels
            for cell in (
                *product.cells(kernel.name, self.a.label, kernel.a),
                *product.cells(kernel.name, self.b.label, kernel.b, kernel.a),
            )
        )

    @property
    def folders(self) -> tuple[Path, Path]:
        """The folders of both results."""
        return kept.folder_of(self.a), kept.folder_of(self.b)

    def key(self, limits: Sequence[Threshold]) -> str:
        """Return the key of its journal."""
        return product.key(TASK, self.cells, [limit.term.text for limit in limits])

    def plan(self) -> Plan:
        """Return the steps of all of it, what is kept too."""
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
        flaky: kernel and target of what came out otherwise when it was compiled again (`--confirm`).
    """

    comparison: Comparison
    compiled: int
    kept: int
    skipped: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    flaky: frozenset[tuple[str, str]] = frozenset()


def parse_side(text: str, flag: str) -> Triton:
    """Parse a Triton: a version, an environment or an interpreter.

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
        SmithError: a kernel cannot be asked for, none is for both Tritons, or two of one name are.
    """
    if a == b:
        raise UsageError("--from and --to are the same Triton", hints=["--from 3.6.0 --to 3.9.0"])
    try:
        listed = inputs.listed(entries, (base or file.parent) / file.name, flags)
    except FactError as error:
        if base is not None or error.what != "no such file":
            raise
        hints = [*error.hints, "if the list names files of a checkout of Triton: --source DIR"]
        raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
    kernels, skipped = [], []
    for entry, kernel in zip(entries, listed, strict=True):
        if entry.fits(a.triton) and entry.fits(b.triton):
            jobs = (kept.keyed(kernel.asked, triton, entry.module) for triton in (a, b))
            kernels.append(RehearsedKernel(entry.name, *jobs))
        else:
            skipped.append(entry.name)
    names = Counter(kernel.name for kernel in kernels)
    if twice := [name for name, count in names.items() if count > 1]:
        hints = ['give one of them another name: name = "..."', "or check versions = ... in the list"]
        what = f"the list has {twice[0]} twice for both {a.label} and {b.label}"
        raise UsageError(what, where=file, hints=hints)
    if not kernels:
        hints = ["check versions = ... in the list"]
        raise UsageError(
            f"no kernel in the list is for both {a.label} and {b.label}", where=file, hints=hints
        )
    return UpgradeRehearsal(file, a, b, tuple(kernels), tuple(skipped))


def execute(
    rehearsal: UpgradeRehearsal, limits: Sequence[Threshold], options: BatchOptions, rules: Rules
) -> tuple[RehearsalResult, Journal]:
    """Compile what is not kept, and measure all.

    Args:
        rehearsal: the rehearsal.
        limits: the thresholds.
        options: of the pool, with `resume`.
        rules: how often each cell is tested, and which are not.

    Raises:
        LockedError: another rehearsal runs.
        SmithError: as `batch.run.compiled`.
    """
    question = WorseThanBaseline(limits, kept.metrics_of)
    subject = CompiledKernels(question, options)
    cells = rehearsal.cells
    purpose = f"rehearse from {rehearsal.a.label} to {rehearsal.b.label}"
    terms = [limit.term.text for limit in limits]
    with (
        kept.held((*rehearsal.folders, rehearsal.folder), workspace.default(), purpose),
        product.recorded(rehearsal.folder, TASK, cells, terms, rules) as (journal, earlier),
    ):
        observations = product.execute(cells, subject, journal, earlier)
        result = _result(rehearsal, subject, question, observations)
        try:
            answer = assessment.check(result.comparison, limits, result.flaky).words
        except FactError as error:  # nothing compiles by both: the caller says so, with the messages
            answer = error.what
        journal.end(answer)
    return result, journal


def _result(
    rehearsal: UpgradeRehearsal,
    subject: CompiledKernels,
    question: WorseThanBaseline,
    observations: Mapping[str, Observation],
) -> RehearsalResult:
    notes = dict.fromkeys(product.doubts(observations))
    compared: list[Compared] = []
    assumed = []
    for kernel in rehearsal.kernels:
        manifests = [
            subject.manifest(job, [cell.target for cell in product.cells(kernel.name, "", job)])
            for job in (kernel.a, kernel.b)
        ]
        # Of the whole folder, which entries that ask for the same may share.
        whole = [subject.manifests.get(job.out) for job in (kernel.a, kernel.b)]
        measured = {manifest.folder: question.metrics_of(manifest) for manifest in whole if manifest}
        for name, manifest in zip(("from", "to"), whole, strict=True):
            texts = measured[manifest.folder].notes if manifest else ()
            notes.update(dict.fromkeys(f"{kernel.name}, --{name}: {text}" for text in texts))
        if any(manifest and manifest.warnings for manifest in manifests):
            assumed.append(kernel.name)
        a, b = manifests
        requested = product.targets_of((kernel.a, kernel.b))
        pairs = (
            matching.pair([a], [b], requested).pairs if a and b else ()
        )  # one may have been skipped by hand
        compared += (diff.with_metrics(replace(pair, kernel=kernel.name), measured) for pair in pairs)
    comparison = Comparison(rehearsal.a.label, rehearsal.b.label, tuple(compared), notes=tuple(notes))
    return RehearsalResult(
        comparison,
        subject.compiled,
        subject.kept,
        rehearsal.skipped,
        tuple(assumed),
        flaky=frozenset(
            (cell.kernel, cell.target) for cell in rehearsal.cells if product.unsure(observations[cell.name])
        ),
    )
