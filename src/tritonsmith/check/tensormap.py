"""Descriptors that a kernel makes itself, by the .td of TritonNvidiaGPU and TritonGPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.module import UnsupportedIrError, integer, type_of
from tritonsmith.check.registry import known
from tritonsmith.check.tensor_descriptor import TensorDescriptor
from tritonsmith.check.triton import segments

Array = np.ndarray[Any, Any]
_SCRATCH = 1 << 38  # below all arguments: what is written there is no result
_APART = 1 << 20  # bytes between two of them
_NAN = 1  # fill_mode: what lies outside is NaN


@known("ttg.global_scratch_alloc", "triton_gpu.global_scratch_alloc")
def _scratch(run: Any, _operation: Operation) -> tuple[Array]:
    """Allocate memory of the program's own; only descriptors may be stored there."""
    return (np.asarray(np.int64(_SCRATCH + next(run.scratch) * _APART)),)


@known("ttng.tensormap_create", "triton_nvidia_gpu.tensormap_create")
def _create(run: Any, operation: Operation, *values: Array) -> tuple[()]:
    """Make a descriptor; sizes are innermost first, and strides, in bytes, omit the innermost one."""
    (place,), (base,), _box, sizes, strides, steps = segments(operation, values)
    if any(int(step) != 1 for step in steps):
        raise UnsupportedIrError("a descriptor that leaves out elements")
    nan = integer(operation, "fill_mode") == _NAN
    run.descriptors[int(place)] = (int(base), tuple(map(int, sizes)), tuple(map(int, strides)), nan)
    return ()


@known("ttng.reinterpret_tensor_descriptor", "triton_nvidia_gpu.reinterpret_tensor_descriptor")
def _reinterpret(run: Any, operation: Operation, place: Array) -> tuple[TensorDescriptor]:
    """Return a descriptor; its block is in the type only: the hardware's box may be a part of it."""
    if int(place) not in run.descriptors:
        raise UnsupportedIrError("a descriptor that the kernel did not make")
    base, sizes, strides, nan = run.descriptors[int(place)]
    target = type_of(operation.results[0].type)
    if len(target.shape) != len(sizes):
        raise UnsupportedIrError("a descriptor of another rank")
    elements = (1, *(stride // target.dtype.itemsize for stride in strides))
    descriptor = TensorDescriptor(base, sizes[::-1], elements[::-1], target.shape, target.dtype, nan)
    return (descriptor,)
