"""Terminal output of the doctor: findings by group, then one line of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from tritonsmith.doctor.check import Check
from tritonsmith.doctor.finding import Finding, Status
from tritonsmith.ui import console, redact, tables
from tritonsmith.ui.tables import Grid

_MARKS: dict[Status, str] = {
    "ok": "✓",
    "not applicable": "·",
    "note": "i",
    "warning": "!",
    "error": "✗",
    "crashed": "✗",
}
_NOUNS = ("note", "warning", "error")


def summary(findings: tuple[Finding, ...]) -> str:
    """One line of counts, and one per finding that is wrong."""
    lines = [counts(findings)]
    for found in filter(lambda finding: finding.wrong, findings):
        advice = console.typed("; ".join(filter(None, (found.remedy, *found.commands))))
        lines.append(f"  {found.status}: {found.check}: {found.seen}. {advice}".rstrip())
    return "\n".join(lines)


def counts(findings: tuple[Finding, ...]) -> str:
    """Number of findings of each status."""
    counted = Counter(finding.status for finding in findings)
    parts = [
        f"{number} {status}{'s' if number > 1 and status in _NOUNS else ''}"
        for status in _MARKS
        if (number := counted[status])
    ]
    return f"doctor: {', '.join(parts) or 'nothing was checked'}"


def screen(findings: tuple[Finding, ...], *, whole: bool = True) -> RenderableType:
    """Findings, group by group: one line for what is fine, and the fix for what is not.

    A check that does not apply says why where the output is to be `whole`; else it is only listed.
    """
    blocks: list[Text] = []
    for group, members in groupby(findings, key=lambda finding: finding.group):
        blocks.append(Text(f"\n{group}", style="bold"))
        found = tuple(members)
        blocks += [_lines(finding) for finding in found if whole or finding.status != "not applicable"]
        idle = [finding.name for finding in found if finding.status == "not applicable"]
        if idle and not whole:
            blocks.append(Text(f"  · not applicable: {', '.join(idle)}", style="dim"))
    return Group(*blocks)


def _lines(finding: Finding) -> Text:
    style = tables.STATUS_STYLES[finding.status]
    text = Text.assemble((f"  {_MARKS[finding.status]} {finding.name:<18}", style), _said(finding.seen))
    if finding.where:
        text.append(f"  {redact.hidden(finding.where)}", style="dim")
    if finding.affects:
        text.append(f"\n{'':<22}{redact.hidden(finding.affects)}")
    if finding.remedy:
        text.append(f"\n{'':<22}fix: {_said(finding.remedy)}")
    for command in finding.commands:
        text.append(f"\n{'':<22}$ {_said(command)}", style="cyan")
    if finding.wrong:
        text.append(f"\n{'':<22}{finding.docs}", style="dim")
    return text


def _said(text: str) -> str:
    return console.typed(redact.hidden(text))


def listing(checks: Iterable[Check]) -> Grid:
    """The list of all checks."""
    rows = [[check.id, "--deep" if check.deep else "", check.title] for check in checks]
    return tables.plain("checks", ["check", "", "looks at"], rows)
