"""Atomic operations on global memory, one thread after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned
from tritonsmith.check.llvm.operations import operand_type
from tritonsmith.check.module import UnsupportedIrError, integer
from tritonsmith.check.registry import threaded

Array = np.ndarray[Any, Any]
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
