"""Types of LLVM's dialect, and values of them: an array over threads, or a tuple of those.

A vector is a tuple of its lanes, a struct one of its members. A value that is the same for all threads has no
axis. A pointer is an address in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tritonsmith.check.module import POINTER, ValueType, element_type
from tritonsmith.core.brackets import split

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LlvmType:
    """A type.

    Attributes:
        dtype: of a scalar, or of each lane of a vector; void for a struct.
        members: of a struct.
        lanes: of a vector; 0 for what is none.
        space: address space of a pointer.
    """

    dtype: np.dtype[Any]
    members: tuple[LlvmType, ...] = ()
    lanes: int = 0
    space: int = -1

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return sum(one.bytes for one in self.members) or self.dtype.itemsize * max(1, self.lanes)

    @property
    def lane(self) -> ValueType:
        """The type that an operation of arith gets."""
        return ValueType("number", (), self.dtype)


@lru_cache(maxsize=4096)
def type_of(found: Any) -> LlvmType:
    """The type of a value."""
    return llvm_type(str(found))


@lru_cache(maxsize=4096)
def llvm_type(said: str) -> LlvmType:
    """A type as it is written.

    Raises:
        UnsupportedIrError: it is not known.
    """
    said = said.strip().removeprefix("!llvm.")
    if said.startswith("ptr"):
        space = said.partition("<")[2].rstrip(">")
        return LlvmType(POINTER, space=int(space or 0))
    if said.startswith("struct<("):
        inner = said.removeprefix("struct<(").removesuffix(")>")
        return LlvmType(np.dtype(np.void), tuple(llvm_type(one) for one in split(inner, ",")))
    if said.startswith("vector<"):
        lanes, _, element = said.removeprefix("vector<").removesuffix(">").partition("x")
        return LlvmType(llvm_type(element).dtype, lanes=int(lanes))
    return LlvmType(element_type(said))


def zero(of: LlvmType) -> Any:
    """What is undefined is 0."""
    if of.members:
        return tuple(zero(one) for one in of.members)
    one = np.zeros((), of.dtype)
    return (one,) * of.lanes if of.lanes else one


def to_bytes(value: Any, threads: int) -> Array:
    """A scalar or a vector as bytes: an array of threads by bytes."""
    lanes = value if isinstance(value, tuple) else (value,)
    stacked = np.stack([np.broadcast_to(one, threads) for one in lanes], axis=-1)
    return np.ascontiguousarray(stacked).view(np.uint8).reshape(threads, -1)


def from_bytes(raw: Array, of: LlvmType) -> Any:
    """A scalar or a vector from bytes."""
    if of.dtype == np.bool_:
        raw = raw & 1
    lanes = np.ascontiguousarray(raw).view(of.dtype)
    if not of.lanes:
        return lanes[:, 0]
    return tuple(lanes[:, number] for number in range(of.lanes))


def merge(mask: Array, new: Any, old: Any) -> Any:
    """New values where the mask is true."""
    if isinstance(new, tuple):
        return tuple(merge(mask, one, other) for one, other in zip(new, old, strict=True))
    return np.where(mask, new, old).astype(new.dtype, copy=False)
