"""Findings, and the compiled point that rules look at: its stages, line by line, and its resources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.resources.measure import ResourceRow
from tritonsmith.core import configs
from tritonsmith.inspect import show
from tritonsmith.inspect.show import SourceLine
from tritonsmith.ir.normalize import assembly
from tritonsmith.ir.ttgir import MlirOperation, Ttgir


@dataclass(frozen=True)
class LintRule:
    """A row of configs/lint.toml.

    Attributes:
        code: the name for `--fail-on`: `spill-in-loop`.
        title: the problem, in a few words.
        why: why it matters.
        advice: what to try.
        source: the public documentation that supports it.
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
        number: its number, from 1.
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
        kernel: the function's name.
        point: the id of the compile.
        target: the target: `cuda:90:32`.
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
def known_rules() -> dict[str, LintRule]:
    """Return all rules, by code, in order."""
    return {row["code"]: LintRule(**row) for row in configs.load("lint")["rule"]}


# Only accesses to global memory. An address is in brackets; what comes before decides the width: .v4.b32
# moves 128 bits.
_PTX = re.compile(
    r"^\s*(?:@!?%p\d+\s+)?(?P<name>(?:ld|st)\.(?:\w+\.)*?global\b[\w.:]*?)(?:\.v(?P<many>\d))?\.[busf]+(?P<bits>\d+)\s"
)
_PTX_COPY = re.compile(r"^\s*(?:@!?%p\d+\s+)?cp\.async\.c[ag]\.shared\.global\S*[^;]*\],\s*(?P<bytes>\w+)")
# The width of AMD's instructions is in their names: global_load_dwordx4. `ir.normalize.assembly` knows
# them.
_AMD = re.compile(r"^\s+(?P<name>[a-z]\w+)\s")
_AMD_WIDTH = re.compile(r"global (?:load|store) (\d+)")
_KINDS = {
    "tt.load": re.compile(r"\bld\.|_load_"),
    "tt.store": re.compile(r"\bst\.|_store_"),
}
_COPY = re.compile(r"\bcp\.async|_load_")


class CompiledPoint:
    """A compile and its results.

    Attributes:
        manifest: the output folder.
        point: the compile.
        row: its resources.
    """

    def __init__(self, manifest: Manifest, point: Point, row: ResourceRow) -> None:
        self.manifest, self.point, self.row = manifest, point, row
        self._lines: dict[str, list[StageLine]] = {}

    @property
    def nvidia(self) -> bool:
        """True for an NVIDIA target."""
        return self.point.backend == "cuda"

    @property
    def capability(self) -> int:
        """The compute capability without its point: 90; 0 for AMD."""
        return int(self.point.arch) if self.nvidia else 0

    @property
    def assembly(self) -> str:
        """The name of the stage that has LLVM's instructions with their locations."""
        return "ptx" if self.nvidia else "amdgcn"

    def lines(self, stage: str) -> list[StageLine]:
        """Return all lines of a stage, with the Python lines that they come from.

        Raises:
            NotCheckedError: there is no such stage, or nothing in it has a location.
        """
        if stage not in self._lines:
            if stage not in self.point.stages:
                raise NotCheckedError(f"there is no {stage}")
            text = show.stage_text(self.manifest, self.point, stage)
            origins = show.origins(text, stage)
            # Without locations a rule could not name a line of Python, and a finding without one helps
            # nobody.
            if not any(origins):
                raise NotCheckedError(f"the {stage} does not name lines of Python")
            self._lines[stage] = [
                StageLine(stage, number, line.strip(), origin)
                for number, (line, origin) in enumerate(zip(text.splitlines(), origins, strict=True), 1)
            ]
        return self._lines[stage]

    def raw(self, stage: str) -> list[str]:
        """Return the unstripped lines of a stage: indents distinguish labels from instructions."""
        self.lines(stage)  # raises if the stage is missing
        return show.stage_text(self.manifest, self.point, stage).splitlines()

    @cached_property
    def ttgir(self) -> Ttgir:
        """The parsed ttgir."""
        self.lines("ttgir")  # raises if the stage is missing
        return Ttgir(show.stage_text(self.manifest, self.point, "ttgir"))

    def ttgir_line(self, number: int) -> StageLine:
        """Return a line of the ttgir by its number."""
        return self.lines("ttgir")[number - 1]

    @cached_property
    def accesses(self) -> list[tuple[StageLine, int]]:
        """The instructions that access global memory, each with the bits that a thread moves by it."""
        moved = []
        for line, raw in zip(self.lines(self.assembly), self.raw(self.assembly), strict=True):
            bits = _ptx_bits(raw) if self.nvidia else _amd_bits(raw)
            if bits:
                moved.append((line, bits))
        return moved

    def accesses_of(self, operation: MlirOperation) -> list[tuple[StageLine, int]]:
        """Return the accesses that an operation becomes: those of its Python line and of its kind."""
        # The kind matters: an instruction without a location of its own gets that of the line before it, and
        # such an instruction is mostly of another kind.
        origin = self.ttgir_line(operation.number).origin
        kind = _KINDS.get(operation.name, _COPY)
        return [
            access
            for access in self.accesses
            if origin and access[0].origin == origin and kind.search(access[0].text)
        ]


def first_of_each(lines: Iterable[StageLine]) -> list[StageLine]:
    """Return the first line for each Python line."""
    first: dict[object, StageLine] = {}
    for line in lines:
        first.setdefault(line.origin, line)
    return list(first.values())


def _ptx_bits(line: str) -> int:
    if match := _PTX_COPY.match(line):
        return 8 * int(match["bytes"], 0)
    match = _PTX.match(line)
    return int(match["bits"]) * int(match["many"] or 1) if match else 0


def _amd_bits(line: str) -> int:
    match = _AMD.match(line)
    width = _AMD_WIDTH.fullmatch(assembly.class_of(match["name"], "amd")) if match else None
    return int(width[1]) if width else 0
