"""Terminal output of the doctor: findings by group, then one line of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from tritonsmith.core import command_line
from tritonsmith.core.ui import console, redact, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.finding import Finding, Status

_MARKS: dict[Status, str] = {
    "ok": "✓",
    "not applicable": "·",
    "note": "i",
    "warning": "!",
    "error": "✗",
    "crashed": "✗",
}
_INDENT = 22  # indentation of all lines of a finding but the first
_NOUNS = ("note", "warning", "error")


def summary(findings: tuple[Finding, ...]) -> RenderableType:
    """Return one line of counts, and one per finding that is wrong."""
    lines = [_Hanging(Text(counts(findings)))]
    for problem in filter(lambda finding: finding.wrong, findings):
        advice = console.typed("; ".join(filter(None, (problem.remedy, *problem.commands))))
        text = redact.hidden(f"  {problem.status}: {problem.check}: {problem.seen}. {advice}".rstrip())
        lines.append(_Hanging(Text(text), 4))
    return Group(*lines)


def counts(findings: tuple[Finding, ...]) -> str:
    """Return the number of findings of each status."""
    counted = Counter(finding.status for finding in findings)
    parts = [
        f"{number} {status}{'s' if number > 1 and status in _NOUNS else ''}"
        for status in _MARKS
        if (number := counted[status])
    ]
    return f"doctor: {', '.join(parts) or 'nothing was checked'}"


def screen(findings: tuple[Finding, ...], *, whole: bool = True) -> RenderableType:
    """Return the findings, group by group: one line for what is fine, and the fix for what is not.

    A check that does not apply shows its reason if the output is `whole`; else it is only listed.
    """
    blocks: list[RenderableType] = []
    for group, members in groupby(findings, key=lambda finding: finding.group):
        blocks.append(Text(f"\n{group}", style="bold"))
        group_findings = tuple(members)
        for finding in group_findings:
            if whole or finding.status != "not applicable":
                blocks += _lines(finding)
        idle = [finding.name for finding in group_findings if finding.status == "not applicable"]
        if idle and not whole:
            blocks.append(_Hanging(Text(f"  · not applicable: {', '.join(idle)}", style="dim"), 4))
    return Group(*blocks)


def _lines(finding: Finding) -> Iterator[RenderableType]:
    style = tables.STATUS_STYLES[finding.status]
    head = Text.assemble((f"  {_MARKS[finding.status]} {finding.name:<18}", style), _said(finding.seen))
    place = Text(f"  {redact.hidden(finding.where)}", style="dim") if finding.where else Text()
    yield _Hanging(head, _INDENT, place)
    for text in (redact.hidden(finding.affects), finding.remedy and f"fix: {_said(finding.remedy)}"):
        if text:
            yield _Hanging(_indented(text), _INDENT)
    for command in finding.commands:
        yield _Command(_said(command))
    if finding.wrong:
        yield _Hanging(_indented(f"more: {console.typed(finding.docs)}", "dim"), _INDENT)


def _indented(text: str, style: str = "") -> Text:
    return Text(" " * _INDENT + text, style=style)


@dataclass(frozen=True)
class _Hanging:
    """Text that wraps between words; later lines are indented.

    Attributes:
        text: text, of one line or several.
        indent: indentation of all lines after the first.
        tail: a path, for example: moved to its own line if it does not fit, and never broken.
    """

    text: Text
    indent: int = 0
    tail: Text = field(default_factory=Text)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = tables.width_of(options)
        lines = [part for line in self.text.split("\n") for part in tables.wrapped(line, width, self.indent)]
        if width is None or lines[-1].cell_len + self.tail.cell_len <= width:
            lines[-1] += self.tail
        else:
            lines.append(Text(" " * (self.indent - 2)) + self.tail)
        yield from map(tables.unwrapped, lines)


@dataclass(frozen=True)
class _Command:
    """A shell command; a long one continues on the next line, as a shell reads it."""

    command: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = tables.width_of(options)
        room = None if width is None else width - _INDENT - 2
        mark = "$ "
        for line in command_line.continued(self.command, room):
            yield tables.unwrapped(_indented(f"{mark}{line}", "cyan"))
            mark = "    "


def _said(text: str) -> str:
    return console.typed(redact.hidden(text))


def listing(checks: Iterable[Check]) -> Grid:
    """Return the list of all checks."""
    rows = [[check.id, "--deep" if check.deep else "", check.title] for check in checks]
    return tables.plain("checks", ["check", "", "looks at"], rows)
