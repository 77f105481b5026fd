"""Compare two texts of one stage in normal form, and count the operations of a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.ir import normalize
from tritonsmith.ir.normalize import line_alignment, value_matching

_CONTEXT = 3  # lines around a change

_MLIR = re.compile(r'^\s*(?:%[^="\n]*= )?"?([a-z_]\w*(?:\.\w+)+)', re.MULTILINE)
_LLVM = re.compile(
    r"^[ \t]+(?:%\S+ = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)"
    r"(?:(?<=call)(?:[^@\n]*?@(llvm\.[\w.]+)\(|[^@\n]*? (asm) ))?",
    re.MULTILINE,
)
_PTX = re.compile(r"^\s*(?:@!?%?[\w.]+\s+)?([a-z]\w*(?:\.[\w:]+)*)(?=[\s;])(?!\s*[:=])", re.MULTILINE)
_SASS = re.compile(r"^\s+(?:/\*[0-9a-f]+\*/\s+)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(?=[\s;])", re.MULTILINE)
_AMD = re.compile(r"^\s+([a-z]\w+)(?=\s|$)(?!:)", re.MULTILINE)
_OPERATIONS = {
    **dict.fromkeys(("mlir", "source", "ttir", "glir", "ttgir"), _MLIR),
    **dict.fromkeys(("llvm", "llir"), _LLVM),
    "ptx": _PTX,
    "sass": _SASS,
    **dict.fromkeys(("amdgcn", "gcnasm"), _AMD),
}


@dataclass(frozen=True)
class Diff:
    """The difference between two texts.

    Attributes:
        stage: of both.
        removed: number of lines that only the first has.
        added: number of lines that only the second has.
        lines: a unified diff of the normal forms, without the lines for file names; corresponding values have
            the first text's name. A name that ends with `'` is not the first text's value of that name.
    """

    stage: str
    removed: int
    added: int
    lines: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not self.lines


def of(a: str, b: str, stage: str) -> Diff:
    """Compare two texts of a stage; a stage without normal form is compared as it is."""
    first, second = normalize.form(a, stage), normalize.form(b, stage)
    lines, others = first.lines(), second.lines()
    if lines == others:
        return Diff(stage, 0, 0, ())
    others = second.lines(value_matching.names(first, second))
    common = line_alignment.pairs(lines, others)
    removed, added = len(lines) - len(common), len(others) - len(common)
    return Diff(stage, removed, added, tuple(_unified(lines, others, common)))


def operations(text: str, stage: str) -> Counter[str]:
    """Count the occurrences of each operation.

    Args:
        text: of a stage, in normal form or not.
        stage: `ttir` counts `tt.load`; `llir` counts opcodes, intrinsics by name and `asm`; `ptx`, `sass` and
            AMD's count mnemonics. Nothing is counted for an unknown stage.
    """
    pattern = _OPERATIONS.get(stage)
    if pattern is None:
        return Counter()
    if pattern is _LLVM:
        return Counter(match[2] or match[3] or match[1] for match in pattern.finditer(text))
    return Counter(pattern.findall(text))


def _unified(first: Sequence[str], second: Sequence[str], common: Sequence[tuple[int, int]]) -> Iterator[str]:
    for hunk in _hunks(_changes(first, second, common)):
        low, high = max(0, hunk[0][0].start - _CONTEXT), min(len(first), hunk[-1][0].stop + _CONTEXT)
        below = max(0, hunk[0][1].start - _CONTEXT)
        above = min(len(second), hunk[-1][1].stop + _CONTEXT)
        yield f"@@ -{low + 1},{high - low} +{below + 1},{above - below} @@"
        at = low
        for removed, added in hunk:
            yield from (f" {line}" for line in first[at : removed.start])
            yield from (f"-{first[place]}" for place in removed)
            yield from (f"+{second[place]}" for place in added)
            at = removed.stop
        yield from (f" {line}" for line in first[at:high])


def _changes(
    first: Sequence[str], second: Sequence[str], common: Sequence[tuple[int, int]]
) -> Iterator[tuple[range, range]]:
    at, other = 0, 0
    for first_at, second_at in [*common, (len(first), len(second))]:
        if first_at > at or second_at > other:
            yield range(at, first_at), range(other, second_at)
        at, other = first_at + 1, second_at + 1


def _hunks(changes: Iterator[tuple[range, range]]) -> Iterator[list[tuple[range, range]]]:
    """Yield groups of changes to show together, because their contexts touch."""
    hunk: list[tuple[range, range]] = []
    for change in changes:
        if hunk and change[0].start - hunk[-1][0].stop > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk
