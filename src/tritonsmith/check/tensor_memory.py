"""Model Blackwell's tensor memory, by TritonNvidiaGPUOps.td, as an array like shared memory."""

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
    allocated = type_of(operation.results[0].type)
    new = (
        np.array(values[0]).reshape(allocated.shape)
        if values
        else unwritten(allocated.shape, allocated.dtype)
    )
    return run.flight.allocated(operation, new), *_tokens(operation)


def _tokens(operation: Operation) -> tuple[None, ...]:
    """Return None for each result but the first."""
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
    """Return a range of columns that begins at N."""
    columns = type_of(operation.results[0].type).shape[-1]
    starts = (*(0 for _ in memory.shape[1:]), integer(operation, "N"))
    return (part_of(operation, memory, starts, (*memory.shape[:-1], columns)),)


@known("ttng.tc_gen5_mma")
def _product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Multiply at once, unless it is asynchronous: then its barriers, or those of a commit, say when."""
    lhs, rhs, memory, _, use, pred, barriers, preds = segments(operation, values)
    if attribute(operation, "is_unsigned") is not None or attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma of unsigned integers, or by two CTAs")

    left, right = lhs[0], rhs[0]

    def product(start: Array) -> Array:  # of fp32 it knows no other precision than tf32
        single = run.rounds and left.dtype == np.float32
        return dot(to_tf32(left) if single else left, to_tf32(right) if single else right, start)

    _multiply(run, operation, product, (left, right), memory[0], (use, pred), (barriers, preds))
    return (None,) * len(operation.results)


@known("ttng.tc_gen5_mma_scaled")
def _scaled_product(run: Any, operation: Operation, *values: Any) -> tuple[None, ...]:
    """Multiply with scales, a matrix in tensor memory: a row of scales for each row of an operand."""
    (lhs,), (rhs,), (memory,), _, *scales, use, pred, barriers, preds = segments(operation, values)
    kinds = integer(operation, "a_type"), integer(operation, "b_type")
    if attribute(operation, "two_ctas") is not None:
        raise UnsupportedIrError("ttng.tc_gen5_mma_scaled by two CTAs")

    def product(start: Array) -> Array:
        return tensor_core_product(lhs, rhs, start, (scales[0][0], scales[1][0]), kinds)

    _multiply(
        run,
        operation,
        product,
        (lhs, rhs, *(part[0] for part in scales)),
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
    """Add a product of operands in memory to memory, or store it; now, or when a barrier says so."""
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
        run.flight.product(compute, [barrier for barrier, when in zip(*arrivals, strict=True) if bool(when)])


@known("ttng.tc_gen5_commit")
def _commit(run: Any, _operation: Operation, barrier: Array, *pred: Array) -> tuple[()]:
    """Arrive at a barrier after earlier products; operands beyond the predicate belong to a cluster."""
    if len(pred) > 1 or (pred and pred[0].dtype != np.bool_):
        raise UnsupportedIrError("ttng.tc_gen5_commit in a cluster")
    if not pred or bool(pred[0]):
        run.flight.product(lambda: None, [barrier])
    return ()
