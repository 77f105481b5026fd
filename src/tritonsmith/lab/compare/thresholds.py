"""Judge a comparison: find what is worse on the second side, by the terms of `--fail-on`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.ui.tables import clipped
from tritonsmith.lab import failure, metrics, product, questions, terms
from tritonsmith.lab.batch.kept_files import FolderMetrics
from tritonsmith.lab.compare import matching
from tritonsmith.lab.compare.matching import Compared, Comparison, Pair
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.product import Cell
from tritonsmith.lab.terms import Term, TermReading

CRASHES = "crashes the compiler"
COMPILES, LAUNCHES = "does not compile any more", "cannot be launched any more"
UNTESTED = "was not compiled"
WRONG = "computes something else"
LOST = (CRASHES, COMPILES, LAUNCHES, WRONG)  # in the order of their ranks
_SHORTEST = 20  # characters of a kernel's name in a line
_BROKEN = "breaks a limit"
_FLAG = "--fail-on"
WORDS = {
    Verdict.GOOD: "no worse",
    Verdict.BAD: "worse",
    Verdict.OTHER: "does not compile",
    Verdict.SKIP: "not tested",
}
_NOT_READ = TermReading(applies=False)
_LOST_ON_THE_WAY = TermReading(applies=False, unknown=True)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Threshold:
    """A term, and its meaning where it is broken.

    Attributes:
        term: the term.
        finding: in words: `spills more`.
        required: some kernel must have the metric: a check of nothing does not pass.
        loop: in words, where the values of loops are worse; empty if these are not looked at.
    """

    term: Term
    finding: str = _BROKEN
    required: bool = True
    loop: str = ""


@dataclass(frozen=True)
class Violation:
    """A value that is worse on the second side of a pair, or that is unknown.

    Attributes:
        compared: the pair.
        finding: in words.
        rank: its place in the order of kinds, the worst is 0; a half before that of its threshold in a loop.
        threshold: the threshold; None where the compile or the launch itself fails.
        reading: of its term.
    """

    compared: Compared
    finding: str
    rank: float
    threshold: Threshold | None = None
    reading: TermReading = _NOT_READ

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self.compared.pair.kernel

    @property
    def point(self) -> str:
        """The name of the pair."""
        return self.compared.pair.point

    @property
    def target(self) -> str:
        """The target of the second side."""
        return self.compared.pair.b.point.target

    @property
    def metric(self) -> str:
        """The metric or stage as it was written; empty where there is no term."""
        if self.finding == WRONG:
            return "its result"
        return self.threshold.term.metric if self.threshold else ""

    @property
    def limit(self) -> str:
        """The text of the term, as `--fail-on` or `--when` takes it; empty where there is none."""
        if self.finding == WRONG:
            return "wrong"
        return self.threshold.term.text if self.threshold else ""

    @property
    def a(self) -> Value:
        """The value of the first side."""
        return self.reading.a

    @property
    def b(self) -> Value:
        """The value of the second side."""
        return self.reading.b

    @property
    def ranked(self) -> Violation:
        """The finding in the class of loops, if it is about spills and a loop has more of them.

        Raises:
            FactError: a stage cannot be read.
        """
        if self.threshold is None or not self.threshold.loop:
            return self
        before, after = self.compared.loop_spills
        if before is None or after is None or after <= before:
            return self
        return replace(self, finding=self.threshold.loop, rank=self.rank - 0.5)

    @property
    def kind(self) -> str:
        """The class of the finding in words; a term of the user's is its own class."""
        return f"breaks {self.limit}" if self.finding == _BROKEN else self.finding

    @property
    def cause(self) -> str:
        """The change behind it, in words that are the same for every kernel that it hits.

        Raises:
            FactError: a stage cannot be read.
        """
        point = self.compared.pair.b.point
        if self.compared.lost:
            known = questions.failure_of(point)
            # A process that dies without a word has only its status.
            failed = str(known) if known.text or known.kind != "failure" else self.message
            place = failure.pass_of(f"{point.log}\n{point.error}")
            return f"{failed}, in {place}" if place else failed
        if self.compared.result and self.finding == WRONG:
            return self.compared.result.cause
        # Kernels need more than they may have by different amounts.
        if self.finding == LAUNCHES:
            return " ".join(_NUMBER.sub("", self.message).split())
        return self.compared.first_change

    @property
    def growth(self) -> float:
        """The size of the change in percent of the first value; 0 where there is no such number."""
        numbers = isinstance(self.a, (int, float)) and isinstance(self.b, (int, float))
        return abs(metrics.growth(float(self.a or 0), float(self.b or 0))) if numbers else 0.0

    @property
    def message(self) -> str:
        """The status and message of a compile that failed, or the reason why it is of no use."""
        a, b = self.compared.pair.a.point, self.compared.pair.b.point
        point = a if self.finding == UNTESTED and a.status == "lost" else b
        if self.compared.result and self.finding == WRONG:
            return self.compared.result.figures or self.compared.result.why
        if self.finding == LAUNCHES:
            # The column `launch` has the answer before the reason: `no: ...`.
            return self.compared.stuck.removeprefix("no: ")
        return ": ".join(filter(None, (point.status, point.gist)))

    @property
    def folders(self) -> tuple[Path, Path]:
        """The output folders of both sides."""
        return self.compared.pair.a.manifest.folder, self.compared.pair.b.manifest.folder


@dataclass(frozen=True)
class FindingGroup:
    """Compiles that got worse in the same way, for one target, behind the same change.

    Attributes:
        kind: the class, the worst of these compiles.
        target: the target.
        cause: what changed, as in `Violation.cause`.
        findings: the worst finding of each compile.
        also: the other findings of these compiles, by kernel and point.
    """

    kind: str
    target: str
    cause: str
    findings: tuple[Violation, ...]
    also: Mapping[tuple[str, str], tuple[Violation, ...]]

    @property
    def kernels(self) -> int:
        """The number of its kernels."""
        return len({row.kernel for row in self.findings})

    @property
    def witness(self) -> Violation:
        """The finding of the smallest kernel, which is the one to look at."""
        return min(self.findings, key=_size)

    def line(self, width: int) -> str:
        """Return the group in a line of so many characters."""
        witness = self.witness
        # The class and the cause say what a message would say.
        values = "" if witness.threshold is None else explain(witness).removeprefix(witness.metric)
        where = f"{self.kind}, {self.target.rpartition(':')[0]}"
        where += f", {self.kernels:,} kernels, smallest" if self.kernels > 1 else ""
        # The name is cut first: the commands above have all of it, and the cause is in this line only.
        room = width - len(f"{where}: {values}; {self.cause}")
        name = clipped(" ".join(witness.kernel.split()), max(_SHORTEST, room))
        return clipped(" ".join(f"{where}: {name}{values}; {self.cause}".split()), width)

    def numbers(self, finding: Violation) -> str:
        """Return the numbers of all findings of a compile, or the compiler's message."""
        more = self.also.get((finding.kernel, finding.point), ())
        return "; ".join(dict.fromkeys(map(explain, (finding, *more))))


def _size(finding: Violation) -> tuple[float, str, str]:
    """Return the key that sorts findings by the size of their kernels."""
    stages, measured = finding.compared.pair.a.point.stages, finding.compared.a
    # The operations of the source, not the code: that of the first side may already be unrolled.
    operations = measured.get("ttir_operations")
    known = isinstance(operations, (int, float))
    size = float(operations or 0) if known else float(stages["ttir"].size) if "ttir" in stages else math.inf
    return size, finding.kernel, finding.point


def explain(finding: Violation) -> str:
    """Return the numbers of a finding, or the compiler's message."""
    point = finding.compared.pair.b.point
    # The class tells the status of a crash, and the usual one says nothing.
    if finding.finding == CRASHES or (finding.finding == COMPILES and point.status == "failed"):
        return point.gist
    if finding.threshold is None:
        return finding.message
    if finding.b is None:
        return finding.reading.figures  # of a text, which has no values
    values = f"{finding.metric} {spelled(finding.a)} -> {spelled(finding.b)}"
    if not (finding.growth and math.isfinite(finding.growth)):  # from 0
        return values
    return f"{values} ({metrics.growth(float(finding.a or 0), float(finding.b or 0)):+.0f} %)"


def spelled(value: Value) -> str:
    """Return a value as text."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Judgement:
    """The result of a check.

    Attributes:
        violations: findings and unknown values, in the order of the pairs.
        measured: pairs that compile on both sides.
        neither: pairs that compile on neither side.
        fixed: pairs that compile on the second side only.
        unchecked: thresholds whose metric no measured pair has.
    """

    violations: tuple[Violation, ...]
    measured: tuple[Compared, ...]
    neither: tuple[Compared, ...]
    fixed: tuple[Compared, ...]
    unchecked: tuple[Threshold, ...]

    @property
    def findings(self) -> tuple[Violation, ...]:
        """The violations that are known to be worse."""
        return tuple(violation for violation in self.violations if not violation.reading.unknown)

    @property
    def unknown(self) -> tuple[Violation, ...]:
        """The violations whose values are unknown."""
        return tuple(violation for violation in self.violations if violation.reading.unknown)


def parse(fail_on: str | None) -> tuple[Threshold, ...]:
    """Parse `--fail-on`; none if it is not given.

    Raises:
        UsageError: a term makes no sense, or the text is empty.
    """
    # An empty text may be a variable of CI that is not set; taken for no terms, it would pass everything.
    return () if fail_on is None else tuple(map(Threshold, terms.parse([fail_on], _FLAG)))


def usual() -> tuple[Threshold, ...]:
    """Return the thresholds of configs/rehearse.toml, none of which is required."""
    rows = configs.load("rehearse")["limit"]
    return tuple(
        # One list serves both vendors, and no kernel has the metrics of both.
        Threshold(
            terms.parse([row["term"]], _FLAG)[0], row["finding"], required=False, loop=row.get("loop", "")
        )
        for row in rows
    )


def judge(compared: Compared, thresholds: Sequence[Threshold]) -> Iterator[Violation]:
    """Yield what is worse on the second side of one pair, and the values that are unknown."""
    # A worker that died or could not compile is no property of the kernel; but nothing passes without one.
    if compared.untested:
        yield Violation(compared, UNTESTED, len(LOST), reading=_LOST_ON_THE_WAY)
    # Without a compile or a launch there is nothing to compare: that is worse by any terms.
    elif compared.lost:
        finding = CRASHES if compared.pair.b.point.status == "crashed" else COMPILES
        yield Violation(compared, finding, LOST.index(finding))
    elif compared.stuck:
        yield Violation(compared, LAUNCHES, LOST.index(LAUNCHES))
    if not compared.measured:
        return
    if compared.result and compared.result.verdict is not Verdict.GOOD:
        unknown = compared.result.verdict is Verdict.SKIP
        yield Violation(
            compared, WRONG, LOST.index(WRONG), reading=TermReading(applies=True, unknown=unknown)
        )
    # No metric weighs as much as a kernel that is lost.
    for rank, threshold in enumerate(thresholds, len(LOST)):
        reading = terms.look(threshold.term, compared)
        # One binary has one value of each metric, also of those that nothing here can read from it.
        if reading.unknown and threshold.term.change and compared.same_binary:
            continue
        if reading.broken or reading.unknown:
            yield Violation(compared, threshold.finding, rank, threshold, reading)


def check(comparison: Comparison, thresholds: Sequence[Threshold]) -> Judgement:
    """Judge all pairs of a comparison."""
    pairs = comparison.compared
    failed = [pair for pair in pairs if pair.pair.a.point.status != "ok" and not pair.untested]
    measured = tuple(pair for pair in pairs if pair.measured)
    applied = {
        threshold: any(terms.look(threshold.term, pair).applies for pair in measured)
        for threshold in thresholds
    }
    return Judgement(
        tuple(violation for pair in pairs for violation in judge(pair, thresholds)),
        measured,
        neither=tuple(pair for pair in failed if pair.pair.b.point.status != "ok"),
        fixed=tuple(pair for pair in failed if pair.pair.b.point.status == "ok"),
        # That one kernel lacks a metric is usual; that all of them do is a mistake in the term.
        unchecked=tuple(threshold for threshold, is_applied in applied.items() if not is_applied),
    )


class WorseThanBaseline:
    """The question about each cell of a product: is it worse than its baseline, by some thresholds?

    Args:
        thresholds: the thresholds.
        measure: measures a folder; each is measured once.
        baselines: output folders that are there already, for cells without a baseline of their own.
    """

    def __init__(
        self,
        thresholds: Sequence[Threshold],
        measure: Callable[[Manifest], FolderMetrics],
        baselines: Sequence[Manifest] = (),
    ) -> None:
        self._thresholds = thresholds
        self._measure = measure
        self._baselines = baselines
        self._measured: dict[Path, tuple[Manifest, FolderMetrics]] = {}
        self._paired: tuple[Sequence[object], Sequence[Pair]] = (), ()

    def __call__(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
        """Report a cell as BAD where it is worse; a cell without a baseline only has to compile."""
        if cell.job is None:  # the subject asks about compiles only
            return Observation(Verdict.SKIP, why=cell.why)
        manifest = manifests[cell.job.out]
        points = [point for point in manifest.points if point.target == cell.target]
        fails = any(point.status not in ("ok", "lost") for point in points)
        if cell.baseline and cell.baseline.out not in manifests:
            return product.observation(points, Verdict.SKIP, why=product.UNTESTED)
        pairs = [
            matching.with_metrics(
                pair, {side.manifest.folder: self.metrics_of(side.manifest) for side in (pair.a, pair.b)}
            )
            for pair in self._pairs(cell, manifests)
        ]
        if cell.baseline and not pairs:  # the folder is there, without the target that is compared with this
            return product.observation(points, Verdict.SKIP, why=product.UNTESTED)
        # A value that is unknown breaks no limit, but it does not keep one either: see `Verdict.SKIP` below.
        violations = [row for pair in pairs for row in judge(pair, self._thresholds)]
        worse = [row for row in violations if not row.reading.unknown]
        if worse:
            figures = (row.message if row.threshold is None else row.limit for row in worse)
            return product.observation(points, Verdict.BAD, "; ".join(dict.fromkeys(figures)))
        if fails:  # by the baseline, too: that is no regression, and no good result either
            return product.observation(points, Verdict.OTHER)
        unknown = ", ".join(
            f"{row.metric}: {terms.UNKNOWN}" if row.metric else f"{row.finding}: {row.message}"
            for row in violations
        )
        return product.observation(points, Verdict.SKIP if unknown else Verdict.GOOD, why=unknown)

    def unread(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> frozenset[tuple[Path, str]]:
        """Return the folders and targets whose code has to be disassembled before a cell is judged.

        Where both sides have the same binary, no metric can differ, and none of its code is needed.

        Args:
            cell: the cell.
            manifests: as it is judged by.
        """
        if cell.job is None or (cell.baseline and cell.baseline.out not in manifests):
            return frozenset()
        sides = [*([manifests[cell.baseline.out]] if cell.baseline else []), manifests[cell.job.out]]
        if not any(self.metrics_of(side).unread for side in sides):
            return frozenset()
        pairs = (matching.Compared(pair, {}, {}) for pair in self._pairs(cell, manifests))
        return frozenset(
            (member.manifest.folder, member.point.target)
            for row in pairs
            if row.measured and not row.same_binary
            for member in (row.pair.a, row.pair.b)
            if member.point.id in self.metrics_of(member.manifest).unread
        )

    def _pairs(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> Sequence[Pair]:
        assert cell.job  # noqa: S101 - for the type checker
        manifest = manifests[cell.job.out]
        baselines = [manifests[cell.baseline.out]] if cell.baseline else self._baselines
        if not baselines:
            return ()
        # What a cell needs is asked before its answer, and the targets of a kernel follow each other.
        now = (cell.job, cell.baseline, *baselines, manifest)
        known, every = self._paired
        if len(known) != len(now) or not all(map(operator.is_, known, now)):
            requested = product.targets_of((cell.baseline, cell.job))
            # All targets are paired first: which is the counterpart of one may depend on the others.
            every = matching.pair(baselines, [manifest], requested).pairs
            self._paired = now, every
        return [pair for pair in every if pair.b.point.target == cell.target]

    def metrics_of(self, manifest: Manifest) -> FolderMetrics:
        """Return the metrics of a folder.

        Raises:
            FactError: a file of a compile cannot be read.
        """
        # Measuring reads every binary of a folder, and each of its targets is a cell that asks for it.
        known, measured = self._measured.get(manifest.folder, (None, None))
        # Another manifest of the same folder: its code was disassembled meanwhile.
        if measured is None or known is not manifest:
            measured = self._measure(manifest)
            self._measured[manifest.folder] = manifest, measured
        return measured


def require(judgement: Judgement, comparison: Comparison) -> None:
    """Check that the thresholds were applied to something.

    Raises:
        FactError: nothing compiles on both sides, or no pair has the metric of a threshold.
    """
    # A check of nothing must not pass: a misspelt folder or metric would make CI green.
    if not judgement.measured:
        # A kernel that was lost is an answer, though nothing can be measured any more.
        if judgement.violations:
            return
        hints = ["the compiler's messages are above and in --json"]
        raise FactError("nothing compiles on both sides", hints=hints)
    for threshold in judgement.unchecked:
        raise _nothing_to_check(threshold.term, comparison)


def _nothing_to_check(term: Term, comparison: Comparison) -> FactError:
    vendors = sorted({backend for pair in comparison.compared for backend in pair.backends})
    crossed = term.change and all(not pair.pair.one_vendor for pair in comparison.compared)
    if crossed:
        why = f"A and B are for GPUs of different vendors, whose {term.metric} are not comparable"
        hints: Iterable[str] = ["use an unsigned value to limit B: registers>128"]
    else:
        why = f"no compile for {' or '.join(vendors)} has a value for it"
        hints = ["--json shows the available metrics"]
    return FactError(f"--fail-on {term.text}: no pair has {term.metric}", why=why, hints=hints)
