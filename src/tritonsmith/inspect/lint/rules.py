"""The rules: one function each, which yields the findings of a compiled point."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tritonsmith.compiler.resources import measure, occupancy
from tritonsmith.compiler.resources.occupancy import Occupancy
from tritonsmith.core import configs
from tritonsmith.inspect import show
from tritonsmith.inspect.lint.finding import (
    CompiledPoint,
    LintFinding,
    NotCheckedError,
    StageLine,
    first_of_each,
    known_rules,
)
from tritonsmith.ir.normalize import assembly
from tritonsmith.ir.ttgir import MlirOperation, Strides, Tensor, Ttgir

_LABEL = re.compile(r"^(\.L\w*):")  # in nvdisasm's SASS
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)(.*)$")
_TARGET = re.compile(r"`\((\.L\w*)\)")
_BRANCH_TARGETS = re.compile(r"BRANCH_TARGETS ([^\"]*)")
# Their targets are in a register; nvdisasm may list them in a comment.
_INDIRECT = ("BRX", "JMX", "BRXU", "JMXU")
_JUMPS = ("BRA", "JMP", "BRX", "JMX", "BRXU", "JMXU", "BSYNC", "CALL")
_ENDS = ("EXIT", "RET", "KILL", "BPT")
_AMD_LABEL = re.compile(r"^(?:\.LBB\d+_\d+:|; %bb\.\d+:)")
_AMD_MORE = re.compile(r"^\s+;")
_AMD_LOOP = re.compile(r"\bLoop\b")


@dataclass
class _Block:
    """A block of instructions that run one after the other.

    Attributes:
        lines: the indexes of its lines.
        labels: the labels at its beginning.
        targets: the labels that it jumps to.
        falls: the next block may follow.
    """

    lines: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    falls: bool = True


def sass_loops(lines: Sequence[str]) -> set[int] | None:
    """Return the indexes of the lines in loops: natural loops of the flow graph.

    Returns:
        None if a branch has a target that the text does not name.
    """
    # ptxas moves rare code past the end and jumps back from there, so a branch to a lower address is not
    # yet a loop: the target must dominate the branch.
    blocks = _basic_blocks(lines)
    if blocks is None:
        return None
    edges = _edges(blocks)
    dominators = _dominators(edges)
    in_loops: set[int] = set()
    before: dict[int, set[int]] = {}
    for source, targets in edges.items():
        for target in targets:
            before.setdefault(target, set()).add(source)
    for source, heads in dominators.items():
        for head in edges[source] & heads:
            # The loop is everything from which the branch is reachable without passing its head.
            inside, todo = {head}, [source]
            while todo:
                block = todo.pop()
                if block not in inside:
                    inside.add(block)
                    todo += [earlier for earlier in before.get(block, ()) if earlier in dominators]
            in_loops.update(index for block in inside for index in blocks[block].lines)
    return in_loops


def amd_loops(lines: Sequence[str]) -> set[int]:
    """Return the indexes of the lines in loops, which LLVM marks at the label of each block."""
    # "; =>This Inner Loop Header: Depth=1" and its like follow the label, on its line or as comments below.
    in_loops, inside, label = set(), False, False
    for index, line in enumerate(lines):
        if _AMD_LABEL.match(line):
            inside, label = bool(_AMD_LOOP.search(line)), True
        elif label and _AMD_MORE.match(line):
            inside = inside or bool(_AMD_LOOP.search(line))
        else:
            label = False
            if inside:
                in_loops.add(index)
    return in_loops


def _basic_blocks(lines: Sequence[str]) -> list[_Block] | None:
    blocks = [_Block()]
    waits: dict[str, str] = {}  # barrier of a BSSY, to the label that its BSYNC goes to
    for index, line in enumerate(lines):
        if label := _LABEL.match(line):
            if blocks[-1].lines:
                blocks.append(_Block())
            blocks[-1].labels.append(label[1])
        elif match := _INSTRUCTION.match(line):
            guarded, name, rest = match[1], match[2].partition(".")[0], match[3]
            blocks[-1].lines.append(index)
            if name == "BSSY" and (target := _TARGET.search(rest)):
                # BSSY names the place where threads meet again; BSYNC names only the barrier.
                waits[rest.split(",")[0].strip()] = target[1]
            if name in (*_JUMPS, *_ENDS):
                targets = _targets(name, rest, waits)
                if targets is None:
                    return None
                blocks[-1].targets = targets
                # After a BSYNC or a CALL, threads may go on below.
                blocks[-1].falls = bool(guarded) or name in ("BSYNC", "CALL")
                blocks.append(_Block())
    return blocks


def _targets(name: str, rest: str, waits: Mapping[str, str]) -> list[str] | None:
    """Return the targets of a branch; None if the text does not name them."""
    if name in _ENDS:
        return []
    if name == "BSYNC":
        barrier = rest.strip(" ;").split(" ")[0]
        return [waits[barrier]] if barrier in waits else []
    if name in _INDIRECT:
        named = _BRANCH_TARGETS.search(rest)
        return re.findall(r"\.L\w*", named[1]) if named else None
    target = _TARGET.search(rest)
    return [target[1]] if target else [] if name == "CALL" else None


def _edges(blocks: Sequence[_Block]) -> Mapping[int, set[int]]:
    places = {label: number for number, block in enumerate(blocks) for label in block.labels}
    return {
        number: {places[target] for target in block.targets if target in places}
        | ({number + 1} if block.falls and number + 1 < len(blocks) else set())
        for number, block in enumerate(blocks)
    }


def _dominators(edges: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """Return the dominators of each reachable block: the blocks on every path from the entry to it."""
    order, reached = [], {0}
    todo = [0]
    while todo:
        block = todo.pop()
        order.append(block)
        todo += sorted(edges[block] - reached)
        reached |= edges[block]
    before: dict[int, list[int]] = {block: [] for block in order}
    for source in order:
        for target in edges[source]:
            before[target].append(source)
    dominators = {block: set(order) for block in order}
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set.intersection(*(dominators[earlier] for earlier in before[block])) | {block}
            if new != dominators[block]:
                dominators[block], changed = new, True
    return dominators


_GLOBAL_ACCESSES = ("tt.load", "tt.store", "async_copy_global_to_local")
_WIDEST = 128  # bits of one instruction
_SECTOR = 256  # bits of memory that are moved together


def uncoalesced_access(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield accesses without any dimension that is contiguous in memory."""
    for operation, tensor, strides, line in _known_accesses(compiled):
        sized = [stride for stride, size in zip(strides, tensor.shape, strict=True) if size > 1]
        apart = [
            stride for stride in sized if not isinstance(stride, int) or abs(stride) * tensor.bits >= _SECTOR
        ]
        # One dimension that is contiguous is enough. A strided vector outside of loops is read once:
        # that is too little to be worth a finding.
        if len(apart) < len(sized) or not sized or (len(sized) == 1 and not operation.loop):
            continue
        if (narrow := _first_if_scalar(compiled, operation, tensor)) is None:
            continue
        distances = " and ".join(f"{stride} elements" for stride in sized)
        what = f"neighbours of a {_shape(tensor)} {_verb(operation)} lie {distances} apart"
        yield LintFinding(known_rules()["uncoalesced-access"], what, (line, narrow))


def scalar_access(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield accesses that have a contiguous dimension, but move one element at a time."""
    threads = compiled.ttgir.threads  # of the whole block
    for operation, tensor, strides, line in _known_accesses(compiled):
        runs = [size for stride, size in zip(strides, tensor.shape, strict=True) if stride == 1]
        if not runs or not threads:
            continue
        # A thread can only combine neighbours that it holds itself.
        possible = min(_WIDEST // tensor.bits, tensor.size // threads, max(runs))
        if possible < 2 or (narrow := _first_if_scalar(compiled, operation, tensor)) is None:  # noqa: PLR2004
            continue
        what = (
            f"a {_verb(operation)} of {_shape(tensor)} elements moves {tensor.bits} bits at a time; "
            f"{max(runs)} of them are adjacent, and each thread has {tensor.size // threads}"
        )
        yield LintFinding(known_rules()["scalar-access"], what, (line, narrow))


def _known_accesses(
    compiled: CompiledPoint,
) -> Iterator[tuple[MlirOperation, Tensor, Strides, StageLine]]:
    """Yield accesses whose addresses are understood, one per Python line."""
    origins = set()
    for operation in compiled.ttgir.named(*_GLOBAL_ACCESSES):
        tensor = compiled.ttgir.tensor(operation, 0)
        line = compiled.ttgir_line(operation.number)
        # Loads through descriptors and block pointers have no tensor of pointers, and are no problem of
        # strides.
        if tensor is None or "ptr" not in tensor.element or not tensor.bits or line.origin in origins:
            continue
        strides = compiled.ttgir.strides(operation.operands[0], operation.number)
        if strides is None or len(strides) != len(tensor.shape):
            continue
        origins.add(line.origin)
        yield operation, tensor, strides, line


def _first_if_scalar(compiled: CompiledPoint, operation: MlirOperation, tensor: Tensor) -> StageLine | None:
    """Return the first instruction of an access if none of them moves more than one element, else None."""
    accesses = compiled.accesses_of(operation)
    if not accesses or max(bits for _, bits in accesses) > tensor.bits:
        return None
    return accesses[0][0]


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def _verb(operation: MlirOperation) -> str:
    return "store" if operation.name == "tt.store" else "load"


_CP_ASYNC_SINCE = 80  # the first compute capability with cp.async
_DOTS = ("dot", "dot_scaled", "warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
# Operations that leave the values of an operand as they are: a load that goes through anything else, a
# sum or a mask, cannot be an asynchronous copy to shared memory.
_ON_THE_WAY = ("local_alloc", "local_load", "convert_layout", "trans", "memdesc_trans", "local_store",
               "extf", "truncf", "fp_to_fp", "bitcast", "tmem_alloc", "tmem_copy")  # fmt: skip
_OWN_STAGES = "tt.num_stages = "


def no_async_copy(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield plain loads in a loop that feed a dot of that loop, although pipelining was requested."""
    stages = compiled.point.metadata.get("num_stages")
    if not compiled.nvidia or compiled.capability < _CP_ASYNC_SINCE:
        return
    if not isinstance(stages, int) or stages < 2:  # noqa: PLR2004 - one stage is no pipeline
        return
    copies = compiled.ttgir.named("async_copy_global_to_local")
    copied = {compiled.ttgir_line(copy.number).origin for copy in copies}
    origins = set()  # an inlined function occurs several times
    for load in compiled.ttgir.named("tt.load"):
        line = compiled.ttgir_line(load.number)
        if (
            not load.loop
            or line.origin in origins
            or not _feeds_dot(compiled.ttgir, load)
            or _sets_own_stages(compiled, line)
        ):
            continue
        accesses, tensor = compiled.accesses_of(load), compiled.ttgir.tensor(load)
        if not accesses or tensor is None or line.origin in copied:
            continue
        origins.add(line.origin)
        bits = max(bits for _, bits in accesses)
        narrow = f"; {bits // 8} bytes at a time, and cp.async copies 4, 8 or 16" if bits < 32 else ""  # noqa: PLR2004
        shape = "x".join(map(str, tensor.shape))
        what = f"the {shape}x{_pointee(tensor.element)} operand of a dot goes through registers in a loop"
        what += f" of num_stages={stages}{narrow}"
        loop = compiled.ttgir_line(load.loop)
        yield LintFinding(known_rules()["no-async-copy"], what, (line, loop, accesses[0][0]))


def _feeds_dot(module: Ttgir, load: MlirOperation) -> bool:
    """Report whether a loaded value reaches a dot of its loop with only its layout or type changed."""
    # One pass is enough: operations come in order, and a value's uses come after it.
    names = set(load.results)
    for later in module.operations:
        if later.number <= load.number or later.loop != load.loop:
            continue
        if not names.intersection(later.operands):
            continue
        short = later.name.partition(".")[2]
        if short in _DOTS:
            # The third operand is the accumulator, which is not loaded in a good loop.
            return bool(names.intersection(later.operands[:2]))
        if short in _ON_THE_WAY:
            names.update(later.results)
    return False


def _sets_own_stages(compiled: CompiledPoint, load: StageLine) -> bool:
    """Report whether the loop sets its own number of stages: `tl.range(num_stages=1)`."""
    # The attribute is gone from the ttgir, and in the ttir it stands at the end of the loop's body.
    lines = compiled.lines("ttir")
    last = max((number for number, line in enumerate(lines) if line.origin == load.origin), default=0)
    return any(_OWN_STAGES in line.text for line in lines[last:])


def _pointee(element: str) -> str:
    return element.removeprefix("!tt.ptr<").split(",")[0].rstrip(">")


_FMA = re.compile(r"^(?:fma\.rn|mad\.lo|dp4a|v_(?:pk_|dual_)?(?:fma|fmac|mac|mad|dot)\w*)\b")
_BLOCKED = re.compile(r"#(?:ttg|triton_gpu)\.blocked<")


def dot_without_tensor_core(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield each `tt.dot` with a blocked result layout: it is computed by scalar multiplications."""
    if not compiled.point.arch.startswith(
        tuple(configs.load("lint")["matrix-units"][compiled.point.backend])
    ):
        return
    origins = set()
    for dot in compiled.ttgir.named("tt.dot"):
        line = compiled.ttgir_line(dot.number)
        result = compiled.ttgir.tensor(dot)
        if result is None or not _BLOCKED.match(compiled.ttgir.layout(result)) or line.origin in origins:
            continue
        lines = (
            text for text in compiled.lines(compiled.assembly) if line.origin and text.origin == line.origin
        )
        products = [text for text in lines if _FMA.match(text.text)]
        # The product may have been folded away, or the instructions may have lost their location: the
        # layout alone proves nothing.
        if not products:
            continue
        origins.add(line.origin)
        taken = compiled.ttgir.tensor(dot, 0)
        kind = taken.element if taken else "?"
        shape = "x".join(map(str, result.shape))
        layout = compiled.ttgir_line(compiled.ttgir.alias_lines[result.layout])
        what = f"a dot of {kind} to {shape}x{result.element} runs on {len(products)} scalar multiply-adds"
        yield LintFinding(known_rules()["dot-without-tensor-core"], what, (line, layout, products[0]))


_REGISTER = re.compile(r"\bR(\d+)\b")
_THREAD_LIMITS = (".reqntid", ".maxntid")


def registers_near_block(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield a finding if one allocation step fewer registers would fit one more block."""
    values = compiled.row.values
    name = "registers_per_thread" if compiled.nvidia else "vgprs_per_lane"
    table = configs.load("lint")["occupancy"]
    registers, step = values.get(name), table["step"]
    if not isinstance(registers, int) or registers <= step:
        return
    # Registers are allocated in steps, and occupancy jumps: only a kernel that is a few registers above
    # a jump is worth the attempt to save them.
    now, then = _fits(compiled, registers), _fits(compiled, registers - step)
    if (
        now is None
        or then is None
        or not now.blocks
        or then.blocks <= now.blocks
        or (now.percent >= table["enough"])
    ):
        return
    least = next(less for less in range(1, step + 1) if _blocks(compiled, registers - less) > now.blocks)
    of = "registers of a thread" if compiled.nvidia else "VGPRs of a lane"
    what = (
        f"{registers} {of}, {least} too many for {then.blocks} blocks instead of {now.blocks}: occupancy "
        f"{now.percent:.0f} % instead of {then.percent:.0f} %"
    )
    yield LintFinding(known_rules()["registers-near-block"], what, tuple(_register_evidence(compiled)))


def _blocks(compiled: CompiledPoint, registers: int) -> int:
    fits = _fits(compiled, registers)
    return fits.blocks if fits else 0


def _fits(compiled: CompiledPoint, registers: int) -> Occupancy | None:
    values = {key: value for key, value in compiled.row.values.items() if isinstance(value, int)}
    threads = values.get("threads_per_block", 0)
    if compiled.nvidia:
        return occupancy.nvidia(
            compiled.point.arch,
            registers=registers,
            threads=threads,
            static=values.get("shared_static_bytes", 0),
            dynamic=values.get("shared_dynamic_bytes", 0),
            barriers=values.get("barriers", 0),
            tensor_columns=compiled.point.metadata.get("tmem_size") or 0,
        )
    return occupancy.amd(
        compiled.point.arch,
        wave=values.get("wave_size", 0),
        vgprs=registers,
        sgprs=values.get("sgprs_per_wave", 0),
        threads=threads,
        lds=values.get("lds_bytes", 0),
    )


def _register_evidence(compiled: CompiledPoint) -> Iterator[StageLine]:
    if not compiled.nvidia:
        yield next(line for line in compiled.lines("amdgcn") if line.text.startswith(".vgpr_count:"))
        return
    yield max(
        compiled.lines("sass"), key=lambda line: max(map(int, _REGISTER.findall(line.text)), default=-1)
    )
    yield from (line for line in compiled.lines("ptx") if line.text.startswith(_THREAD_LIMITS))


def wgmma_serialized(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield Hopper's matrix products that ptxas serialized."""
    yield from _remarked(
        compiled, "wgmma-serialized", "wgmma.mma_async instructions are serialized", "wgmma.mma_async"
    )


def setmaxnreg_ignored(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield ignored `setmaxnreg` instructions, by which warps pass registers to each other."""
    yield from _remarked(compiled, "setmaxnreg-ignored", "'setmaxnreg' ignored", "setmaxnreg")


def _remarked(compiled: CompiledPoint, code: str, words: str, instruction: str) -> Iterator[LintFinding]:
    if not compiled.nvidia:
        return
    if compiled.point.remarks is None:
        raise NotCheckedError("the remarks of ptxas were not recorded")
    for remark in compiled.point.remarks:
        if words in remark:
            evidence = StageLine("ptxas", 1, remark, None)
            used = [line for line in compiled.lines("ptx") if line.text.startswith(instruction)]
            if not used:
                raise NotCheckedError(f"ptxas says {remark!r}, and the ptx has no {instruction}")
            yield LintFinding(known_rules()[code], remark, (*first_of_each(used), evidence))


_SASS_SPILL = re.compile(r"^/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?((?:LDL|STL)\b[\w.]*)")
_AMD_SPILL = re.compile(r"; (\d+)-byte Folded (Spill|Reload)")
_SPILLS_SHOWN = 4  # lines of evidence: a bad kernel has hundreds


def spill_in_loop(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield spills to local memory (NVIDIA) or scratch (AMD) in a loop."""
    spills = list(_sass_spills(compiled) if compiled.nvidia else _amd_spills(compiled))
    if not spills:
        return
    kinds = Counter("store" if stores else "load" for _, _, stores in spills)
    total = sum(size for _, size, _ in spills)
    places = Counter(line.origin for line, _, _ in spills)
    # Evidence of one Python line is more useful than of four; a line without origin comes last.
    most = max(places, key=lambda origin: (origin is not None, places[origin]))
    shown = sorted((line for line, _, _ in spills), key=lambda line: line.origin != most)[:_SPILLS_SHOWN]
    what = f"{kinds['store']} spill stores and {kinds['load']} reloads in a loop: {total} bytes per thread"
    yield LintFinding(known_rules()["spill-in-loop"], what, tuple(shown))


def bytes_spilled_in_loops(compiled: CompiledPoint) -> int | None:
    """Return the bytes per thread that spills in loops store and load; None if the code does not tell."""
    try:
        return sum(size for _, size, _ in (_sass_spills if compiled.nvidia else _amd_spills)(compiled))
    except NotCheckedError:
        return None


def _sass_spills(compiled: CompiledPoint) -> Iterator[tuple[StageLine, int, bool]]:
    # Without a stack there are no spills; the SASS need not be read.
    if not (compiled.row.values.get("stack_bytes") or 0):
        return
    if any(measure.has_arrays(line) for line in compiled.raw("ptx")):
        raise NotCheckedError("the PTX has arrays in local memory, which code cannot tell from spills")
    lines = compiled.raw("sass")
    inside = sass_loops(lines)
    if inside is None:
        raise NotCheckedError("the sass has branches to places that it does not name")
    for index, line in enumerate(compiled.lines("sass")):
        # Spills outside of loops run once, and many kernels have some.
        if index in inside and (match := _SASS_SPILL.match(line.text)):
            bits = int(assembly.class_of(match[1], "sass").rpartition(" ")[2])
            yield line, bits // 8, match[1].startswith("STL")


def _amd_spills(compiled: CompiledPoint) -> Iterator[tuple[StageLine, int, bool]]:
    inside = amd_loops(compiled.raw("amdgcn"))
    for index, line in enumerate(compiled.lines("amdgcn")):
        if index in inside and (match := _AMD_SPILL.search(line.text)):
            yield line, int(match[1]), match[2] == "Spill"


def known_issue(compiled: CompiledPoint) -> Iterator[LintFinding]:
    """Yield a finding for each known issue that the compile has."""
    rule = known_rules()["known-issue"]
    for match in show.known_issues(compiled.manifest, compiled.point):
        lines = compiled.lines(match.issue.stage)
        yield LintFinding(
            rule, match.issue.about_kernel, tuple(lines[number - 1] for number in match.numbers)
        )


RULES = {
    "known-issue": known_issue,
    "spill-in-loop": spill_in_loop,
    "wgmma-serialized": wgmma_serialized,
    "setmaxnreg-ignored": setmaxnreg_ignored,
    "dot-without-tensor-core": dot_without_tensor_core,
    "no-async-copy": no_async_copy,
    "uncoalesced-access": uncoalesced_access,
    "scalar-access": scalar_access,
    "registers-near-block": registers_near_block,
}
