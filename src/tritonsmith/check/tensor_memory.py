"""Model Blackwell's tensor memory, by TritonNvidiaGPUOps.td, as an array like shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned, wanted
from tritonsmith.check.gpu import part_of
from tritonsmith.check.in_flight import require_inside, unwritten
from tritonsmith.check.module import UnsupportedIrError, attribute, integer, integers, known, type_of
from tritonsmith.check.triton import dot, segments, to_tf32

Array = np.ndarray[Any, Any]


@known("ttng.tmem_alloc")
def _alloc(run: Any, operation: Operation, *values: Array) -> tuple[Any, ...]:
    allocated = type_of(operation.results[0].type)
    new = (
        np.array(values[0]).reshape(allocated.shape)
        if values
        else unwritten(allocated.shape, allocated.dtype)
    )
    return run.flight.allocated(operation, new), *_tokens(operation)


def _tokens(operation: Operation) -> tuple[None, ...]:
    """Return None for each result but the first."""
    return (None,) * (len(operation.results) - 1)


@known("ttng.tmem_load")
def _load(_run: Any, operation: Operation, memory: Array, *_token: Any) -> tuple[Any, ...]:
    if integers(operation, "resultSegmentSizes")[2:] == (1,):
        raise UnsupportedIrError("ttng.tmem_load that reduces")
    return np.array(memory), *_tokens(operation)


@known("ttng.tmem_store")
def _store(_run: Any, operation: Operation, memory: Array, *values: Any) -> tuple[None, ...]:
    *_token, value, pred = values
    if bool(pred):
        memory[...] = value.reshape(memory.shape)
    return (None,) * len(operation.results)


@known("ttng.tmem_subslice")
def _subslice(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    """Return a range of columns that begins at N."""
    columns = type_of(operation.results[0].type).shape[-1]
    starts = (*(0 for _ in memory.shape[1:]), integer(operation, "N"))
    return (part_of(operation, memory, starts, (*memory.shape[:-1], columns)),)


@known("ttng.tc_gen5_mma")
def _product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Multiply at once, unless it is asynchronous: then its barriers, or those of a commit, say when."""
    lhs, rhs, memory, _, use, pred, barriers, preds = segments(operation, values)
    if attribute(operation, "is_unsigned") is not None or attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma of unsigned integers, or by two CTAs")

    left, right = lhs[0], rhs[0]

    def product(start: Array) -> Array:  # of fp32 it knows no other precision than tf32
        single = run.rounds and left.dtype == np.float32
        return dot(to_tf32(left) if single else left, to_tf32(right) if single else right, start)

    _multiply(run, operation, product, (left, right), memory[0], (use, pred), (barriers, preds))
    return (None,) * len(operation.results)


@known("ttng.tc_gen5_mma_scaled")
def _scaled_product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Multiply with scales, a matrix in tensor memory: a row of scales for each row of an operand."""
    (lhs,), (rhs,), (memory,), _, *scales, use, pred, barriers, preds = segments(operation, values)
    kinds = integer(operation, "a_type"), integer(operation, "b_type")
    if attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma_scaled by two CTAs")

    def product(start: Array) -> Array:
        return tensor_core_product(lhs, rhs, start, (scales[0][0], scales[1][0]), kinds)

    _multiply(
        run,
        operation,
        product,
        (lhs, rhs, *(part[0] for part in scales)),
        memory,
        (use, pred),
        (barriers, preds),
    )
    return (None,) * len(operation.results)


def _multiply(
    run: Any,
    operation: Operation,
    product: Callable[[Array], Array],
    operands: tuple[Any, ...],
    memory: Array,
    flags: tuple[Any, Any],
    arrivals: tuple[Any, Any],
) -> None:
    """Add a product of operands in memory to memory, or store it; now, or when a barrier says so."""
    (use,), (pred,) = flags
    if bool(pred):
        require_inside(*operands, memory)

    def compute() -> None:
        if bool(pred):
            memory[...] = product(memory if bool(use) else np.zeros_like(memory))

    if attribute(operation, "is_async") is None and not arrivals[0]:
        run.flight.wait_products()
        compute()
    else:
        run.flight.product(compute, [barrier for barrier, when in zip(*arrivals, strict=True) if bool(when)])


@known("ttng.tc_gen5_commit")
def _commit(run: Any, _operation: Operation, barrier: Array, *pred: Array) -> tuple[()]:
    """Arrive at a barrier after earlier products; operands beyond the predicate belong to a cluster."""
    if len(pred) > 1 or (pred and pred[0].dtype != np.bool_):
        raise UnsupportedIrError("ttng.tc_gen5_commit in a cluster")
    if not pred or bool(pred[0]):
        run.flight.product(lambda: None, [barrier])
    return ()


# Products of blocks with scales, and the operations that passes make of them: the .td of tt, ttg and amdg.
#
# Formats and scales follow the OCP Microscaling specification, version 1.0: 32 elements share a scale of
# eight bits, 2 to the power of it less 127; NVIDIA's scales are floats for 16 elements. Operands are
# rounded to the type that DecomposeScaledBlocked.cpp computes in, bf16 or fp16; older releases made 0 of
# the scale 2^-127.

_E2M1 = np.asarray([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
_FP4, _FP16 = 4, 6  # of ScaleDotElemType
_FLOATS: dict[int, Any] = {  # by the same: what bits in integers are, as 3.2 has them
    0: np.dtype(ml_dtypes.float8_e4m3fn),
    1: np.dtype(ml_dtypes.float8_e5m2),
    5: np.dtype(ml_dtypes.bfloat16),
    6: np.dtype(np.float16),
}
_BF16 = np.dtype(ml_dtypes.bfloat16)
_BIAS, _NAN = 127, 255  # of a scale


@known("tt.dot_scaled")
def _dot_scaled(_run: Any, operation: Operation, *values: Array) -> tuple[Array]:
    """Multiply; since 3.3 operands may be omitted by name, and in 3.2 they are in another order."""
    if not (parts := segments(operation, values)):
        raise UnsupportedIrError("tt.dot_scaled as 3.2 has it")
    (lhs,), (rhs,), (accumulator,), lhs_scale, rhs_scale = parts
    kinds = integer(operation, "a_elem_type"), integer(operation, "b_elem_type")
    packed = integer(operation, "lhs_k_pack", 1), integer(operation, "rhs_k_pack", 1)
    compute = np.dtype(np.float16) if _FP16 in kinds else _BF16
    left = _elements(lhs, kinds[0], -1 if packed[0] else -2)
    right = _elements(rhs, kinds[1], -2 if packed[1] else -1)
    return (_scaled_dot(left, right, accumulator, lhs_scale, rhs_scale, compute),)


def tensor_core_product(
    lhs: Array, rhs: Array, accumulator: Array, scale: tuple[Array, ...], kinds: tuple[int, int]
) -> Array:
    """Multiply as Blackwell's tensor cores do: operands are packed along the sum, and not rounded."""
    left, right = _elements(lhs, kinds[0], -1), _elements(rhs, kinds[1], -2)
    return _scaled_dot(left, right, accumulator, scale[:1], scale[1:], np.dtype(np.float32))


def _scaled_dot(
    left: Array,
    right: Array,
    accumulator: Array,
    left_scale: tuple[Array, ...],
    right_scale: tuple[Array, ...],
    compute: Any,
) -> Array:
    right = np.swapaxes(_scaled_elements(np.swapaxes(right, -1, -2), right_scale, compute), -1, -2)
    return dot(_scaled_elements(left, left_scale, compute), right, accumulator)


def _elements(value: Array, kind: int, axis: int) -> Array:
    """Return the numbers of an operand; for fp4 each byte holds two along the axis."""
    if kind == _FP4:
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


def scales(value: Array) -> Array:
    """Return scales as floats, from bits of e8m0 or from floats."""
    if value.dtype.kind != "i":
        return value.astype(np.float32)
    bits = unsigned(value).astype(np.int32)
    return np.where(
        bits == _NAN, np.float32(np.nan), np.ldexp(np.float32(1), np.minimum(bits, _NAN - 1) - _BIAS)
    )


def _scaled_elements(value: Array, scale: tuple[Array, ...], compute: Any) -> Array:
    """Multiply by the scales along the last axis, which the scales have as well."""
    with np.errstate(all="ignore"):
        if not scale:
            return value.astype(compute)
        factors = np.repeat(scales(scale[0]), value.shape[-1] // scale[0].shape[-1], axis=-1)
        product: Array = (value * factors.astype(compute).astype(np.float32)).astype(compute)
        return product


@known("ttg.fp4_to_fp")
def _fp4_to_fp(_run: Any, operation: Operation, value: Array) -> tuple[Array]:
    return (unpacked(value, integer(operation, "axis")).astype(wanted(operation).dtype),)


@known("amdg.scaled_upcast_fp4", "amdg.scaled_upcast_fp8")
def _scaled_upcast(run: Any, operation: Operation, value: Array, scale: Array) -> tuple[Array]:
    """Multiply by a scale for each element: bits of e8m0, or a bf16."""
    target = wanted(operation)
    plain = (
        unpacked(value, integer(operation, "axis")) if run.name.endswith("fp4") else value.astype(np.float32)
    )
    factors = scales(scale)
    if factors.shape != plain.shape:
        raise UnsupportedIrError(f"{run.name} with scales of another shape")
    with np.errstate(all="ignore"):
        return ((plain * factors).astype(target.dtype),)
