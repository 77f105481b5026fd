"""Find operands of matrix products that a pipelined loop copies through registers."""

from __future__ import annotations

from collections.abc import Iterator

from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, StageLine, rules
from tritonsmith.ir.ttgir import MlirOperation, Ttgir

_SINCE = 80  # compute capability that has cp.async
_DOTS = ("dot", "dot_scaled", "warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
_ON_THE_WAY = ("local_alloc", "local_load", "convert_layout", "trans", "memdesc_trans", "local_store",
               "extf", "truncf", "fp_to_fp", "bitcast", "tmem_alloc", "tmem_copy")  # fmt: skip
_OWN_STAGES = "tt.num_stages = "


def missing(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield plain loads in a loop that feed a dot of that loop, although pipelining was requested."""
    stages = one.point.metadata.get("num_stages")
    if not one.nvidia or one.capability < _SINCE or not isinstance(stages, int) or stages < 2:  # noqa: PLR2004
        return
    copies = one.ttgir.named("async_copy_global_to_local")
    copied = {one.ttgir_line(copy.number).origin for copy in copies}
    origins = set()  # an inlined function occurs several times
    for load in one.ttgir.named("tt.load"):
        line = one.ttgir_line(load.number)
        if (
            not load.loop
            or line.origin in origins
            or not _feeds_dot(one.ttgir, load)
            or _one_stage(one, line)
        ):
            continue
        accesses, tensor = one.accesses_of(load), one.ttgir.tensor(load)
        if not accesses or tensor is None or line.origin in copied:
            continue
        origins.add(line.origin)
        bits = max(bits for _, bits in accesses)
        narrow = f"; {bits // 8} bytes at a time, and cp.async copies 4, 8 or 16" if bits < 32 else ""  # noqa: PLR2004
        shape = "x".join(map(str, tensor.shape))
        what = f"the {shape}x{_pointee(tensor.element)} operand of a dot goes through registers in a loop"
        what += f" of num_stages={stages}{narrow}"
        loop = one.ttgir_line(load.loop)
        yield LintFinding(rules()["no-async-copy"], what, (line, loop, accesses[0][0]))


def _feeds_dot(module: Ttgir, load: MlirOperation) -> bool:
    """Report whether a loaded value reaches a dot of its loop with only its layout or type changed."""
    names = set(load.results)
    for later in module.operations:
        if later.number <= load.number or later.loop != load.loop:
            continue
        if not names.intersection(later.operands):
            continue
        short = later.name.partition(".")[2]
        if short in _DOTS:
            return bool(names.intersection(later.operands[:2]))
        if short in _ON_THE_WAY:
            names.update(later.results)
    return False


def _one_stage(one: CompiledPoint, load: StageLine) -> bool:
    """Report whether the loop sets its own number of stages, `tl.range(num_stages=1)`, as the ttir shows."""
    lines = one.lines("ttir")
    last = max((number for number, line in enumerate(lines) if line.origin == load.origin), default=0)
    return any(_OWN_STAGES in line.text for line in lines[last:])


def _pointee(element: str) -> str:
    return element.removeprefix("!tt.ptr<").split(",")[0].rstrip(">")
