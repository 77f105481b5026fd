"""The dialect nvvm, with the register layouts that the PTX ISA specifies for ldmatrix and mma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.llvm.operations import Value, result_type
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
