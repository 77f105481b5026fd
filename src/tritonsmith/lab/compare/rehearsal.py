"""A rehearsal: a list of kernels by two Tritons, what gets worse by the second one, and how sure that is."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, digest
from tritonsmith.core.text import counted, version_key
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.core.ui.tables import clipped
from tritonsmith.facts import checkout
from tritonsmith.lab import metrics, product, questions, terms
from tritonsmith.lab.batch import kept, kept_files, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.kept_files import FolderMetrics
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching, thresholds, two_sides
from tritonsmith.lab.compare.matching import Compared, Comparison, IssueGroup, Pair, Unpaired
from tritonsmith.lab.compare.thresholds import (
    LAUNCHES,
    FindingGroup,
    Threshold,
    Violation,
    WorseThanBaseline,
    spelled,
)
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal, Observation
from tritonsmith.lab.product import Cell, CompiledKernels

TASK = "rehearse"
FROM_TO = ("--from", "--to")
_LATE = "its compile by the first Triton, which took too long"  # in the place of a metric, too
_ALONE = "its counterpart"  # in the place of a metric
_FLAKY = "the outcome of its compile"  # in the place of a metric
_LOST = "its compile, which no worker could run"  # in the place of a metric
_SHOWN = 8  # messages of kernels that compile by neither Triton, in an error


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
        names: the flags of both Tritons, for messages.
    """

    file: Path
    a: Triton
    b: Triton
    kernels: tuple[RehearsedKernel, ...]
    skipped: tuple[str, ...]
    names: tuple[str, str] = FROM_TO

    @property
    def name(self) -> str:
        """The name of its page and of its folder."""
        return f"{folder_name(self.a.label)}-{folder_name(self.b.label)}".replace("/", "_")

    @property
    def folder(self) -> Path:
        """The folder of its journal."""
        # By the list, too: rehearsals of two packages between the same Tritons have a journal each.
        return workspace.default().root / "rehearsals" / f"{self.name}-{digest(str(self.file))[:8]}"

    @property
    def jobs(self) -> tuple[CompileJob, ...]:
        """All compiles; entries that ask for the same share one."""
        every = [kernel.a for kernel in self.kernels] + [kernel.b for kernel in self.kernels]
        return tuple({job.out: job for job in every}.values())

    @property
    def jobs_of_a(self) -> tuple[CompileJob, ...]:
        """All compiles by the first Triton."""
        return tuple(kernel.a for kernel in self.kernels)

    @property
    def jobs_of_b(self) -> tuple[CompileJob, ...]:
        """All compiles by the second."""
        return tuple(kernel.b for kernel in self.kernels)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The compiles target by target, each by the second Triton with its baseline by the first."""
        return tuple(
            cell
            for kernel in self.kernels
            for cell in (
                # The baselines are cells as well, so that `--skip` and `--confirm` are about both Tritons.
                *product.cells(kernel.name, self.a.label, kernel.a),
                *product.cells(kernel.name, self.b.label, kernel.b, kernel.a),
            )
        )

    def key(self, limits: Sequence[Threshold]) -> str:
        """Return the key of its journal."""
        return product.key(TASK, self.cells, [limit.term.text for limit in limits])

    def plan(self) -> Plan:
        """Return the steps of all compiles, those whose results are kept included."""
        return run.plan(self.jobs)


@dataclass(frozen=True)
class RehearsalResult:
    """The result of a rehearsal.

    Attributes:
        comparison: pairs of compiles; their kernels have the names of the list.
        compiled: how many kernels were compiled now, by either Triton.
        kept: how many were not, because nothing has changed.
        stages: the number of stages of what was compiled now.
        shared: how many of these did not run, as another compile had made them.
        bytes_each: of a result in the database, on average.
        skipped: names of kernels that are not for both.
        assumed: names of kernels that stand-ins for missing modules decide about.
        flaky: kernel and target of what came out otherwise when it was compiled again (`--confirm`).
        assessment: what `check` says; None if nothing compiles by both.
        issues: the known issues of the kernels by the second Triton.
    """

    comparison: Comparison
    compiled: int
    kept: int
    stages: int = 0
    shared: int = 0
    bytes_each: int = 0
    skipped: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    flaky: frozenset[tuple[str, str]] = frozenset()
    assessment: Assessment | None = None
    issues: tuple[IssueGroup, ...] = ()


def parse_side(text: str, flag: str) -> Triton:
    """Parse a Triton: a version, an environment or an interpreter, and perhaps another ptxas.

    Raises:
        UsageError: it is none of these, or has targets or options.
    """
    if not text:
        raise UsageError(f"{flag} is missing", hints=["invoke compare --from 3.6.0 --to 3.9.0"])
    side = tritons.parse(text, targets_too=False)
    if side.folder or side.targets or side.options:
        hints = [f"a version, an environment or an interpreter: {flag} 3.6.0"]
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
    names: tuple[str, str] = FROM_TO,
) -> UpgradeRehearsal:
    """Return the kernels to compile, and those that are skipped.

    Args:
        entries: the kernels.
        file: the list that they are from.
        flags: targets of kernels that name none, and what else flags ask for.
        a: the Triton of today.
        b: the Triton to upgrade to.
        base: folder that the kernels' files are relative to; that of the list if None.
        names: the flags of both Tritons, for messages.

    Raises:
        SmithError: a kernel cannot be compiled as listed, none is for both Tritons, or two of one name are.
    """
    if a == b:
        first, second = names
        hints = [f"{first} 3.6.0 {second} 3.9.0"]
        raise UsageError(f"{first} and {second} are the same Triton", hints=hints)
    try:
        listed = two_sides.listed_kernels(entries, (base or file.parent) / file.name, flags)
    except FactError as error:
        # If there is a base, the user has named the checkout already, and needs no hint.
        if base is not None or error.what != "no such file":
            raise
        hints = [*error.hints, "if the list names files of a checkout of Triton: --source DIR"]
        raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
    kernels, skipped, kept_jobs = [], [], kept.KeyedJobs()
    versions = a.triton, b.triton  # read from files
    for entry, kernel in zip(entries, listed, strict=True):
        if all(map(entry.fits, versions)):
            # The key is the content, so the next rehearsal finds these results, whatever list it is of.
            jobs = (kept_jobs.job(kernel.asked, triton, entry.module) for triton in (a, b))
            kernels.append(RehearsedKernel(entry.name, *jobs))
        else:
            skipped.append(entry.name)
    # A list may have a name once for each range of versions, but cells and pages go by the name alone.
    counts = Counter(kernel.name for kernel in kernels)
    if twice := [name for name, count in counts.items() if count > 1]:
        hints = ['give one of them another name: name = "..."', "or check versions = ... in the list"]
        what = f"the list has {twice[0]} twice for both {a.label} and {b.label}"
        raise UsageError(what, where=file, hints=hints)
    if not kernels:
        hints = ["check versions = ... in the list"]
        raise UsageError(
            f"no kernel in the list is for both {a.label} and {b.label}", where=file, hints=hints
        )
    return UpgradeRehearsal(file, a, b, tuple(kernels), tuple(skipped), names)


def execute(
    rehearsal: UpgradeRehearsal,
    limits: Sequence[Threshold],
    options: BatchOptions,
    rules: Rules,
    *,
    checks: bool = False,
) -> tuple[RehearsalResult, Journal]:
    """Compile what is not kept, and measure everything.

    Args:
        rehearsal: the rehearsal.
        limits: the thresholds.
        options: of the pool, with `resume`.
        rules: how often each cell is tested, and which are not.
        checks: also run the kernels whose `ttgir` changed: see `questions.ResultRegressions`.

    Raises:
        LockedError: another rehearsal runs.
        SmithError: as `batch.run.compiled`.
    """
    # A compile that is repeated is compared with the first one of its own side. And what a user limits has to
    # have a value, also where it does not change.
    full = rules.confirm > 1 or any(limit.required and terms.needs_code(limit.term) for limit in limits)
    question = WorseThanBaseline(limits, partial(kept_files.metrics_of, code=full))
    subject = CompiledKernels(question, replace(options, disassemble=full), question.unread)
    cells = rehearsal.cells
    texts = [limit.term.text for limit in limits]
    # Nothing is cleared here, as no result belongs to a single rehearsal.
    with product.recorded(rehearsal.folder, TASK, cells, texts, rules) as (journal, earlier):
        observations = product.execute(cells, subject, journal, earlier)
        result = _result(rehearsal, subject, question, observations)
        if checks:
            result = replace(result, comparison=_with_results(rehearsal, result.comparison, options))
        try:
            assessment = check(result.comparison, limits, result.flaky)
            result, answer = replace(result, assessment=assessment), assessment.words
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
    alone: list[Unpaired] = []
    known: list[tuple[str, Sequence[str], Sequence[str]]] = []
    assumed = []
    for kernel in rehearsal.kernels:
        manifests = [
            # Only the targets of these cells are used, so the name of the Triton does not matter.
            subject.manifest(job, [cell.target for cell in product.cells(kernel.name, "", job)])
            for job in (kernel.a, kernel.b)
        ]
        # Of the whole folder, which entries that ask for the same may share.
        whole = [subject.manifests.get(job.out) for job in (kernel.a, kernel.b)]
        measured = {manifest.folder: question.metrics_of(manifest) for manifest in whole if manifest}
        for name, manifest in zip(rehearsal.names, whole, strict=True):
            texts = measured[manifest.folder].notes if manifest else ()
            notes.update(dict.fromkeys(f"{kernel.name}, {name}: {text}" for text in texts))
        if any(manifest and manifest.warnings for manifest in manifests):
            assumed.append(kernel.name)
        a, b = manifests
        # The targets that were asked for: a cell that is skipped by hand leaves a gap in its manifest.
        requested = product.targets_of((kernel.a, kernel.b))
        if not (a and b):  # one was skipped by hand
            continue
        paired = matching.pair([a], [b], requested)
        compared += (
            matching.with_metrics(replace(pair, kernel=kernel.name), measured) for pair in paired.pairs
        )
        common = {point.target for point in a.points} & {point.target for point in b.points}
        known += [(kernel.name, *_issues(measured, pair)) for pair in paired.pairs]
        alone += (
            replace(row, kernel=kernel.name)
            for row in paired.unpaired
            if row.member.point.target in common  # the others were skipped by hand
        )
    comparison = Comparison(
        rehearsal.a.label, rehearsal.b.label, tuple(compared), tuple(alone), notes=tuple(notes)
    )
    return RehearsalResult(
        comparison,
        subject.compiled,
        subject.kept,
        subject.stages,
        subject.shared,
        kept_files.database().bytes_each(),
        rehearsal.skipped,
        tuple(assumed),
        flaky=frozenset(
            (cell.kernel, cell.target) for cell in rehearsal.cells if product.unsure(observations[cell.name])
        ),
        issues=matching.issue_groups(known),
    )


def _issues(measured: Mapping[Path, FolderMetrics], pair: Pair) -> tuple[Sequence[str], Sequence[str]]:
    """Return the ids of the known issues of both sides of a pair."""
    a, b = (measured[side.manifest.folder].issues.get(side.point.id, ()) for side in (pair.a, pair.b))
    return a, b


def _with_results(rehearsal: UpgradeRehearsal, comparison: Comparison, options: BatchOptions) -> Comparison:
    """Return the comparison with the results of the kernels whose `ttgir` changed."""
    kernels = {kernel.name: kernel for kernel in rehearsal.kernels}
    checker, compared = questions.ResultRegressions(options), list(comparison.compared)
    changed = [place for place, row in enumerate(compared) if row.measured and _changes(row, "ttgir")]
    with PhaseProgress(live=False if options.silent else None, silent=options.silent) as progress:
        progress.begin("check results")
        began = time.monotonic()
        for number, place in enumerate(changed):
            row = compared[place]
            progress.update(number, len(changed), f"{row.pair.kernel} {row.pair.point}")
            kernel = kernels[row.pair.kernel]
            compared[place] = replace(row, result=checker.of(kernel.a, kernel.b, row.pair))
        progress.end(time.monotonic() - began)
    return replace(comparison, compared=tuple(compared))


def _changes(row: Compared, stage: str) -> bool:
    a, b = (member.point.stages.get(stage) for member in (row.pair.a, row.pair.b))
    return (a and a.sha256) != (b and b.sha256)


@dataclass(frozen=True)
class Regression:
    """A metric that got worse without breaking a term, and so is no finding.

    Attributes:
        kernel: name in the list.
        point: name of the pair.
        change: the metric with both values: `registers 96 -> 124 (+29 %)`.
        percent: the size of the change, in percent of the first value.
    """

    kernel: str
    point: str
    change: str
    percent: float


@dataclass(frozen=True)
class Assessment:
    """The changes for the worse by the second Triton, and the doubts about them.

    Attributes:
        findings: the worst first.
        neither: kernel and point of what compiles by neither Triton, and the second's message.
        unknown: kernel, point and metric of values that are not known.
        fixed: kernel and point of what only the second Triton compiles.
        unchecked: metrics of required terms that no kernel has.
        kernels: how many compile by both.
        points: how many compiles those have.
        regressions: the largest changes for the worse that break no term, the largest first.
        same_binary: how many kernels compile to the same binaries by both, for all of their targets.
        listed: how many kernels were compiled.
    """

    findings: tuple[Violation, ...]
    neither: tuple[tuple[str, str, str], ...]
    unknown: tuple[tuple[str, str, str], ...]
    fixed: tuple[tuple[str, str], ...]
    unchecked: tuple[str, ...]
    kernels: int
    points: int
    regressions: tuple[Regression, ...] = ()
    same_binary: int = 0
    listed: int = 0

    @cached_property
    def groups(self) -> tuple[FindingGroup, ...]:
        """The findings by class, target and what changed, the worst class first.

        Raises:
            FactError: a stage cannot be read.
        """
        by_compile: defaultdict[tuple[str, str], list[Violation]] = defaultdict(list)
        for finding in self.findings:  # the worst first
            by_compile[finding.kernel, finding.point].append(finding)
        # A compile speaks once, by its worst class: more spills and a larger code have one cause.
        groups: defaultdict[tuple[float, str, str, str], list[Violation]] = defaultdict(list)
        for worst, *_ in by_compile.values():
            groups[worst.rank, worst.kind, worst.target, worst.cause].append(worst)
        listed = [
            (
                rank,
                FindingGroup(
                    kind,
                    target,
                    cause,
                    tuple(rows),
                    {(row.kernel, row.point): tuple(by_compile[row.kernel, row.point][1:]) for row in rows},
                ),
            )
            for (rank, kind, target, cause), rows in groups.items()
        ]
        # Groups of as many kernels stay in the order of their findings, the largest growth first.
        listed.sort(key=lambda item: (item[0], -item[1].kernels))
        return tuple(group for _, group in listed)

    @property
    def headline(self) -> str:
        """The number of findings, or what keeps their absence from being sure."""
        if not self.findings and self.doubts:
            return f"not sure: {self.doubts}"
        if not self.findings:
            looked = f"{counted(self.points, 'compile')} of {counted(self.kernels, 'kernel')}"
            return f"no finding by these terms in {looked}"
        kernels = len({finding.kernel for finding in self.findings})
        lead = f"{counted(len(self.findings), 'finding')} of {counted(len(self.groups), 'kind')}"
        return f"{lead} in {kernels:,} of {self.listed:,} kernels"

    @property
    def binaries(self) -> str:
        """The number of kernels whose binaries are the same, in words."""
        verb = "has" if self.same_binary == 1 else "have"
        return f"{self.same_binary:,} of {self.kernels:,} kernels {verb} the same binary"

    @property
    def summary(self) -> tuple[str, ...]:
        """The verdict in a few lines for the screen; one line if nothing got worse.

        Raises:
            FactError: a stage cannot be read.
        """
        table = configs.load("rehearse")["summary"]
        if not self.findings:
            return (clipped(f"{self.headline}; {self.binaries}", table["width"]),)
        last = f"{self.binaries}; not sure: {self.doubts}" if self.doubts else self.binaries
        shown = self.groups[: table["lines"] - 2]
        # The line about those that are left out takes the place of one.
        if len(shown) < len(self.groups):
            shown = shown[:-1]
        rest = self.groups[len(shown) :]
        lines = [self.headline]
        lines += [group.line(table["width"]) for group in shown]
        if rest:
            kernels = len({row.kernel for group in rest for row in group.findings})
            lines.append(f"and {counted(len(rest), 'kind')} more in {counted(kernels, 'kernel')}")
        return tuple(clipped(" ".join(line.split()), table["width"]) for line in (*lines, last))

    @property
    def doubts(self) -> str:
        """The reasons why it is not sure, in words; empty if it is."""
        neither = len({kernel for kernel, _, _ in self.neither})
        unknown = len({kernel for kernel, _, _ in self.unknown})
        parts = {
            f"{counted(neither, 'kernel')} {'compiles' if neither == 1 else 'compile'} by neither": neither,
            f"{counted(unknown, 'kernel')} {'has' if unknown == 1 else 'have'} unknown values": unknown,
            f"no kernel has {', '.join(self.unchecked)}": len(self.unchecked),
        }
        return ", ".join(part for part, number in parts.items() if number)

    @property
    def words(self) -> str:
        """The assessment in a line."""
        parts = [counted(len(self.findings), "finding")] if self.findings else []
        parts += [f"not sure: {self.doubts}"] if self.doubts else []
        if parts:
            return "; ".join(parts)
        if not self.regressions:
            return self.headline
        worst = self.regressions[0]
        lead = f"{self.headline}; the largest change for the worse"
        return f"{lead}: {worst.change}, {worst.kernel} {worst.point}"


def parse_limits(fail_on: str | None) -> tuple[Threshold, ...]:
    """Return the terms of `--fail-on`, or else the usual ones.

    Raises:
        UsageError: a term makes no sense.
    """
    return thresholds.usual() if fail_on is None else thresholds.parse(fail_on)


def check(
    comparison: Comparison,
    limits: Sequence[Threshold],
    flaky: Collection[tuple[str, str]] = (),
) -> Assessment:
    """Judge a comparison.

    Args:
        comparison: of the kernels by both Tritons.
        limits: the thresholds.
        flaky: kernel and target of what came out otherwise when it was compiled again: neither a finding nor
            that there is none is sure.

    Raises:
        FactError: no kernel compiles by both, so that there is no answer.
    """
    judgement = thresholds.check(comparison, limits)
    neither = tuple((row.pair.kernel, row.pair.point, row.pair.b.point.gist) for row in judgement.neither)
    if not judgement.measured and not judgement.findings:
        lost = [
            (row.kernel, row.point, row.message)
            for row in judgement.unknown
            if row.finding == thresholds.UNTESTED
        ]
        # Of what only the second compiles, the first's: its interpreter may have no Triton.
        by_second = [(row.pair.kernel, row.pair.point, row.pair.a.point.gist) for row in judgement.fixed]
        messages = [*neither, *lost, *by_second][:_SHOWN]
        why = "\n".join(f"{kernel} {point}: {message}" for kernel, point, message in messages)
        raise FactError("not sure: no kernel compiles by both Tritons", why=why or None)
    # The usual terms are for both vendors, so no kernel has all of their metrics: only terms of `--fail-on`
    # are required.
    unchecked = (threshold.term.metric for threshold in judgement.unchecked if threshold.required)
    sure = [row for row in judgement.findings if (row.kernel, row.target) not in flaky]
    unknown = [
        (row.kernel, row.point, _LOST if row.finding == thresholds.UNTESTED else row.metric or row.finding)
        for row in judgement.unknown
    ]
    unknown += [
        (row.kernel, row.point, row.metric or _FLAKY) for row in judgement.findings if row not in sure
    ]
    # A config of an autotuner that one of them lacks, say: nobody knows whether it got worse.
    unknown += [(row.kernel, row.member.point.id, f"{_ALONE}: {row.why}") for row in comparison.unpaired]
    # A compile that took too long tells nothing about the kernel: the machine may have been busy.
    unknown += [
        (row.pair.kernel, row.pair.point, _LATE)
        for row in (*judgement.neither, *judgement.fixed)
        if row.pair.a.point.status == "timeout"
    ]
    # The first compile, which the comparison shows, may be the one without a finding.
    doubtful = {(kernel, point) for kernel, point, _ in unknown}
    pairs = [(row.pair.kernel, row.pair.b.point.target, row.pair.point) for row in comparison.compared]
    unknown += [
        (kernel, point, _FLAKY)
        for kernel, target, point in pairs
        if (kernel, target) in flaky and (kernel, point) not in doubtful
    ]
    return Assessment(
        # Growth from zero is infinite, and so comes first among the findings of its kind.
        tuple(
            sorted(
                (row.ranked for row in sure), key=lambda row: (row.rank, -row.growth, row.kernel, row.point)
            )
        ),
        neither,
        tuple(dict.fromkeys(unknown)),
        tuple((row.pair.kernel, row.pair.point) for row in judgement.fixed),
        tuple(dict.fromkeys(unchecked)),
        len({row.pair.kernel for row in judgement.measured}),
        len(judgement.measured),
        _regressions(judgement.measured, judgement.findings),
        len(
            {row.pair.kernel for row in judgement.measured}
            - {row.pair.kernel for row in comparison.compared if not row.same_binary}
        ),
        len({row.pair.kernel for row in comparison.compared}),
    )


def culprit_command(finding: Violation, file: Path, a: Triton, b: Triton) -> str:
    """Return the command that finds the commit, or the release where `bisect` has no question for it.

    Args:
        finding: the finding.
        file: the list of kernels.
        a: the first Triton.
        b: the second.
    """
    kernel = f"{file}:{finding.kernel}"
    # A commit by another ptxas has no spelling in `bisect`.
    good, bad = (
        (side.commit if not side.ptxas else "") if side.source else side.version and side.label
        for side in (a, b)
    )
    if good and bad and finding.finding != LAUNCHES:
        source = a.source or b.source
        return command(
            "bisect",
            good=good,
            bad=bad,
            source=source and source.clone,
            env=source and source.env,
            kernel=kernel,
            when=finding.limit,
            target=finding.target,
        )
    # `bisect` has no question about launches. In a comment on a pull request, the commits can be named, and
    # their interpreters, which are on the machine of CI alone, cannot.
    if a.source and b.source and good and bad:
        clone, env = a.source.clone, a.source.env
        return command("farm", kernel, base=good, head=bad, source=clone, env=env, target=finding.target)
    # It needs a release or a commit at both ends, too: so compare what lies between. The label of a commit is
    # for people, and its interpreter exists, as it has compiled.
    ends = [side.python if side.source else side.label for side in (a, b)]
    tritons_between = ",".join((ends[0], *between(a, b), ends[1]))
    return command("compare", kernel, triton=tritons_between, target=finding.target)


def differences_command(finding: Violation) -> str:
    """Return the command that shows what differs in the stages; nothing is compiled again."""
    before, after = finding.folders
    return command("compare", before, after, diff=True)


def between(a: Triton, b: Triton) -> tuple[str, ...]:
    """Return the releases between two; none where one of them is no release."""
    if not (a.version and b.version):
        return ()
    low, high = sorted((version_key(a.version), version_key(b.version)))
    every = [tritons.full(row.version) for row in checkout.triton_releases()]
    inside = [version for version in every if low < version_key(version) < high]
    # A rehearsal of a downgrade goes from the newer release to the older one.
    return tuple(inside if low == version_key(a.version) else reversed(inside))


def _regressions(measured: Sequence[Compared], findings: Sequence[Violation]) -> tuple[Regression, ...]:
    """Collect the largest changes for the worse of pairs that have no finding: the terms pass over them."""
    reported = {(finding.kernel, finding.point) for finding in findings}
    regressions = []
    for pair in measured:
        place = (pair.pair.kernel, pair.pair.point)
        for name in () if place in reported else (*metrics.summary(), *configs.load("rehearse")["also"]):
            change = pair.in_short(name)
            if change.verdict == "worse" and change.percent is not None:
                share = f" ({change.percent:+.0f} %)" if math.isfinite(change.percent) else ""  # from 0
                values = f"{name} {spelled(change.a)} -> {spelled(change.b)}{share}"
                regressions.append(Regression(*place, values, abs(change.percent)))
    # Without these a "no finding" would hide how close to the limits the numbers are.
    regressions.sort(key=lambda row: (-row.percent, row.kernel, row.point))
    return tuple(regressions[: configs.load("rehearse")["shown"]])
