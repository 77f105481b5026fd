"""Products of blocks with scales, and the operations that passes make of them: the .td of tt, ttg and amdg.

Formats and scales follow the OCP Microscaling specification, version 1.0: 32 elements share a scale of eight
bits, 2 to the power of it less 127; NVIDIA's scales are floats for 16 elements. Operands are rounded to the
type that DecomposeScaledBlocked.cpp computes in, bf16 or fp16; older releases made 0 of the scale 2^-127.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned, wanted
from tritonsmith.check.module import UnsupportedIrError, integer
from tritonsmith.check.registry import known
from tritonsmith.check.triton import dot, segments

Array = np.ndarray[Any, Any]

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
    return (_product(left, right, accumulator, lhs_scale, rhs_scale, compute),)


def tensor_core_product(
    lhs: Array, rhs: Array, accumulator: Array, scale: tuple[Array, ...], kinds: tuple[int, int]
) -> Array:
    """Multiply as Blackwell's tensor cores do: operands are packed along the sum, and not rounded."""
    left, right = _elements(lhs, kinds[0], -1), _elements(rhs, kinds[1], -2)
    return _product(left, right, accumulator, scale[:1], scale[1:], np.dtype(np.float32))


def _product(
    left: Array,
    right: Array,
    accumulator: Array,
    left_scale: tuple[Array, ...],
    right_scale: tuple[Array, ...],
    compute: Any,
) -> Array:
    right = np.swapaxes(_scaled(np.swapaxes(right, -1, -2), right_scale, compute), -1, -2)
    return dot(_scaled(left, left_scale, compute), right, accumulator)


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


def _scaled(value: Array, scale: tuple[Array, ...], compute: Any) -> Array:
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
