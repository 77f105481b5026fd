"""The dialect llvm: https://mlir.llvm.org/docs/Dialects/LLVM. Its arithmetic is that of arith and math."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned
from tritonsmith.check.llvm.library import library_function
from tritonsmith.check.llvm.types import LlvmType, from_bytes, to_bytes, type_of, zero
from tritonsmith.check.module import (
    OPERATIONS,
    THREADED,
    UnsupportedIrError,
    attribute,
    constant,
    integer,
    integers,
    text,
    threaded,
)

Array = np.ndarray[Any, Any]

_REGISTERS = "llvm.nvvm.read.ptx.sreg."  # older Tritons call the intrinsics
_DYNAMIC = -(1 << 31)  # an index of llvm.getelementptr that is an operand
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


def same_as(name: str, plain: str) -> None:
    """Register an operation that equals one of arith or math, lane by lane."""

    def run(run: Any, operation: Operation, *values: Any) -> tuple[Any]:
        run.name = plain
        function = OPERATIONS[plain]
        if not isinstance(values[0], tuple):
            return (function(run, operation, *values)[0],)
        return (tuple(function(run, operation, *lanes)[0] for lanes in zip(*values, strict=True)),)

    threaded(name)(run)


for _name, _plain in _SAME.items():
    same_as(f"llvm.{_name}", _plain)


@threaded("llvm.mlir.constant")
def _constant(_run: Any, operation: Operation) -> tuple[Any]:
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


@threaded("llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero")
def _undef(_run: Any, operation: Operation) -> tuple[Any]:
    return (zero(result_type(operation)),)


@threaded("llvm.mlir.addressof")
def _addressof(_run: Any, operation: Operation) -> tuple[Array]:
    name = text(attribute(operation, "global_name"))
    if name.strip('@"') != "global_smem":
        raise UnsupportedIrError(f"the global {name}")
    return (np.asarray(np.int64(0)),)


@threaded("llvm.insertvalue")
def _insertvalue(_run: Any, operation: Operation, whole: Any, value: Any) -> tuple[Any]:
    return (_replaced(whole, integers(operation, "position"), value),)


def _replaced(whole: tuple[Any, ...], path: tuple[int, ...], value: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    return (*whole[:first], _replaced(whole[first], tuple(rest), value), *whole[first + 1 :])


@threaded("llvm.extractvalue")
def _extractvalue(_run: Any, operation: Operation, whole: Any) -> tuple[Any]:
    for number in integers(operation, "position"):
        whole = whole[number]
    return (whole,)


@threaded("llvm.insertelement")
def _insertelement(_run: Any, _operation: Operation, whole: Any, value: Any, at: Array) -> tuple[Any]:
    return (_replaced(whole, (_lane(at),), value),)


@threaded("llvm.extractelement")
def _extractelement(_run: Any, _operation: Operation, whole: Any, at: Array) -> tuple[Any]:
    return (whole[_lane(at)],)


def _lane(at: Array) -> int:
    first = int(np.ravel(at)[0])
    if np.ndim(at) and (at != first).any():
        raise UnsupportedIrError("a lane of a vector that is not the same for all threads")
    return first


@threaded("llvm.shufflevector")
def _shufflevector(_run: Any, operation: Operation, left: Any, right: Any) -> tuple[Any]:
    lanes = (*left, *right)
    return (tuple(lanes[max(0, number)] for number in integers(operation, "mask")),)


@threaded("llvm.getelementptr")
def _getelementptr(_run: Any, operation: Operation, pointer: Array, *dynamic: Array) -> tuple[Array]:
    indices = integers(operation, "rawConstantIndices")
    size = type_of(attribute(operation, "elem_type")).bytes
    if len(indices) != 1:
        raise UnsupportedIrError("llvm.getelementptr with more than one index")
    index = dynamic[0].astype(np.int64) if indices[0] == _DYNAMIC else indices[0]
    return (pointer + index * size,)


@threaded("llvm.select")
def _select(_run: Any, _operation: Operation, condition: Any, chosen: Any, otherwise: Any) -> tuple[Any]:
    return (_selected(condition, chosen, otherwise),)


def _selected(condition: Any, chosen: Any, otherwise: Any) -> Any:
    if isinstance(chosen, tuple):
        every = condition if isinstance(condition, tuple) else (condition,) * len(chosen)
        return tuple(map(_selected, every, chosen, otherwise))
    return np.where(condition, chosen, otherwise).astype(chosen.dtype, copy=False)


@threaded("llvm.bitcast")
def _bitcast(run: Any, operation: Operation, value: Any) -> tuple[Any]:
    before, after = operand_type(operation, 0), result_type(operation)
    if before == after or before.space >= 0:
        return (value,)
    if np.bool_ in (before.dtype, after.dtype):
        raise UnsupportedIrError("llvm.bitcast of i1")
    if not before.lanes and not after.lanes:
        return (np.ascontiguousarray(value).view(after.dtype).reshape(np.shape(value)),)
    return (from_bytes(to_bytes(value, run.threads), after),)


@threaded("llvm.ptrtoint", "llvm.inttoptr", "llvm.addrspacecast")
def _address(run: Any, operation: Operation, value: Array) -> tuple[Array]:
    if run.name == "llvm.addrspacecast":
        raise UnsupportedIrError(run.name)
    if run.name == "llvm.inttoptr":
        return (unsigned(value).astype(np.int64),)
    return (value.astype(result_type(operation).dtype),)


@threaded("builtin.unrealized_conversion_cast")
def _cast(_run: Any, operation: Operation, *values: Any) -> tuple[Any]:
    """Convert between a type of Triton and its lowered one."""
    if len(values) != 1 or len(operation.results) != 1:
        raise UnsupportedIrError("builtin.unrealized_conversion_cast of several values")
    return (values[0],)


@threaded("llvm.load")
def _load(run: Any, operation: Operation, pointer: Array) -> tuple[Any]:
    of = result_type(operation)
    raw = run.read(run.space(operand_type(operation, 0).space), pointer, of.bytes)
    return (from_bytes(raw, of),)


@threaded("llvm.store")
def _store(run: Any, operation: Operation, value: Any, pointer: Array) -> tuple[()]:
    run.write(run.space(operand_type(operation, 1).space), pointer, to_bytes(value, run.threads))
    return ()


@threaded("llvm.fence", "llvm.intr.assume")
def _nothing(_run: Any, _operation: Operation, *_: Any) -> tuple[()]:
    return ()


@threaded("llvm.call", "llvm.call_intrinsic")
def _call(run: Any, operation: Operation, *values: Any) -> tuple[Any, ...]:
    called: Any = attribute(operation, "intrin" if run.name == "llvm.call_intrinsic" else "callee")
    name = (
        called.root_reference.data if isinstance(called, builtin.SymbolRefAttr) else text(called).strip('"')
    )
    if name in run.functions and run.functions[name].regions[0].blocks:
        results: tuple[Any, ...] = run.call(name, values)
        return results
    if name == "__ockl_get_num_groups":
        return (np.asarray(np.int64(run.grid[_lane(values[0])])),)
    if name.startswith(_REGISTERS):
        run.name = name.removeprefix("llvm.")
        if (register := THREADED.get(run.name)) is not None:
            value: tuple[Any, ...] = register(run, operation)
            return value
    function = library_function(name)
    if function is None or any(
        isinstance(operand, tuple) or operand.dtype.kind not in "fV" for operand in values
    ):
        raise UnsupportedIrError(f"the function {name}")
    return (function(*values),)


# Atomic operations on global memory, one thread after another.

Combine = Callable[[Array, Array], Array]

ATOMICS: dict[str, Combine] = {
    "xchg": lambda _old, value: value, "add": np.add, "sub": np.subtract, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
# AtomicBinOp of LLVM's dialect, by number.
_BIN_OPS = {0: "xchg", 1: "add", 2: "sub", 3: "and", 5: "or", 6: "xor", 7: "max", 8: "min", 9: "umax",
            10: "umin", 11: "add", 13: "max", 14: "min"}  # fmt: skip


def atomic(run: Any, pointer: Array, dtype: Any, combine: Combine, wanted: Any = True) -> Array:
    """Update global memory one thread after another, and return the old values."""
    mask = run.mask & wanted
    at, old = run.spread(pointer), np.zeros(run.threads, dtype)
    chosen = np.flatnonzero(mask)
    groups = (
        [chosen]
        if np.unique(at[chosen]).size == chosen.size
        else [chosen[i : i + 1] for i in range(chosen.size)]
    )
    for group in groups:
        if group.size:
            before = run.memory.load(at[group], dtype.itemsize).view(dtype)[:, 0]
            old[group] = before
            after = np.ascontiguousarray(combine(before, group).astype(dtype))
            run.memory.store(at[group], after.view(np.uint8).reshape(group.size, -1))
    return old


@threaded("llvm.atomicrmw")
def _atomicrmw(run: Any, operation: Operation, pointer: Array, value: Array) -> tuple[Array]:
    kind = _BIN_OPS.get(number := integer(operation, "bin_op"))
    if kind is None or operand_type(operation, 1).lanes or operand_type(operation, 0).space != 1:
        raise UnsupportedIrError(f"llvm.atomicrmw {number}")
    values, combined = run.spread(value), ATOMICS[kind.removeprefix("u")]

    def combine(before: Array, group: Array) -> Array:
        if kind.startswith("u"):
            return combined(unsigned(before), unsigned(values[group])).view(before.dtype)
        return combined(before, values[group])

    return (atomic(run, pointer, value.dtype, combine),)


@threaded("llvm.cmpxchg")
def _cmpxchg(run: Any, operation: Operation, pointer: Array, compared: Array, value: Array) -> tuple[Any]:
    if operand_type(operation, 0).space != 1:
        raise UnsupportedIrError("llvm.cmpxchg of shared memory")
    expected, values = run.spread(compared), run.spread(value)
    old = atomic(
        run, pointer, value.dtype,
        lambda before, group: np.where(before == expected[group], values[group], before),
    )  # fmt: skip
    return ((old, old == expected),)
