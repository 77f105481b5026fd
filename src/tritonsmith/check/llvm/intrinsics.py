"""The dialects nvvm and rocdl: lanes, and the registers of a matrix by the PTX ISA and AMD's ISA manuals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.llvm.operations import Value, from_bytes, lane_by_lane, result_type, to_bytes
from tritonsmith.check.llvm.threads import ThreadBlock
from tritonsmith.check.module import Array, UnsupportedIrError, attribute, integer, text
from tritonsmith.check.program import OperationTable
from tritonsmith.check.triton import to_tf32

THREADED = OperationTable()

Registers: TypeAlias = Sequence[Array]  # a matrix, as the registers of each thread

_LANES = 32
_ROWS = 16  # of the result of mma.sync


@THREADED.known("nvvm.read.ptx.sreg.tid.x", "rocdl.workitem.id.x")
def _tid(run: ThreadBlock, _operation: Operation) -> tuple[Array]:
    # Triton's blocks have one axis, so the other two are of size 1, and `x` is the number of the thread.
    return (np.arange(run.threads, dtype=np.int32),)


@THREADED.known("nvvm.read.ptx.sreg.laneid")
def _laneid(run: ThreadBlock, _operation: Operation) -> tuple[Array]:
    return (np.arange(run.threads, dtype=np.int32) % run.warp,)


@THREADED.known("ttg.warp_id")
def _warp_id(run: ThreadBlock, _operation: Operation) -> tuple[Array]:
    return (np.arange(run.threads, dtype=np.int32) // run.warp,)


@THREADED.known(
    *(f"nvvm.read.ptx.sreg.ctaid.{axis}" for axis in "xyz"), *(f"rocdl.workgroup.id.{axis}" for axis in "xyz")
)
def _ctaid(run: ThreadBlock, _operation: Operation) -> tuple[Array]:
    return (np.asarray(np.int32(run.program["xyz".index(run.name[-1])])),)


@THREADED.known(*(f"nvvm.read.ptx.sreg.nctaid.{axis}" for axis in "xyz"))
def _nctaid(run: ThreadBlock, _operation: Operation) -> tuple[Array]:
    return (np.asarray(np.int32(run.grid["xyz".index(run.name[-1])])),)


@THREADED.known("nvvm.barrier", "nvvm.barrier0", "rocdl.s.barrier", "rocdl.barrier", "gpu.barrier")
def _barrier(run: ThreadBlock, operation: Operation, *values: Value) -> tuple[()]:
    if values or operation.results:
        raise UnsupportedIrError(f"{run.name} with an id or a number of threads")
    # A barrier that a part of the block reaches is undefined, which lockstep would not show.
    run.block()
    run.shared.synchronize()
    return ()


# The threads of a warp are in step anyway, and copies have landed at once: see `ptx`.
@THREADED.known("nvvm.bar.warp.sync", "nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group")
def _nothing(_run: ThreadBlock, _operation: Operation, *_: Value) -> tuple[()]:
    return ()


@THREADED.known("nvvm.shfl.sync")
def _shfl(
    run: ThreadBlock, operation: Operation, _members: Array, value: Array, by: Array, clamp: Array
) -> tuple[Array]:
    """Exchange values; a lane whose source is outside its segment keeps its own (PTX ISA, shfl.sync)."""
    run.warps()
    if integer(operation, "return_value_and_is_valid") or attribute(operation, "return_value_and_is_valid"):
        raise UnsupportedIrError("nvvm.shfl.sync with a predicate")
    # The clamp operand holds two numbers: bits 0 to 4 the last lane, bits 8 to 12 the mask of a segment.
    kind = text(attribute(operation, "kind")).split()[-1].rstrip(">")
    lane = np.arange(run.threads) % _LANES
    by, clamp = run.spread(by) & 31, run.spread(clamp)
    segment, last = clamp >> 8 & 31, clamp & 31
    low, high = lane & segment, (lane & segment) | (last & ~segment)
    source = {
        "bfly": lane ^ by, "up": lane - by, "down": lane + by, "idx": low | (by & ~segment & 31),
    }.get(kind)  # fmt: skip
    if source is None:
        raise UnsupportedIrError(f"nvvm.shfl.sync {kind}")
    # For `up` the clamp is the first lane of the segment, not the last (PTX ISA, shfl.sync).
    inside = source >= high if kind == "up" else source <= high
    source = np.where(inside, source, lane)
    return (run.spread(value)[np.arange(run.threads) - lane + source],)


@THREADED.known("nvvm.ldmatrix")
def _ldmatrix(run: ThreadBlock, operation: Operation, pointer: Array) -> tuple[Value]:
    kind, layout = text(attribute(operation, "eltType")), text(attribute(operation, "layout"))
    shape = text(attribute(operation, "shape")).replace(" ", "")
    if kind not in ("b16", "None") or shape not in ("m=8,n=8", "None"):
        raise UnsupportedIrError(f"nvvm.ldmatrix of {kind}, {shape}")
    matrices = ldmatrix(run, pointer, integer(operation, "num"), transposed=layout == "col")
    return (matrices if result_type(operation).members else matrices[0],)


def ldmatrix(run: ThreadBlock, pointer: Array, number: int, *, transposed: bool) -> tuple[Array, ...]:
    """Load 8 by 8 matrices of 16 bits: lanes 8n to 8n+7 hold the addresses of the rows of matrix n."""
    run.warps()
    rows = run.read(run.shared, pointer, 16, np.arange(run.threads) % _LANES < 8 * number)
    every = rows.view(np.uint16).reshape(-1, 4, 8, 8)[:, :number]  # warp, matrix, row, column
    if transposed:
        every = np.swapaxes(every, 2, 3)
    pairs = np.ascontiguousarray(every).reshape(-1, number, _LANES, 2).view(np.int32)
    return tuple(np.ascontiguousarray(pairs[:, matrix, :, 0]).reshape(-1) for matrix in range(number))


def mma(
    run: ThreadBlock,
    parts: tuple[Registers, Registers, Registers],
    depth: int,
    dtype: np.dtype[Any],
    wide: np.dtype[Any],
    *,
    rounds: bool = False,
) -> tuple[Array, ...]:
    """Compute mma.sync m16n8kK from the registers (32 bits) of A, B and C; `rounds` A and B to tf32."""
    run.warps()
    left, right, accumulator = (
        [run.spread(register).reshape(-1, _LANES) for register in part] for part in parts
    )
    warps, lane = run.threads // _LANES, np.arange(_LANES)
    # PTX ISA, "Matrix fragments for mma.m16n8k16" and its kin: a lane's group, a quarter of its number, is
    # its row of A and C and its column of B; its place in the group is where it begins along the sum.
    group, inner, each = lane >> 2, lane & 3, 4 // dtype.itemsize
    matrix, other = np.zeros((warps, _ROWS, depth), dtype), np.zeros((warps, depth, 8), dtype)
    element = np.arange(each)
    for number, register in enumerate(left):
        rows = (group + 8 * (number & 1))[:, None] + 0 * element
        columns = (inner * each + (number >> 1) * 4 * each)[:, None] + element
        matrix[:, rows, columns] = _elements(register, dtype)
    for number, register in enumerate(right):
        rows = (inner * each + number * 4 * each)[:, None] + element
        other[:, rows, group[:, None] + 0 * element] = _elements(register, dtype)
    if rounds:
        matrix, other = to_tf32(matrix), to_tf32(other)
    exact = np.float64 if wide.kind == "f" else np.int64
    product = np.matmul(_plain(matrix, exact), _plain(other, exact))
    each, results = 4 // wide.itemsize, []
    for number, register in enumerate(accumulator):
        first = number * each
        rows = group + 8 * (first >> 1)
        columns = 2 * inner + (first & 1)
        sums = np.stack([product[:, rows, columns + step] for step in range(each)], axis=-1)
        start = _plain(_elements(register, wide), exact)
        results.append(np.ascontiguousarray((sums + start).astype(wide)).view(np.uint32).reshape(-1))
    return tuple(results)


def _plain(value: Array, exact: type[np.float64 | np.int64]) -> Array:
    """Return values in fp64, through fp32 because small floats convert to nothing else; or in int64."""
    return (value.astype(np.float32) if value.dtype.kind in "fV" else value).astype(exact)


def _elements(register: Array, dtype: np.dtype[Any]) -> Array:
    """Return the elements of each register along a last axis."""
    return np.ascontiguousarray(register).view(np.uint8).reshape(*register.shape, 4).view(dtype)


Resource: TypeAlias = tuple[Array, Array, Array, Array]  # of a buffer: address, stride, size, flags

_ROW = 16  # lanes
_MFMA = re.compile(r"rocdl\.mfma\.f32\.(\d+)x(\d+)x(\d+)\.?(f16|bf16|f32)(\.1k)?")

THREADED.update({"rocdl.exp2": lane_by_lane("math.exp2"), "rocdl.sqrt": lane_by_lane("math.sqrt")})


def _lanes(run: ThreadBlock, value: Array, source: Array) -> Array:
    """Return the value of another lane of the same wave."""
    thread = np.arange(run.threads)
    moved: Array = run.spread(value)[thread - thread % run.warp + source]
    return moved


@THREADED.known("rocdl.readfirstlane")
def _readfirstlane(run: ThreadBlock, _operation: Operation, value: Array) -> tuple[Array]:
    # "First" is the first active lane of each wave, so that a wave that diverged agrees on one value.
    first = np.argmax(run.mask.reshape(-1, run.warp), axis=1)
    return (_lanes(run, value, np.repeat(first, run.warp)),)


@THREADED.known("rocdl.readlane")
def _readlane(run: ThreadBlock, _operation: Operation, value: Array, lane: Array) -> tuple[Array]:
    return (_lanes(run, value, run.spread(lane) % run.warp),)


@THREADED.known("rocdl.ds_bpermute")
def _bpermute(run: ThreadBlock, _operation: Operation, at: Array, value: Array) -> tuple[Array]:
    run.warps()
    return (_lanes(run, value, (run.spread(at) >> 2) % run.warp),)


@THREADED.known("rocdl.update.dpp")
def _dpp(run: ThreadBlock, operation: Operation, old: Array, value: Array) -> tuple[Array]:
    """Move data between lanes (DPP): a lane without a source gets 0 if bound_ctrl, else the old value."""
    run.warps()
    control = integer(operation, "dppCtrl")
    lane = np.arange(run.threads) % run.warp
    row, at = lane // _ROW, lane % _ROW
    kind, by = control >> 4, control & 15
    inside = np.ones(lane.shape, np.bool_)
    if control < 0x100:  # quad_perm  # noqa: PLR2004
        # Two bits for each lane of a group of four name its source in the group.
        source = lane - lane % 4 + (control >> 2 * (lane % 4) & 3)
    elif kind in (0x10, 0x11) and by:  # row_shl, row_shr
        moved = at + by if kind == 0x10 else at - by  # noqa: PLR2004
        inside = (moved >= 0) & (moved < _ROW)
        source = row * _ROW + moved
    elif kind == 0x12 and by:  # row_ror  # noqa: PLR2004
        source = row * _ROW + (at - by) % _ROW
    elif control in (0x140, 0x141):  # row_mirror, row_half_mirror
        source = row * _ROW + (15 - at if control == 0x140 else at ^ 7)  # noqa: PLR2004
    elif control == 0x142:  # row_bcast15  # noqa: PLR2004
        inside, source = row > 0, row * _ROW - 1
    elif control == 0x143:  # row_bcast31  # noqa: PLR2004
        inside, source = lane >= 32, np.full(lane.shape, 31)  # noqa: PLR2004
    else:
        raise UnsupportedIrError(f"rocdl.update.dpp {control:#x}")
    # Lanes without a source are computed as well, from themselves, and replaced below.
    moved = _lanes(run, value, np.where(inside, source, lane))
    bound = run.spread(np.zeros((), value.dtype)) if integer(operation, "boundCtrl") else run.spread(old)
    rows, banks = integer(operation, "rowMask"), integer(operation, "bankMask")
    enabled = (rows >> row & 1 > 0) & (banks >> at // 4 & 1 > 0)
    return (np.where(enabled, np.where(inside, moved, bound), run.spread(old)).astype(value.dtype),)


@THREADED.known("rocdl.make.buffer.rsrc")
def _rsrc(_run: ThreadBlock, _operation: Operation, *values: Array) -> tuple[Value]:
    """Return the descriptor as its fields: address, stride, size, flags."""
    return (values,)


def _buffer(
    run: ThreadBlock, rsrc: Resource, offset: Array, scalar: Array, width: int
) -> tuple[Array, Array]:
    """Return the addresses, and a mask of those inside; the bounds check ignores the scalar offset."""
    address, stride, size, _ = rsrc
    if (run.spread(stride) & 0x3FFF)[run.mask].any():
        raise UnsupportedIrError("a buffer with a stride")
    # Offsets and sizes are unsigned 32 bits in the hardware: a negative one is far outside, which reads 0.
    from_base = run.spread(offset).astype(np.int64) & 0xFFFF_FFFF
    inside = from_base + width <= run.spread(size).astype(np.int64) & 0xFFFF_FFFF
    return run.spread(address) + from_base + (run.spread(scalar).astype(np.int64) & 0xFFFF_FFFF), inside


@THREADED.known("rocdl.raw.ptr.buffer.load")
def _buffer_load(
    run: ThreadBlock, operation: Operation, rsrc: Resource, offset: Array, scalar: Array
) -> tuple[Value]:
    of = result_type(operation)
    at, inside = _buffer(run, rsrc, offset, scalar, of.bytes)
    return (from_bytes(run.read(run.memory, at, of.bytes, inside), of),)


@THREADED.known("rocdl.raw.ptr.buffer.store")
def _buffer_store(
    run: ThreadBlock, _operation: Operation, value: Value, rsrc: Resource, offset: Array, scalar: Array
) -> tuple[()]:
    raw = to_bytes(value, run.threads)
    at, inside = _buffer(run, rsrc, offset, scalar, raw.shape[1])
    run.write(run.memory, at, raw, inside)
    return ()


_DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}


def _mfma(
    run: ThreadBlock,
    operation: Operation,
    left: Value,
    right: Value,
    accumulator: Value,
    *modifiers: Array,
) -> tuple[Value]:
    """Multiply one matrix per wave: lane l has row l % M of A, and column l % M of B."""
    run.warps()
    match = _MFMA.fullmatch(run.name)
    # cbsz, abid and blgp broadcast or negate parts of a matrix: attributes, or operands in newer releases.
    blgp = text(attribute(operation, "blgp")).split()[-1]
    attributes = {blgp, integer(operation, "cbsz"), integer(operation, "abid")}
    if match is None or not attributes <= {"none", "None", 0} or any(map(np.any, modifiers)):
        raise UnsupportedIrError(f"{run.name} with {attributes} and {modifiers}")
    if run.warp != 64:  # noqa: PLR2004 - lanes of a wave of CDNA
        raise UnsupportedIrError(f"{run.name} with waves of {run.warp}")
    rows, columns, depth = (int(match[number]) for number in (1, 2, 3))
    parts = [operand if isinstance(operand, tuple) else (operand,) for operand in (left, right, accumulator)]
    each = len(parts[0])
    if rows != columns or each * 64 != rows * depth or len(parts[2]) * 64 != rows * columns:
        raise UnsupportedIrError(f"{run.name} of several matrices")
    waves, lane = run.threads // 64, np.arange(64)
    exact = [
        np.stack([run.spread(_typed(lane_, match[4])).astype(np.float32) for lane_ in part], axis=-1)
        .reshape(waves, 64, len(part)).astype(np.float64)
        for part in parts
    ]  # fmt: skip
    inner = (each * (lane // rows))[:, None] + np.arange(each)
    matrix, other = np.zeros((waves, rows, depth)), np.zeros((waves, depth, rows))
    across = (lane % rows)[:, None] + 0 * np.arange(each)
    matrix[:, across, inner], other[:, inner, across] = exact[0], exact[1]
    product = np.matmul(matrix, other)
    result = []
    for number in range(len(parts[2])):
        # Each lane holds groups of four rows, and the lanes beyond the first `rows` hold the next four.
        row = number // 4 * (4 * 64 // rows) + 4 * (lane // rows) + number % 4
        sums = product[:, row, lane % rows] + exact[2][:, :, number]
        result.append(sums.astype(np.float32).reshape(-1))
    return (tuple(result),)


def _typed(value: Array, kind: str) -> Array:
    """Return a value in its float type: some instructions take bf16 as i16."""
    return (
        np.ascontiguousarray(value).view(_DTYPES[kind]).reshape(np.shape(value))
        if value.dtype.kind == "i"
        else value
    )


for _size in ("16x16x4", "32x32x2", "16x16x16", "32x32x8", "16x16x32", "32x32x16"):
    for _kind in ("f16", "bf16.1k", ".f16", ".bf16", "f32"):
        THREADED.known(f"rocdl.mfma.f32.{_size}{_kind}")(_mfma)


# Priorities and counters say when something happens, and here everything happens at once.
@THREADED.known(
    "rocdl.s.setprio", "rocdl.sched.barrier", "rocdl.s.waitcnt", "rocdl.sched.group.barrier", "rocdl.iglp.opt"
)
def _no_wait(_run: ThreadBlock, _operation: Operation, *_: Value) -> tuple[()]:
    return ()
