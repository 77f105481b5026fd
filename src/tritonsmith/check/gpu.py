"""The dialects ttg, ttng and amdg: Triton's TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.in_flight import OutsideMemory, unwritten
from tritonsmith.check.module import (
    Array,
    UnsupportedIrError,
    ValueKind,
    integers,
    name_of,
    result_type,
    type_of,
)
from tritonsmith.check.program import OperationTable, TensorProgram, Values
from tritonsmith.check.triton import atomic_rmw, load, store

OPERATIONS = OperationTable()
Memory: TypeAlias = Array | OutsideMemory  # a view of shared or tensor memory


class AssumedError(Exception):
    """An assumption of the program that does not hold for these inputs: its behaviour is undefined."""


@OPERATIONS.known(
    "ttg.convert_layout",
    "triton_gpu.convert_layout",
    "amdg.in_thread_transpose",
    "amdgpu.in_thread_transpose",
)
def _convert_layout(_run: TensorProgram, _operation: Operation, value: Array) -> tuple[Array]:
    # A layout says which thread holds an element; a program's tensors are whole here.
    return (value,)


@OPERATIONS.known("ttg.local_alloc", "triton_gpu.local_alloc")
def _local_alloc(run: TensorProgram, operation: Operation, source: Array | None = None) -> tuple[Array]:
    return (allocate(run, operation, source),)


def allocate(run: TensorProgram, operation: Operation, source: Array | None) -> Array:
    """Allocate shared or tensor memory for an operation's first result, with the source's elements if any."""
    # Memory is an array, and a descriptor of it a view: writes through one are seen through all.
    allocated = type_of(operation.results[0].type)
    if source is None:
        return run.flight.allocated(operation, unwritten(allocated.shape, allocated.dtype))
    # A copy: the memory is written to, and the source is a value that others still use.
    return run.flight.allocated(operation, np.array(source).reshape(allocated.shape))


@OPERATIONS.known("ttg.local_dealloc", "triton_gpu.local_dealloc")
def _local_dealloc(run: TensorProgram, _operation: Operation, memory: Array) -> tuple[()]:
    run.flight.free(memory)
    return ()


@OPERATIONS.known("ttg.local_load", "triton_gpu.local_load")
def _local_load(_run: TensorProgram, _operation: Operation, memory: Array, *_token: Any) -> tuple[Array]:
    # A copy is returned, since the memory may be written again before the value is used.
    return (np.array(memory),)


@OPERATIONS.known("ttg.local_store", "triton_gpu.local_store")
def _local_store(_run: TensorProgram, _operation: Operation, value: Array, memory: Array) -> tuple[()]:
    memory[...] = value.reshape(memory.shape)
    return ()


@OPERATIONS.known("ttg.memdesc_index", "ttg.memdesc_subview", "triton_gpu.memdesc_subview")
def _memdesc_index(
    _run: TensorProgram, operation: Operation, memory: Memory, *offsets: Array
) -> tuple[Memory]:
    """Return a part of memory: one buffer of several, or a part at an offset along each axis."""
    shape = result_type(operation).shape
    starts = (
        tuple(map(int, offsets)) if len(offsets) > 1 else (int(offsets[0]), *(0 for _ in memory.shape[1:]))
    )
    sizes = (1,) * (len(starts) - len(shape)) + shape
    if len(offsets) == 1 and sizes[1:] != memory.shape[1:]:
        raise UnsupportedIrError(f"{name_of(operation)} of another shape")
    return (part_of(operation, memory, starts, sizes).reshape(shape),)


def part_of(operation: Operation, memory: Memory, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Memory:
    """Return a part of shared or tensor memory; it may lie outside of its allocation until it is accessed."""
    if isinstance(memory, OutsideMemory):
        return memory.part(sizes)
    # A pipelined loop computes the place of a buffer that it never accesses: only an access may be refused.
    if _is_outside(memory, starts, sizes):
        place = f"{_spelled(sizes)} at {_spelled(starts)} of {_spelled(memory.shape)}"
        return OutsideMemory(sizes, memory.dtype, f"{name_of(operation)}: {place}")
    return memory[tuple(slice(at, at + size) for at, size in zip(starts, sizes, strict=True))]


def _spelled(numbers: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, numbers)) + "]"


def _is_outside(value: Array, starts: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    return any(not 0 <= at <= of - size for at, size, of in zip(starts, sizes, value.shape, strict=True))


def _sliced(value: Array, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Return a part of a tensor.

    Raises:
        UnsupportedIrError: it reaches outside, where NumPy would count from the end, or truncate it.
    """
    if _is_outside(value, starts, sizes):
        raise UnsupportedIrError(f"a part of a tensor, {sizes} at {starts}, that is not in it")
    return value[tuple(slice(at, at + size) for at, size in zip(starts, sizes, strict=True))]


@OPERATIONS.known("ttg.memdesc_subslice")
def _memdesc_subslice(_run: TensorProgram, operation: Operation, memory: Memory) -> tuple[Memory]:
    starts, shape = integers(operation, "offsets"), result_type(operation).shape
    return (part_of(operation, memory, starts, shape),)


@OPERATIONS.known("ttg.memdesc_trans", "triton_gpu.memdesc_trans", "tt.memdesc_trans")
def _memdesc_trans(_run: TensorProgram, operation: Operation, memory: Array) -> tuple[Array]:
    order = integers(operation, "order")
    return (memory.transpose(*order),)


@OPERATIONS.known("ttg.memdesc_reshape")
def _memdesc_reshape(_run: TensorProgram, operation: Operation, memory: Memory) -> tuple[Memory]:
    view = memory.reshape(result_type(operation).shape)
    if isinstance(memory, OutsideMemory):
        return (view,)
    # NumPy copies where it has to, and writes to a copy would be lost.
    if not np.shares_memory(view, memory):
        raise UnsupportedIrError("ttg.memdesc_reshape of a view that is not contiguous")
    return (view,)


@OPERATIONS.known("ttg.memdesc_reinterpret")
def _memdesc_reinterpret(_run: TensorProgram, operation: Operation, memory: Memory) -> tuple[Memory]:
    """View the same bytes in another layout, if elements and places stay the same."""
    target = type_of(operation.results[0].type)
    if isinstance(memory, OutsideMemory):
        return (memory.part(target.shape),)
    sizes = [[size for size in shape if size != 1] for shape in (memory.shape, target.shape)]
    view = memory.reshape(target.shape) if sizes[0] == sizes[1] else memory[:0]
    if target.dtype != memory.dtype or not np.shares_memory(view, memory):
        raise UnsupportedIrError("ttg.memdesc_reinterpret as another shape or type")
    return (view,)


@OPERATIONS.known("ttg.mask")
def _mask(run: TensorProgram, operation: Operation, pred: Array) -> Values:
    """Run a region if the predicate holds; otherwise its results are undefined, 0 here."""
    if bool(pred):
        return run.region(operation.regions[0], ())
    shapes = [type_of(result.type) for result in operation.results]
    return tuple(
        np.zeros(kind.shape, kind.dtype if kind.kind is ValueKind.NUMBER else np.int64) for kind in shapes
    )


# One program runs at a time, and `in_flight` orders what is asynchronous: nothing is left to do for these.
@OPERATIONS.known(
    "ttg.barrier",
    "gpu.barrier",
    "ttg.local_barrier",
    "ttng.fence_async_shared",
    "triton_nvidia_gpu.fence_async_shared",
    "ttng.inval_barrier",
    "triton_nvidia_gpu.inval_barrier",
    "ttng.tensormap_fenceproxy_acquire",
    "ttng.tmem_wait",
    "amdg.sched_barrier",
    "amdgpu.instruction_sched_hint",
    "amdg.instruction_sched_hint",
    "rocdl.sched.barrier",
    "rocdl.s.setprio",
    "rocdl.s.barrier",
    "rocdl.sched.group.barrier",
    "ttng.fence",
    "ttng.cluster_barrier",
    "ttg.predicate_stage",
    "ttng.fence_mbarrier_init_release_cluster",
    "amdg.cond_barrier",
    "amdgpu.cond_barrier",
)
def _nothing(run: TensorProgram, operation: Operation, *_: Any) -> tuple[()]:
    if operation.results:
        raise UnsupportedIrError(f"a result of {run.name}")
    return ()


@OPERATIONS.known("llvm.intr.assume")
def _assume(run: TensorProgram, operation: Operation, holds: Array, *_: Array) -> tuple[()]:
    # The operation is kept, not a count of runs: a pass may unroll a loop.
    run.assumptions.add(operation)
    if run.assumed and not bool(holds):
        raise AssumedError
    return ()


@OPERATIONS.known(
    "amdg.buffer_load", "amdgpu.buffer_load", operands=("ptr", "offsets", "stride?", "mask?", "other?")
)
def _buffer_load(
    run: TensorProgram,
    operation: Operation,
    pointer: Array,
    offsets: Array,
    _stride: Array | None,
    mask: Array | None,
    other: Array | None,
) -> tuple[Array]:
    return (read_buffer(run, pointer, offsets, result_type(operation).dtype, mask, other),)


def read_buffer(
    run: TensorProgram,
    pointer: Array,
    offsets: Array,
    dtype: np.dtype[Any],
    mask: Array | None,
    other: Array | None,
) -> Array:
    """Read elements of a buffer; an offset below 0 counts as far outside, which gives 0."""
    # The hardware gives 0 for addresses out of the buffer's range; `other` is for masked lanes only
    # (third_party/amd/lib/TritonAMDGPUToLLVM/BufferOpsEmitter.cpp).
    at, taken = _in_buffer(pointer, offsets, dtype, mask)
    elements = load(run, at, dtype, taken, other)
    outside = (offsets < 0) & (True if mask is None else mask)
    return np.where(outside, np.zeros((), dtype), elements)


def _in_buffer(
    pointer: Array, offsets: Array, dtype: np.dtype[Any], mask: Array | None
) -> tuple[Array, Array]:
    """Return the addresses, and a mask of those that are accessed."""
    at = pointer + offsets.astype(np.int64) * dtype.itemsize
    return at, (offsets >= 0) & (True if mask is None else mask)


@OPERATIONS.known(
    "amdg.buffer_store", "amdgpu.buffer_store", operands=("value", "ptr", "offsets", "stride?", "mask?")
)
def _buffer_store(
    run: TensorProgram,
    _operation: Operation,
    value: Array,
    pointer: Array,
    offsets: Array,
    _stride: Array | None,
    mask: Array | None,
) -> tuple[()]:
    at, taken = _in_buffer(pointer, offsets, value.dtype, mask)
    store(run, at, value, taken)
    return ()


@OPERATIONS.known("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def _poison(_run: TensorProgram, operation: Operation) -> tuple[Array]:
    """Return 0: any value is right, and none should be observed."""
    kind = result_type(operation)
    return (np.zeros(kind.shape, kind.dtype if kind.kind is ValueKind.NUMBER else np.int64),)


@OPERATIONS.known(
    "amdg.buffer_atomic_rmw",
    "amdgpu.buffer_atomic_rmw",
    operands=("ptr", "offsets", "value", "stride?", "mask?"),
)
def _buffer_atomic(
    run: TensorProgram,
    operation: Operation,
    pointer: Array,
    offsets: Array,
    value: Array,
    _stride: Array | None,
    mask: Array | None,
) -> tuple[Array]:
    at, taken = _in_buffer(pointer, offsets, value.dtype, mask)
    return (atomic_rmw(run, operation, at, value, taken),)


@OPERATIONS.known("amdg.extract_slice", "amdgpu.extract_slice")
def _extract_slice(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    starts, shape = integers(operation, "static_offsets"), result_type(operation).shape
    return (_sliced(value, starts, shape),)


@OPERATIONS.known("amdg.concat", "amdgpu.concat")
def _concat(_run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array]:
    """Concatenate tensors as the elements of a grid, the last axis first."""
    shape, part = result_type(operation).shape, values[0].shape
    result = np.empty(shape, values[0].dtype)
    grid = tuple(whole // size for whole, size in zip(shape, part, strict=True))
    for place, value in zip(np.ndindex(*grid), values, strict=True):
        result[tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, part, strict=True))] = value
    return (result,)
