"""The dialects ttg, ttng and amdg: TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td of Triton.

Shared memory is an array, and a descriptor of it is a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import wanted
from tritonsmith.check.in_flight import OutsideMemory, unwritten
from tritonsmith.check.module import UnsupportedIrError, integers, known, name_of, type_of
from tritonsmith.check.triton import atomic_rmw, load, segments, store

Array = np.ndarray[Any, Any]


class AssumedError(Exception):
    """An assumption of the program that does not hold for these inputs: its behaviour is undefined."""


@known(
    "ttg.convert_layout",
    "triton_gpu.convert_layout",
    "amdg.in_thread_transpose",
    "amdgpu.in_thread_transpose",
)
def _convert_layout(_run: Any, _operation: Operation, value: Array) -> tuple[Array]:
    return (value,)


@known("ttg.local_alloc", "triton_gpu.local_alloc")
def _local_alloc(run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    allocated = type_of(operation.results[0].type)
    new = (
        np.array(values[0]).reshape(allocated.shape)
        if values
        else unwritten(allocated.shape, allocated.dtype)
    )
    return (run.flight.allocated(operation, new),)


@known("ttg.local_dealloc", "triton_gpu.local_dealloc")
def _local_dealloc(run: Any, _operation: Operation, memory: Array) -> tuple[()]:
    run.flight.free(memory)
    return ()


@known("ttg.local_load", "triton_gpu.local_load")
def _local_load(_run: Any, _operation: Operation, memory: Array, *_token: Any) -> tuple[Array]:
    return (np.array(memory),)


@known("ttg.local_store", "triton_gpu.local_store")
def _local_store(_run: Any, _operation: Operation, value: Array, memory: Array) -> tuple[()]:
    memory[...] = value.reshape(memory.shape)
    return ()


@known("ttg.memdesc_index", "ttg.memdesc_subview", "triton_gpu.memdesc_subview")
def _memdesc_index(_run: Any, operation: Operation, memory: Array, *at: Array) -> tuple[Any]:
    shape = wanted(operation).shape
    starts = tuple(map(int, at)) if len(at) > 1 else (int(at[0]), *(0 for _ in memory.shape[1:]))
    sizes = (1,) * (len(starts) - len(shape)) + shape
    if len(at) == 1 and sizes[1:] != memory.shape[1:]:
        raise UnsupportedIrError(f"{name_of(operation)} of another shape")
    return (part_of(operation, memory, starts, sizes).reshape(shape),)


def part_of(operation: Operation, memory: Any, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """Return a part of shared or tensor memory; it may lie outside of its allocation until it is accessed."""
    if isinstance(memory, OutsideMemory):
        return memory.part(sizes)
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


@known("ttg.memdesc_subslice")
def _memdesc_subslice(_run: Any, operation: Operation, memory: Array) -> tuple[Any]:
    starts, shape = integers(operation, "offsets"), wanted(operation).shape
    return (part_of(operation, memory, starts, shape),)


@known("ttg.memdesc_trans", "triton_gpu.memdesc_trans", "tt.memdesc_trans")
def _memdesc_trans(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    order = integers(operation, "order")
    return (memory.transpose(*order),)


@known("ttg.memdesc_reshape")
def _memdesc_reshape(_run: Any, operation: Operation, memory: Any) -> tuple[Any]:
    view = memory.reshape(wanted(operation).shape)
    if isinstance(memory, OutsideMemory):
        return (view,)
    if not np.shares_memory(view, memory):
        raise UnsupportedIrError("ttg.memdesc_reshape of a view that is not contiguous")
    return (view,)


@known("ttg.memdesc_reinterpret")
def _memdesc_reinterpret(_run: Any, operation: Operation, memory: Any) -> tuple[Any]:
    """View the same bytes in another layout, if elements and places stay the same."""
    target = type_of(operation.results[0].type)
    if isinstance(memory, OutsideMemory):
        return (memory.part(target.shape),)
    sizes = [[size for size in shape if size != 1] for shape in (memory.shape, target.shape)]
    view = memory.reshape(target.shape) if sizes[0] == sizes[1] else memory[:0]
    if target.dtype != memory.dtype or not np.shares_memory(view, memory):
        raise UnsupportedIrError("ttg.memdesc_reinterpret as another shape or type")
    return (view,)


@known("ttg.mask")
def _mask(run: Any, operation: Operation, pred: Array) -> tuple[Any, ...]:
    """Run a region if the predicate holds; otherwise its results are undefined, 0 here."""
    if bool(pred):
        results: tuple[Any, ...] = run.region(operation.regions[0], ())
        return results
    shapes = [type_of(result.type) for result in operation.results]
    return tuple(np.zeros(kind.shape, kind.dtype if kind.kind == "number" else np.int64) for kind in shapes)


@known(
    "ttg.barrier", "gpu.barrier", "ttg.local_barrier",
    "ttng.fence_async_shared", "triton_nvidia_gpu.fence_async_shared", "ttng.inval_barrier",
    "triton_nvidia_gpu.inval_barrier", "ttng.tensormap_fenceproxy_acquire", "ttng.tmem_wait",
    "amdg.sched_barrier",
    "amdgpu.instruction_sched_hint", "amdg.instruction_sched_hint", "rocdl.sched.barrier", "rocdl.s.setprio",
    "rocdl.s.barrier", "rocdl.sched.group.barrier",
    "ttng.fence", "ttng.cluster_barrier",
    "ttg.predicate_stage", "ttng.fence_mbarrier_init_release_cluster", "amdg.cond_barrier",
    "amdgpu.cond_barrier",
)  # fmt: skip
def _nothing(run: Any, operation: Operation, *_: Any) -> tuple[Any, ...]:
    if operation.results:
        raise UnsupportedIrError(f"a result of {run.name}")
    return ()


@known("llvm.intr.assume")
def _assume(run: Any, operation: Operation, holds: Array, *_: Array) -> tuple[()]:
    run.assumptions.add(operation)
    if run.assumed and not bool(holds):
        raise AssumedError
    return ()


@known("amdg.buffer_load", "amdgpu.buffer_load")
def _buffer_load(run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    pointer, offsets, _stride, mask, other = segments(operation, values)
    return (read_buffer(run, pointer[0], offsets[0], wanted(operation).dtype, mask, other),)


def read_buffer(
    run: Any, pointer: Array, offsets: Array, dtype: Any, mask: tuple[Array, ...], other: tuple[Array, ...]
) -> Array:
    """Read elements of a buffer; an offset below 0 counts as far outside, which gives 0.

    Source: third_party/amd/lib/TritonAMDGPUToLLVM/BufferOpsEmitter.cpp.

    """
    at, taken = _in_buffer(pointer, offsets, dtype, mask)
    elements = load(run, at, dtype, taken, other[0] if other else None)
    outside = (offsets < 0) & (mask[0] if mask else True)
    return np.where(outside, np.zeros((), dtype), elements)


def _in_buffer(pointer: Array, offsets: Array, dtype: Any, mask: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return the addresses, and a mask of those that are accessed."""
    at = pointer + offsets.astype(np.int64) * dtype.itemsize
    return at, (offsets >= 0) & (mask[0] if mask else True)


@known("amdg.buffer_store", "amdgpu.buffer_store")
def _buffer_store(run: Any, operation: Operation, *values: Array) -> tuple[()]:
    value, pointer, offsets, _stride, mask = segments(operation, values)
    at, taken = _in_buffer(pointer[0], offsets[0], value[0].dtype, mask)
    store(run, at, value[0], taken)
    return ()


@known("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def _poison(_run: Any, operation: Operation) -> tuple[Any]:
    """Return 0: any value is right, and none should be observed."""
    kind = wanted(operation)
    return (np.zeros(kind.shape, kind.dtype if kind.kind == "number" else np.int64),)


@known("amdg.buffer_atomic_rmw", "amdgpu.buffer_atomic_rmw")
def _buffer_atomic(run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    pointer, offsets, value, _stride, mask = segments(operation, values)
    at, taken = _in_buffer(pointer[0], offsets[0], value[0].dtype, mask)
    return (atomic_rmw(run, operation, at, value[0], taken),)


@known("amdg.extract_slice", "amdgpu.extract_slice")
def _extract_slice(_run: Any, operation: Operation, value: Array) -> tuple[Array]:
    starts, shape = integers(operation, "static_offsets"), wanted(operation).shape
    return (_sliced(value, starts, shape),)


@known("amdg.concat", "amdgpu.concat")
def _concat(_run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    """Concatenate tensors as the elements of a grid, the last axis first."""
    shape, part = wanted(operation).shape, values[0].shape
    result = np.empty(shape, values[0].dtype)
    grid = tuple(whole // size for whole, size in zip(shape, part, strict=True))
    for place, value in zip(np.ndindex(*grid), values, strict=True):
        result[tuple(slice(at * size, (at + 1) * size) for at, size in zip(place, part, strict=True))] = value
    return (result,)
