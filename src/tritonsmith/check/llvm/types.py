"""Types of LLVM's dialect, and their values: an array over threads, or a tuple of arrays.

A vector is a tuple of its lanes, a struct a tuple of its members. A value that is the same for all threads
has no axis. A pointer is an address in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute

from tritonsmith.check.module import POINTER, Array, ValueKind, ValueType, element_type
from tritonsmith.core.brackets import split

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
        return LlvmType(np.dtype(np.void), tuple(llvm_type(member) for member in split(inner, ",")))
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
