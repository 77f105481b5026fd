"""The doctor's findings as a summary and as a table."""

from __future__ import annotations

from collections import Counter

from rich.table import Table

from tritonsmith.doctor.checks import Subject
from tritonsmith.doctor.checks import examine as _examine
from tritonsmith.doctor.finding import Finding
from tritonsmith.envs import workspace
from tritonsmith.envs.schema import Settings
from tritonsmith.facts import machine
from tritonsmith.ui import tables


def examine(settings: Settings) -> tuple[Finding, ...]:
    """Look at the machine and one environment.

    Args:
        settings: the env.
    """
    return _examine(Subject(settings, workspace.default(), machine.read()))


def summary(findings: tuple[Finding, ...]) -> str:
    """One line of counts, and one per finding that is wrong."""
    counts = Counter(finding.status for finding in findings)
    parts = [f"{count} {status}" for status, count in counts.items()]
    lines = [f"doctor: {', '.join(parts)}"]
    wrong = [finding for finding in findings if finding.status in ("warning", "error", "crashed")]
    lines += [
        f"  {finding.status}: {finding.id}: {finding.seen}. {'; '.join(finding.remedy)}" for finding in wrong
    ]
    return "\n".join(lines)


def table(findings: tuple[Finding, ...]) -> Table:
    """All findings."""
    rows = []
    for finding in findings:
        todo = "" if finding.status == "ok" else "\n".join(filter(None, (finding.affects, *finding.remedy)))
        rows.append((finding.status, finding.id, finding.seen, todo))
    return tables.findings(rows)
