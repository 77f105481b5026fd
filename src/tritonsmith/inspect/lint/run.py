"""Apply all rules to all points of an output folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.resources import measure
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.inspect.lint import rules
from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, NotCheckedError
from tritonsmith.inspect.lint.finding import rules as known_rules

ANY = "any"


@dataclass(frozen=True)
class Unchecked:
    """A rule that could not be applied.

    Attributes:
        kernel: name of the function.
        point: the compile.
        code: the rule.
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
        points: number of checked compiles.
        findings: in the order of kernels, points and rules.
        unchecked: rules that could not be applied.
        failed: points without code: `KERNEL POINT` to the reason.
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
                failed[f"{manifest.kernel} {point.id}"] = row.error
                continue
            points += 1
            compiled = CompiledPoint(manifest, point, row)
            for code, rule in rules.ALL.items():
                try:
                    findings += [
                        finding.of(manifest.kernel, point.id, point.target) for finding in rule(compiled)
                    ]
                except NotCheckedError as error:
                    unchecked.append(Unchecked(manifest.kernel, point.id, code, str(error)))
    return LintResult(points, tuple(findings), tuple(unchecked), failed)


def parse_fail_on(text: str | None) -> tuple[str, ...]:
    """Parse the codes of `--fail-on`: all rules for `any`, none for an empty text.

    Raises:
        UsageError: there is no such rule.
    """
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in words:
        if word != ANY and word not in known_rules():
            raise UsageError(f"--fail-on: no rule {word!r}", hints=did_you_mean(word, [ANY, *known_rules()]))
    return tuple(known_rules()) if ANY in words else tuple(dict.fromkeys(words))
