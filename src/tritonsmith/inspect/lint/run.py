"""Apply all rules to all points of output folders, and show the findings: `kernel.lint`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.resources import measure
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.lint import rules
from tritonsmith.inspect.lint.finding import (
    CompiledPoint,
    LintFinding,
    NotCheckedError,
    StageLine,
    known_rules,
)

if TYPE_CHECKING:
    from tritonsmith.inspect.bounds import PointBounds

ANY = "any"
OF_BOUNDS = ("int32-overflow", "outside-tensor", "unlimited-program")  # which `inspect.bounds` finds
_WIDTH = 100
_OF_LINE = 160  # characters of a line of a stage; --json has all of it


@dataclass(frozen=True)
class Unchecked:
    """A rule that could not be applied.

    Attributes:
        kernel: the function's name.
        point: the id of the compile.
        code: the code of the rule.
        why: the missing input.
    """

    kernel: str
    point: str
    code: str
    why: str


@dataclass(frozen=True)
class LintResult:
    """The findings in one or more kernels.

    Attributes:
        points: the number of checked compiles.
        findings: the findings, in the order of kernels, points and rules.
        unchecked: the rules that could not be applied.
        failed: the points without code: `KERNEL POINT` to the reason.
    """

    points: int
    findings: tuple[LintFinding, ...]
    unchecked: tuple[Unchecked, ...]
    failed: Mapping[str, str]


def lint(manifests: Sequence[Manifest]) -> LintResult:
    """Apply all rules.

    Raises:
        FactError: a stage cannot be read.
    """
    findings: list[LintFinding] = []
    unchecked: list[Unchecked] = []
    failed, points = {}, 0
    for manifest in manifests:
        # Resources are measured once per folder: rules ask for them again and again.
        rows = measure.of_manifest(manifest).rows
        for point, row in zip(manifest.points, rows, strict=True):
            if row.error:
                # One point that did not compile does not end the lint: a sweep may have values that a target
                # refuses.
                failed[f"{manifest.kernel} {point.id}"] = row.error
                continue
            points += 1
            compiled = CompiledPoint(manifest, point, row)
            for code, rule in rules.RULES.items():
                try:
                    findings += [
                        finding.of(manifest.kernel, point.id, point.target) for finding in rule(compiled)
                    ]
                # Reported, never swallowed: "nothing found" must not mean "nothing checked".
                except NotCheckedError as error:
                    unchecked.append(Unchecked(manifest.kernel, point.id, code, str(error)))
    return LintResult(points, tuple(findings), tuple(unchecked), failed)


def with_bounds(
    result: LintResult, answers: Sequence[PointBounds], codes: Sequence[str] = OF_BOUNDS
) -> LintResult:
    """Return a result with the offsets that overflow, and the accesses outside of tensors, too.

    Args:
        result: the other findings.
        answers: what is known about the offsets of the same compiles.
        codes: the rules that are asked for.
    """
    findings, unchecked = list(result.findings), list(result.unchecked)
    codes = [code for code in OF_BOUNDS if code in codes]
    for answer in answers:
        if answer.unknown:
            unchecked += [Unchecked(answer.kernel, answer.point, code, answer.unknown) for code in codes]
        for code, what, evidence in _of_bounds(answer):
            if code in codes:
                finding = LintFinding(known_rules()[code], what, evidence)
                findings.append(finding.of(answer.kernel, answer.point, answer.target))
    return replace(result, findings=tuple(findings), unchecked=tuple(unchecked))


def _of_bounds(answer: PointBounds) -> Iterator[tuple[str, str, tuple[StageLine, ...]]]:
    """Yield the code, the words and the evidence of what is shown, or is a fact of the kernel's text."""
    overflow, outside, _ = OF_BOUNDS
    for finding in answer.findings:
        witness = finding.overflow.witness
        if witness is None or finding.overflow.is_in_block:
            continue
        number = finding.origin.number if finding.origin else 0
        lines = (
            StageLine("python", number, finding.source, finding.origin),
            StageLine("witness", 1, witness.launch_words, None),
        )
        yield overflow, f"{finding.expression} overflows from {witness.size_words} on", lines
    for end in answer.ends:
        if end.code == outside and not end.proved:
            continue
        number = end.origin.number if end.origin else 0
        line = StageLine("python", number, end.source, end.origin)
        yield end.code, end.what, (line, *([StageLine("witness", 1, end.launch, None)] if end.launch else []))


def parse_fail_on(text: str | None) -> tuple[str, ...]:
    """Parse the codes of `--fail-on`: all rules about performance for `any`, none for an empty text.

    Raises:
        UsageError: there is no such rule.
    """
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in words:
        if word != ANY and word not in known_rules():
            raise UsageError(f"--fail-on: no rule {word!r}", hints=did_you_mean(word, [ANY, *known_rules()]))
    every = [word for word in words if word != ANY]
    return tuple(dict.fromkeys((*(rules.RULES if ANY in words else ()), *every)))


def blocks(result: LintResult) -> Iterator[Text | Grid]:
    """Yield a table; then for each rule its reason, advice and the lines that prove it; then the verdict."""
    if result.findings:
        # A column that has the same text in every row takes room from the others.
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


def compiler_lines(result: LintResult) -> Iterator[str]:
    """Yield findings and failures as a compiler writes them: `FILE:LINE: CODE: TEXT (KERNEL: POINTS)`."""
    # Of many targets and configs, each would repeat the same line of Python.
    points: dict[str, list[str]] = {}
    for finding in result.findings:
        origin = finding.origin
        place = f"{os.path.relpath(origin.file)}:{origin.number}: " if origin else ""
        points.setdefault(f"{place}{finding.rule.code}: {finding.what} ({finding.kernel}: ", []).append(
            finding.point
        )
    yield from (f"{text}{', '.join(ids)})" for text, ids in points.items())
    yield from (f"{point} does not compile: {why.splitlines()[0]}" for point, why in result.failed.items())


def checked(result: LintResult, codes: Sequence[str]) -> tuple[str, ...]:
    """Return those of some codes whose rules could be applied to all compiles."""
    left = {rule.code for rule in result.unchecked} - {finding.rule.code for finding in result.findings}
    return tuple(code for code in codes if code not in left)


def verdict(result: LintResult) -> str:
    """Return the result in one sentence."""
    rules = len({finding.rule.code for finding in result.findings})
    compiles = counted(result.points, "compile")
    if result.findings:
        return f"{counted(len(result.findings), 'finding')} of {counted(rules, 'rule')} in {compiles}"
    return f"nothing found in {compiles}" + (", as far as it was checked" if result.unchecked else "")


def notes(result: LintResult) -> Iterator[str]:
    """Yield the rules that were not checked, each reason once."""
    # Grouped by reason: a kernel without TTGIR lacks it for each of the rules that read TTGIR.
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


def one_line(finding: LintFinding) -> str:
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


def failure(result: LintResult, codes: Sequence[str]) -> SmithError | None:
    """Return the error that a lint ends with; None if all compiled, and none of the codes was found.

    Args:
        result: the findings.
        codes: the codes of `--fail-on`.
    """
    if result.failed:
        return SmithError(
            f"{len(result.failed)} of the points did not compile",
            why="\n".join(f"{point}: {why}" for point, why in result.failed.items()),
            hints=["the manifest in the output folder has the full messages"],
        )
    # A finding comes before a rule that was not checked: it is certain, and fixing it may make the other one
    # moot.
    if findings := [finding for finding in result.findings if finding.rule.code in codes]:
        why = "\n".join(one_line(finding) for finding in findings)
        hints = ["--json has all lines of evidence"]
        return SmithError(f"--fail-on: {counted(len(findings), 'finding')}", why=why, hints=hints)
    if unchecked := [rule for rule in result.unchecked if rule.code in codes]:
        why = "\n".join(f"{rule.kernel} {rule.point}: {rule.code}: {rule.why}" for rule in unchecked)
        hints = ["a check of nothing does not pass: name the codes that can be checked"]
        return FactError("--fail-on names rules that were not checked", why=why, hints=hints)
    return None
