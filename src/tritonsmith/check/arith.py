"""The dialects arith and math: https://mlir.llvm.org/docs/Dialects/ArithOps, .../MathOps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.memory import BlockPointer, TensorDescriptor
from tritonsmith.check.module import (
    Array,
    CmpFPredicate,
    CmpIPredicate,
    ValueKind,
    attribute,
    constant,
    integer,
    result_type,
)
from tritonsmith.check.program import AnyRun, Handler, OperationTable

OPERATIONS = OperationTable()

Selectable: TypeAlias = Array | TensorDescriptor | BlockPointer

_SINGLE = 4  # bytes of fp32


def unsigned(value: Array) -> Array:
    """Return the same bits as unsigned integers."""
    if value.dtype == np.bool_:
        return value.astype(np.uint8)
    bits: Array = value.view(value.dtype.str.replace("i", "u"))
    return bits


def _integer(function: Callable[[Array, Array], Array], *, of_unsigned: bool = False) -> Handler:
    def run(_run: AnyRun, _operation: Operation, left: Array, right: Array) -> tuple[Array]:
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
    # A division by zero, or of the least integer by -1, is undefined: such lanes are 0. NumPy would warn, and
    # return values that depend on the machine.
    def divide(dividend: Array, divisor: Array) -> Array:
        undefined = divisor == 0
        if divisor.dtype.kind == "i" and (negated := divisor == -1).any():
            undefined = undefined | (negated & (dividend == np.iinfo(dividend.dtype).min))
        # Nearly always: most divisions are of single numbers, for an index.
        if not undefined.any():
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
    # A shift by the width or more is undefined: 0 here. NumPy does what the processor does.
    def shifted(value: Array, amount: Array) -> Array:
        amount = np.asarray(amount)
        plain = unsigned(amount) if amount.dtype.kind == "i" else amount  # a negative amount is a large one
        over = plain >= np.asarray(value).dtype.itemsize * 8
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
    OPERATIONS.known(f"arith.{_name}")(_integer(_function, of_unsigned=_unsigned))

_COMPARISONS: dict[CmpIPredicate, Callable[[Array, Array], Array]] = {
    CmpIPredicate.EQ: np.equal,
    CmpIPredicate.NE: np.not_equal,
    CmpIPredicate.SLT: np.less,
    CmpIPredicate.SLE: np.less_equal,
    CmpIPredicate.SGT: np.greater,
    CmpIPredicate.SGE: np.greater_equal,
    CmpIPredicate.ULT: np.less,
    CmpIPredicate.ULE: np.less_equal,
    CmpIPredicate.UGT: np.greater,
    CmpIPredicate.UGE: np.greater_equal,
}
_FLOAT_COMPARISONS: dict[CmpFPredicate, Callable[[Array, Array], Array]] = {
    CmpFPredicate.OEQ: np.equal,
    CmpFPredicate.OGT: np.greater,
    CmpFPredicate.OGE: np.greater_equal,
    CmpFPredicate.OLT: np.less,
    CmpFPredicate.OLE: np.less_equal,
    CmpFPredicate.ONE: np.not_equal,
    CmpFPredicate.UEQ: np.equal,
    CmpFPredicate.UGT: np.greater,
    CmpFPredicate.UGE: np.greater_equal,
    CmpFPredicate.ULT: np.less,
    CmpFPredicate.ULE: np.less_equal,
    CmpFPredicate.UNE: np.not_equal,
}


@OPERATIONS.known("arith.cmpi")
def _cmpi(_run: AnyRun, operation: Operation, left: Array, right: Array) -> tuple[Array]:
    predicate = CmpIPredicate(integer(operation, "predicate"))
    of_unsigned = predicate >= CmpIPredicate.ULT
    if left.dtype == np.bool_:  # a true i1 is -1 if it is signed
        sign = 1 if of_unsigned else -1
        left, right = left.astype(np.int8) * sign, right.astype(np.int8) * sign
    elif of_unsigned:
        left, right = unsigned(left), unsigned(right)
    return (_COMPARISONS[predicate](left, right),)


def _wide(value: Array) -> Array:
    """Return floats as fp32 at least."""
    # NumPy and ml_dtypes round narrower ones after each step of a function, not once at its end.
    return value if value.dtype.itemsize >= _SINGLE else value.astype(np.float32)


@OPERATIONS.known("arith.cmpf")
def _cmpf(_run: AnyRun, operation: Operation, left: Array, right: Array) -> tuple[Array]:
    predicate = CmpFPredicate(integer(operation, "predicate"))
    left, right = _wide(left), _wide(right)
    if predicate in (CmpFPredicate.FALSE, CmpFPredicate.TRUE):
        return (np.full(left.shape, predicate is CmpFPredicate.TRUE),)
    unordered = np.isnan(left) | np.isnan(right)
    if predicate is CmpFPredicate.ORD:
        return (~unordered,)
    if predicate is CmpFPredicate.UNO:
        return (unordered,)
    result = _FLOAT_COMPARISONS[predicate](left, right)
    return (result & ~unordered if predicate < CmpFPredicate.ORD else result | unordered,)


def _float(function: Callable[..., Array]) -> Handler:
    def run(_run: AnyRun, _operation: Operation, *values: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            return (np.asarray(function(*map(_wide, values))).astype(values[0].dtype),)

    return run


def _transcendental(function: Callable[..., Array]) -> Handler:
    # In fp64 and rounded once: GPUs approximate these, each in its own way, and this is between all of them.
    def run(_run: AnyRun, _operation: Operation, *values: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(value.astype(np.float64) for value in values)))
            return (result.astype(values[0].dtype),)

    return run


_ROUNDED: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("arith.addf", np.add),
    ("arith.subf", np.subtract),
    ("arith.mulf", np.multiply),
    ("arith.divf", np.divide),
    ("arith.remf", np.fmod),
    ("arith.negf", np.negative),
    # These two drop NaN, and the next two keep it.
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
    OPERATIONS.known(_name)(_float(_function))
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
    # NumPy has no erf.
    ("math.erf", np.vectorize(math.erf, otypes=[np.float64])),
    ("math.powf", np.power),
    # The product of two fp32 numbers is exact in fp64: as in an fma, only the sum is rounded.
    ("math.fma", lambda factor, times, plus: factor * times + plus),
    ("tt.precise_sqrt", np.sqrt),
)
for _name, _function in _FUNCTIONS:
    OPERATIONS.known(_name)(_transcendental(_function))


@OPERATIONS.known("math.absi")
def _absi(_run: AnyRun, _operation: Operation, value: Array) -> tuple[Array]:
    return (np.abs(value),)


@OPERATIONS.known("arith.constant")
def _constant(_run: AnyRun, operation: Operation) -> tuple[Array]:
    return (_value_of(operation),)


# A loop's body may have constants, and a text runs dozens of times. Values are never written to.
@lru_cache(maxsize=4096)
def _value_of(operation: Operation) -> Array:
    return constant(attribute(operation, "value"), result_type(operation))


@OPERATIONS.known("arith.select")
def _select(
    _run: AnyRun, _operation: Operation, condition: Array, chosen: Selectable, otherwise: Selectable
) -> tuple[Selectable]:
    # `np.where` would make an array of objects out of descriptors.
    if not isinstance(chosen, np.ndarray) or not isinstance(otherwise, np.ndarray):
        return (chosen if condition else otherwise,)
    return (np.where(condition, chosen, otherwise).astype(chosen.dtype),)


@OPERATIONS.known("arith.extsi", "arith.trunci", "arith.index_cast", "arith.extui", "arith.index_castui")
def _resized(run: AnyRun, operation: Operation, value: Array) -> tuple[Array]:
    dtype, of = result_type(operation).dtype, run.name
    if value.dtype == np.bool_:
        # A true i1 is -1 if it is extended with its sign.
        value = value.astype(np.int8) * (-1 if of in ("arith.extsi", "arith.index_cast") else 1)
    elif of in ("arith.extui", "arith.index_castui"):
        value = unsigned(value)
    return ((value & 1).astype(np.bool_) if dtype == np.bool_ else value.astype(dtype),)


@OPERATIONS.known("arith.sitofp", "arith.uitofp")
def _to_float(run: AnyRun, operation: Operation, value: Array) -> tuple[Array]:
    if value.dtype == np.bool_:
        value = value.astype(np.int8) * (-1 if run.name == "arith.sitofp" else 1)
    elif run.name == "arith.uitofp":
        value = unsigned(value)
    return (value.astype(np.float64).astype(result_type(operation).dtype),)


@OPERATIONS.known("arith.fptosi", "arith.fptoui")
def _to_integer(run: AnyRun, operation: Operation, value: Array) -> tuple[Array]:
    """Convert to an integer; an out-of-range value is poison, 0 here."""
    target = result_type(operation).dtype
    dtype = np.dtype(np.int8) if target == np.bool_ else target
    with np.errstate(all="ignore"):
        plain = np.trunc(value.astype(np.float64))
        bits, signed = 8 * dtype.itemsize, run.name == "arith.fptosi"
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        inside = (plain >= low) & (plain < high)
        return (np.where(inside, plain, 0).astype(np.int64).astype(target),)


@OPERATIONS.known("arith.truncf", "arith.extf", "tt.fp_to_fp")
def _to_other_float(_run: AnyRun, operation: Operation, value: Array) -> tuple[Array]:
    with np.errstate(all="ignore"):
        return (_wide(value).astype(result_type(operation).dtype),)


@OPERATIONS.known("arith.bitcast", "tt.bitcast")
def _bitcast(_run: AnyRun, operation: Operation, value: Array) -> tuple[Array]:
    target = result_type(operation)
    if target.kind is ValueKind.POINTER:
        return (value,)
    return (np.ascontiguousarray(value).view(target.dtype).reshape(value.shape),)
