"""Show findings on the screen and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import counted
from tritonsmith.inspect.lint.finding import LintFinding, StageLine
from tritonsmith.inspect.lint.run import LintResult

_WIDTH = 100
_OF_LINE = 160  # characters of a line of a stage; --json has all of it


def blocks(result: LintResult) -> Iterator[Text | Grid]:
    """Yield a table; then for each rule its reason, advice and the lines that prove it; then the verdict."""
    if result.findings:
        many = len({finding.kernel for finding in result.findings}) > 1
        heads = [*(["kernel"] if many else []), "point", "line", "finding", "what"]
        rows = [
            [
                *([finding.kernel] if many else []),
                finding.point,
                _place(finding),
                finding.rule.code,
                finding.what,
            ]
            for finding in result.findings
        ]
        yield tables.plain("findings", heads, rows)
    for code in dict.fromkeys(finding.rule.code for finding in result.findings):
        yield Text("\n".join(_details([finding for finding in result.findings if finding.rule.code == code])))
    yield Text(verdict(result))


def verdict(result: LintResult) -> str:
    """Return the result in one sentence."""
    rules = len({finding.rule.code for finding in result.findings})
    compiles = counted(result.points, "compile")
    if result.findings:
        return f"{counted(len(result.findings), 'finding')} of {counted(rules, 'rule')} in {compiles}"
    return f"nothing found in {compiles}" + (", as far as it was checked" if result.unchecked else "")


def notes(result: LintResult) -> Iterator[str]:
    """Yield the rules that were not checked, each reason once."""
    about: dict[tuple[str, str, str], list[str]] = {}
    for rule in result.unchecked:
        about.setdefault((rule.kernel, rule.point, rule.why), []).append(rule.code)
    for (kernel, point, why), codes in about.items():
        yield f"{kernel} {point}: not checked, {why}: {', '.join(codes)}"


def as_json(result: LintResult) -> dict[str, Any]:
    """Return the result as JSON data, with whole lines."""
    return {
        "schema": 1,
        "verdict": verdict(result),
        "points": result.points,
        "findings": [
            {
                "code": finding.rule.code,
                "kernel": finding.kernel,
                "point": finding.point,
                "target": finding.target,
                "file": finding.origin.file if finding.origin else None,
                "line": finding.origin.number if finding.origin else None,
                "what": finding.what,
                "title": finding.rule.title,
                "why": finding.rule.why,
                "try": finding.rule.advice,
                "source": finding.rule.source,
                "evidence": [
                    {"stage": line.stage, "line": line.number, "text": line.text, "origin": _origin(line)}
                    for line in finding.evidence
                ],
            }
            for finding in result.findings
        ],
        "unchecked": [asdict(rule) for rule in result.unchecked],
        "failed": dict(result.failed),
    }


def line(finding: LintFinding) -> str:
    """Describe a finding in one line."""
    return " ".join(
        filter(None, (finding.kernel, finding.point, _place(finding), f"{finding.rule.code}: {finding.what}"))
    )


def _details(findings: Sequence[LintFinding]) -> Iterator[str]:
    rule = findings[0].rule
    yield f"\n{rule.code}: {rule.title}"
    for lead, text in (("why", rule.why), ("try", rule.advice), ("see", rule.source)):
        yield textwrap.fill(
            text, _WIDTH, initial_indent=f"  {lead}: ", subsequent_indent="       ", break_on_hyphens=False
        )
    for finding in findings:
        yield f"  {finding.kernel} {finding.point} {_place(finding)}"
        yield from (
            f"    {line.stage}:{line.number}: {tables.clipped(line.text, _OF_LINE)}"
            for line in finding.evidence
        )


def _place(finding: LintFinding) -> str:
    return f"{Path(finding.origin.file).name}:{finding.origin.number}" if finding.origin else ""


def _origin(line: StageLine) -> str | None:
    return f"{line.origin.file}:{line.origin.number}" if line.origin else None
