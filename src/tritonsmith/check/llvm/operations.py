"""The dialect llvm: its types, its operations and library functions, https://mlir.llvm.org/docs/Dialects/LLVM.

A value is an array over threads, without an axis if all threads have the same; a vector is a tuple of its
lanes, a struct a tuple of its members. A pointer is an address in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from tritonsmith.check import arith
from tritonsmith.check.arith import unsigned
from tritonsmith.check.llvm.threads import ThreadBlock
from tritonsmith.check.module import (
    POINTER,
    Array,
    AtomicBinOp,
    UnsupportedIrError,
    ValueKind,
    ValueType,
    attribute,
    constant,
    element_type,
    integer,
    integers,
    symbol,
    text,
)
from tritonsmith.check.program import Handler, OperationTable, Values
from tritonsmith.core.text import split_outside_brackets


def _fp64(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: np.asarray(function(*(value.astype(np.float64) for value in values))).astype(
        values[0].dtype
    )


_HALF = 0.5  # which `round` takes away from 0

# Functions of libdevice, of AMD's device libraries and of LLVM. They are computed in fp64 and rounded once,
# and so are approximations such as ex2.approx: their last bits differ from GPU to GPU.
_IN_FP64: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "log1p": np.log1p, "expm1": np.expm1, "pow": np.power,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs,
    "rsqrt": lambda value: 1 / np.sqrt(value), "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "ex2.approx": np.exp2, "ex2.approx.ftz": np.exp2, "div.full": np.divide, "sqrt.rn": np.sqrt,
    "div.rn": np.divide, "fma": lambda factor, times, plus: factor * times + plus, "maxnum": np.fmax,
    "minnum": np.fmin, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
    "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign, "log10": np.log10, "cbrt": np.cbrt,
    "exp10": lambda value: np.power(10.0, value), "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "rint": np.rint, "nearbyint": np.rint, "roundeven": np.rint, "fast_exp": np.exp, "fast_log": np.log,
    "fast_log2": np.log2, "fast_log10": np.log10, "fast_sin": np.sin, "fast_cos": np.cos,
    "fast_tan": np.tan, "fast_pow": np.power, "fast_divide": np.divide, "fast_tanh": np.tanh,
    "div.approx": np.divide, "div.approx.ftz": np.divide, "canonicalize": np.positive,
    "round": lambda value: np.trunc(value) + np.copysign(np.abs(value - np.trunc(value)) >= _HALF, value),
}  # fmt: skip
_FUNCTIONS = {name: _fp64(function) for name, function in _IN_FP64.items()}
_PREFIXES = ("__nv_", "__ocml_", "llvm.nvvm.", "llvm.")
_SUFFIXES = ("_f32", "_f64", "_f16", ".f32", ".f64", ".f16", ".f", ".d")


def library_function(name: str) -> Callable[..., Any] | None:
    """Return the function of this name; None if it is not known."""
    # The name without its prefix and type decides, so prefixes are listed: the logarithm of
    # `llvm.amdgcn.log`, for one, has base 2.
    prefix = next((candidate for candidate in _PREFIXES if name.startswith(candidate)), "")
    plain = name.removeprefix(prefix)
    for suffix in _SUFFIXES:
        plain = plain.removesuffix(suffix)
    # libdevice's names for fp32 end in `f`: __nv_expf.
    if prefix == "__nv_" and plain not in _FUNCTIONS:
        plain = plain.removesuffix("f")
    return _FUNCTIONS.get(plain) if prefix else None


# A value of any type: an array over threads, or a tuple of values. The module was verified by MLIR, so an
# operation knows which of them it gets.
Value: TypeAlias = Any


@dataclass(frozen=True)
class LlvmType:
    """A type of LLVM's dialect.

    Attributes:
        dtype: the dtype of a scalar, or of each lane of a vector; void for a struct.
        members: the types of a struct's members; else empty.
        lanes: number of lanes of a vector; else 0.
        space: address space of a pointer; else -1.
    """

    dtype: np.dtype[Any]
    members: tuple[LlvmType, ...] = ()
    lanes: int = 0
    space: int = -1

    @property
    def bytes(self) -> int:
        """The size in memory, in bytes."""
        return sum(member.bytes for member in self.members) or self.dtype.itemsize * max(1, self.lanes)

    @property
    def lane(self) -> ValueType:
        """The type of one lane, as an operation of arith takes it."""
        return ValueType(ValueKind.NUMBER, (), self.dtype)


@lru_cache(maxsize=4096)
def type_of(attr: Attribute | None) -> LlvmType:
    """Return the type of a value."""
    return llvm_type(str(attr))


@lru_cache(maxsize=4096)
def llvm_type(spelling: str) -> LlvmType:
    """Parse a type as it is written.

    Raises:
        UnsupportedIrError: the type is not known.
    """
    spelling = spelling.strip().removeprefix("!llvm.")
    if spelling.startswith("ptr"):
        space = spelling.partition("<")[2].rstrip(">")
        return LlvmType(POINTER, space=int(space or 0))
    if spelling.startswith("struct<("):
        inner = spelling.removeprefix("struct<(").removesuffix(")>")
        return LlvmType(
            np.dtype(np.void), tuple(llvm_type(member) for member in split_outside_brackets(inner, ","))
        )
    if spelling.startswith("vector<"):
        lanes, _, element = spelling.removeprefix("vector<").removesuffix(">").partition("x")
        return LlvmType(llvm_type(element).dtype, lanes=int(lanes))
    return LlvmType(element_type(spelling))


def zero(of: LlvmType) -> Value:
    """Return the value of something undefined: 0."""
    if of.members:
        return tuple(zero(lane) for lane in of.members)
    member = np.zeros((), of.dtype)
    return (member,) * of.lanes if of.lanes else member


def to_bytes(value: Value, threads: int) -> Array:
    """Return a scalar or a vector as an array of threads by bytes."""
    lanes = value if isinstance(value, tuple) else (value,)
    stacked = np.stack([np.broadcast_to(lane, threads) for lane in lanes], axis=-1)
    return np.ascontiguousarray(stacked).view(np.uint8).reshape(threads, -1)


def from_bytes(raw: Array, of: LlvmType) -> Value:
    """Return a scalar or a vector from an array of threads by bytes."""
    # An i1 is a byte in memory, of which only the lowest bit is defined.
    if of.dtype == np.bool_:
        raw = raw & 1
    lanes = np.ascontiguousarray(raw).view(of.dtype)
    if not of.lanes:
        return lanes[:, 0]
    return tuple(lanes[:, number] for number in range(of.lanes))


def merge(mask: Array, new: Value, old: Value) -> Value:
    """Return the new value where the mask is true, else the old one."""
    if isinstance(new, tuple):
        return tuple(merge(mask, new_lane, old_lane) for new_lane, old_lane in zip(new, old, strict=True))
    array: Array = new
    before: Array = old
    return np.where(mask, array, before).astype(array.dtype, copy=False)


THREADED = OperationTable()

_REGISTERS = "llvm.nvvm.read.ptx.sreg."  # older Tritons call the intrinsics
_DYNAMIC = -(1 << 31)  # an index of llvm.getelementptr that is an operand
# Operations that do the same as one of arith or math, on each lane.
_SAME = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "sdiv": "arith.divsi",
    "udiv": "arith.divui", "srem": "arith.remsi", "urem": "arith.remui", "and": "arith.andi",
    "or": "arith.ori", "xor": "arith.xori", "shl": "arith.shli", "lshr": "arith.shrui", "ashr": "arith.shrsi",
    "icmp": "arith.cmpi",
    "fcmp": "arith.cmpf", "fadd": "arith.addf", "fsub": "arith.subf", "fmul": "arith.mulf",
    "fdiv": "arith.divf", "frem": "arith.remf", "fneg": "arith.negf", "sext": "arith.extsi",
    "zext": "arith.extui", "trunc": "arith.trunci", "sitofp": "arith.sitofp", "uitofp": "arith.uitofp",
    "fptosi": "arith.fptosi", "fptoui": "arith.fptoui", "fpext": "arith.extf", "fptrunc": "arith.truncf",
    "intr.smax": "arith.maxsi", "intr.smin": "arith.minsi", "intr.umax": "arith.maxui",
    "intr.umin": "arith.minui", "intr.maxnum": "arith.maxnumf", "intr.minnum": "arith.minnumf",
    "intr.maximum": "arith.maximumf", "intr.minimum": "arith.minimumf", "intr.fabs": "math.absf",
    "intr.floor": "math.floor", "intr.ceil": "math.ceil", "intr.trunc": "math.trunc",
    "intr.roundeven": "math.roundeven", "intr.rint": "math.roundeven", "intr.exp": "math.exp",
    "intr.exp2": "math.exp2", "intr.log": "math.log", "intr.log2": "math.log2", "intr.sqrt": "math.sqrt",
    "intr.sin": "math.sin", "intr.cos": "math.cos", "intr.pow": "math.powf", "intr.fma": "math.fma",
    "intr.fmuladd": "math.fma",
}  # fmt: skip


def result_type(operation: Operation) -> LlvmType:
    """Return the type of the only result."""
    return type_of(operation.results[0].type)


def operand_type(operation: Operation, number: int) -> LlvmType:
    """Return the type of an operand."""
    return type_of(operation.operands[number].type)


def lane_by_lane(plain: str) -> Handler:
    """Return the function of an operation that equals one of arith or math on each lane of a vector."""
    function = arith.OPERATIONS[plain]

    def run(run: ThreadBlock, operation: Operation, *values: Value) -> Values:
        # Some functions of arith distinguish operations by the name of what runs.
        run.name = plain
        if not isinstance(values[0], tuple):
            return function(run, operation, *values)
        return (tuple(function(run, operation, *lanes)[0] for lanes in zip(*values, strict=True)),)

    return run


THREADED.update({f"llvm.{name}": lane_by_lane(plain) for name, plain in _SAME.items()})


@THREADED.known("llvm.mlir.constant")
def _constant(_run: ThreadBlock, operation: Operation) -> tuple[Value]:
    of, value = result_type(operation), attribute(operation, "value")
    if of.members:
        raise UnsupportedIrError(f"a constant {operation.results[0].type}")
    if not of.lanes:
        return (constant(value, of.lane),)
    if not isinstance(value, builtin.DenseIntOrFPElementsAttr):
        raise UnsupportedIrError(f"constant {value}")
    with np.errstate(all="ignore"):
        lanes = [np.asarray(lane).astype(of.dtype) for lane in value.get_values()]
    return (tuple(lanes) if len(lanes) == of.lanes else (lanes[0],) * of.lanes,)


@THREADED.known("llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero")
def _undef(_run: ThreadBlock, operation: Operation) -> tuple[Value]:
    return (zero(result_type(operation)),)


@THREADED.known("llvm.mlir.addressof")
def _addressof(_run: ThreadBlock, operation: Operation) -> tuple[Array]:
    # Triton allocates all shared memory as one global; other globals are strings for `assert`, or tables.
    name = text(attribute(operation, "global_name"))
    if name.strip('@"') != "global_smem":
        raise UnsupportedIrError(f"the global {name}")
    return (np.asarray(np.int64(0)),)


@THREADED.known("llvm.insertvalue")
def _insertvalue(_run: ThreadBlock, operation: Operation, whole: Value, value: Value) -> tuple[Value]:
    return (_replaced(whole, integers(operation, "position"), value),)


def _replaced(whole: Value, path: tuple[int, ...], value: Value) -> Value:
    if not path:
        return value
    first, *rest = path
    return (*whole[:first], _replaced(whole[first], tuple(rest), value), *whole[first + 1 :])


@THREADED.known("llvm.extractvalue")
def _extractvalue(_run: ThreadBlock, operation: Operation, whole: Value) -> tuple[Value]:
    for number in integers(operation, "position"):
        whole = whole[number]
    return (whole,)


@THREADED.known("llvm.insertelement")
def _insertelement(
    _run: ThreadBlock, _operation: Operation, whole: Value, value: Value, at: Array
) -> tuple[Value]:
    return (_replaced(whole, (_lane(at),), value),)


@THREADED.known("llvm.extractelement")
def _extractelement(_run: ThreadBlock, _operation: Operation, whole: Value, at: Array) -> tuple[Value]:
    return (whole[_lane(at)],)


def _lane(at: Array) -> int:
    # A vector is a tuple of lanes here, so its index has to be one number.
    first = int(np.ravel(at)[0])
    if np.ndim(at) and (at != first).any():
        raise UnsupportedIrError("a lane of a vector that is not the same for all threads")
    return first


@THREADED.known("llvm.shufflevector")
def _shufflevector(_run: ThreadBlock, operation: Operation, left: Value, right: Value) -> tuple[Value]:
    # A negative number in the mask is poison: any lane will do.
    lanes = (*left, *right)
    return (tuple(lanes[max(0, number)] for number in integers(operation, "mask")),)


@THREADED.known("llvm.getelementptr")
def _getelementptr(_run: ThreadBlock, operation: Operation, pointer: Array, *dynamic: Array) -> tuple[Array]:
    indices = integers(operation, "rawConstantIndices")
    size = type_of(attribute(operation, "elem_type")).bytes
    if len(indices) != 1:
        raise UnsupportedIrError("llvm.getelementptr with more than one index")
    index = dynamic[0].astype(np.int64) if indices[0] == _DYNAMIC else indices[0]
    return (pointer + index * size,)


@THREADED.known("llvm.select")
def _select(
    _run: ThreadBlock, _operation: Operation, condition: Value, chosen: Value, otherwise: Value
) -> tuple[Value]:
    return (_selected(condition, chosen, otherwise),)


def _selected(condition: Value, chosen: Value, otherwise: Value) -> Value:
    if isinstance(chosen, tuple):
        every = condition if isinstance(condition, tuple) else (condition,) * len(chosen)
        return tuple(map(_selected, every, chosen, otherwise))
    left: Array = chosen
    right: Array = otherwise
    return np.where(condition, left, right).astype(left.dtype, copy=False)


@THREADED.known("llvm.bitcast")
def _bitcast(run: ThreadBlock, operation: Operation, value: Value) -> tuple[Value]:
    before, after = operand_type(operation, 0), result_type(operation)
    # Pointers have one form here, in any address space.
    if before == after or before.space >= 0:
        return (value,)
    if np.bool_ in (before.dtype, after.dtype):
        raise UnsupportedIrError("llvm.bitcast of i1")
    if not before.lanes and not after.lanes:
        return (np.ascontiguousarray(value).view(after.dtype).reshape(np.shape(value)),)
    return (from_bytes(to_bytes(value, run.threads), after),)


@THREADED.known("llvm.ptrtoint", "llvm.inttoptr", "llvm.addrspacecast")
def _address(run: ThreadBlock, operation: Operation, value: Array) -> tuple[Array]:
    if run.name == "llvm.addrspacecast":
        raise UnsupportedIrError(run.name)
    if run.name == "llvm.inttoptr":
        return (unsigned(value).astype(np.int64),)
    return (value.astype(result_type(operation).dtype),)


@THREADED.known("builtin.unrealized_conversion_cast")
def _cast(_run: ThreadBlock, operation: Operation, *values: Value) -> tuple[Value]:
    """Convert between a type of Triton and its lowered one."""
    if len(values) != 1 or len(operation.results) != 1:
        raise UnsupportedIrError("builtin.unrealized_conversion_cast of several values")
    return (values[0],)


@THREADED.known("llvm.load")
def _load(run: ThreadBlock, operation: Operation, pointer: Array) -> tuple[Value]:
    of = result_type(operation)
    raw = run.read(run.space(operand_type(operation, 0).space), pointer, of.bytes)
    return (from_bytes(raw, of),)


@THREADED.known("llvm.store")
def _store(run: ThreadBlock, operation: Operation, value: Value, pointer: Array) -> tuple[()]:
    run.write(run.space(operand_type(operation, 1).space), pointer, to_bytes(value, run.threads))
    return ()


@THREADED.known("llvm.fence", "llvm.intr.assume")
def _nothing(_run: ThreadBlock, _operation: Operation, *_: Any) -> tuple[()]:
    return ()


@THREADED.known("llvm.call", "llvm.call_intrinsic")
def _call(run: ThreadBlock, operation: Operation, *values: Value) -> Values:
    called = attribute(operation, "intrin" if run.name == "llvm.call_intrinsic" else "callee")
    name = symbol(called)
    if name in run.functions and run.functions[name].regions[0].blocks:
        return run.call(name, values)
    if name == "__ockl_get_num_groups":
        return (np.asarray(np.int64(run.grid[_lane(values[0])])),)
    # Older releases call intrinsics where newer ones have operations: the functions are the same.
    if name.startswith(_REGISTERS):
        run.name = name.removeprefix("llvm.")
        if (register := run.operations.get(run.name)) is not None:
            return register(run, operation)
    function = library_function(name)
    # The kind of bfloat16 and the other floats of ml_dtypes is `V` to NumPy.
    if function is None or any(
        isinstance(operand, tuple) or operand.dtype.kind not in "fV" for operand in values
    ):
        raise UnsupportedIrError(f"the function {name}")
    return (function(*values),)


Combine = Callable[[Array, Array], Array]


def _unsigned(function: Combine) -> Combine:
    return lambda before, value: function(unsigned(before), unsigned(value)).view(before.dtype)


UPDATES: dict[AtomicBinOp, Combine] = {
    AtomicBinOp.XCHG: lambda _before, value: value,
    AtomicBinOp.ADD: np.add,
    AtomicBinOp.SUB: np.subtract,
    AtomicBinOp.AND: np.bitwise_and,
    AtomicBinOp.OR: np.bitwise_or,
    AtomicBinOp.XOR: np.bitwise_xor,
    AtomicBinOp.MAX: np.maximum,
    AtomicBinOp.MIN: np.minimum,
    AtomicBinOp.UMAX: _unsigned(np.maximum),
    AtomicBinOp.UMIN: _unsigned(np.minimum),
    AtomicBinOp.FADD: np.add,
    AtomicBinOp.FMAX: np.maximum,
    AtomicBinOp.FMIN: np.minimum,
}


def atomic(
    run: ThreadBlock, pointer: Array, dtype: np.dtype[Any], combine: Combine, predicate: Array | bool = True
) -> Array:
    """Update global memory one thread after another, and return the old values.

    Args:
        run: the block of threads.
        pointer: the address of each thread.
        dtype: the dtype of an element.
        combine: returns the new values, from the old ones and the numbers of the threads.
        predicate: threads that take part, if they are active.
    """
    mask = run.mask & predicate
    at, old = run.spread(pointer), np.zeros(run.threads, dtype)
    chosen = np.flatnonzero(mask)
    # Threads act at once where no two have the same address, as is usual: one by one is slow.
    distinct = np.unique(at[chosen]).size == chosen.size
    groups = [chosen] if distinct else [chosen[i : i + 1] for i in range(chosen.size)]
    for group in groups:
        if group.size:
            before = run.memory.load(at[group], dtype.itemsize).view(dtype)[:, 0]
            old[group] = before
            after = np.ascontiguousarray(combine(before, group).astype(dtype))
            run.memory.store(at[group], after.view(np.uint8).reshape(group.size, -1))
    return old


@THREADED.known("llvm.atomicrmw")
def _atomicrmw(run: ThreadBlock, operation: Operation, pointer: Array, value: Array) -> tuple[Array]:
    number = integer(operation, "bin_op")
    update = UPDATES.get(AtomicBinOp(number))
    if update is None or operand_type(operation, 1).lanes or operand_type(operation, 0).space != 1:
        raise UnsupportedIrError(f"llvm.atomicrmw {number}")
    values = run.spread(value)
    return (atomic(run, pointer, value.dtype, lambda before, group: update(before, values[group])),)


@THREADED.known("llvm.cmpxchg")
def _cmpxchg(
    run: ThreadBlock, operation: Operation, pointer: Array, compared: Array, value: Array
) -> tuple[Value]:
    if operand_type(operation, 0).space != 1:
        raise UnsupportedIrError("llvm.cmpxchg of shared memory")
    expected, values = run.spread(compared), run.spread(value)
    old = atomic(
        run, pointer, value.dtype,
        lambda before, group: np.where(before == expected[group], values[group], before),
    )  # fmt: skip
    return ((old, old == expected),)
