"""What gets worse by the other Triton, the worst first; and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from tritonsmith.lab import terms as term_language
from tritonsmith.lab.compare.diff import Compared, Comparison
from tritonsmith.lab.terms import Term

COMPILES, LAUNCHES = "does not compile any more", "cannot be launched any more"
_FLAG = "--fail-on"
_BROKEN = "breaks a limit"  # of --fail-on


@dataclass(frozen=True)
class RehearsalLimit:
    """A term, and the message where it is broken.

    Attributes:
        limit: the term.
        finding: in words: `spills more`.
        required: some kernel must have the metric: a check of nothing does not pass.
    """

    limit: Term
    finding: str
    required: bool = False


@dataclass(frozen=True)
class RehearsalFinding:
    """One thing that gets worse.

    Attributes:
        finding: in words.
        kernel: name in the list.
        point: name of the pair.
        target: of the second Triton's compile.
        why: the numbers, or the compiler's message.
        rank: its place in the order of kinds, the worst is 0.
        growth: in percent, of the metric; for the order within a kind.
        limit: the term; empty where there is none.
        a: value by the first Triton.
        b: by the second.
        folders: the outputs of both.
    """

    finding: str
    kernel: str
    point: str
    target: str
    why: str
    rank: int
    growth: float = 0.0
    limit: str = ""
    a: Value = None
    b: Value = None
    folders: tuple[Path, ...] = ()

    @property
    def differences(self) -> str:
        """The command that shows what differs in the stages; nothing is compiled again."""
        return command("compare", self.folders[0], self.folders[1], diff=True)

    def search(self, file: Path, a: Triton, b: Triton) -> str:
        """The command that finds who did it: the commit; the release, where `bisect` has no question for it.

        Args:
            file: the list of kernels.
            a: the first Triton.
            b: the second.
        """
        kernel = f"{file}:{self.kernel}"
        if a.version and b.version and self.finding != LAUNCHES:
            return command(
                "bisect", good=a.label, bad=b.label, kernel=kernel, when=self.limit, target=self.target
            )
        tritons = ",".join((a.label, *between(a, b), b.label))
        return command("compare", kernel, triton=tritons, target=self.target)


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
class RehearsalVerdict:
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

    findings: tuple[RehearsalFinding, ...]
    neither: tuple[tuple[str, str, str], ...]
    unknown: tuple[tuple[str, str, str], ...]
    fixed: tuple[tuple[str, str], ...]
    unchecked: tuple[str, ...]
    kernels: int
    points: int
    regressions: tuple[Regression, ...] = ()

    @property
    def doubts(self) -> str:
        """Why it is not sure, in words; empty if it is."""
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
        """In a line."""
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


def limits(fail_on: str | None) -> tuple[RehearsalLimit, ...]:
    """The terms of `--fail-on`, or else those of configs/rehearse.toml.

    Raises:
        UsageError: a term makes no sense.
    """
    if fail_on is None:
        rows = configs.load("rehearse")["limit"]
        return tuple(
            RehearsalLimit(term_language.parse([row["term"]], _FLAG)[0], row["finding"]) for row in rows
        )
    return tuple(
        RehearsalLimit(limit, _BROKEN, required=True) for limit in term_language.parse([fail_on], _FLAG)
    )


def check(comparison: Comparison, terms: Sequence[RehearsalLimit]) -> RehearsalVerdict:
    """The verdict.

    Raises:
        FactError: nothing compiles by both, so that nothing can be said.
    """
    found: list[RehearsalFinding] = []
    neither: list[tuple[str, str, str]] = []
    unknown: list[tuple[str, str, str]] = []
    fixed: list[tuple[str, str]] = []
    measured = [one for one in comparison.compared if one.measured]
    for one in comparison.compared:
        pair = one.pair
        if one.lost or one.stuck:
            found.append(_lost(one))
        elif pair.a.point.status != "ok" and pair.b.point.status != "ok":
            neither.append((pair.kernel, pair.point, pair.b.point.gist))
        elif pair.a.point.status != "ok":
            fixed.append((pair.kernel, pair.point))
        if one.measured:
            found += _worse(one, terms, unknown)
    if not measured and not found:
        hints = ["--json has the compilers' messages"]
        raise FactError("not sure: no kernel compiles by both Tritons", why=_why(neither), hints=hints)
    unchecked = [
        term.limit.metric
        for term in terms
        if term.required and not any(term_language.look(term.limit, one).applies for one in measured)
    ]
    found.sort(key=lambda one: (one.rank, -one.growth, one.kernel, one.point))
    kernels = len({one.pair.kernel for one in measured})
    return RehearsalVerdict(
        tuple(found),
        tuple(neither),
        tuple(dict.fromkeys(unknown)),
        tuple(fixed),
        tuple(dict.fromkeys(unchecked)),
        kernels,
        len(measured),
        _regressions(measured, found),
    )


def between(a: Triton, b: Triton) -> tuple[str, ...]:
    """Releases between two; none where one of them is no release."""
    if not (a.version and b.version):
        return ()
    low, high = sorted((version_key(a.version), version_key(b.version)))
    every = [tritons.full(row.version) for row in eras.releases()]
    found = [one for one in every if low < version_key(one) < high]
    return tuple(found if low == version_key(a.version) else reversed(found))


def _lost(one: Compared) -> RehearsalFinding:
    point = one.pair.b.point
    if one.stuck:
        return _finding(one, LAUNCHES, one.stuck.removeprefix("no: "), rank=1)
    said = point.gist if point.status == "failed" else f"{point.status}: {point.gist}".removesuffix(": ")
    return _finding(one, COMPILES, said, rank=0)


def _worse(
    one: Compared, terms: Sequence[RehearsalLimit], unknown: list[tuple[str, str, str]]
) -> Iterator[RehearsalFinding]:
    for rank, term in enumerate(terms, 2):
        reading = term_language.look(term.limit, one)
        if reading.unknown:
            unknown.append((one.pair.kernel, one.pair.point, term.limit.metric))
        if not reading.broken:
            continue
        a, b = reading.a, reading.b
        numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
        growth = metrics.growth(float(a or 0), float(b or 0)) if numbers else 0.0
        why = f"{term.limit.metric} {_spelled(a)} -> {_spelled(b)}" if b is not None else reading.figures
        yield _finding(
            one,
            term.finding,
            f"{why} ({growth:+.0f} %)" if math.isfinite(growth) and growth else why,
            rank=rank,
            growth=abs(growth),
            limit=term.limit.text,
            a=a,
            b=b,
        )


def _regressions(
    measured: Sequence[Compared], findings: Sequence[RehearsalFinding]
) -> tuple[Regression, ...]:
    """Collect the largest changes for the worse of pairs that have no finding: the terms pass over them."""
    reported = {(finding.kernel, finding.point) for finding in findings}
    regressions = []
    for pair in measured:
        place = (pair.pair.kernel, pair.pair.point)
        for name in () if place in reported else (*metrics.summary(), *configs.load("rehearse")["also"]):
            change = pair.in_short(name)
            if change.verdict == "worse" and change.percent is not None:
                share = f" ({change.percent:+.0f} %)" if math.isfinite(change.percent) else ""  # from 0
                values = f"{name} {_spelled(change.a)} -> {_spelled(change.b)}{share}"
                regressions.append(Regression(*place, values, abs(change.percent)))
    regressions.sort(key=lambda row: (-row.percent, row.kernel, row.point))
    return tuple(regressions[: configs.load("rehearse")["shown"]])


def _finding(one: Compared, finding: str, why: str, *, rank: int, **more: object) -> RehearsalFinding:
    pair = one.pair
    folders = (pair.a.manifest.folder, pair.b.manifest.folder)
    return RehearsalFinding(
        finding,
        pair.kernel,
        pair.point,
        pair.b.point.target,
        why,
        rank,
        folders=folders,
        **more,  # type: ignore[arg-type]
    )


def _spelled(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _why(neither: Sequence[tuple[str, str, str]]) -> str:
    return "\n".join(f"{kernel} {point}: {said}" for kernel, point, said in neither[:8])
