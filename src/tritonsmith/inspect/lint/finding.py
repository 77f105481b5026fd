"""Define a finding, its rule, and the lines of stages that prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tritonsmith.core import configs
from tritonsmith.inspect.show.source_lines import SourceLine


@dataclass(frozen=True)
class LintRule:
    """A row of configs/lint.toml.

    Attributes:
        code: the name for `--fail-on`: `spill-in-loop`.
        title: the problem, in a few words.
        why: why it matters.
        advice: what to try.
        source: the public documentation.
    """

    code: str
    title: str
    why: str
    advice: str
    source: str


@dataclass(frozen=True)
class StageLine:
    """One line of a stage.

    Attributes:
        stage: `ttgir`, `ptx`, `sass`; `ptxas` for a remark, which is no stage of its own.
        number: from 1.
        text: the line, stripped.
        origin: the Python line that it comes from; None if unknown.
    """

    stage: str
    number: int
    text: str
    origin: SourceLine | None


@dataclass(frozen=True)
class LintFinding:
    """A violation of one rule in one compile.

    Attributes:
        rule: the rule.
        what: the finding, with its numbers.
        evidence: the lines that prove it; never empty.
        kernel: name of the function.
        point: the compile.
        target: `cuda:90:32`.
    """

    rule: LintRule
    what: str
    evidence: tuple[StageLine, ...]
    kernel: str = ""
    point: str = ""
    target: str = ""

    @property
    def origin(self) -> SourceLine | None:
        """The Python line of the first evidence that has one."""
        return next((line.origin for line in self.evidence if line.origin), None)

    def of(self, kernel: str, point: str, target: str) -> LintFinding:
        """Return a copy that belongs to this compile."""
        return replace(self, kernel=kernel, point=point, target=target)


class NotCheckedError(Exception):
    """A rule cannot be applied to a compile: a stage or its source locations are missing."""


@cache
def rules() -> dict[str, LintRule]:
    """Return all rules, by code, in order."""
    return {row["code"]: LintRule(**row) for row in configs.load("lint")["rule"]}
