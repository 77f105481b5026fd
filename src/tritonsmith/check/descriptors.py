"""Operations of tt on descriptors of tensors in global memory, and on pointers to blocks: TritonOps.td."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import wanted
from tritonsmith.check.memory import BlockPointer, TensorDescriptor
from tritonsmith.check.module import UnsupportedIrError, integer, known, type_of
from tritonsmith.check.triton import load, segments, store

Array = np.ndarray[Any, Any]
_NAN = 2  # of PaddingOption


@known("tt.make_tensor_descriptor")
def _make_descriptor(_run: Any, operation: Operation, *values: Array) -> tuple[TensorDescriptor]:
    result = type_of(operation.results[0].type)
    rank = len(result.shape)
    shape, strides = values[1 : 1 + rank], values[1 + rank : 1 + 2 * rank]
    nan = integer(operation, "padding", 1) == _NAN
    return (
        TensorDescriptor(
            int(values[0]), tuple(map(int, shape)), tuple(map(int, strides)), result.shape, result.dtype, nan
        ),
    )


@known("tt.make_tensor_ptr")
def _make_block_pointer(_run: Any, operation: Operation, base: Array, *values: Array) -> tuple[BlockPointer]:
    """Make a block pointer; the operands are sizes, strides, then the offsets of the block."""
    result = type_of(operation.results[0].type)
    numbers, rank = tuple(map(int, values)), len(result.shape)
    tensor = TensorDescriptor(int(base), numbers[:rank], numbers[rank : 2 * rank], result.shape, result.dtype)
    return (BlockPointer(tensor, numbers[2 * rank :]),)


@known("tt.advance")
def _advance(_run: Any, _operation: Operation, pointer: BlockPointer, *by: Array) -> tuple[BlockPointer]:
    return (
        replace(pointer, at=tuple(start + int(step) for start, step in zip(pointer.at, by, strict=True))),
    )


@known("tt.descriptor_load", "tt.experimental_descriptor_load")
def _descriptor_load(
    run: Any, operation: Operation, descriptor: TensorDescriptor, *at: Array
) -> tuple[Array]:
    return (read(run, descriptor, at).reshape(wanted(operation).shape),)


def read(run: Any, descriptor: TensorDescriptor, at: tuple[Array, ...]) -> Array:
    """Read a block of a tensor in global memory; elements outside are 0, or NaN."""
    address, inside = descriptor.addresses(tuple(map(int, at)))
    outside = np.asarray(np.nan if descriptor.nan else 0).astype(descriptor.dtype)
    return load(run, address, descriptor.dtype, inside, outside)


@known("tt.descriptor_store", "tt.experimental_descriptor_store")
def _descriptor_store(
    run: Any, _operation: Operation, descriptor: TensorDescriptor, value: Array, *at: Array
) -> tuple[()]:
    address, inside = descriptor.addresses(tuple(map(int, at)))
    store(run, address, value.reshape(address.shape), inside)
    return ()


@known("tt.descriptor_gather")
def _gather(
    run: Any, operation: Operation, descriptor: TensorDescriptor, rows: Array, column: Array
) -> tuple[Array]:
    return (read_rows(run, descriptor, rows, column).reshape(wanted(operation).shape),)


def read_rows(run: Any, descriptor: TensorDescriptor, rows: Array, column: Array) -> Array:
    """Read a block of one row for each of these rows."""
    return np.concatenate([read(run, descriptor, (row, column)) for row in rows.reshape(-1)])


@known("tt.descriptor_scatter")
def _scatter(
    run: Any, _operation: Operation, descriptor: TensorDescriptor, rows: Array, column: Array, value: Array
) -> tuple[()]:
    write_rows(run, descriptor, rows, column, value)
    return ()


def write_rows(run: Any, descriptor: TensorDescriptor, rows: Array, column: Array, value: Array) -> None:
    """Write each row of a value to a row of the tensor; of two for the same row the last one stays."""
    for row, content in zip(rows.reshape(-1), value.reshape(rows.size, -1), strict=True):
        address, inside = descriptor.addresses((int(row), int(column)))
        store(run, address, content.reshape(address.shape), inside)


@known("tt.descriptor_reduce")
def _reduce(
    run: Any, operation: Operation, descriptor: TensorDescriptor, value: Array, *at: Array
) -> tuple[()]:
    reduce(run, operation, descriptor, tuple(map(int, at)), value)
    return ()


def reduce(
    run: Any, operation: Operation, descriptor: TensorDescriptor, at: tuple[int, ...], value: Array
) -> None:
    """Combine a value with the memory it is written to; elements of a block have distinct addresses."""
    kind = integer(operation, "kind")
    signless = descriptor.dtype.kind == "i"
    if kind not in _REDUCED or (signless and kind in _COMPARED):  # whether it has a sign is not kept
        raise UnsupportedIrError(f"a reduction of kind {kind} by a descriptor")
    address, inside = descriptor.addresses(at)
    before = load(run, address, descriptor.dtype, inside)
    with np.errstate(all="ignore"):
        after = _REDUCED[kind](before, value.reshape(address.shape)).astype(before.dtype)
    store(run, address, after, inside)


# By DescriptorReduceKind; 4 and 5, increment and decrement, are not among them.
_COMPARED = (2, 3)
_REDUCED = {
    1: np.add, 2: np.minimum, 3: np.maximum, 6: np.bitwise_and, 7: np.bitwise_or, 8: np.bitwise_xor,
}  # fmt: skip


# Descriptors that a kernel makes itself, by the .td of TritonNvidiaGPU and TritonGPU.

_SCRATCH = 1 << 38  # below all arguments: what is written there is no result
_APART = 1 << 20  # bytes between two of them
_NAN_FILL = 1  # fill_mode: what lies outside is NaN


@known("ttg.global_scratch_alloc", "triton_gpu.global_scratch_alloc")
def _scratch(run: Any, _operation: Operation) -> tuple[Array]:
    """Allocate memory of the program's own; only descriptors may be stored there."""
    return (np.asarray(np.int64(_SCRATCH + next(run.scratch) * _APART)),)


@known("ttng.tensormap_create", "triton_nvidia_gpu.tensormap_create")
def _create(run: Any, operation: Operation, *values: Array) -> tuple[()]:
    """Make a descriptor; sizes are innermost first, and strides, in bytes, omit the innermost one."""
    (place,), (base,), _box, sizes, strides, steps = segments(operation, values)
    if any(int(step) != 1 for step in steps):
        raise UnsupportedIrError("a descriptor that leaves out elements")
    nan = integer(operation, "fill_mode") == _NAN_FILL
    run.descriptors[int(place)] = (int(base), tuple(map(int, sizes)), tuple(map(int, strides)), nan)
    return ()


@known("ttng.reinterpret_tensor_descriptor", "triton_nvidia_gpu.reinterpret_tensor_descriptor")
def _reinterpret(run: Any, operation: Operation, place: Array) -> tuple[TensorDescriptor]:
    """Return a descriptor; its block is in the type only: the hardware's box may be a part of it."""
    if int(place) not in run.descriptors:
        raise UnsupportedIrError("a descriptor that the kernel did not make")
    base, sizes, strides, nan = run.descriptors[int(place)]
    target = type_of(operation.results[0].type)
    if len(target.shape) != len(sizes):
        raise UnsupportedIrError("a descriptor of another rank")
    elements = (1, *(stride // target.dtype.itemsize for stride in strides))
    descriptor = TensorDescriptor(base, sizes[::-1], elements[::-1], target.shape, target.dtype, nan)
    return (descriptor,)
