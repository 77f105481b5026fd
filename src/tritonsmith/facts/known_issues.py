"""Known issues: `configs/known-issues.toml`, and which of its rows apply to a Triton or a compiled kernel.

A row has ranges of versions and GPUs, and most have a pattern: lines of a stage that an affected kernel has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from tritonsmith.core import configs
from tritonsmith.facts.variables import covers

# A stage of a stranger may have as many matches of each line as it has lines, and every combination of them
# is a candidate. Kernels of real packages need a few hundred.
_MOST = 20_000
_PLACE = re.compile(r"\$(\w+)")
_VALUE = r"%[\w$-]+(?:#\d+)?"  # the name of a value in MLIR's text
_END = r"(?![\w#-])"  # so that %acc_1 does not stand for %acc_12
_GIT = 7  # digits that name a commit


@dataclass(frozen=True)
class IssueFacts:
    """The versions that a compile depends on; what is unknown is empty, and in no range.

    Attributes:
        triton: its version: `3.8.0`.
        gpu: the target: `sm_90`, `gfx950`.
        ptxas: its version, `12.9.86`; empty for AMD.
        llvm: the commit of Triton's LLVM.
    """

    triton: str
    gpu: str = ""
    ptxas: str = ""
    llvm: str = ""


@dataclass(frozen=True)
class KnownIssue:
    """A row of the table.

    Attributes:
        id: its name.
        symptom: what goes wrong, and in what.
        remedy: what to do.
        source: how the ranges are known: by a thread, or by a measurement.
        threads: public threads about it: `triton#11836`; none if only this project has reported it.
        page: the page of the documentation that reports it, for a row without threads.
        triton: ranges of versions of Triton, as requirements: `>=3.4,<3.7.1`.
        ptxas: ranges of versions of ptxas.
        llvm: commits of LLVM.
        gpus: targets, with `*`.
        kernel: the name of the function, for an issue that is known of one kernel only.
        values: its constants and options that are affected.
        stage: the stage that the lines are of.
        lines: regular expressions of different lines. `$x` is a value, the same wherever `$x` stands, and a
            group of a name can be repeated as `$name`. The most selective one comes first.
        beside: stage to a regular expression that it has, too.
        sure: whether a kernel with these lines is always affected.
    """

    id: str
    symptom: str
    remedy: str
    source: str
    threads: tuple[str, ...] = ()
    page: str = ""
    triton: tuple[str, ...] = ()
    ptxas: tuple[str, ...] = ()
    llvm: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    kernel: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    stage: str = ""
    lines: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    sure: bool = False

    @property
    def recognizable(self) -> bool:
        """Report whether an affected kernel can be recognized."""
        return bool(self.lines or self.kernel)

    @property
    def reference(self) -> str:
        """The threads, or the page of this project's that reports it."""
        return ", ".join(self.threads) or self.page

    @property
    def sentence(self) -> str:
        """The issue in one sentence, which every command prints."""
        return f"{self.reference}: {self.symptom}; {self.remedy}"

    @property
    def about_kernel(self) -> str:
        """The sentence about a kernel that matches."""
        return f"{'affected' if self.sure else 'may be affected'} by {self.sentence}"

    def applies(self, facts: IssueFacts) -> bool:
        """Report whether a compile with these versions is in all ranges of the row."""
        return (
            _contains(self.triton, facts.triton)
            and _contains(self.ptxas, facts.ptxas)
            and (not self.llvm or any(_same_commit(commit, facts.llvm) for commit in self.llvm))
            and (not self.gpus or any(fnmatchcase(facts.gpu, pattern) for pattern in self.gpus))
        )


@dataclass(frozen=True)
class CompiledText:
    """The parts of a compile that the patterns read.

    Attributes:
        kernel: the name of the function.
        values: its constants and options.
        stages: the names of its stages.
        read: returns the text of a stage.
    """

    kernel: str
    values: Mapping[str, Any]
    stages: Sequence[str]
    read: Callable[[str], str]


@dataclass(frozen=True)
class IssueMatch:
    """A row that a compile matches.

    Attributes:
        issue: the row.
        numbers: the lines of its stage that match, from 1, in the order of the text; never empty.
    """

    issue: KnownIssue
    numbers: tuple[int, ...]


@cache
def table() -> tuple[KnownIssue, ...]:
    """Return all rows, in order."""
    return tuple(configs.as_dataclass(KnownIssue, row) for row in configs.load("known-issues")["issue"])


def of_environment(facts: IssueFacts) -> Iterator[KnownIssue]:
    """Yield the rows that apply to an environment."""
    return (row for row in table() if row.applies(facts))


def in_compile(facts: IssueFacts, compiled: CompiledText) -> Iterator[IssueMatch]:
    """Yield the rows that apply to a compile and that its kernel matches.

    Raises:
        SmithError: a stage cannot be read.
    """
    for row in of_environment(facts):
        if row.recognizable and (numbers := _matching(row, compiled)):
            yield IssueMatch(row, numbers)


def depends_on_ptxas(kernel: str) -> bool:
    """Report whether a row about this kernel asks for the version of ptxas, which is in the binary only."""
    return any(row.ptxas and row.recognizable and row.kernel in ("", kernel) for row in table())


def shipped_ptxas(triton: str, name: str) -> str:
    """Return the version of a ptxas that the wheels of a Triton have; empty if there is none of this name.

    Args:
        triton: version of Triton.
        name: `ptxas` or `ptxas-blackwell`.
    """
    versions: dict[str, str] = configs.load("gpus")["nvidia"]["shipped"][name]
    return next((versions[since] for since in reversed(versions) if covers(triton, since)), "")


def _matching(row: KnownIssue, compiled: CompiledText) -> tuple[int, ...]:
    """Return the numbers of the lines that match a row; none if it does not match."""
    if row.kernel and row.kernel != compiled.kernel:
        return ()
    if any(compiled.values.get(name) != value for name, value in row.values.items()):
        return ()
    if not {row.stage, *row.beside} <= set(compiled.stages):
        return ()
    if any(not re.search(pattern, compiled.read(stage)) for stage, pattern in row.beside.items()):
        return ()
    return find_lines(row.lines, compiled.read(row.stage))


def find_lines(patterns: Sequence[str], text: str) -> tuple[int, ...]:
    """Return the numbers of different lines that match all patterns, with one value for each `$name`."""
    left = [_MOST]

    def search(at: int, bound: Mapping[str, str], numbers: tuple[int, ...]) -> tuple[int, ...]:
        if at == len(patterns):
            return tuple(sorted(numbers))
        for match in re.finditer(_spelled(patterns[at], bound), text, re.MULTILINE):
            left[0] -= 1
            if left[0] < 0:
                break
            number = text.count("\n", 0, match.start()) + 1
            if number not in numbers and (
                rest := search(at + 1, {**bound, **match.groupdict()}, (*numbers, number))
            ):
                return rest
        return ()

    return search(0, {}, ())


def _spelled(pattern: str, bound: Mapping[str, str]) -> str:
    """Return a pattern with the values that are known, and groups for those that it binds."""
    new: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in bound:
            return re.escape(bound[name]) + _END
        if name in new:
            return f"(?P={name}){_END}"
        new.add(name)
        return f"(?P<{name}>{_VALUE}){_END}"

    return _PLACE.sub(replace, pattern)


def _contains(ranges: Sequence[str], version: str) -> bool:
    """Report whether a version is in one of some ranges; if there is none, each version is."""
    if not ranges:
        return True
    try:
        known = Version(version)
    except InvalidVersion:
        # What is unknown is in no range: a false alarm is worse than silence.
        return False
    return any(SpecifierSet(each).contains(known, prereleases=True) for each in ranges)


def _same_commit(a: str, b: str) -> bool:
    return min(len(a), len(b)) >= _GIT and (a.startswith(b) or b.startswith(a))
