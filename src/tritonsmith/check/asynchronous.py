"""Operations of ttg, ttng and amdg that run asynchronously: copies, TMA transfers, dots of warp groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.descriptors import read, read_rows, reduce, write_rows
from tritonsmith.check.gpu import read_buffer
from tritonsmith.check.in_flight import Order, require_inside, unwritten
from tritonsmith.check.memory import TensorDescriptor
from tritonsmith.check.module import Array, attribute, integer, integers, name_of
from tritonsmith.check.program import OperationTable, TensorProgram, Values, bind
from tritonsmith.check.triton import dot, load, rounded, store

OPERATIONS = OperationTable()
_TIMED = (
    "async_copy_global_to_local",
    "async_tma_copy_global_to_local",
    "async_tma_copy_local_to_global",
    "async_tma_gather",
    "async_tma_scatter",
    "async_tma_reduce",
    "buffer_load_to_local",
    "tc_gen5_mma",
    "tc_gen5_mma_scaled",
    "warp_specialize",
)


def orders(module: Operation) -> tuple[Order, ...]:
    """Return the orders in which a kernel has to run so that its waits are checked: both, or none."""
    # Both, as copies that land late hide a buffer that is filled too early, and the other way round.
    if any(
        name_of(operation).rpartition(".")[2] in _TIMED or _is_async_dot(operation)
        for operation in module.walk()
    ):
        return (Order.COPIES_LATE, Order.READS_LATE)
    return ()


def _is_async_dot(operation: Operation) -> bool:
    """Return whether an operation is an asynchronous dot; 3.0 has an operation of its own for those."""
    return name_of(operation).endswith(".dot_async") or bool(integer(operation, "isAsync"))


@OPERATIONS.known(
    "ttg.async_copy_global_to_local",
    "triton_gpu.async_copy_global_to_local",
    operands=("src", "result", "mask?", "other?"),
)
def _async_copy(
    run: TensorProgram,
    _operation: Operation,
    pointer: Array,
    memory: Array,
    mask: Array | None,
    other: Array | None,
) -> tuple[None]:
    # The hardware may read the source at any time until the wait. Where copies are late, the source is read
    # last, with what a store in between has put there.
    run.flight.copy(memory, lambda: _put(memory, load(run, pointer, memory.dtype, mask, other)))
    return (None,)


def _put(memory: Array, value: Array) -> None:
    memory[...] = value.reshape(memory.shape)


@OPERATIONS.known(
    "amdg.buffer_load_to_local",
    "amdgpu.buffer_load_to_local",
    operands=("dest", "ptr", "offsets", "mask?", "other?", "stride?"),
)
def _buffer_load_to_local(
    run: TensorProgram,
    _operation: Operation,
    memory: Array,
    pointer: Array,
    offsets: Array,
    mask: Array | None,
    other: Array | None,
    _stride: Array | None,
) -> tuple[None]:
    run.flight.copy(
        memory, lambda: _put(memory, read_buffer(run, pointer, offsets, memory.dtype, mask, other))
    )
    return (None,)


@OPERATIONS.known("ttg.async_commit_group", "triton_gpu.async_commit_group")
def _commit(run: TensorProgram, _operation: Operation, *_tokens: Any) -> tuple[None]:
    run.flight.commit()
    return (None,)


@OPERATIONS.known("ttg.async_wait", "triton_gpu.async_wait")
def _async_wait(run: TensorProgram, operation: Operation, *_tokens: Any) -> tuple[None]:
    run.flight.wait_groups(integer(operation, "num"))
    return (None,)


@OPERATIONS.known("amdg.async_wait")
def _amd_wait(run: TensorProgram, operation: Operation, *_tokens: Any) -> tuple[None, ...]:
    """Wait for all copies."""
    # The operation counts instructions, and how many a copy takes depends on its layout, so a wait that is
    # too short goes unseen.
    run.flight.wait_copies()
    return (None,) * len(operation.results)


@OPERATIONS.known("ttng.warp_group_dot", "triton_nvidia_gpu.warp_group_dot", "triton_nvidia_gpu.dot_async")
def _warp_group_dot(
    run: TensorProgram,
    operation: Operation,
    left: Array,
    right: Array,
    accumulator: Array,
    use: Array | None = None,
) -> tuple[Array]:
    # The result is filled when the dot is waited for: an earlier read gets what was never written.
    result = unwritten(accumulator.shape, accumulator.dtype)
    require_inside(left, right)

    def compute() -> None:
        initial = accumulator if use is None or bool(use) else np.zeros_like(accumulator)
        result[...] = dot(*rounded(run, operation, left, right), initial)

    run.flight.dot(result, compute)
    if not _is_async_dot(operation):
        run.flight.wait_dots(0)
    return (result,)


@OPERATIONS.known(
    "ttng.warp_group_dot_wait", "triton_nvidia_gpu.warp_group_dot_wait", "triton_nvidia_gpu.dot_wait"
)
def _warp_group_dot_wait(run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array, ...]:
    run.flight.wait_dots(integer(operation, "pendings"))
    return values


@OPERATIONS.known("ttng.init_barrier", "triton_nvidia_gpu.init_barrier")
def _init_barrier(run: TensorProgram, operation: Operation, memory: Array) -> tuple[()]:
    run.flight.barrier(memory, integer(operation, "count"))
    return ()


@OPERATIONS.known("ttng.barrier_expect", "triton_nvidia_gpu.barrier_expect")
def _expect(run: TensorProgram, operation: Operation, memory: Array, pred: Array) -> tuple[()]:
    if bool(pred):
        # One instruction on the GPU, mbarrier.arrive.expect_tx: it announces bytes, and arrives.
        run.flight.expect(memory, integer(operation, "size"))
    return ()


@OPERATIONS.known("ttng.arrive_barrier", "triton_nvidia_gpu.arrive_barrier")
def _arrive(run: TensorProgram, operation: Operation, memory: Array, pred: Array | None = None) -> tuple[()]:
    if pred is None or bool(pred):
        # One thread arrives for all, or each for itself; the count of the barrier is chosen accordingly.
        many = _threads(operation) if attribute(operation, "perThread") is not None else 1
        run.flight.arrive(memory, many * integer(operation, "count"))
    return ()


def _threads(operation: Operation) -> int:
    """Return how many threads run an operation: those of its partition if warps are specialized."""
    warps, region = 0, operation.parent_region()
    while region is not None and (parent := region.parent) is not None:
        if name_of(parent) == "ttg.warp_specialize.partitions" and (whole := parent.parent_op()):
            warps = integers(whole, "partitionNumWarps")[parent.regions.index(region)]
        operation, region = parent, parent.parent_region()
    return (warps or integer(operation, "ttg.num-warps")) * integer(operation, "ttg.threads-per-warp")


@OPERATIONS.known(
    "ttng.wait_barrier",
    "triton_nvidia_gpu.wait_barrier",
    operands=("alloc", "phase", "pred?", "deps*"),
)
def _wait_barrier(
    run: TensorProgram, _operation: Operation, barrier: Array, phase: Array, pred: Array | None, _deps: Values
) -> tuple[()]:
    if pred is None or bool(pred):
        run.flight.wait_barrier(barrier, int(phase) & 1)  # -1, an extended i1, is odd
    return ()


@OPERATIONS.known("ttng.async_tma_copy_global_to_local", "triton_nvidia_gpu.async_tma_copy_global_to_local")
def _tma_load(run: TensorProgram, operation: Operation, *values: Any) -> tuple[()]:
    if attribute(operation, "operandSegmentSizes") is None:
        names: tuple[str, ...] = ("desc", "coord*", "barrier", "result", "pred")
        descriptor, coordinates, barrier, memory, pred = bind(operation, values, names)
    else:  # newer releases copy im2col blocks, too, which have offsets
        names = ("desc", "coord*", "offsets*", "barrier", "result", "pred")
        descriptor, coordinates, _, barrier, memory, pred = bind(operation, values, names)
    if bool(pred):
        run.flight.copy_to_barrier(barrier, memory, lambda: _put(memory, read(run, descriptor, coordinates)))
    return ()


@OPERATIONS.known("ttng.async_tma_gather", "triton_nvidia_gpu.async_tma_gather")
def _tma_gather(
    run: TensorProgram,
    _operation: Operation,
    descriptor: TensorDescriptor,
    rows: Array,
    column: Array,
    barrier: Array,
    memory: Array,
    pred: Array,
) -> tuple[()]:
    if bool(pred):
        run.flight.copy_to_barrier(
            barrier, memory, lambda: _put(memory, read_rows(run, descriptor, rows, column))
        )
    return ()


@OPERATIONS.known("ttng.async_tma_scatter", "triton_nvidia_gpu.async_tma_scatter")
def _tma_scatter(
    run: TensorProgram,
    operation: Operation,
    descriptor: TensorDescriptor,
    rows: Array,
    column: Array,
    memory: Array,
) -> tuple[None, ...]:
    require_inside(memory)
    run.flight.store(lambda: write_rows(run, descriptor, rows, column, memory))
    return (None,) * len(operation.results)


@OPERATIONS.known(
    "ttng.async_tma_reduce", "triton_nvidia_gpu.async_tma_reduce", operands=("desc", "coord*", "src")
)
def _tma_reduce(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, coordinates: Values, memory: Array
) -> tuple[None, ...]:
    place = tuple(map(int, coordinates))
    require_inside(memory)
    run.flight.store(lambda: reduce(run, operation, descriptor, place, memory))
    return (None,) * len(operation.results)


@OPERATIONS.known(
    "ttng.async_tma_copy_local_to_global",
    "triton_nvidia_gpu.async_tma_copy_local_to_global",
    operands=("desc", "coord*", "src"),
)
def _tma_store(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, coordinates: Values, memory: Array
) -> tuple[None, ...]:
    address, inside = descriptor.addresses(tuple(map(int, coordinates)))
    # Checked now: the store itself may happen when the program is elsewhere, and its place could not be
    # named.
    require_inside(memory)
    run.flight.store(lambda: store(run, address, memory.reshape(address.shape), inside))
    return (None,) * len(operation.results)


@OPERATIONS.known("ttng.async_tma_store_wait", "triton_nvidia_gpu.async_tma_store_wait")
def _tma_store_wait(run: TensorProgram, operation: Operation) -> tuple[()]:
    run.flight.wait_stores(integer(operation, "pendings"))
    return ()
