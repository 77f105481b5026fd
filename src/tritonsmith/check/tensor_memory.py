"""Tensor memory of Blackwell, by TritonNvidiaGPUOps.td: an array, as shared memory is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.gpu import part_of
from tritonsmith.check.in_flight import require_inside, unwritten
from tritonsmith.check.module import UnsupportedIrError, attribute, integer, integers, type_of
from tritonsmith.check.registry import known
from tritonsmith.check.scaled import tensor_core_product
from tritonsmith.check.triton import dot, segments, to_tf32

Array = np.ndarray[Any, Any]


@known("ttng.tmem_alloc")
def _alloc(run: Any, operation: Operation, *values: Array) -> tuple[Any, ...]:
    found = type_of(operation.results[0].type)
    new = np.array(values[0]).reshape(found.shape) if values else unwritten(found.shape, found.dtype)
    return run.flight.allocated(operation, new), *_tokens(operation)


def _tokens(operation: Operation) -> tuple[None, ...]:
    """All results but the first one."""
    return (None,) * (len(operation.results) - 1)


@known("ttng.tmem_load")
def _load(_run: Any, operation: Operation, memory: Array, *_token: Any) -> tuple[Any, ...]:
    if integers(operation, "resultSegmentSizes")[2:] == (1,):
        raise UnsupportedIrError("ttng.tmem_load that reduces")
    return np.array(memory), *_tokens(operation)


@known("ttng.tmem_store")
def _store(_run: Any, operation: Operation, memory: Array, *values: Any) -> tuple[None, ...]:
    *_token, value, pred = values
    if bool(pred):
        memory[...] = value.reshape(memory.shape)
    return (None,) * len(operation.results)


@known("ttng.tmem_subslice")
def _subslice(_run: Any, operation: Operation, memory: Array) -> tuple[Array]:
    """Columns of it, from N on."""
    columns = type_of(operation.results[0].type).shape[-1]
    starts = (*(0 for _ in memory.shape[1:]), integer(operation, "N"))
    return (part_of(operation, memory, starts, (*memory.shape[:-1], columns)),)


@known("ttng.tc_gen5_mma")
def _product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Done at once unless it is asynchronous: then its barriers, or those of a commit, say when."""
    one, other, memory, _, use, pred, barriers, preds = segments(operation, values)
    if attribute(operation, "is_unsigned") is not None or attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma of unsigned integers, or by two CTAs")

    left, right = one[0], other[0]

    def product(start: Array) -> Array:  # of fp32 it knows no other precision than tf32
        single = run.rounds and left.dtype == np.float32
        return dot(to_tf32(left) if single else left, to_tf32(right) if single else right, start)

    _multiply(run, operation, product, (left, right), memory[0], (use, pred), (barriers, preds))
    return (None,) * len(operation.results)


@known("ttng.tc_gen5_mma_scaled")
def _scaled_product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Scales lie in tensor memory as a matrix: a row of them for each row of an operand."""
    (one,), (other,), (memory,), _, *scales, use, pred, barriers, preds = segments(operation, values)
    kinds = integer(operation, "a_type"), integer(operation, "b_type")
    if attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma_scaled by two CTAs")

    def product(start: Array) -> Array:
        return tensor_core_product(one, other, start, (scales[0][0], scales[1][0]), kinds)

    _multiply(
        run,
        operation,
        product,
        (one, other, *(part[0] for part in scales)),
        memory,
        (use, pred),
        (barriers, preds),
    )
    return (None,) * len(operation.results)


def _multiply(
    run: Any,
    operation: Operation,
    product: Callable[[Array], Array],
    operands: tuple[Any, ...],
    memory: Array,
    flags: tuple[Any, Any],
    arrivals: tuple[Any, Any],
) -> None:
    """Add a product of operands in memory to memory, or put it there; now, or when a barrier says so."""
    (use,), (pred,) = flags
    if bool(pred):
        require_inside(*operands, memory)

    def compute() -> None:
        if bool(pred):
            memory[...] = product(memory if bool(use) else np.zeros_like(memory))

    if attribute(operation, "is_async") is None and not arrivals[0]:
        run.flight.wait_products()
        compute()
    else:
        run.flight.product(compute, [one for one, when in zip(*arrivals, strict=True) if bool(when)])


@known("ttng.tc_gen5_commit")
def _commit(run: Any, _operation: Operation, barrier: Array, *pred: Array) -> tuple[()]:
    """It may also have descriptors, of a cluster."""
    if len(pred) > 1 or (pred and pred[0].dtype != np.bool_):
        raise UnsupportedIrError("ttng.tc_gen5_commit in a cluster")
    if not pred or bool(pred[0]):
        run.flight.product(lambda: None, [barrier])
    return ()
