"""Findings on the screen and as JSON."""

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


def blocks(found: LintResult) -> Iterator[Text | Grid]:
    """A table, and for each finding why it matters, what to try, and the lines that prove it."""
    if found.findings:
        many = len({one.kernel for one in found.findings}) > 1
        heads = [*(["kernel"] if many else []), "point", "line", "finding", "what"]
        rows = [
            [*([one.kernel] if many else []), one.point, _place(one), one.rule.code, one.what]
            for one in found.findings
        ]
        yield tables.plain("findings", heads, rows)
    for code in dict.fromkeys(one.rule.code for one in found.findings):
        yield Text("\n".join(_details([one for one in found.findings if one.rule.code == code])))
    yield Text(verdict(found))


def verdict(found: LintResult) -> str:
    """What was found, in one sentence."""
    rules = len({one.rule.code for one in found.findings})
    compiles = counted(found.points, "compile")
    if found.findings:
        return f"{counted(len(found.findings), 'finding')} of {counted(rules, 'rule')} in {compiles}"
    return f"nothing found in {compiles}" + (", as far as it was checked" if found.unchecked else "")


def notes(found: LintResult) -> Iterator[str]:
    """What was not checked, each reason once."""
    about: dict[tuple[str, str, str], list[str]] = {}
    for one in found.unchecked:
        about.setdefault((one.kernel, one.point, one.why), []).append(one.code)
    for (kernel, point, why), codes in about.items():
        yield f"{kernel} {point}: not checked, {why}: {', '.join(codes)}"


def as_json(found: LintResult) -> dict[str, Any]:
    """Everything, with whole lines."""
    return {
        "schema": 1,
        "verdict": verdict(found),
        "points": found.points,
        "findings": [
            {
                "code": one.rule.code,
                "kernel": one.kernel,
                "point": one.point,
                "target": one.target,
                "file": one.origin.file if one.origin else None,
                "line": one.origin.number if one.origin else None,
                "what": one.what,
                "title": one.rule.title,
                "why": one.rule.why,
                "try": one.rule.advice,
                "source": one.rule.source,
                "evidence": [
                    {"stage": line.stage, "line": line.number, "text": line.text, "origin": _origin(line)}
                    for line in one.evidence
                ],
            }
            for one in found.findings
        ],
        "unchecked": [asdict(one) for one in found.unchecked],
        "failed": dict(found.failed),
    }


def line(one: LintFinding) -> str:
    """A finding in one line."""
    return " ".join(filter(None, (one.kernel, one.point, _place(one), f"{one.rule.code}: {one.what}")))


def _details(found: Sequence[LintFinding]) -> Iterator[str]:
    rule = found[0].rule
    yield f"\n{rule.code}: {rule.title}"
    for lead, text in (("why", rule.why), ("try", rule.advice), ("see", rule.source)):
        yield textwrap.fill(
            text, _WIDTH, initial_indent=f"  {lead}: ", subsequent_indent="       ", break_on_hyphens=False
        )
    for one in found:
        yield f"  {one.kernel} {one.point} {_place(one)}"
        yield from (
            f"    {line.stage}:{line.number}: {tables.clipped(line.text, _OF_LINE)}" for line in one.evidence
        )


def _place(one: LintFinding) -> str:
    return f"{Path(one.origin.file).name}:{one.origin.number}" if one.origin else ""


def _origin(line: StageLine) -> str | None:
    return f"{line.origin.file}:{line.origin.number}" if line.origin else None
