"""Operations of tt that pick, count and map elements: TritonOps.td, and their lowering where that is silent.

A gather out of range is undefined: 0 here. A histogram ignores elements that are in no bin
(lib/Conversion/TritonGPUToLLVM/HistogramOpToLLVM.cpp).

"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.arith import unsigned, wanted
from tritonsmith.check.in_flight import OutOfBoundsError
from tritonsmith.check.module import UnsupportedIrError, integer, name_of, type_of
from tritonsmith.check.registry import known
from tritonsmith.check.triton import by_element

Array = np.ndarray[Any, Any]


@known("tt.gather", "ttg.local_gather")
def _gather(_run: Any, operation: Operation, source: Array, indices: Array, *_token: Any) -> tuple[Array]:
    """Gather along one axis; along the others the source may be larger than the indices."""
    axis = integer(operation, "axis")
    size = source.shape[axis]
    part = source[
        tuple(slice(None if dimension == axis else extent) for dimension, extent in enumerate(indices.shape))
    ]
    at = unsigned(indices).astype(np.uint64)
    if name_of(operation) == "ttg.local_gather" and (at >= size).any():
        raise OutOfBoundsError(f"ttg.local_gather: {int(indices[at >= size][0])} of {size}")
    picked = np.take_along_axis(part, np.minimum(at, np.uint64(size - 1)).astype(np.int64), axis)
    return (np.where(at < size, picked, np.zeros_like(picked)).astype(source.dtype),)


@known("ttg.local_scatter")
def _local_scatter(
    _run: Any, operation: Operation, memory: Array, values: Array, indices: Array, *_token: Any
) -> tuple[()]:
    """Scatter to shared memory; of two elements for the same place the last one stays."""
    axis = integer(operation, "axis")
    at = unsigned(indices).astype(np.uint64)
    if (at >= memory.shape[axis]).any():
        outside = int(indices[at >= memory.shape[axis]][0])
        raise OutOfBoundsError(f"ttg.local_scatter: {outside} of {memory.shape[axis]}")
    part = memory[
        tuple(slice(None if dimension == axis else extent) for dimension, extent in enumerate(indices.shape))
    ]
    np.put_along_axis(part, at.astype(np.int64), values, axis)
    return ()


@known("tt.histogram")
def _histogram(_run: Any, operation: Operation, values: Array, mask: Array | None = None) -> tuple[Array]:
    bins = wanted(operation)
    plain = unsigned(values).reshape(-1)
    kept = plain < bins.shape[0]
    if mask is not None:
        kept &= np.broadcast_to(mask, values.shape).reshape(-1)
    return (np.bincount(plain[kept].astype(np.int64), minlength=bins.shape[0]).astype(bins.dtype),)


@known("tt.map_elementwise")
def _map_elementwise(run: Any, operation: Operation, *values: Array) -> tuple[Array, ...]:
    """Apply a function of scalars to one element after another."""
    if integer(operation, "pack", 1) != 1:  # which elements come together is the layout's choice
        raise UnsupportedIrError("tt.map_elementwise of more than one element at a time")
    dtypes = [type_of(result.type).dtype for result in operation.results]
    return by_element(run, operation.regions[0], values, dtypes)
