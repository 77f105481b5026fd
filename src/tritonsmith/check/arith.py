"""The dialects arith and math: https://mlir.llvm.org/docs/Dialects/ArithOps, .../MathOps.

Integers wrap. A division by zero, or of the least integer by -1, and a shift by the width or more are
undefined: such lanes are 0 here. Transcendental functions are computed in fp64 and rounded once.

"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.module import ValueType, attribute, constant, integer, known, type_of

Array = np.ndarray[Any, Any]

_SIGNED = 5  # the last signed predicate of arith.cmpi; unsigned ones follow, from "less than" on
_ORDERED, _UNORDERED, _ALWAYS = 7, 14, 15  # predicates of arith.cmpf
_SINGLE = 4  # bytes


def unsigned(value: Array) -> Array:
    """Return the same bits as unsigned integers."""
    if value.dtype == np.bool_:
        return value.astype(np.uint8)
    bits: Array = value.view(value.dtype.str.replace("i", "u"))
    return bits


def _integer(function: Callable[[Array, Array], Array], *, of_unsigned: bool = False) -> Callable[..., Any]:
    def run(_run: Any, _operation: Operation, left: Array, right: Array) -> tuple[Array]:
        dtype = left.dtype
        if dtype == np.bool_:
            left, right = left.astype(np.int8), right.astype(np.int8)
            # A true i1 has the value -1 as a signed integer, and 1 as an unsigned one.
            if not of_unsigned:
                left, right = -left, -right
        elif of_unsigned:
            left, right = unsigned(left), unsigned(right)
        result = function(left, right)
        return ((result & 1).astype(np.bool_) if dtype == np.bool_ else result.astype(dtype),)

    return run


def _guarded(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def divide(dividend: Array, divisor: Array) -> Array:
        undefined = divisor == 0
        if divisor.dtype.kind == "i" and (negated := divisor == -1).any():
            undefined = undefined | (negated & (dividend == np.iinfo(dividend.dtype).min))
        if not undefined.any():  # as nearly always; most divisions are of single numbers, for an index
            return np.asarray(function(dividend, divisor))
        return np.where(
            undefined, 0, function(dividend, np.where(undefined, 1, divisor).astype(divisor.dtype))
        )

    return divide


def _truncated(dividend: Array, divisor: Array) -> Array:
    # NumPy rounds a quotient down, MLIR toward 0: a negative one that is not exact is one too small.
    quotient = dividend // divisor
    rounded: Array = quotient + ((quotient < 0) & (quotient * divisor != dividend))
    return rounded


def _shift(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def shifted(value: Array, amount: Array) -> Array:
        over = (
            unsigned(np.asarray(amount)) >= np.asarray(value).dtype.itemsize * 8
            if amount.dtype.kind == "i"
            else amount >= value.dtype.itemsize * 8
        )
        return np.where(over, 0, function(value, np.where(over, 0, amount).astype(amount.dtype)))

    return shifted


for _name, _function, _unsigned in (
    ("addi", np.add, False),
    ("subi", np.subtract, False),
    ("muli", np.multiply, False),
    ("divsi", _guarded(_truncated), False),
    ("divui", _guarded(np.floor_divide), True),
    ("remsi", _guarded(np.fmod), False),
    ("remui", _guarded(np.remainder), True),
    ("ceildivsi", _guarded(lambda dividend, divisor: -(-dividend // divisor)), False),
    ("ceildivui", _guarded(lambda dividend, divisor: dividend // divisor + (dividend % divisor != 0)), True),
    ("floordivsi", _guarded(np.floor_divide), False),
    ("andi", np.bitwise_and, False),
    ("ori", np.bitwise_or, False),
    ("xori", np.bitwise_xor, False),
    ("shli", _shift(np.left_shift), False),
    ("shrsi", _shift(np.right_shift), False),
    ("shrui", _shift(np.right_shift), True),
    ("maxsi", np.maximum, False),
    ("minsi", np.minimum, False),
    ("maxui", np.maximum, True),
    ("minui", np.minimum, True),
):
    known(f"arith.{_name}")(_integer(_function, of_unsigned=_unsigned))

_COMPARED = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@known("arith.cmpi")
def _cmpi(_run: Any, operation: Operation, left: Array, right: Array) -> tuple[Array]:
    predicate = integer(operation, "predicate")
    if left.dtype == np.bool_:
        left, right = (value.astype(np.int8) * (1 if predicate > _SIGNED else -1) for value in (left, right))
        predicate = predicate - 4 if predicate > _SIGNED else predicate
    if predicate > _SIGNED:
        left, right, predicate = unsigned(left), unsigned(right), predicate - 4
    return (_COMPARED[predicate](left, right),)


def _wide(value: Array) -> Array:
    return value if value.dtype.itemsize >= _SINGLE else value.astype(np.float32)


@known("arith.cmpf")
def _cmpf(_run: Any, operation: Operation, left: Array, right: Array) -> tuple[Array]:
    predicate = integer(operation, "predicate")
    left, right = _wide(left), _wide(right)
    unordered = np.isnan(left) | np.isnan(right)
    if predicate in (0, _ALWAYS):
        return (np.full(left.shape, predicate == _ALWAYS),)
    if predicate in (_ORDERED, _UNORDERED):
        return (~unordered if predicate == _ORDERED else unordered,)
    # Predicates 1 to 6 are ordered, 8 to 13 the same unordered: oeq ogt oge olt ole one.
    order = {1: 0, 2: 4, 3: 5, 4: 2, 5: 3, 6: 1}
    result = _COMPARED[order[(predicate - 1) % 7 + 1]](left, right)
    return (result & ~unordered if predicate < _ORDERED else result | unordered,)


def _float(function: Callable[..., Array]) -> Callable[..., Any]:
    def run(_run: Any, _operation: Operation, *values: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            return (np.asarray(function(*map(_wide, values))).astype(values[0].dtype),)

    return run


def _transcendental(function: Callable[..., Array]) -> Callable[..., Any]:
    def run(_run: Any, _operation: Operation, *values: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            return (
                np.asarray(function(*(value.astype(np.float64) for value in values))).astype(values[0].dtype),
            )

    return run


_ROUNDED: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("arith.addf", np.add),
    ("arith.subf", np.subtract),
    ("arith.mulf", np.multiply),
    ("arith.divf", np.divide),
    ("arith.remf", np.fmod),
    ("arith.negf", np.negative),
    ("arith.maxnumf", np.fmax),
    ("arith.minnumf", np.fmin),
    ("arith.maximumf", np.maximum),
    ("arith.minimumf", np.minimum),
    ("math.absf", np.abs),
    ("math.floor", np.floor),
    ("math.ceil", np.ceil),
    ("math.trunc", np.trunc),
    ("math.roundeven", np.rint),
    ("tt.precise_divf", np.divide),
    ("tt.approx_divf", np.divide),  # two units in the last place: div.full.f32
)
for _name, _function in _ROUNDED:
    known(_name)(_float(_function))
_FUNCTIONS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("math.exp", np.exp),
    ("math.exp2", np.exp2),
    ("math.log", np.log),
    ("math.log2", np.log2),
    ("math.sqrt", np.sqrt),
    ("math.rsqrt", lambda value: 1 / np.sqrt(value)),
    ("math.sin", np.sin),
    ("math.cos", np.cos),
    ("math.tanh", np.tanh),
    ("math.erf", np.vectorize(math.erf, otypes=[np.float64])),
    ("math.powf", np.power),
    ("math.fma", lambda factor, times, plus: factor * times + plus),
    ("tt.precise_sqrt", np.sqrt),
)
for _name, _function in _FUNCTIONS:
    known(_name)(_transcendental(_function))


@known("math.absi")
def _absi(_run: Any, _operation: Operation, value: Array) -> tuple[Array]:
    return (np.abs(value),)


@known("arith.constant")
def _constant(_run: Any, operation: Operation) -> tuple[Array]:
    return (constant(attribute(operation, "value"), type_of(operation.results[0].type)),)


@known("arith.select")
def _select(_run: Any, _operation: Operation, condition: Array, chosen: Any, otherwise: Any) -> tuple[Any]:
    if not isinstance(chosen, np.ndarray):
        return (chosen if condition else otherwise,)
    return (np.where(condition, chosen, otherwise).astype(chosen.dtype),)


@lru_cache(maxsize=4096)  # by the operation, which is itself: types are compared part by part
def wanted(operation: Operation) -> ValueType:
    """Return the type of an operation's only result."""
    return type_of(operation.results[0].type)


@known("arith.extsi", "arith.trunci", "arith.index_cast", "arith.extui", "arith.index_castui")
def _resized(run: Any, operation: Operation, value: Array) -> tuple[Array]:
    dtype, of = wanted(operation).dtype, run.name
    if value.dtype == np.bool_:
        value = value.astype(np.int8) * (-1 if of in ("arith.extsi", "arith.index_cast") else 1)
    elif of in ("arith.extui", "arith.index_castui"):
        value = unsigned(value)
    return ((value & 1).astype(np.bool_) if dtype == np.bool_ else value.astype(dtype),)


@known("arith.sitofp", "arith.uitofp")
def _to_float(run: Any, operation: Operation, value: Array) -> tuple[Array]:
    if value.dtype == np.bool_:
        value = value.astype(np.int8) * (-1 if run.name == "arith.sitofp" else 1)
    elif run.name == "arith.uitofp":
        value = unsigned(value)
    return (value.astype(np.float64).astype(wanted(operation).dtype),)


@known("arith.fptosi", "arith.fptoui")
def _to_integer(run: Any, operation: Operation, value: Array) -> tuple[Array]:
    """Convert to an integer; an out-of-range value is poison, 0 here."""
    dtype = np.dtype(np.int8) if wanted(operation).dtype == np.bool_ else wanted(operation).dtype
    with np.errstate(all="ignore"):
        plain = np.trunc(value.astype(np.float64))
        bits, signed = 8 * dtype.itemsize, run.name == "arith.fptosi"
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        inside = (plain >= low) & (plain < high)
        return (np.where(inside, plain, 0).astype(np.int64).astype(wanted(operation).dtype),)


@known("arith.truncf", "arith.extf", "tt.fp_to_fp")
def _to_other_float(_run: Any, operation: Operation, value: Array) -> tuple[Array]:
    with np.errstate(all="ignore"):
        return (
            value.astype(np.float32 if value.dtype.itemsize < _SINGLE else value.dtype).astype(
                wanted(operation).dtype
            ),
        )


@known("arith.bitcast", "tt.bitcast")
def _bitcast(_run: Any, operation: Operation, value: Array) -> tuple[Array]:
    target = wanted(operation)
    if target.kind == "pointer":
        return (value,)
    return (np.ascontiguousarray(value).view(target.dtype).reshape(value.shape),)
