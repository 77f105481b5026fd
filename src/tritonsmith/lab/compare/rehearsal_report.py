"""A rehearsal on the screen, as JSON, and as an HTML page without a script (`rehearsal.html`)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import metrics
from tritonsmith.lab import report as pages
from tritonsmith.lab.compare.matching import Compared, MetricChange
from tritonsmith.lab.compare.rehearsal import (
    Assessment,
    RehearsalResult,
    UpgradeRehearsal,
    culprit_command,
    differences_command,
    explain,
    spelled,
)
from tritonsmith.lab.compare.thresholds import Threshold, Violation

_TEMPLATE = Path(__file__).with_name("rehearsal.html")
_SUFFIX = ".html"
_MORE = ("occupancy", "tensor core", "matrix core")  # columns after those of the summary

_WIDTH = 80  # characters of a line that is folded
_OF_MESSAGE = 160  # characters of a compiler's message
_FEW = 12  # findings whose commands are shown


def blocks(result: RehearsalResult, assessment: Assessment) -> Iterator[Text | Grid]:
    """Yield what was compiled, the findings, and what remains unknown."""
    yield Text(
        f"{result.comparison.a} -> {result.comparison.b}: {counted(assessment.kernels, 'kernel')} by both, "
        f"{counted(assessment.points, 'compile')} each; per kernel and Triton: "
        f"{result.compiled} compiled now, {result.kept} kept"
    )
    if assessment.findings:
        rows = [[row.kernel, row.target, row.finding, _short(explain(row))] for row in assessment.findings]
        yield tables.plain("findings, the worst first", ["kernel", "target", "finding", "what"], rows)
    if assessment.regressions:
        rows = [[row.kernel, row.point, row.change] for row in assessment.regressions]
        yield tables.plain("worse, but within the limits", ["kernel", "point", "change"], rows)
    if assessment.neither:
        rows = [[kernel, point, _short(message)] for kernel, point, message in assessment.neither]
        yield tables.plain("compile by neither", ["kernel", "point", "message"], rows)
    # These are names only, and may be hundreds: as tables they would push the findings off the screen.
    for lead, names in (
        ("unknown values", [f"{kernel} {point}: {metric}" for kernel, point, metric in assessment.unknown]),
        ("newly compile", [f"{kernel} {point}" for kernel, point in assessment.fixed]),
        ("excluded by the list for one of the Tritons", list(result.skipped)),
        ("whose code depends on stand-ins for missing modules (see the notes)", list(result.assumed)),
    ):
        if names:
            yield _folded(f"{lead}: {', '.join(names)}")


def commands(rehearsal: UpgradeRehearsal, findings: Sequence[Violation]) -> Iterator[str]:
    """Yield, for each kernel with findings, the command that searches for the culprit."""
    # The dict is filled backwards, so that it keeps the first finding of a kernel, which is its worst.
    first = {(finding.kernel, finding.target): finding for finding in reversed(findings)}
    for finding in [row for row in findings if first[row.kernel, row.target] is row][:_FEW]:
        command = culprit_command(finding, rehearsal.file, rehearsal.a, rehearsal.b)
        yield f"{finding.kernel}: {command}"


def as_json(
    rehearsal: UpgradeRehearsal,
    result: RehearsalResult,
    limits: Sequence[Threshold],
    assessment: Assessment,
) -> dict[str, Any]:
    """Return everything except the texts of the stages."""
    return {
        "schema": 1,
        "from": result.comparison.a,
        "to": result.comparison.b,
        "verdict": assessment.words,
        "sure": not assessment.doubts,
        "limits": [{"term": row.term.text, "finding": row.finding} for row in limits],
        "findings": [
            {
                "finding": row.finding,
                "kernel": row.kernel,
                "point": row.point,
                "target": row.target,
                "why": explain(row),
                "limit": row.limit or None,
                "from": row.a,
                "to": row.b,
                "search": culprit_command(row, rehearsal.file, rehearsal.a, rehearsal.b),
                "differences": differences_command(row),
            }
            for row in assessment.findings
        ],
        "regressions": [
            {"kernel": row.kernel, "point": row.point, "change": row.change} for row in assessment.regressions
        ],
        "neither": [{"kernel": k, "point": p, "why": why} for k, p, why in assessment.neither],
        "unknown": [{"kernel": k, "point": p, "metric": metric} for k, p, metric in assessment.unknown],
        "fixed": [{"kernel": k, "point": p} for k, p in assessment.fixed],
        "skipped": list(result.skipped),
        "assumed": list(result.assumed),
        "compiled": result.compiled,
        "kept": result.kept,
        "kernels": [_pair_json(pair) for pair in result.comparison.compared],
        "notes": list(result.comparison.notes),
    }


def _pair_json(compared: Compared) -> dict[str, Any]:
    pair = compared.pair
    sides = {
        name: {
            "triton": member.manifest.triton,
            "folder": str(member.manifest.folder),
            "status": member.point.status,
            "error": member.point.error,
            "metrics": dict(values),
        }
        for name, member, values in (("from", pair.a, compared.a), ("to", pair.b, compared.b))
    }
    # Where one side did not compile, every metric would count as changed: a number here, and none there.
    short = {name: compared.in_short(name) for name in metrics.summary()} if compared.measured else {}
    changed = {name: [change.a, change.b] for name, change in short.items() if change.a != change.b}
    return {
        "kernel": pair.kernel,
        "point": pair.point,
        "target": pair.b.point.target,
        **sides,
        "changed": changed,
    }


def _short(text: str) -> str:
    return tables.clipped(" ".join(text.split()), _OF_MESSAGE)


def _folded(text: str) -> Text:
    return Text(textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False))


@dataclass(frozen=True)
class NumberCell:
    """A metric of a pair.

    Attributes:
        text: the value, or both of them.
        changed: whether there are two.
        verdict: `better`, `worse`, or empty.
    """

    text: str
    changed: bool = False
    verdict: str = ""


def check_page(path: Path) -> None:
    """Check that a page may have this name, before anything is compiled.

    Raises:
        UsageError: it is a folder, or not the name of a page.
    """
    # Without a suffix of its own, `--out kernels.toml` would overwrite the user's list.
    if path.suffix.lower() != _SUFFIX or path.is_dir():
        raise UsageError("the page needs the suffix .html", where=path, hints=["--out rehearsal.html"])


def write_page(
    rehearsal: UpgradeRehearsal,
    result: RehearsalResult,
    limits: Sequence[Threshold],
    assessment: Assessment,
    path: Path,
) -> None:
    """Write the page.

    Raises:
        SmithError: the file cannot be written.
    """
    names = [*metrics.summary(), *_MORE]
    rows = [
        (pair.pair.kernel, pair.pair.point, [_number(pair, name) for name in names])
        for pair in result.comparison.compared
        # A pair without both compiles has no numbers; the page names it among the findings or the failures.
        if pair.measured
    ]
    changed = [row for row in rows if any(cell and cell.changed for cell in row[2])]
    pages.write_page(
        _TEMPLATE,
        path,
        f"Triton {result.comparison.a} to {result.comparison.b}",
        counted=counted,
        # A change for the worse within the limits is no finding, but "all clear" would hide it.
        state="findings"
        if assessment.findings
        else "unsure"
        if assessment.doubts or assessment.regressions
        else "clear",
        assessment=assessment,
        file=rehearsal.file,
        findings=list(_findings(rehearsal, assessment)),
        names=names,
        changed=changed,
        unchanged=[row for row in rows if row not in changed],
        limits=limits,
        result=result,
    )


def _findings(rehearsal: UpgradeRehearsal, assessment: Assessment) -> Iterator[dict[str, str]]:
    for finding in assessment.findings:
        yield {
            "kernel": finding.kernel,
            "target": finding.target,
            "finding": finding.finding,
            "why": explain(finding),
            "culprit": culprit_command(finding, rehearsal.file, rehearsal.a, rehearsal.b),
            "differences": differences_command(finding),
            "error": finding.compared.pair.b.point.error,
        }


def _number(pair: Compared, name: str) -> NumberCell | None:
    """Return a metric of a pair; None if the second side's vendor has none."""
    # By the names of the second side: the page is about the upgrade.
    backend = pair.backends[1]
    known, b = metrics.value_of(name, pair.b, backend)
    if not known:
        return None
    _, a = metrics.value_of(name, pair.a, backend)
    if a == b:
        return NumberCell(_spelled(a))
    change = MetricChange(metrics.metric(metrics.keys_of(name, backend)[0]), a, b, counterpart=True)
    return NumberCell(f"{_spelled(a)} → {_spelled(b)}", changed=True, verdict=change.verdict)


def _spelled(value: Value) -> str:
    return "?" if value is None else spelled(value)
