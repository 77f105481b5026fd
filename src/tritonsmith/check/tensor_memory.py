"""Model Blackwell's tensor memory, by TritonNvidiaGPUOps.td, and products of blocks with scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned
from tritonsmith.check.gpu import Memory, allocate, part_of
from tritonsmith.check.in_flight import require_inside
from tritonsmith.check.module import (
    Array,
    ScaleDotElemType,
    UnsupportedIrError,
    attribute,
    integer,
    integers,
    result_type,
    type_of,
)
from tritonsmith.check.program import OperationTable, TensorProgram, Values, bind
from tritonsmith.check.triton import dot, to_tf32

OPERATIONS = OperationTable()


@OPERATIONS.known("ttng.tmem_alloc")
def _alloc(run: TensorProgram, operation: Operation, source: Array | None = None) -> Values:
    return allocate(run, operation, source), *_tokens(operation)


def _tokens(operation: Operation) -> tuple[None, ...]:
    """Return None for each result but the first."""
    # Tokens order operations, which run in their order here anyway.
    return (None,) * (len(operation.results) - 1)


@OPERATIONS.known("ttng.tmem_load")
def _load(_run: TensorProgram, operation: Operation, memory: Array, *_token: Any) -> Values:
    if integers(operation, "resultSegmentSizes")[2:] == (1,):
        raise UnsupportedIrError("ttng.tmem_load that reduces")
    return np.array(memory), *_tokens(operation)


@OPERATIONS.known("ttng.tmem_store", operands=("dst", "dep?", "src", "pred"))
def _store(
    _run: TensorProgram, operation: Operation, memory: Array, _token: None, value: Array, pred: Array
) -> tuple[None, ...]:
    if bool(pred):
        memory[...] = value.reshape(memory.shape)
    return (None,) * len(operation.results)


@OPERATIONS.known("ttng.tmem_subslice")
def _subslice(_run: TensorProgram, operation: Operation, memory: Memory) -> tuple[Memory]:
    """Return a range of columns that begins at N."""
    columns = type_of(operation.results[0].type).shape[-1]
    starts = (*(0 for _ in memory.shape[1:]), integer(operation, "N"))
    return (part_of(operation, memory, starts, (*memory.shape[:-1], columns)),)


@dataclass(frozen=True)
class _Arrival:
    """The operands that say how a product in tensor memory begins and ends.

    Attributes:
        use_accumulator: whether it adds to the memory, which is overwritten otherwise.
        pred: whether it is computed at all.
        barriers: barriers at which its end arrives.
        barrier_preds: for each of them whether it does.
    """

    use_accumulator: Array
    pred: Array
    barriers: tuple[Array, ...]
    barrier_preds: tuple[Array, ...]


@OPERATIONS.known(
    "ttng.tc_gen5_mma",
    operands=("a", "b", "d", "acc_dep?", "useD", "pred", "barriers*", "barrier_preds*"),
)
def _product(
    run: TensorProgram,
    operation: Operation,
    left: Array,
    right: Array,
    memory: Array,
    _dep: None,
    *arrival: Any,
) -> tuple[None, ...]:
    """Multiply at once, unless it is asynchronous: then its barriers, or those of a commit, say when."""
    if attribute(operation, "is_unsigned") is not None or attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma of unsigned integers, or by two CTAs")

    def product(accumulator: Array) -> Array:
        # The tensor core knows fp32 as tf32 only; the operation has no `inputPrecision`.
        if run.rounds and left.dtype == np.float32:
            return dot(to_tf32(left), to_tf32(right), accumulator)
        return dot(left, right, accumulator)

    _multiply(run, operation, product, (left, right), memory, _Arrival(*arrival))
    return (None,) * len(operation.results)


@OPERATIONS.known(
    "ttng.tc_gen5_mma_scaled",
    operands=(
        "a",
        "b",
        "d",
        "acc_dep?",
        "a_scale",
        "b_scale",
        "useD",
        "pred",
        "barriers*",
        "barrier_preds*",
    ),
)
def _scaled_product(
    run: TensorProgram,
    operation: Operation,
    left: Array,
    right: Array,
    memory: Array,
    _dep: None,
    left_scale: Array,
    right_scale: Array,
    *arrival: Any,
) -> tuple[None, ...]:
    """Multiply with scales, a matrix in tensor memory: a row of scales for each row of an operand."""
    kinds = integer(operation, "a_type"), integer(operation, "b_type")
    if attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma_scaled by two CTAs")

    def product(accumulator: Array) -> Array:
        return tensor_core_product(left, right, accumulator, (left_scale, right_scale), kinds)

    operands = (left, right, left_scale, right_scale)
    _multiply(run, operation, product, operands, memory, _Arrival(*arrival))
    return (None,) * len(operation.results)


def _multiply(
    run: TensorProgram,
    operation: Operation,
    product: Callable[[Array], Array],
    operands: tuple[Array, ...],
    memory: Array,
    arrival: _Arrival,
) -> None:
    """Add a product of operands in memory to memory, or store it; now, or when a barrier says so."""
    # This is checked now, since a late product is computed where its operation could not be named.
    if bool(arrival.pred):
        require_inside(*operands, memory)

    def compute() -> None:
        if bool(arrival.pred):
            memory[...] = product(memory if bool(arrival.use_accumulator) else np.zeros_like(memory))

    # A product without barriers and without `is_async` is waited for by its lowering.
    if attribute(operation, "is_async") is None and not arrival.barriers:
        run.flight.wait_products()
        compute()
        return
    arrivals = zip(arrival.barriers, arrival.barrier_preds, strict=True)
    run.flight.product(compute, [barrier for barrier, pred in arrivals if bool(pred)])


@OPERATIONS.known("ttng.tc_gen5_commit")
def _commit(
    run: TensorProgram, _operation: Operation, barrier: Array, pred: Array | None = None, *descriptors: Any
) -> tuple[()]:
    """Arrive at a barrier after earlier products; operands beyond the predicate belong to a cluster."""
    if descriptors or (pred is not None and pred.dtype != np.bool_):
        raise UnsupportedIrError("ttng.tc_gen5_commit in a cluster")
    if pred is None or bool(pred):
        run.flight.product(lambda: None, [barrier])
    return ()


# Formats and scales follow the OCP Microscaling specification, version 1.0: 32 elements share a scale of
# eight bits, 2 to the power of it less 127; NVIDIA's scales are floats for 16 elements.
_E2M1 = np.asarray([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
_FLOATS: dict[int, np.dtype[Any]] = {  # 3.2 has operands of these formats as integers
    ScaleDotElemType.E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    ScaleDotElemType.E5M2: np.dtype(ml_dtypes.float8_e5m2),
    ScaleDotElemType.BF16: np.dtype(ml_dtypes.bfloat16),
    ScaleDotElemType.FP16: np.dtype(np.float16),
}
_BIAS, _NAN = 127, 255  # of a scale


@OPERATIONS.known("tt.dot_scaled")
def _dot_scaled(_run: TensorProgram, operation: Operation, *values: Array) -> tuple[Array]:
    """Multiply; since 3.3 operands may be omitted by name, and in 3.2 they are in another order."""
    if attribute(operation, "operandSegmentSizes") is None:
        raise UnsupportedIrError("tt.dot_scaled as 3.2 has it")
    names = ("a", "b", "c", "a_scale?", "b_scale?")
    lhs, rhs, accumulator, lhs_scale, rhs_scale = bind(operation, values, names)
    kinds = integer(operation, "a_elem_type"), integer(operation, "b_elem_type")
    left = _elements(lhs, kinds[0], -1 if integer(operation, "lhs_k_pack", 1) else -2)
    right = _elements(rhs, kinds[1], -2 if integer(operation, "rhs_k_pack", 1) else -1)
    # DecomposeScaledBlocked.cpp computes in fp16 if an operand is fp16, else in bf16, and rounds the operands
    # to that type. (Older releases made 0 of the scale 2^-127.)
    compute = np.dtype(np.float16) if ScaleDotElemType.FP16 in kinds else np.dtype(ml_dtypes.bfloat16)
    return (_scaled_dot(left, right, accumulator, (lhs_scale, rhs_scale), compute),)


def tensor_core_product(
    lhs: Array, rhs: Array, accumulator: Array, scales: tuple[Array, Array], kinds: tuple[int, int]
) -> Array:
    """Multiply as Blackwell's tensor cores do: operands are packed along the sum, and not rounded."""
    left, right = _elements(lhs, kinds[0], -1), _elements(rhs, kinds[1], -2)
    return _scaled_dot(left, right, accumulator, scales, np.dtype(np.float32))


def _scaled_dot(
    left: Array,
    right: Array,
    accumulator: Array,
    scales: tuple[Array | None, Array | None],
    compute: np.dtype[Any],
) -> Array:
    scaled = _scaled_elements(left, scales[0], compute)
    # Scales are along the sum, which is the last axis of the left operand, and the last but one of the right.
    transposed = _scaled_elements(np.swapaxes(right, -1, -2), scales[1], compute)
    return dot(scaled, np.swapaxes(transposed, -1, -2), accumulator)


def _elements(value: Array, kind: int, axis: int) -> Array:
    """Return the numbers of an operand; for fp4 each byte holds two along the axis."""
    if kind == ScaleDotElemType.E2M1:
        return unpacked(value, axis)
    if value.dtype.kind != "i":
        return value.astype(np.float32)
    if kind not in _FLOATS or _FLOATS[kind].itemsize != value.dtype.itemsize:
        raise UnsupportedIrError("tt.dot_scaled of another format")
    numbers: Array = np.ascontiguousarray(value).view(_FLOATS[kind]).astype(np.float32)
    return numbers


def unpacked(value: Array, axis: int) -> Array:
    """Return two numbers of fp4 (e2m1) for each byte: the lower four bits are the first one."""
    axis %= value.ndim
    raw = unsigned(value)
    pairs = np.stack((_E2M1[raw & 15], _E2M1[raw >> 4]), axis=axis + 1)
    return pairs.reshape(*value.shape[:axis], 2 * value.shape[axis], *value.shape[axis + 1 :])


def scale_factors(value: Array) -> Array:
    """Return scales as floats, from bits of e8m0 or from floats."""
    if value.dtype.kind != "i":
        return value.astype(np.float32)
    # 2 to the power of bits - 127, and NaN for 255, as OCP's e8m0 has it; there is neither a sign nor a zero.
    bits = unsigned(value).astype(np.int32)
    return np.where(
        bits == _NAN, np.float32(np.nan), np.ldexp(np.float32(1), np.minimum(bits, _NAN - 1) - _BIAS)
    )


def _scaled_elements(value: Array, scale: Array | None, compute: np.dtype[Any]) -> Array:
    """Multiply by the scales along the last axis, which the scales have as well."""
    with np.errstate(all="ignore"):
        if scale is None:
            return value.astype(compute)
        # Whether 32 or 16 elements share a scale follows from the shapes.
        factors = np.repeat(scale_factors(scale), value.shape[-1] // scale.shape[-1], axis=-1)
        product: Array = (value * factors.astype(compute).astype(np.float32)).astype(compute)
        return product


@OPERATIONS.known("ttg.fp4_to_fp")
def _fp4_to_fp(_run: TensorProgram, operation: Operation, value: Array) -> tuple[Array]:
    return (unpacked(value, integer(operation, "axis")).astype(result_type(operation).dtype),)


@OPERATIONS.known("amdg.scaled_upcast_fp4", "amdg.scaled_upcast_fp8")
def _scaled_upcast(run: TensorProgram, operation: Operation, value: Array, scale: Array) -> tuple[Array]:
    """Multiply by a scale for each element: bits of e8m0, or a bf16."""
    target = result_type(operation)
    plain = (
        unpacked(value, integer(operation, "axis")) if run.name.endswith("fp4") else value.astype(np.float32)
    )
    factors = scale_factors(scale)
    if factors.shape != plain.shape:
        raise UnsupportedIrError(f"{run.name} with scales of another shape")
    with np.errstate(all="ignore"):
        return ((plain * factors).astype(target.dtype),)
