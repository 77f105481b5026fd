"""A tensor in global memory, and a block of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.module import integers

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorDescriptor:
    """A tensor in global memory: address, sizes and strides in elements, block, what is read outside."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    dtype: np.dtype[Any]
    nan: bool = False

    def addresses(self, at: tuple[int, ...], axes: tuple[int, ...] | None = None) -> tuple[Array, Array]:
        """Byte addresses of the block at these coordinates, and which lie inside: along all axes, or some."""
        address, inside = np.asarray(np.int64(self.base)), np.asarray(True)
        for axis, size in enumerate(self.block):
            index = np.arange(size, dtype=np.int64) + at[axis]
            shape = [1] * len(self.block)
            shape[axis] = size
            address = address + (index * self.strides[axis] * self.dtype.itemsize).reshape(shape)
            if axes is None or axis in axes:
                inside = inside & ((index >= 0) & (index < self.shape[axis])).reshape(shape)
        return address, np.broadcast_to(inside, address.shape)


@dataclass(frozen=True)
class BlockPointer:
    """A block of a tensor in global memory, and where it begins."""

    tensor: TensorDescriptor
    at: tuple[int, ...]

    def addresses(self, operation: Operation) -> tuple[Array, Array]:
        """Byte addresses, and which lie inside, as far as a load or a store asks."""
        return self.tensor.addresses(self.at, integers(operation, "boundaryCheck"))
