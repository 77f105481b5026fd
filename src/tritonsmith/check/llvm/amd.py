"""The dialect rocdl, by AMD's ISA manuals: how lanes are moved, and which registers hold a matrix."""

from __future__ import annotations

import re
from typing import TypeAlias

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.llvm.operations import Value, from_bytes, lane_by_lane, result_type, to_bytes
from tritonsmith.check.llvm.threads import ThreadBlock
from tritonsmith.check.module import Array, UnsupportedIrError, attribute, integer, text
from tritonsmith.check.program import OperationTable

THREADED = OperationTable()
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
def _nothing(_run: ThreadBlock, _operation: Operation, *_: Value) -> tuple[()]:
    return ()
