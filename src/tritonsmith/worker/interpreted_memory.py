"""Provide global memory for Triton's interpreter: bytes at addresses that no process has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .foreign import DType, TritonValue

Array = Any  # of NumPy, which has no types in the Pythons that run this


class InterpretedMemory:
    """A memory of bytes at addresses.

    Attributes:
        outside: number of bytes that were read without being in the request or written; they are 0.
    """

    def __init__(self, runs: Iterable[tuple[int, str]]) -> None:
        """Fill the memory from runs of bytes: the first address, and the bytes in hexadecimal."""
        self.outside = 0
        parts = [(start, np.frombuffer(bytes.fromhex(digits), np.uint8)) for start, digits in runs]
        # Sorted addresses beside their bytes. Addresses of the request are far apart, so one array of all
        # bytes between them would not fit. Address 0, which no kernel has, keeps the arrays from being empty.
        self._at = np.concatenate([[0], *(start + np.arange(part.size) for start, part in parts)]).astype(
            np.int64
        )
        self._data = np.concatenate([np.zeros(1, np.uint8), *(part for _, part in parts)])
        order = np.argsort(self._at)
        self._at, self._data = self._at[order], self._data[order]
        self._written = np.zeros(self._at.size, bool)

    def load(self, pointers: Array, dtype: DType) -> Array:
        """Return the elements at addresses, in one row."""
        dtype = np.dtype(dtype)
        at = pointers.astype(np.int64).reshape(-1, 1) + np.arange(dtype.itemsize)
        place = np.minimum(np.searchsorted(self._at, at), self._at.size - 1)
        there = self._at[place] == at
        self.outside += int(at.size - np.count_nonzero(there))
        return (
            np.ascontiguousarray(np.where(there, self._data[place], 0).astype(np.uint8))
            .view(dtype)
            .reshape(-1)
        )

    def store(self, pointers: Array, values: Array) -> None:
        """Write elements; of several to one address, the last one stays."""
        values = np.ascontiguousarray(values).reshape(-1)
        at = pointers.astype(np.int64).reshape(-1, 1) + np.arange(values.dtype.itemsize)
        place = np.minimum(np.searchsorted(self._at, at), self._at.size - 1)
        fresh = np.unique(at[self._at[place] != at])
        if fresh.size:
            order = np.argsort(every := np.concatenate((self._at, fresh)), kind="stable")
            self._at = every[order]
            self._data = np.concatenate((self._data, np.zeros(fresh.size, np.uint8)))[order]
            self._written = np.concatenate((self._written, np.zeros(fresh.size, bool)))[order]
            place = np.searchsorted(self._at, at)
        self._data[place] = values.view(np.uint8).reshape(at.shape)
        self._written[place] = True

    def written(self) -> Iterator[tuple[int, str]]:
        """Yield runs of the written bytes."""
        at, data = self._at[self._written], self._data[self._written]
        ends = np.flatnonzero(np.diff(at) != 1) + 1
        for part, content in zip(np.split(at, ends), np.split(data, ends)):
            if part.size:
                yield int(part[0]), content.tobytes().hex()


class MemoryModule:
    """A replacement for `triton._C.libtriton.interpreter`: only its functions that access memory differ."""

    def __init__(self, rest: object, memory: InterpretedMemory) -> None:
        self._rest, self._memory = rest, memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    def load(self, pointers: Array, mask: Array, other: Array, dtype: DType) -> Array:
        """Return elements where the mask is true, others elsewhere."""
        pointers, mask, other = np.broadcast_arrays(pointers, np.asarray(mask, bool), other)
        elements = np.array(other, dtype=dtype)
        elements[mask] = self._memory.load(pointers[mask], dtype)
        return elements

    def store(self, pointers: Array, values: Array, mask: Array) -> None:
        """Write elements where the mask is true."""
        pointers, values, mask = np.broadcast_arrays(pointers, values, np.asarray(mask, bool))
        self._memory.store(pointers[mask], values[mask])

    def atomic_rmw(
        self, operation: TritonValue, pointers: Array, values: Array, mask: Array, _order: object
    ) -> Array:
        """Update one element after another; return the old values."""
        if operation.name == "FADD" and values.dtype.kind != "f":  # bf16 is an integer here
            raise ValueError("the interpreter has no atomic addition of this type")
        shape = np.shape(pointers)
        at, new, chosen = (
            np.broadcast_to(operand, shape).reshape(-1) for operand in (pointers, values, mask)
        )
        before = np.zeros(at.shape, new.dtype)
        for lanes in _lanes(at, np.flatnonzero(chosen)):
            before[lanes] = self._memory.load(at[lanes], new.dtype)
            with np.errstate(all="ignore"):
                after = _OPERATIONS[operation.name](before[lanes], new[lanes]).astype(new.dtype)
            self._memory.store(at[lanes], after)
        return before.reshape(shape)

    def atomic_cas(self, pointers: Array, expected: Array, values: Array, _order: object) -> Array:
        """Compare and swap one element after another, bit by bit; return the old values."""
        shape = np.shape(pointers)
        # Floats are compared by their bits: NaN equals itself, and -0.0 is not 0.0.
        at, old, new = (
            np.broadcast_to(operand, shape).reshape(-1) for operand in (pointers, expected, values)
        )
        before = np.zeros(at.shape, new.dtype)
        for lanes in _lanes(at, np.arange(at.size)):
            before[lanes] = self._memory.load(at[lanes], new.dtype)
            swapped = lanes[_bits(before[lanes]) == _bits(old[lanes])]
            self._memory.store(at[swapped], new[swapped])
        return before.reshape(shape)


def _lanes(at: Array, chosen: Array) -> list[Array]:
    """Return groups of elements that can act at once: all, or single ones if two share an address."""
    # NumPy would read the old value for both, and lose one of the updates.
    if np.unique(at[chosen]).size == chosen.size:
        return [chosen]
    return [np.asarray([lane]) for lane in chosen]


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def _unsigned(act: Callable[..., Any]) -> Any:
    return lambda left, right: act(_bits(left), _bits(right)).view(left.dtype)


_OPERATIONS = {  # RMWOp, python/src/interpreter.cc
    "ADD": np.add, "FADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "UMIN": _unsigned(np.minimum),
    "UMAX": _unsigned(np.maximum), "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
    "XCHG": lambda _, value: value,
}  # fmt: skip
