"""The dialects ttg, ttng and amdg: TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td of Triton.

Shared memory is an array, and a descriptor of it is a view. What is asynchronous is done at once, in program
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.passes.check.arith import wanted
from tritonsmith.passes.check.module import UnsupportedIrError, integers, type_of
from tritonsmith.passes.check.registry import known
from tritonsmith.passes.check.triton import TensorDescriptor, dot, load, read, segments, store

Array = np.ndarray[Any, Any]


@known(
    "ttg.convert_layout",
    "triton_gpu.convert_layout",
    "amdg.in_thread_transpose",
    "amdgpu.in_thread_transpose",
)
def _convert_layout(_run: Any, _operation: Operation, value: Array) -> tuple[Array]:
    return (value,)


@known("ttg.local_alloc", "triton_gpu.local_alloc")
def _local_alloc(_run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    found = type_of(operation.results[0].type)
    return (np.array(values[0]).reshape(found.shape) if values else np.zeros(found.shape, found.dtype),)


@known("ttg.local_load", "triton_gpu.local_load", "amdg.local_load_packed_tranposed")
def _local_load(_run: Any, _operation: Operation, memory: Array, *_token: Any) -> tuple[Array]:
    return (np.array(memory),)


@known("ttg.local_store", "triton_gpu.local_store")
def _local_store(_run: Any, _operation: Operation, value: Array, memory: Array) -> tuple[()]:
    memory[...] = value.reshape(memory.shape)
    return ()


@known("ttg.memdesc_index", "ttg.memdesc_subview", "triton_gpu.memdesc_subview")
def _memdesc_index(_run: Any, operation: Operation, memory: Array, *at: Array) -> tuple[Array]:
    shape = wanted(operation).shape
    if len(at) == 1:
        index = int(at[0])
        if not 0 <= index < memory.shape[0]:
            raise UnsupportedIrError(f"a buffer of {memory.shape[0]} is taken at {index}")
        return (memory[index].reshape(shape),)
    starts = tuple(map(int, at))
    sizes = (1,) * (len(starts) - len(shape)) + shape
    view = memory[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]
    return (view.reshape(shape),)


@known("ttg.memdesc_subslice")
def _memdesc_subslice(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    starts, shape = integers(operation, "offsets"), wanted(operation).shape
    return (memory[tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))],)


@known("ttg.memdesc_trans", "triton_gpu.memdesc_trans", "tt.memdesc_trans")
def _memdesc_trans(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    return (np.transpose(memory, integers(operation, "order") or None),)


@known("ttg.memdesc_reshape")
def _memdesc_reshape(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    view = memory.reshape(wanted(operation).shape)
    if not np.shares_memory(view, memory):
        raise UnsupportedIrError("ttg.memdesc_reshape of a view that is not contiguous")
    return (view,)


@known("ttg.async_copy_global_to_local", "triton_gpu.async_copy_global_to_local")
def _async_copy(run: Any, operation: Operation, *values: Any) -> tuple[None]:
    source, memory, mask, other = segments(operation, values)[:4]
    pointer, into = source[0], memory[0]
    found = load(run, pointer, into.dtype, mask[0] if mask else None, other[0] if other else None)
    into[...] = found.reshape(into.shape)
    return (None,)


@known(
    "ttg.async_commit_group", "triton_gpu.async_commit_group", "ttg.async_wait", "triton_gpu.async_wait",
    "amdg.async_wait",
)  # fmt: skip
def _token(_run: Any, operation: Operation, *_: Any) -> tuple[None, ...]:
    return (None,) * len(operation.results)


@known(
    "ttg.local_dealloc", "triton_gpu.local_dealloc", "ttg.barrier", "gpu.barrier", "ttg.local_barrier",
    "ttng.fence_async_shared", "triton_nvidia_gpu.fence_async_shared", "ttng.init_barrier",
    "ttng.inval_barrier",
    "ttng.barrier_expect", "ttng.wait_barrier", "ttng.async_tma_store_wait",
    "ttng.tensormap_fenceproxy_acquire",
    "triton_nvidia_gpu.init_barrier", "triton_nvidia_gpu.inval_barrier", "triton_nvidia_gpu.barrier_expect",
    "triton_nvidia_gpu.wait_barrier", "triton_nvidia_gpu.async_tma_store_wait", "amdg.sched_barrier",
    "amdgpu.instruction_sched_hint", "amdg.instruction_sched_hint", "rocdl.sched.barrier", "rocdl.s.setprio",
    "rocdl.s.barrier", "rocdl.sched.group.barrier",
    "llvm.intr.assume", "ttng.fence", "ttng.cluster_barrier",
    "ttg.predicate_stage", "ttng.fence_mbarrier_init_release_cluster", "ttg.mask.return",
)  # fmt: skip
def _nothing(_run: Any, operation: Operation, *_: Any) -> tuple[Any, ...]:
    if operation.results:
        raise UnsupportedIrError(f"a result of {_run.name}")
    return ()


@known("ttng.warp_group_dot", "triton_nvidia_gpu.warp_group_dot", "triton_nvidia_gpu.dot_async")
def _warp_group_dot(
    _run: Any, _operation: Operation, one: Array, other: Array, more: Array, use: Array | None = None
) -> tuple[Array]:
    start = more if use is None or bool(use) else np.zeros_like(more)
    return (dot(one, other, start),)


@known(
    "ttng.warp_group_dot_wait", "triton_nvidia_gpu.warp_group_dot_wait", "triton_nvidia_gpu.dot_wait"
)  # fmt: skip
def _warp_group_dot_wait(_run: Any, _operation: Operation, *values: Array) -> tuple[Array, ...]:
    return values


@known("ttng.async_tma_copy_global_to_local", "triton_nvidia_gpu.async_tma_copy_global_to_local")
def _tma_load(run: Any, operation: Operation, *values: Any) -> tuple[()]:
    if parts := segments(operation, values):
        descriptor, at, memory, pred = parts[0][0], parts[1], parts[-2][0], parts[-1][0]
    else:
        descriptor, (*at, _barrier, memory, pred) = values[0], values[1:]  # type: ignore[assignment]
    if bool(pred):
        memory[...] = read(run, descriptor, tuple(at)).reshape(memory.shape)
    return ()


@known("ttng.async_tma_copy_local_to_global", "triton_nvidia_gpu.async_tma_copy_local_to_global")
def _tma_store(
    run: Any, operation: Operation, descriptor: TensorDescriptor, *values: Any
) -> tuple[None, ...]:
    *at, memory = values
    address, inside = descriptor.addresses(tuple(map(int, at)))
    store(run, address, memory.reshape(address.shape), inside)
    return (None,) * len(operation.results)


@known("amdg.buffer_load", "amdgpu.buffer_load")
def _buffer_load(run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    pointer, offsets, _stride, mask, other = segments(operation, values)
    found = wanted(operation)
    at = pointer[0] + offsets[0].astype(np.int64) * found.dtype.itemsize
    return (load(run, at, found.dtype, mask[0] if mask else None, other[0] if other else None),)


@known("amdg.buffer_store", "amdgpu.buffer_store")
def _buffer_store(run: Any, operation: Operation, *values: Array) -> tuple[()]:
    value, pointer, offsets, _stride, mask = segments(operation, values)
    at = pointer[0] + offsets[0].astype(np.int64) * value[0].dtype.itemsize
    store(run, at, value[0], mask[0] if mask else None)
    return ()


@known("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def _poison(_run: Any, operation: Operation) -> tuple[Any]:
    """Any value is right, and none should be seen: 0."""
    found = wanted(operation)
    return (np.zeros(found.shape, found.dtype if found.kind == "number" else np.int64),)
