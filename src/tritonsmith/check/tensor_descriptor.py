"""Descriptors of tensors in global memory, and of blocks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.module import integers

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorDescriptor:
    """A tensor in global memory: address, sizes and strides in elements, block, and the padding outside."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    dtype: np.dtype[Any]
    nan: bool = False

    def addresses(self, at: tuple[int, ...], axes: tuple[int, ...] | None = None) -> tuple[Array, Array]:
        """Return the block's byte addresses, and a mask of those inside along all axes, or along these."""
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
    """A block of a tensor in global memory, and the offsets at which it begins."""

    tensor: TensorDescriptor
    at: tuple[int, ...]

    def addresses(self, operation: Operation) -> tuple[Array, Array]:
        """Return the byte addresses, and a mask of those inside along the axes that the operation checks."""
        return self.tensor.addresses(self.at, integers(operation, "boundaryCheck"))
