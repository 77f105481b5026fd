"""Operations of tt on descriptors of tensors in global memory, and on pointers to blocks: TritonOps.td."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.memory import BlockPointer, TensorDescriptor
from tritonsmith.check.module import (
    Array,
    DescriptorReduceKind,
    PaddingOption,
    TensorMapFill,
    UnsupportedIrError,
    integer,
    result_type,
)
from tritonsmith.check.program import DeviceDescriptor, OperationTable, TensorProgram
from tritonsmith.check.triton import load, store

OPERATIONS = OperationTable()
Numbers: TypeAlias = tuple[Array, ...]  # one for each axis


@OPERATIONS.known("tt.make_tensor_descriptor", operands=("base", "shape*", "strides*"))
def _make_descriptor(
    _run: TensorProgram, operation: Operation, base: Array, shape: Numbers, strides: Numbers
) -> tuple[TensorDescriptor]:
    result = result_type(operation)
    nan = integer(operation, "padding", PaddingOption.PAD_ZERO) == PaddingOption.PAD_NAN
    sizes, steps = tuple(map(int, shape)), tuple(map(int, strides))
    return (TensorDescriptor(int(base), sizes, steps, result.shape, result.dtype, nan),)


@OPERATIONS.known("tt.make_tensor_ptr", operands=("base", "shape*", "strides*", "offsets*"))
def _make_block_pointer(
    _run: TensorProgram, operation: Operation, base: Array, shape: Numbers, strides: Numbers, offsets: Numbers
) -> tuple[BlockPointer]:
    result = result_type(operation)
    sizes, steps = tuple(map(int, shape)), tuple(map(int, strides))
    tensor = TensorDescriptor(int(base), sizes, steps, result.shape, result.dtype)
    return (BlockPointer(tensor, tuple(map(int, offsets))),)


@OPERATIONS.known("tt.advance")
def _advance(
    _run: TensorProgram, _operation: Operation, pointer: BlockPointer, *by: Array
) -> tuple[BlockPointer]:
    return (
        replace(pointer, at=tuple(start + int(step) for start, step in zip(pointer.at, by, strict=True))),
    )


@OPERATIONS.known("tt.descriptor_load", "tt.experimental_descriptor_load")
def _descriptor_load(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, *at: Array
) -> tuple[Array]:
    return (read(run, descriptor, at).reshape(result_type(operation).shape),)


def read(run: TensorProgram, descriptor: TensorDescriptor, at: tuple[Array, ...]) -> Array:
    """Read a block of a tensor in global memory; elements outside are 0, or NaN."""
    address, inside = descriptor.addresses(tuple(map(int, at)))
    outside = np.asarray(np.nan if descriptor.nan else 0).astype(descriptor.dtype)
    return load(run, address, descriptor.dtype, inside, outside)


@OPERATIONS.known("tt.descriptor_store", "tt.experimental_descriptor_store")
def _descriptor_store(
    run: TensorProgram, _operation: Operation, descriptor: TensorDescriptor, value: Array, *at: Array
) -> tuple[()]:
    address, inside = descriptor.addresses(tuple(map(int, at)))
    store(run, address, value.reshape(address.shape), inside)
    return ()


@OPERATIONS.known("tt.descriptor_gather")
def _gather(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, rows: Array, column: Array
) -> tuple[Array]:
    return (read_rows(run, descriptor, rows, column).reshape(result_type(operation).shape),)


def read_rows(run: TensorProgram, descriptor: TensorDescriptor, rows: Array, column: Array) -> Array:
    """Read a block of one row for each of these rows."""
    return np.concatenate([read(run, descriptor, (row, column)) for row in rows.reshape(-1)])


@OPERATIONS.known("tt.descriptor_scatter")
def _scatter(
    run: TensorProgram,
    _operation: Operation,
    descriptor: TensorDescriptor,
    rows: Array,
    column: Array,
    value: Array,
) -> tuple[()]:
    write_rows(run, descriptor, rows, column, value)
    return ()


def write_rows(
    run: TensorProgram, descriptor: TensorDescriptor, rows: Array, column: Array, value: Array
) -> None:
    """Write each row of a value to a row of the tensor; of two for the same row the last one stays."""
    for row, content in zip(rows.reshape(-1), value.reshape(rows.size, -1), strict=True):
        address, inside = descriptor.addresses((int(row), int(column)))
        store(run, address, content.reshape(address.shape), inside)


@OPERATIONS.known("tt.descriptor_reduce")
def _reduce(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, value: Array, *at: Array
) -> tuple[()]:
    reduce(run, operation, descriptor, tuple(map(int, at)), value)
    return ()


def reduce(
    run: TensorProgram, operation: Operation, descriptor: TensorDescriptor, at: tuple[int, ...], value: Array
) -> None:
    """Combine a value with the memory it is written to."""
    # All elements at once: those of a block have distinct addresses, so that none waits for another.
    kind = integer(operation, "kind")
    if kind not in _REDUCTIONS:
        raise UnsupportedIrError(f"a reduction of kind {kind} by a descriptor")
    # The element type of a descriptor may be unsigned, which its dtype here does not keep.
    if descriptor.dtype.kind == "i" and kind in (DescriptorReduceKind.MIN, DescriptorReduceKind.MAX):
        raise UnsupportedIrError(f"a reduction of kind {kind} by a descriptor")
    address, inside = descriptor.addresses(at)
    before = load(run, address, descriptor.dtype, inside)
    with np.errstate(all="ignore"):
        after = _REDUCTIONS[kind](before, value.reshape(address.shape)).astype(before.dtype)
    store(run, address, after, inside)


_REDUCTIONS: dict[int, Callable[[Array, Array], Array]] = {  # without increment and decrement
    DescriptorReduceKind.ADD: np.add,
    DescriptorReduceKind.MIN: np.minimum,
    DescriptorReduceKind.MAX: np.maximum,
    DescriptorReduceKind.AND: np.bitwise_and,
    DescriptorReduceKind.OR: np.bitwise_or,
    DescriptorReduceKind.XOR: np.bitwise_xor,
}


_SCRATCH = 1 << 38  # below all arguments: what is written there is no result
_APART = 1 << 20  # bytes between two of them


@OPERATIONS.known("ttg.global_scratch_alloc", "triton_gpu.global_scratch_alloc")
def _scratch(run: TensorProgram, _operation: Operation) -> tuple[Array]:
    """Allocate memory of the program's own; only descriptors may be stored there."""
    return (np.asarray(np.int64(_SCRATCH + next(run.scratch) * _APART)),)


@OPERATIONS.known(
    "ttng.tensormap_create",
    "triton_nvidia_gpu.tensormap_create",
    operands=(
        "desc_ptr",
        "global_address",
        "box_dim*",
        "global_dim*",
        "global_stride*",
        "element_stride*",
    ),
)
def _create(
    run: TensorProgram,
    operation: Operation,
    place: Array,
    base: Array,
    _box: Numbers,
    sizes: Numbers,
    strides: Numbers,
    element_strides: Numbers,
) -> tuple[()]:
    """Make a descriptor; sizes are innermost first, and strides, in bytes, omit the innermost one."""
    if any(int(stride) != 1 for stride in element_strides):
        raise UnsupportedIrError("a descriptor that leaves out elements")
    nan = integer(operation, "fill_mode") == TensorMapFill.NAN
    run.descriptors[int(place)] = DeviceDescriptor(
        int(base), tuple(map(int, sizes)), tuple(map(int, strides)), nan
    )
    return ()


@OPERATIONS.known("ttng.reinterpret_tensor_descriptor", "triton_nvidia_gpu.reinterpret_tensor_descriptor")
def _reinterpret(run: TensorProgram, operation: Operation, place: Array) -> tuple[TensorDescriptor]:
    """Return a descriptor that the kernel made."""
    # Its block is that of the type: the hardware's box may be only a part of it, for which several copies are
    # made.
    if (created := run.descriptors.get(int(place))) is None:
        raise UnsupportedIrError("a descriptor that the kernel did not make")
    target = result_type(operation)
    if len(target.shape) != len(created.sizes):
        raise UnsupportedIrError("a descriptor of another rank")
    # The hardware's strides are in bytes, and leave out the innermost axis, whose elements are adjacent
    # (cuTensorMapEncodeTiled in the CUDA driver API).
    strides = (1, *(stride // target.dtype.itemsize for stride in created.strides))
    sizes = created.sizes[::-1]  # outermost first, as in Triton
    descriptor = TensorDescriptor(created.base, sizes, strides[::-1], target.shape, target.dtype, created.nan)
    return (descriptor,)
