"""Arguments of a run: addresses far apart, small sizes, large strides."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation, SSAValue

from tritonsmith.passes.check.memory import base
from tritonsmith.passes.check.module import UnsupportedIrError, attribute, name_of, type_of
from tritonsmith.passes.check.triton import TensorDescriptor

_PASSED_ON = {
    "arith.addi", "arith.subi", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.splat",
    "tt.broadcast", "tt.expand_dims", "arith.maxsi", "arith.minsi", "arith.bitcast",
}  # fmt: skip
_BOUNDS = {
    "arith.cmpi", "arith.remsi", "arith.remui", "arith.divsi", "arith.divui", "arith.ceildivsi", "scf.for",
    "tt.call",
}  # fmt: skip
_STRIDE = 4096  # elements; larger than a block, so that rows do not overlap
_OTHER = 300  # times that, for every second stride: rows and columns do not overlap either
_LARGE = 12  # times the sizes in some of the inputs, so that later programs and iterations have work
_BLOCKS = 3  # of a tensor behind a descriptor, along each axis


@dataclass(frozen=True)
class Argument:
    """A parameter of the kernel.

    Attributes:
        name: as the source has it; empty if the IR does not say.
        value: what it gets.
    """

    name: str
    value: Any


def arguments(function: Operation, seed: int) -> tuple[Argument, ...]:
    """What the kernel gets; the same for each module of a dump, as parameters keep their order.

    Raises:
        UnsupportedIrError: a parameter has another type.
    """
    rule = random.Random(seed)  # noqa: S311 - no secret
    attributes = attribute(function, "arg_attrs")
    hints = attributes.data if isinstance(attributes, builtin.ArrayAttr) else ()
    found = []
    for number, parameter in enumerate(function.regions[0].blocks[0].args):
        of = type_of(parameter.type)
        hint = hints[number].data.get("tt.divisibility") if number < len(hints) else None
        unit = hint.value.data if isinstance(hint, builtin.IntegerAttr) else 1
        small, eighths = rule.randrange(1, 7), rule.randrange(1, 16)
        if of.kind == "pointer":
            value: Any = np.asarray(np.int64(base(number)))
        elif of.kind == "descriptor":
            shape = tuple(size * _BLOCKS - 1 for size in of.shape)
            strides = tuple(_STRIDE ** (len(shape) - 1 - axis) for axis in range(len(shape)))
            value = TensorDescriptor(base(number), shape, strides, of.shape, of.dtype)
        elif of.kind != "number" or of.shape:
            raise UnsupportedIrError(f"a parameter of type {parameter.type}")
        elif of.dtype.kind in "fV":
            value = np.asarray(eighths / 8).astype(of.dtype)
        elif of.dtype == np.bool_:
            value = np.asarray(bool(small % 2))
        elif _is_bound(parameter, set()):
            value = np.asarray(of.dtype.type(_size(small, seed, even=unit % 16 == 0)))
        else:
            stride = _STRIDE * (_OTHER if number % 2 else 1) + (0 if unit % 16 == 0 else 1)
            value = np.asarray(of.dtype.type(min(stride, np.iinfo(of.dtype).max)))
        found.append(Argument(parameter.name_hint or "", value))
    return tuple(found)


def _size(small: int, seed: int, *, even: bool) -> int:
    """A size: less than any block, or some blocks, or many: a block that is cut shows what masks are for."""
    if seed % 3 == 0:
        return 16 if even else 2 * small + 1
    times = _LARGE if seed % 3 == 1 else 1
    return (16 * small if even else 14 * small + 3) * times


def _is_bound(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Whether something is compared with it, divided by it or counted up to it: a size, and no stride."""
    if value in seen:
        return False
    seen.add(value)
    for use in value.uses:
        name = name_of(use.operation)
        if name in _BOUNDS:
            return True
        if name in _PASSED_ON and any(_is_bound(one, seen) for one in use.operation.results):
            return True
    return False
