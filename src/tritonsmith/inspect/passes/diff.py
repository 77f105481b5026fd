"""Compare the IR before and after a pass, and find the pass where two dumps diverge: `passes.diff`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core.errors import FactError
from tritonsmith.ir import normalize
from tritonsmith.ir.normalize import diff as normalize_diff
from tritonsmith.ir.normalize import line_alignment

_ALIAS = re.compile(r"^(#[A-Za-z_][\w$]*(?:\.\d+)?) = (.+)$", re.MULTILINE)
_USE = re.compile(r"#[A-Za-z_][\w$]*(?:\.\d+)?")


@dataclass(frozen=True)
class IrChange:
    """A count of an operation, or of a layout by its definition, on either side."""

    what: str
    before: int
    after: int


@dataclass(frozen=True)
class Divergence:
    """The place where two runs of the pipelines diverge.

    Attributes:
        same: number of passes with equal results in both.
        one: the first run's pass at which they diverge; None if it has no more passes.
        other: the second run's.
        already: they differ before their first pass: the kernels are not the same.
    """

    same: int
    one: Dump | None
    other: Dump | None
    already: bool = False


@dataclass(frozen=True)
class ComparedRun:
    """One run of the pipelines: a kernel of a dump."""

    index: DumpIndex
    kernel: DumpedKernel

    @property
    def dumps(self) -> tuple[Dump, ...]:
        """The dumps of the run, in order."""
        return self.index.of(self.kernel.name)

    def normal(self, dump: Dump, other: ComparedRun) -> str:
        """Return the normal form of a dump; without the target's name if the other run has another target."""
        ir = self.index.text(dump)
        if self.kernel.target and self.kernel.target != other.kernel.target:
            ir = ir.replace(f'"{self.kernel.target}"', '"..."')
        return normalize.text(ir, language(dump))


def language(dump: Dump) -> str:
    """Return the language of a dump for `ir.normalize`: `mlir`, `llvm`, `ptx`, `amdgcn`."""
    return "llvm" if dump.kind == "mir" else dump.language


def left(index: DumpIndex, dump: Dump) -> Dump:
    """Return the IR after a pass.

    Raises:
        FactError: it was not printed.
    """
    return sides(index, dump)[1] if dump.when == "before" else dump


def sides(index: DumpIndex, dump: Dump) -> tuple[Dump, Dump]:
    """Return the IR before a pass, and after it.

    Raises:
        FactError: one of them was not printed.
    """
    if dump.against is None and dump.when == "after":
        hints = ["invoke passes.show prints the IR after the pass"]
        raise FactError(f"the input of {dump.name} is not in this dump", where=index.path(dump), hints=hints)
    if dump.against is None:
        why = "the pass failed" if dump.when == "failed" else "nothing was printed after it"
        raise FactError(f"the output of {dump.name} is not in this dump", where=index.path(dump), why=why)
    other = index.dumps[dump.against]
    return (dump, other) if dump.when == "before" else (other, dump)


def operations(before: str, after: str, language: str) -> tuple[IrChange, ...]:
    """Return the operations whose number changed, the largest change first."""
    return _changes(normalize_diff.operations(before, language), normalize_diff.operations(after, language))


def layouts(before: str, after: str) -> tuple[IrChange, ...]:
    """Return the MLIR layouts whose number of uses changed, by definition instead of alias."""
    return _changes(_layouts(before), _layouts(after))


def divergence(one: ComparedRun, other: ComparedRun, *, lasting: bool = False) -> Divergence:
    """Return the first pass at which two runs diverge.

    Passes are paired by name. A pass that only one run has counts as a divergence if it changed something.
    The name of the target does not count. LLVM's passes and the assembly count if both runs printed them.

    Args:
        one: a run.
        other: another one.
        lasting: return the first pass after the last one with equal results in both instead: earlier
            divergences make no difference in the end.
    """
    first_divergence, same = None, 0
    for passes, step in _steps(one, other, lasting=lasting):
        first_divergence, same = (first_divergence or step, same) if step else (None, passes)
        if first_divergence and not lasting:
            break
    return first_divergence or Divergence(same, None, None)


def _steps(one: ComparedRun, other: ComparedRun, *, lasting: bool) -> Iterator[tuple[int, Divergence | None]]:
    """Yield the number of common passes so far and a divergence: before the first pass, and after each."""
    # A pass whose result neither run shows counts as equal; with `lasting`, it is skipped.
    kinds = {dump.kind for dump in one.dumps} & {dump.kind for dump in other.dumps}
    mine, yours = _passes(one.dumps, kinds), _passes(other.dumps, kinds)
    pairs = line_alignment.pairs([dump.label for dump in mine], [dump.label for dump in yours])
    first = (mine[pairs[0][0]], yours[pairs[0][1]]) if pairs else None
    apart = first and first[0].when == "before" and _differ(one, first[0], other, first[1])
    yield 0, Divergence(0, *first, already=True) if first and apart else None
    at, there = 0, 0
    for same, (here, over) in enumerate([*pairs, (len(mine), len(yours))]):
        alone = next((dump for dump in mine[at:here] if dump.changed), None)
        foreign = next((dump for dump in yours[there:over] if dump.changed), None)
        if alone or foreign:
            yield same, Divergence(same, alone, foreign)
        if here < len(mine) and (not lasting or shows(mine[here]) or shows(yours[over])):
            differ = _left_differs(one, mine[here], other, yours[over])
            yield same + 1, Divergence(same, mine[here], yours[over]) if differ else None
        at, there = here + 1, over + 1


def said(difference: Divergence) -> str:
    """Describe a divergence in words."""
    if difference.already:
        return "the two differ before their first common pass"
    if difference.one is None and difference.other is None:
        return f"no difference: {difference.same} passes have equal results in both"
    after = f"{difference.same} passes have equal results in both"
    if difference.one and difference.other and difference.one.label == difference.other.label:
        at = f"{difference.one.label} ({difference.one.number} here, {difference.other.number} there)"
        ended = [
            where
            for dump, where in ((difference.one, "here"), (difference.other, "there"))
            if not shows(dump)
        ]
        end = f": its output was not printed {ended[0]}" if ended else ":"
        return f"{after}; the first difference is at {at}{end}"
    alone = [
        f"{dump.label} ({dump.number}) changes the IR only {where}"
        for dump, where in ((difference.one, "here"), (difference.other, "there"))
        if dump
    ]
    return f"{after}; then {' and '.join(alone)}"


def _passes(dumps: Sequence[Dump], kinds: Collection[str]) -> list[Dump]:
    """Return one dump per pass."""
    shown = (dump for dump in dumps if dump.when != "failed" and not dump.inside and dump.whole)
    return [dump for dump in shown if dump.kind in kinds]


def shows(dump: Dump) -> bool:
    """Report whether the result of a dump's pass is known."""
    return dump.when == "after" or dump.against is not None


def _left_differs(one: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    """Report whether the results of two passes differ."""
    if not shows(mine) or not shows(yours):
        return shows(mine) != shows(yours)
    return _differ(one, left(one.index, mine), other, left(other.index, yours))


def _differ(one: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    if mine.sha256 == yours.sha256:
        return False
    return one.normal(mine, other) != other.normal(yours, one)


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[IrChange, ...]:
    names = dict.fromkeys([*before, *after])
    changes = [IrChange(name, before.get(name, 0), after.get(name, 0)) for name in names]
    changed = [change for change in changes if change.before != change.after]
    return tuple(sorted(changed, key=lambda change: (-abs(change.after - change.before), change.what)))


def _layouts(ir: str) -> Counter[str]:
    """Count the uses of each layout, by definition."""
    meaning = layout_definitions(ir)
    body = _ALIAS.sub("", ir)
    return Counter(meaning[name] for name in _USE.findall(body) if name in meaning)


def layout_definitions(ir: str) -> dict[str, str]:
    """Return alias and definition of each layout; aliases inside definitions are expanded."""
    bodies = {match[1]: match[2].strip() for match in _ALIAS.finditer(ir) if not match[2].startswith("loc(")}
    known: dict[str, str] = {}
    for name, body in bodies.items():  # MLIR defines an alias before it uses it
        known[name] = _USE.sub(lambda match: known.get(match[0], match[0]), body)
    return known
