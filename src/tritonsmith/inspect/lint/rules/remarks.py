"""Report ptxas's own remarks about lost performance."""

from __future__ import annotations

from collections.abc import Iterator

from tritonsmith.inspect.lint.compiled import CompiledPoint, first_of_each
from tritonsmith.inspect.lint.finding import LintFinding, NotCheckedError, StageLine, rules


def serialized(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield Hopper's matrix products that ptxas serialized."""
    yield from _said(
        one, "wgmma-serialized", "wgmma.mma_async instructions are serialized", "wgmma.mma_async"
    )


def setmaxnreg(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield ignored `setmaxnreg` instructions, by which warps pass registers to each other."""
    yield from _said(one, "setmaxnreg-ignored", "'setmaxnreg' ignored", "setmaxnreg")


def _said(one: CompiledPoint, code: str, words: str, instruction: str) -> Iterator[LintFinding]:
    if not one.nvidia:
        return
    if one.point.remarks is None:
        raise NotCheckedError("the remarks of ptxas were not recorded")
    for remark in one.point.remarks:
        if words in remark:
            evidence = StageLine("ptxas", 1, remark, None)
            used = [line for line in one.lines("ptx") if line.text.startswith(instruction)]
            if not used:
                raise NotCheckedError(f"ptxas says {remark!r}, and the ptx has no {instruction}")
            yield LintFinding(rules()[code], remark, (*first_of_each(used), evidence))
