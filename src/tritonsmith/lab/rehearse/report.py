"""A rehearsal on the screen and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import counted
from tritonsmith.lab import metrics
from tritonsmith.lab.compare.diff import Compared
from tritonsmith.lab.compare.thresholds import Threshold, Violation
from tritonsmith.lab.rehearse import assessment
from tritonsmith.lab.rehearse.assessment import Assessment
from tritonsmith.lab.rehearse.rehearsal import RehearsalResult, UpgradeRehearsal

_WIDTH = 80  # characters of a line that is folded
_OF_MESSAGE = 160  # characters of a compiler's message
_FEW = 12  # findings whose commands are shown


def blocks(made: RehearsalResult, verdict: Assessment) -> Iterator[Text | Grid]:
    """Yield what was compiled, the findings, and what remains unknown."""
    yield Text(
        f"{made.comparison.a} -> {made.comparison.b}: {counted(verdict.kernels, 'kernel')} by both, "
        f"{counted(verdict.points, 'compile')} each; per kernel and Triton: "
        f"{made.compiled} compiled now, {made.kept} kept"
    )
    if verdict.findings:
        rows = [
            [row.kernel, row.target, row.finding, _short(assessment.explain(row))] for row in verdict.findings
        ]
        yield tables.plain("findings, the worst first", ["kernel", "target", "finding", "what"], rows)
    if verdict.regressions:
        rows = [[row.kernel, row.point, row.change] for row in verdict.regressions]
        yield tables.plain("worse, but within the limits", ["kernel", "point", "change"], rows)
    if verdict.neither:
        rows = [[kernel, point, _short(said)] for kernel, point, said in verdict.neither]
        yield tables.plain("compile by neither", ["kernel", "point", "message"], rows)
    for lead, names in (
        ("unknown values", [f"{kernel} {point}: {metric}" for kernel, point, metric in verdict.unknown]),
        ("newly compile", [f"{kernel} {point}" for kernel, point in verdict.fixed]),
        ("excluded by the list for one of the Tritons", list(made.skipped)),
        ("whose code depends on stand-ins for missing modules (see the notes)", list(made.assumed)),
    ):
        if names:
            yield _folded(f"{lead}: {', '.join(names)}")


def commands(rehearsal: UpgradeRehearsal, findings: Sequence[Violation]) -> Iterator[str]:
    """Yield the commands to go on with, for each kernel with findings: who did it, and what differs."""
    first = {(finding.kernel, finding.target): finding for finding in reversed(findings)}
    for finding in [row for row in findings if first[row.kernel, row.target] is row][:_FEW]:
        command = assessment.culprit_command(finding, rehearsal.file, rehearsal.a, rehearsal.b)
        yield f"{finding.kernel}: {command}"


def as_json(
    rehearsal: UpgradeRehearsal,
    made: RehearsalResult,
    terms: Sequence[Threshold],
    verdict: Assessment,
) -> dict[str, Any]:
    """Everything but the texts of the stages."""
    return {
        "schema": 1,
        "from": made.comparison.a,
        "to": made.comparison.b,
        "verdict": verdict.words,
        "sure": not verdict.doubts,
        "limits": [{"term": row.term.text, "finding": row.finding} for row in terms],
        "findings": [
            {
                "finding": row.finding,
                "kernel": row.kernel,
                "point": row.point,
                "target": row.target,
                "why": assessment.explain(row),
                "limit": row.limit or None,
                "from": row.a,
                "to": row.b,
                "search": assessment.culprit_command(row, rehearsal.file, rehearsal.a, rehearsal.b),
                "differences": assessment.differences_command(row),
            }
            for row in verdict.findings
        ],
        "regressions": [
            {"kernel": row.kernel, "point": row.point, "change": row.change} for row in verdict.regressions
        ],
        "neither": [{"kernel": k, "point": p, "why": said} for k, p, said in verdict.neither],
        "unknown": [{"kernel": k, "point": p, "metric": metric} for k, p, metric in verdict.unknown],
        "fixed": [{"kernel": k, "point": p} for k, p in verdict.fixed],
        "skipped": list(made.skipped),
        "assumed": list(made.assumed),
        "compiled": made.compiled,
        "kept": made.kept,
        "kernels": [_compared(one) for one in made.comparison.compared],
        "notes": list(made.comparison.notes),
    }


def _compared(one: Compared) -> dict[str, Any]:
    pair = one.pair
    sides = {
        name: {
            "triton": member.manifest.triton,
            "folder": str(member.manifest.folder),
            "status": member.point.status,
            "error": member.point.error,
            "metrics": dict(values),
        }
        for name, member, values in (("from", pair.a, one.a), ("to", pair.b, one.b))
    }
    short = {name: one.in_short(name) for name in metrics.summary()} if one.measured else {}
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
