"""`passes.diff`: what a pass changed, and where two dumps diverge."""

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
    """How often an operation, or a layout by its definition, comes on either side."""

    what: str
    before: int
    after: int


@dataclass(frozen=True)
class Divergence:
    """Where two runs of the pipelines diverge.

    Attributes:
        same: passes that did the same in both.
        one: the first run's pass at which they part; None if it has no more passes.
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
        """Its dumps, in order."""
        return self.index.of(self.kernel.name)

    def normal(self, dump: Dump, other: ComparedRun) -> str:
        """The normal form of a dump; without the name of the target, if the other run has another."""
        ir = self.index.text(dump)
        if self.kernel.target and self.kernel.target != other.kernel.target:
            ir = ir.replace(f'"{self.kernel.target}"', '"..."')
        return normalize.text(ir, language(dump))


def language(dump: Dump) -> str:
    """What the IR of a dump is written in, as `kernels.normal` calls it: `mlir`, `llvm`, `ptx`, `amdgcn`."""
    return "llvm" if dump.kind == "mir" else dump.language


def left(index: DumpIndex, dump: Dump) -> Dump:
    """The IR after a pass.

    Raises:
        FactError: nothing was printed that shows it.
    """
    return sides(index, dump)[1] if dump.when == "before" else dump


def sides(index: DumpIndex, dump: Dump) -> tuple[Dump, Dump]:
    """The IR before a pass, and after it.

    Raises:
        FactError: nothing was printed that shows one of them.
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
    """Operations whose number changed, the largest change first."""
    return _changes(normalize_diff.operations(before, language), normalize_diff.operations(after, language))


def layouts(before: str, after: str) -> tuple[IrChange, ...]:
    """Layouts of MLIR whose number of uses changed, by what they are and not by their alias."""
    return _changes(_layouts(before), _layouts(after))


def divergence(one: ComparedRun, other: ComparedRun, *, lasting: bool = False) -> Divergence:
    """The first pass at which two runs diverge.

    Passes are paired by their names. A pass that only one of them has parts them if it changed something.
    Runs for two targets do not part where the name of the target is all that differs. LLVM's passes and the
    assembly count where both runs printed them.

    Args:
        one: a run.
        other: another one.
        lasting: the first pass after the last one that left the same in both: what parts them earlier makes
            no difference in the end.
    """
    found, same = None, 0
    for passes, step in _steps(one, other, lasting=lasting):
        found, same = (found or step, same) if step else (None, passes)
        if found and not lasting:
            break
    return found or Divergence(same, None, None)


def _steps(one: ComparedRun, other: ComparedRun, *, lasting: bool) -> Iterator[tuple[int, Divergence | None]]:
    """Common passes so far, and whether the runs differ: before the first one, and after each.

    Passes of which neither run shows what they left are the same; for `lasting` they tell nothing.
    """
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


def said(found: Divergence) -> str:
    """A divergence in words."""
    if found.already:
        return "the two already differ before their first common pass"
    if found.one is None and found.other is None:
        return f"no difference: {found.same} passes have equal results in both"
    after = f"{found.same} passes have equal results in both"
    if found.one and found.other and found.one.label == found.other.label:
        at = f"{found.one.label} ({found.one.number} here, {found.other.number} there)"
        ended = [where for dump, where in ((found.one, "here"), (found.other, "there")) if not shows(dump)]
        end = f": its output was not printed {ended[0]}" if ended else ":"
        return f"{after}; the first difference is at {at}{end}"
    alone = [
        f"{dump.label} ({dump.number}) changes the IR only {where}"
        for dump, where in ((found.one, "here"), (found.other, "there"))
        if dump
    ]
    return f"{after}; then {' and '.join(alone)}"


def _passes(dumps: Sequence[Dump], kinds: Collection[str]) -> list[Dump]:
    """One dump for each pass."""
    shown = (dump for dump in dumps if dump.when != "failed" and not dump.inside and dump.whole)
    return [dump for dump in shown if dump.kind in kinds]


def shows(dump: Dump) -> bool:
    """Whether it is known what the pass of a dump left."""
    return dump.when == "after" or dump.against is not None


def _left_differs(one: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    """Whether what two passes left is not the same."""
    if not shows(mine) or not shows(yours):
        return shows(mine) != shows(yours)
    return _differ(one, left(one.index, mine), other, left(other.index, yours))


def _differ(one: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    if mine.sha256 == yours.sha256:
        return False
    return one.normal(mine, other) != other.normal(yours, one)


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[IrChange, ...]:
    names = dict.fromkeys([*before, *after])
    found = [IrChange(name, before.get(name, 0), after.get(name, 0)) for name in names]
    changed = [one for one in found if one.before != one.after]
    return tuple(sorted(changed, key=lambda one: (-abs(one.after - one.before), one.what)))


def _layouts(ir: str) -> Counter[str]:
    """Uses of each layout, by its definition."""
    meaning = layout_definitions(ir)
    body = _ALIAS.sub("", ir)
    return Counter(meaning[name] for name in _USE.findall(body) if name in meaning)


def layout_definitions(ir: str) -> dict[str, str]:
    """Alias and definition of each layout, aliases in definitions spelled out."""
    bodies = {match[1]: match[2].strip() for match in _ALIAS.finditer(ir) if not match[2].startswith("loc(")}
    known: dict[str, str] = {}
    for name, body in bodies.items():  # MLIR defines an alias before it uses it
        known[name] = _USE.sub(lambda match: known.get(match[0], match[0]), body)
    return known
