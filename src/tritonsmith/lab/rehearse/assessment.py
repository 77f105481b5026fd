"""The answer of a rehearsal: what gets worse by the other Triton, the worst first; and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.resources.table import Value
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError
from tritonsmith.core.ui.units import counted
from tritonsmith.core.versions import version_key
from tritonsmith.facts import eras
from tritonsmith.lab import metrics
from tritonsmith.lab.compare import thresholds
from tritonsmith.lab.compare.diff import Compared, Comparison
from tritonsmith.lab.compare.thresholds import COMPILES, LAUNCHES, Threshold, Violation

_FLAKY = "the outcome of its compile"  # in the place of a metric
_SHOWN = 8  # messages of kernels that compile by neither Triton, in an error


@dataclass(frozen=True)
class Regression:
    """A metric that got worse without breaking a term.

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
    """The answer.

    Attributes:
        findings: the worst first.
        neither: kernel and point of what compiles by neither Triton, and the second's message.
        unknown: kernel, point and metric of values that are not known.
        fixed: kernel and point of what only the second Triton compiles.
        unchecked: metrics of required terms that no kernel has.
        kernels: how many compile by both.
        points: how many compiles those have.
        regressions: the largest changes for the worse that break no term, the largest first.
    """

    findings: tuple[Violation, ...]
    neither: tuple[tuple[str, str, str], ...]
    unknown: tuple[tuple[str, str, str], ...]
    fixed: tuple[tuple[str, str], ...]
    unchecked: tuple[str, ...]
    kernels: int
    points: int
    regressions: tuple[Regression, ...] = ()

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
        """The answer in a line."""
        parts = [counted(len(self.findings), "finding")] if self.findings else []
        parts += [f"not sure: {self.doubts}"] if self.doubts else []
        if parts:
            return "; ".join(parts)
        looked = f"{counted(self.points, 'compile')} of {counted(self.kernels, 'kernel')}"
        lead = f"no finding by these terms in {looked}"
        if not self.regressions:
            return lead
        worst = self.regressions[0]
        return f"{lead}; the largest change for the worse: {worst.change}, {worst.kernel} {worst.point}"


def limits(fail_on: str | None) -> tuple[Threshold, ...]:
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
        FactError: nothing compiles by both, so that nothing can be said.
    """
    judgement = thresholds.check(comparison, limits)
    neither = tuple((row.pair.kernel, row.pair.point, row.pair.b.point.gist) for row in judgement.neither)
    if not judgement.measured and not judgement.findings:
        hints = ["--json has the compilers' messages"]
        why = "\n".join(f"{kernel} {point}: {message}" for kernel, point, message in neither[:_SHOWN])
        raise FactError("not sure: no kernel compiles by both Tritons", why=why, hints=hints)
    unchecked = (threshold.term.metric for threshold in judgement.unchecked if threshold.required)
    findings = [row for row in judgement.findings if (row.kernel, row.target) not in flaky]
    unknown = [(row.kernel, row.point, row.metric) for row in judgement.unknown]
    unknown += [
        (row.kernel, row.point, row.metric or _FLAKY) for row in judgement.findings if row not in findings
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
        tuple(sorted(findings, key=lambda row: (row.rank, -row.growth, row.kernel, row.point))),
        neither,
        tuple(dict.fromkeys(unknown)),
        tuple((row.pair.kernel, row.pair.point) for row in judgement.fixed),
        tuple(dict.fromkeys(unchecked)),
        len({row.pair.kernel for row in judgement.measured}),
        len(judgement.measured),
        _regressions(judgement.measured, judgement.findings),
    )


def explain(finding: Violation) -> str:
    """Return the numbers of a finding, or the compiler's message."""
    point = finding.compared.pair.b.point
    if finding.finding == COMPILES and point.status == "failed":  # the usual status says nothing
        return point.gist
    if finding.threshold is None:
        return finding.message
    if finding.b is None:
        return finding.reading.figures
    values = f"{finding.metric} {spelled(finding.a)} -> {spelled(finding.b)}"
    if not (finding.growth and math.isfinite(finding.growth)):  # from 0
        return values
    return f"{values} ({metrics.growth(float(finding.a or 0), float(finding.b or 0)):+.0f} %)"


def culprit_command(finding: Violation, file: Path, a: Triton, b: Triton) -> str:
    """Return the command that finds the commit, or the release where `bisect` has no question for it.

    Args:
        finding: the finding.
        file: the list of kernels.
        a: the first Triton.
        b: the second.
    """
    kernel = f"{file}:{finding.kernel}"
    if a.version and b.version and finding.finding != LAUNCHES:
        return command(
            "bisect", good=a.label, bad=b.label, kernel=kernel, when=finding.limit, target=finding.target
        )
    tritons_between = ",".join((a.label, *between(a, b), b.label))
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
    every = [tritons.full(row.version) for row in eras.releases()]
    inside = [version for version in every if low < version_key(version) < high]
    return tuple(inside if low == version_key(a.version) else reversed(inside))


def spelled(value: Value) -> str:
    """Return a value as text."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
    regressions.sort(key=lambda row: (-row.percent, row.kernel, row.point))
    return tuple(regressions[: configs.load("rehearse")["shown"]])
