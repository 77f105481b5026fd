"""The dialect tt: include/triton/Dialect/Triton/IR/TritonOps.td. Layouts change no value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation, Region

from tritonsmith.check.arith import unsigned
from tritonsmith.check.in_flight import OutOfBoundsError
from tritonsmith.check.llvm.operations import library_function
from tritonsmith.check.memory import BlockPointer
from tritonsmith.check.module import (
    Array,
    InputPrecision,
    PaddingOption,
    RMWOp,
    UnsupportedIrError,
    attribute,
    integer,
    integers,
    name_of,
    result_type,
    text,
    type_of,
)
from tritonsmith.check.program import AnyRun, OperationTable, TensorProgram

OPERATIONS = OperationTable()

_SINGLE = 4  # bytes of fp32
_SUMS = (".addf", ".subf", ".fma", ".dot", ".warp_group_dot")


@OPERATIONS.known("tt.get_program_id")
def _program_id(run: TensorProgram, operation: Operation) -> tuple[Array]:
    return (np.asarray(np.int32(run.program[integer(operation, "axis")])),)


@OPERATIONS.known("tt.get_num_programs")
def _num_programs(run: TensorProgram, operation: Operation) -> tuple[Array]:
    return (np.asarray(np.int32(run.grid[integer(operation, "axis")])),)


@OPERATIONS.known("tt.make_range")
def _make_range(_run: TensorProgram, operation: Operation) -> tuple[Array]:
    start, end = integer(operation, "start"), integer(operation, "end")
    if (end - start,) != result_type(operation).shape:
        raise UnsupportedIrError(f"tt.make_range from {start} to {end} of another size")
    return (np.arange(start, end, dtype=np.int32),)


@OPERATIONS.known("tt.splat")
def _splat(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    return (np.broadcast_to(value, result_type(operation).shape),)


@OPERATIONS.known("tt.unsplat")
def _unsplat(_run: TensorProgram, _operation: Operation, value: Array) -> tuple[Array]:
    return (value.reshape(()),)


@OPERATIONS.known("tt.broadcast")
def _broadcast(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    return (np.broadcast_to(value, result_type(operation).shape),)


@OPERATIONS.known("tt.expand_dims")
def _expand_dims(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    return (np.expand_dims(value, integer(operation, "axis")),)


@OPERATIONS.known("tt.reshape", "tt.view")
def _reshape(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    """Reshape in the usual order; allow_reorder permits any."""
    return (value.reshape(result_type(operation).shape),)


@OPERATIONS.known("tt.trans")
def _trans(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    order = integers(operation, "order") or tuple(reversed(range(value.ndim)))
    return (np.transpose(value, order),)


@OPERATIONS.known("tt.cat")
def _cat(_run: TensorProgram, _operation: Operation, left: Array, right: Array) -> tuple[Array]:
    return (np.concatenate((left, right)),)


@OPERATIONS.known("tt.join")
def _join(_run: TensorProgram, _operation: Operation, left: Array, right: Array) -> tuple[Array]:
    return (np.stack((left, right), axis=-1),)


@OPERATIONS.known("tt.split")
def _split(_run: TensorProgram, _operation: Operation, value: Array) -> tuple[Array, Array]:
    return value[..., 0], value[..., 1]


@OPERATIONS.known("tt.addptr")
def _addptr(_run: TensorProgram, operation: Operation, pointer: Array, offset: Array) -> tuple[Array]:
    dtype = result_type(operation).dtype
    if not dtype.itemsize:
        raise UnsupportedIrError("tt.addptr of a pointer to an unknown type")
    return (pointer + offset.astype(np.int64) * dtype.itemsize,)


@OPERATIONS.known("tt.int_to_ptr", "tt.ptr_to_int")
def _same_bits(_run: TensorProgram, _operation: Operation, value: Array) -> tuple[Array]:
    return (value,)


@OPERATIONS.known("tt.load", operands=("ptr", "mask?", "other?"))
def _load(
    run: TensorProgram,
    operation: Operation,
    pointer: Array | BlockPointer,
    mask: Array | None,
    other: Array | None,
) -> tuple[Array]:
    dtype = result_type(operation).dtype
    if isinstance(pointer, BlockPointer):
        address, inside = pointer.addresses(operation)
        outside = np.nan if integer(operation, "padding") == PaddingOption.PAD_NAN else 0
        return (load(run, address, dtype, inside, np.asarray(outside).astype(dtype)),)
    return (load(run, pointer, dtype, mask, other),)


def load(
    run: TensorProgram,
    pointer: Array,
    dtype: np.dtype[Any],
    mask: Array | None = None,
    other: Array | None = None,
) -> Array:
    """Load elements; where the mask is false, the other value, or else 0."""
    # Without another value, masked elements are undefined; NVIDIA's code makes them 0, which kernels rely on.
    if mask is None:
        elements: Array = run.memory.load(pointer, dtype)
        # In memory an i1 is a byte.
        return elements.astype(np.bool_) if dtype == np.bool_ else elements
    # Masked lanes are not read at all: their addresses may be anything.
    mask = np.broadcast_to(mask, pointer.shape)
    elements = (
        np.full(pointer.shape, run.memory.undefined).astype(dtype)
        if other is None
        else np.array(np.broadcast_to(other, pointer.shape))
    )
    if mask.any():
        elements[mask] = run.memory.load(pointer[mask], dtype)
    return elements


@OPERATIONS.known("tt.store")
def _store(
    run: TensorProgram,
    operation: Operation,
    pointer: Array | BlockPointer,
    value: Array,
    mask: Array | None = None,
) -> tuple[()]:
    if isinstance(pointer, BlockPointer):
        pointer, mask = pointer.addresses(operation)
    store(run, pointer, value, mask)
    return ()


def store(run: TensorProgram, pointer: Array, value: Array, mask: Array | None = None) -> None:
    """Store elements where the mask is true."""
    value = np.broadcast_to(value, pointer.shape)
    if mask is not None:
        mask = np.broadcast_to(mask, pointer.shape)
        pointer, value = pointer[mask], value[mask]
    run.memory.store(pointer, value.astype(np.uint8) if value.dtype == np.bool_ else value)


@OPERATIONS.known("tt.dot")
def _dot(
    run: TensorProgram, operation: Operation, left: Array, right: Array, accumulator: Array
) -> tuple[Array]:
    return (dot(*rounded(run, operation, left, right), accumulator),)


def is_ordered(operation: Operation) -> bool:
    """Return whether an operation reduces several values, as argmax does."""
    # Their comparison is not associative over NaN, so that the result depends on the order.
    return name_of(operation) in ("tt.reduce", "tt.scan") and len(operation.operands) > 1


def is_narrow_sum(operation: Operation) -> bool:
    """Return whether an operation adds in fp16 or bf16."""
    sums = name_of(operation).endswith(_SUMS)
    return sums and any("f16" in str(result.type).split(",")[0] for result in operation.results)


@lru_cache(maxsize=4096)
def has_precision(operation: Operation) -> bool:
    """Return whether an operation is a dot of fp32."""
    if not isinstance(attribute(operation, "inputPrecision"), builtin.IntegerAttr) or not operation.operands:
        return False
    return "f32" in str(operation.operands[0].type).split(",")[0]


def is_tf32(operation: Operation) -> bool:
    """Return whether a dot of fp32 takes its operands as tf32: InputPrecision in TritonAttrDefs.td."""
    return has_precision(operation) and integer(operation, "inputPrecision") == InputPrecision.TF32


def rounded(run: AnyRun, operation: Operation, left: Array, right: Array) -> tuple[Array, Array]:
    """Return a dot's operands; for tf32 rounded to 10 bits of fraction, unless the reference is tf32 too."""
    if not run.rounds or not is_tf32(operation):
        return left, right
    return to_tf32(left), to_tf32(right)


def to_tf32(value: Array) -> Array:
    """Round numbers of fp32 to those that a tensor core of tf32 takes."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    # Half of the last kept bit is added, and the bits below are cut: rounding to nearest, ties away from 0,
    # as cvt.rna.tf32.f32 does.
    near = ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFF_E000)).view(np.float32).reshape(value.shape)
    return np.where(np.isfinite(value), near, value)


def dot(left: Array, right: Array, accumulator: Array) -> Array:
    """Multiply matrices: summed in fp64 or int64, and rounded once."""
    # Exact for the inputs of a check, so that the order of the sum, which passes change, does not matter.
    wide = np.int64 if accumulator.dtype.kind == "i" else np.float64
    with np.errstate(all="ignore"):
        product = np.matmul(_widened(left, wide), _widened(right, wide))
        result: Array = (product + accumulator.astype(wide)).astype(accumulator.dtype)
    return result


def _widened(value: Array, wide: type[np.float64 | np.int64]) -> Array:
    return np.ascontiguousarray(
        # The small floats of ml_dtypes convert to nothing wider than fp32.
        value.astype(np.float32).astype(wide)
        if value.dtype.itemsize < _SINGLE and wide == np.float64
        else value.astype(wide)
    )


@OPERATIONS.known("tt.reduce")
def _reduce(run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array, ...]:
    """Combine halves until one element is left."""
    axis = integer(operation, "axis")
    # The order of a reduction is undefined. Halves combine as whole arrays, in log2(n) calls of the region,
    # not n.
    parts = [np.moveaxis(value, axis, 0) for value in values]
    whole = not _makes_tensors(run, operation.regions[0])
    while (count := parts[0].shape[0]) > 1:
        half = count // 2
        lower = [part[:half] for part in parts]
        upper = [part[half : 2 * half] for part in parts]
        combined = _combined(run, operation, (*lower, *upper), whole=whole)
        rest = [part[2 * half :] for part in parts]
        parts = [
            np.concatenate((np.asarray(part), odd)) if odd.shape[0] else np.asarray(part)
            for part, odd in zip(combined, rest, strict=True)
        ]
    return tuple(part[0] for part in parts)


def _combined(
    run: TensorProgram, operation: Operation, values: tuple[Array, ...], *, whole: bool
) -> tuple[Array, ...]:
    """Apply a function of scalars to all elements: to whole arrays at once, or one by one."""
    region = operation.regions[0]
    # A combine function of scalars works on arrays as it is, since operations broadcast; `tl.arange` in it,
    # or a function that makes tensors, does not.
    if whole or not np.ndim(values[0]):
        results: tuple[Array, ...] = run.region(region, values)
        return results
    return by_element(run, region, values, [value.dtype for value in values[: len(values) // 2]])


def _makes_tensors(run: TensorProgram, region: Region) -> bool:
    """Return whether an operation in a region, or in a function it calls, yields a tensor."""
    return any(
        any(type_of(result.type).shape for result in operation.results)
        or (name_of(operation) == "tt.call" and _makes_tensors(run, run.callee(operation).regions[0]))
        for operation in region.walk()
    )


def by_element(
    run: TensorProgram, region: Region, values: tuple[Array, ...], dtypes: list[np.dtype[Any]]
) -> tuple[Array, ...]:
    """Apply a region whose arguments are scalars to one element after another."""
    flat, name = [value.reshape(-1) for value in values], run.name
    # The region's operations set the run's name, which the caller still reads afterwards.
    rows = [run.region(region, tuple(column[number] for column in flat)) for number in range(flat[0].size)]
    run.name = name
    return tuple(
        np.asarray([row[number] for row in rows], dtype).reshape(values[0].shape)
        for number, dtype in enumerate(dtypes)
    )


@OPERATIONS.known("tt.scan")
def _scan(run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array, ...]:
    axis = integer(operation, "axis")
    parts = [np.moveaxis(value, axis, 0) for value in values]
    if integer(operation, "reverse"):
        parts = [part[::-1] for part in parts]
    whole = not _makes_tensors(run, operation.regions[0])
    # A scan runs in order, unlike a reduction, because every partial result is seen.
    running, kept = [part[0] for part in parts], [[part[0]] for part in parts]
    for number in range(1, parts[0].shape[0]):
        running = list(_combined(run, operation, (*running, *(part[number] for part in parts)), whole=whole))
        for column, more in zip(kept, running, strict=True):
            column.append(more)
    stacked = [np.stack(column) for column in kept]
    if integer(operation, "reverse"):
        stacked = [column[::-1] for column in stacked]
    return tuple(np.moveaxis(column, 0, axis) for column in stacked)


@OPERATIONS.known("tt.clampf")
def _clampf(
    _run: TensorProgram, _operation: Operation, value: Array, low: Array, high: Array
) -> tuple[Array]:
    with np.errstate(all="ignore"):
        wide = [operand.astype(np.float64) for operand in (value, low, high)]
        return (np.fmin(np.fmax(wide[0], wide[1]), wide[2]).astype(value.dtype),)


@OPERATIONS.known("tt.mulhiui")
def _mulhiui(_run: TensorProgram, _operation: Operation, left: Array, right: Array) -> tuple[Array]:
    # The product of 64-bit integers needs 128 bits, which only Python's own integers have.
    if left.dtype.itemsize == _SINGLE:
        high = (unsigned(left).astype(np.uint64) * unsigned(right)) >> np.uint64(32)
        return (high.astype(np.uint32).view(np.int32),)
    wide = unsigned(left).astype(object) * unsigned(right).astype(object)
    return (np.asarray(wide >> 64).astype(np.uint64).view(np.int64),)


@OPERATIONS.known("tt.extern_elementwise")
def _extern(_run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array]:
    """Call a function of libdevice or of AMD's device library."""
    symbol = text(attribute(operation, "symbol")).strip('"')
    if (function := library_function(symbol)) is None:
        raise UnsupportedIrError(f"the library function {symbol}")
    with np.errstate(all="ignore"):
        return (function(*values).astype(result_type(operation).dtype),)


@OPERATIONS.known("tt.atomic_rmw")
def _atomic_rmw(
    run: TensorProgram, operation: Operation, pointer: Array, value: Array, mask: Array | None = None
) -> tuple[Array]:
    return (atomic_rmw(run, operation, pointer, value, mask),)


def atomic_rmw(
    run: TensorProgram, operation: Operation, pointer: Array, value: Array, mask: Array | None
) -> Array:
    """Update memory one lane after another, and return the old values."""
    kind = RMWOp(integer(operation, "atomic_rmw_op"))
    update = _UPDATES[kind]
    shape = np.shape(pointer)
    at, values = pointer.reshape(-1), np.broadcast_to(value, shape).reshape(-1)
    active = np.broadcast_to(True if mask is None else mask, shape).reshape(-1)
    old = np.zeros(at.shape, value.dtype)
    for group in _lanes(run, at, np.flatnonzero(active)):
        before = run.memory.load(at[group], value.dtype)
        old[group] = before
        with np.errstate(all="ignore"):
            run.memory.store(at[group], update(before, values[group]).astype(before.dtype))
    if kind is RMWOp.XCHG:
        run.memory.exchanged(at[active], values[active])
    return old.reshape(shape)


def _compared_as_unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda before, value: function(unsigned(before), unsigned(value)).view(before.dtype)


_UPDATES: dict[RMWOp, Callable[[Array, Array], Array]] = {
    RMWOp.AND: np.bitwise_and,
    RMWOp.OR: np.bitwise_or,
    RMWOp.XOR: np.bitwise_xor,
    RMWOp.ADD: np.add,
    RMWOp.FADD: np.add,
    RMWOp.MAX: np.maximum,
    RMWOp.MIN: np.minimum,
    RMWOp.UMAX: _compared_as_unsigned(np.maximum),
    RMWOp.UMIN: _compared_as_unsigned(np.minimum),
    RMWOp.XCHG: lambda _before, value: value,
}


@OPERATIONS.known("tt.atomic_cas")
def _atomic_cas(
    run: TensorProgram, _operation: Operation, pointer: Array, compared: Array, value: Array
) -> tuple[Array]:
    """Swap one lane after another, where the memory equals the expected value bit by bit."""
    shape, dtype = np.shape(pointer), value.dtype
    at, expected, new = (
        np.broadcast_to(operand, shape).reshape(-1) for operand in (pointer, compared, value)
    )
    old = np.zeros(at.shape, dtype)
    for group in _lanes(run, at, np.arange(at.size)):
        old[group] = run.memory.load(at[group], dtype)
        swapped = group[(_bits(old[group]) == _bits(expected[group])).all(axis=1)]
        if swapped.size:
            run.memory.store(at[swapped], new[swapped])
    return (old.reshape(shape),)


def _lanes(run: TensorProgram, at: Array, chosen: Array) -> list[Array]:
    """Return groups of lanes that can act at once: all, or single lanes where two have one address."""
    # Which of two lanes with one address comes first is undefined, so the order of lanes is as good as any.
    if np.unique(at[chosen]).size == chosen.size:
        return [chosen] if chosen.size else []
    run.memory.contended = True
    return [np.asarray([lane]) for lane in (chosen[::-1] if run.memory.backwards else chosen)]


def _bits(value: Array) -> Array:
    return np.ascontiguousarray(value).view(np.uint8).reshape(value.size, -1)


# These have no value, and no other grid runs that a program could wait for.
@OPERATIONS.known(
    "tt.assert",
    "tt.print",
    "tt.device_print",
    "tt.grid_dependency_wait",
    "tt.grid_dependency_launch_dependents",
)
def _nothing(_run: TensorProgram, _operation: Operation, *_: Any) -> tuple[()]:
    return ()


@OPERATIONS.known("tt.gather", "ttg.local_gather")
def _gather(
    _run: TensorProgram, operation: Operation, source: Array, indices: Array, *_token: Any
) -> tuple[Array]:
    """Gather along one axis; along the others the source may be larger than the indices."""
    axis = integer(operation, "axis")
    size = source.shape[axis]
    part = source[
        tuple(slice(None if dimension == axis else extent) for dimension, extent in enumerate(indices.shape))
    ]
    at = unsigned(indices).astype(np.uint64)
    if name_of(operation) == "ttg.local_gather" and (at >= size).any():
        raise OutOfBoundsError(f"ttg.local_gather: {int(indices[at >= size][0])} of {size}")
    # `tt.gather` out of range is undefined: 0 here. In shared memory it is an access outside of an
    # allocation.
    picked = np.take_along_axis(part, np.minimum(at, np.uint64(size - 1)).astype(np.int64), axis)
    return (np.where(at < size, picked, np.zeros_like(picked)).astype(source.dtype),)


@OPERATIONS.known("ttg.local_scatter")
def _local_scatter(
    _run: TensorProgram, operation: Operation, memory: Array, values: Array, indices: Array, *_token: Any
) -> tuple[()]:
    """Scatter to shared memory; of two elements for the same place the last one stays."""
    axis = integer(operation, "axis")
    at = unsigned(indices).astype(np.uint64)
    if (at >= memory.shape[axis]).any():
        outside = int(indices[at >= memory.shape[axis]][0])
        raise OutOfBoundsError(f"ttg.local_scatter: {outside} of {memory.shape[axis]}")
    part = memory[
        tuple(slice(None if dimension == axis else extent) for dimension, extent in enumerate(indices.shape))
    ]
    np.put_along_axis(part, at.astype(np.int64), values, axis)
    return ()


@OPERATIONS.known("tt.histogram")
def _histogram(
    _run: TensorProgram, operation: Operation, values: Array, mask: Array | None = None
) -> tuple[Array]:
    bins = result_type(operation)
    plain = unsigned(values).reshape(-1)
    # Elements that are in no bin are ignored (lib/Conversion/TritonGPUToLLVM/HistogramOpToLLVM.cpp).
    kept = plain < bins.shape[0]
    if mask is not None:
        kept &= np.broadcast_to(mask, values.shape).reshape(-1)
    return (np.bincount(plain[kept].astype(np.int64), minlength=bins.shape[0]).astype(bins.dtype),)


@OPERATIONS.known("tt.map_elementwise")
def _map_elementwise(run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array, ...]:
    """Apply a function of scalars to one element after another."""
    if integer(operation, "pack", 1) != 1:  # which elements come together is the layout's choice
        raise UnsupportedIrError("tt.map_elementwise of more than one element at a time")
    dtypes = [type_of(result.type).dtype for result in operation.results]
    return by_element(run, operation.regions[0], values, dtypes)
