"""Choose the arguments of a run: addresses far apart, small sizes, large strides."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation, SSAValue, Use

from tritonsmith.check.memory import TensorDescriptor, base
from tritonsmith.check.module import (
    POINTER,
    Array,
    CmpIPredicate,
    UnsupportedIrError,
    ValueKind,
    ValueType,
    attribute,
    integer,
    name_of,
    symbol,
    type_of,
)

_PASSED_ON = {
    "arith.addi",
    "arith.subi",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.index_cast",
    "tt.splat",
    "tt.broadcast",
    "tt.expand_dims",
    "arith.maxsi",
    "arith.minsi",
    "arith.bitcast",
}
_DIVIDED = {"arith.remsi", "arith.remui", "arith.divsi", "arith.divui", "arith.ceildivsi"}
_CASTS = {"arith.bitcast", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"}
_DEPTH = 8  # casts that may stand one upon another
_BELOW_BOUND: dict[int, int] = {  # an assumed `n < bound` allows no more than bound - 1
    CmpIPredicate.EQ: 0,
    CmpIPredicate.SLT: 1,
    CmpIPredicate.SLE: 0,
    CmpIPredicate.ULT: 1,
    CmpIPredicate.ULE: 0,
}
_ASSUMED = {"llvm.intr.assume", "tt.assert"}
_STRIDE = 4096  # elements; larger than a block, so that rows do not overlap
_OTHER = 300  # factor on every second stride: rows and columns do not overlap either
_OTHER_WIDE = 32768  # the same for i64: offsets do not fit 32 bits from row 16 on, where the far program is
_SINGLE = 4  # bytes of i32
_STEPS = 4  # the block of a loop whose step is not known, such as the number of programs
_UNIT = 16  # the block of a size about which nothing else is known
_LOOPED = 64  # the same, if a loop counts up to it
_TURNS = 4  # blocks of a size that a loop counts up to: one more than the stages of most pipelines
_ROWS = 10  # of tiles that come in groups: more than a group has, and the far program is in the last one
_FEW = 9  # turns, and two more, of a loop in a loop, or beside one, that has many
_FEWEST_STAGES = 3  # of a pipeline whose number of stages is not known
_LONG = 65  # turns of a loop that shall be long: code for so many blocks may be separate
_REACH = 28  # bits of the largest stride of a descriptor: other arguments are 2^40 bytes away
_FLAGS = 2  # most flags of a descriptor that was taken apart


class Extent(IntEnum):
    """The size of tensors, in blocks of the kernel; a seed stands for one of them."""

    PART = 0  # less than a block: masks have work to do in the only program
    SEVERAL = 1  # several blocks and a part: a pipelined loop returns to its first buffer
    MANY = 2  # as many as the far program needs, so that groups of tiles end, and offsets are large

    @classmethod
    def of(cls, seed: int) -> Extent:
        """Return the extent of a seed."""
        return cls(seed % len(cls))


# Blocks of a tensor behind a descriptor, along each axis; the last one is cut.
_BLOCKS = {Extent.PART: 1, Extent.SEVERAL: 6, Extent.MANY: _ROWS + 1}


@dataclass(frozen=True)
class Argument:
    """One argument of the kernel.

    Attributes:
        name: the parameter's name in the source; empty if the IR does not say.
        value: its value, an array of no axes or a descriptor.
    """

    name: str
    value: Any


def arguments(function: Operation, seed: int, stages: int = 0) -> tuple[Argument, ...]:
    """Choose one value per kernel parameter, for the first module of a dump.

    Args:
        function: the kernel.
        seed: the seed of the sizes.
        stages: the number of stages of its pipelined loops, which get at least one iteration more than that.

    Raises:
        UnsupportedIrError: a parameter has a type that is not supported.
    """
    # Parameters keep their order throughout a dump: the values that are chosen here serve all of its modules.
    return _ArgumentChoice(function, seed, stages).values()


class _ArgumentChoice:
    """The choice of a kernel's arguments."""

    # Addresses are far apart, and strides longer than any block: what a pass mixes up is then somewhere else
    # in memory, and shows.

    def __init__(self, function: Operation, seed: int, stages: int) -> None:
        self._function, self._extent = function, Extent.of(seed)
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._parameters: Sequence[SSAValue] = function.regions[0].blocks[0].args
        # A hint that offsets fit 32 bits, as AMD's buffer operations need, forbids larger strides.
        self._near = any("tt.pointer_range" in hint.data for hint in _hints(function))
        self._sizes = _DistinctSizes(self._parameters, self._extent, stages, self._random)
        self._expanded: list[int] = []  # sizes and strides of the descriptor before, which parameters repeat

    def values(self) -> tuple[Argument, ...]:
        """Choose all values."""
        return tuple(
            Argument(parameter.name_hint or "", self._value(number, parameter))
            for number, parameter in enumerate(self._parameters)
        )

    def _value(self, number: int, parameter: SSAValue) -> Array | TensorDescriptor:
        kind = type_of(parameter.type)
        # Drawn for each parameter, so that a value does not depend on the types of those before it.
        small, eighths = self._random.randrange(1, 7), self._random.randrange(1, 16)
        if self._expanded:
            return np.asarray(kind.dtype.type(self._expanded.pop(0)))
        if kind.kind is ValueKind.POINTER:
            return np.asarray(np.int64(base(number)))
        if kind.kind is ValueKind.DESCRIPTOR:
            return self._descriptor(number, kind)
        if kind.kind is not ValueKind.NUMBER or kind.shape:
            raise UnsupportedIrError(f"a parameter of type {parameter.type}")
        if kind.dtype.kind in "fV":
            return np.asarray(eighths / 8).astype(kind.dtype)  # exact in each type, as its products are
        if kind.dtype == np.bool_:
            return np.asarray(bool(small % 2))
        unit = unit_of(self._function, number)
        if block := _block(parameter, set()):
            value = self._sizes.next(parameter, block, unit)
        else:
            value = self._stride(number, kind, unit)
        return np.asarray(kind.dtype.type(min(value, most_of(parameter), np.iinfo(kind.dtype).max)))

    def _descriptor(self, number: int, kind: ValueType) -> TensorDescriptor:
        shape = tuple(max(size * _BLOCKS[self._extent] - 1, 1) for size in kind.shape)
        row = min(_STRIDE, 1 << _REACH // max(len(shape) - 1, 1))
        strides = tuple(row ** (len(shape) - 1 - axis) for axis in range(len(shape)))
        if described(self._parameters[number + 1 :], len(shape)):
            self._expanded = [*shape, *strides]
        return TensorDescriptor(base(number), shape, strides, kind.shape, kind.dtype)

    def _stride(self, number: int, kind: ValueType, unit: int) -> int:
        """Return a stride that no other parameter has; odd unless the signature calls it a multiple."""
        wide = kind.dtype.itemsize > _SINGLE and not self._near
        factor = (_OTHER_WIDE if wide else _OTHER) if number % 2 else 1
        stride = _STRIDE * factor + 16 * number
        return _rounded_up(stride + (0 if _is_even(self._function, number) else 1), unit)


class _DistinctSizes:
    """Sizes of tensors, no two of which are the same."""

    # A pass may put one size where another should be, which equal sizes would hide.

    def __init__(
        self, parameters: Sequence[SSAValue], extent: Extent, stages: int, rule: random.Random
    ) -> None:
        self._extent, self._stages, self._random = extent, stages, rule
        self._grouped = [
            parameter for parameter in parameters if extent is Extent.MANY and _grouped(parameter)
        ]
        self._nested = False  # whether a loop of single elements is long already
        self._used: set[int] = set()

    def next(self, parameter: SSAValue, block: int, unit: int) -> int:
        """Return a size for a parameter.

        Args:
            parameter: the parameter.
            block: elements of the size that one program or iteration takes.
            unit: the number that the size is a multiple of.
        """
        is_bound = _counted_up_to(parameter, set())
        size = self._draw(parameter, block, unit, is_bound=is_bound)
        # Loops of single elements may nest, and all of their turns together would take too long.
        if self._extent is Extent.MANY and block < _UNIT and is_bound:
            size = _rounded_up(size % _FEW + 2, unit) if self._nested else size
            self._nested = True
        # A loop of one turn is what the smallest sizes are for, whether or not another has the same.
        distinct = self._extent is not Extent.PART or not is_bound
        cut = self._extent is not Extent.PART and unit < block  # the last block shall be cut, if it can be
        while (distinct and size in self._used) or (cut and size % block == 0):
            size += unit
        self._used.add(size)
        return size

    def _draw(self, parameter: SSAValue, block: int, unit: int, *, is_bound: bool) -> int:
        """Return less than a block, or full blocks and a part."""
        # With a part of a block, masks have work to do. With several blocks, the second program has work and
        # the third one less; a pipelined loop comes back to its first buffer; and a group of tiles ends.
        is_far = self._extent is Extent.MANY
        if self._extent is Extent.PART:
            return unit if unit >= _UNIT else _rounded_up(self._random.randrange(3, 16, 2), unit)
        if parameter in self._grouped:
            turns = _ROWS
        elif is_bound and (block >= _UNIT or not is_far):
            turns = 1 if is_far else max(_TURNS, self._stages + 1)
            block = _LOOPED if block == _UNIT else block
        elif self._grouped or not is_far:
            turns = 2
        else:  # any size
            return _rounded_up(self._random.randrange(17, 88), unit)
        parts = range(unit, max(block, unit + 1), unit)
        # The least part shows where a kernel rounds up to blocks.
        return _rounded_up(turns * block, unit) + (parts[0] if is_far else self._random.choice(parts))


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _hints(function: Operation) -> Sequence[Any]:
    """Return the attributes of each parameter of a function."""
    attributes = attribute(function, "arg_attrs")
    return attributes.data if isinstance(attributes, builtin.ArrayAttr) else ()


def _is_even(function: Operation, number: int) -> bool:
    """Return whether a parameter is a multiple of 16, as `i32:16` of a signature says."""
    hints = _hints(function)
    hint = hints[number].data.get("tt.divisibility") if number < len(hints) else None
    return isinstance(hint, builtin.IntegerAttr) and hint.value.data % 16 == 0


def unit_of(function: Operation, number: int) -> int:
    """Return the number that all values of a parameter are multiples of."""
    parameter = function.regions[0].blocks[0].args[number]
    return math.lcm(16 if _is_even(function, number) else 1, _multiple(parameter))


def with_sizes(values: Sequence[Argument], sizes: Sequence[tuple[int, int]]) -> tuple[Argument, ...]:
    """Return the arguments with some numbers replaced, by their place."""
    replaced = list(values)
    for place, value in sizes:
        old = replaced[place]
        replaced[place] = Argument(old.name, np.asarray(old.value.dtype.type(value)))
    return tuple(replaced)


def long_sizes(function: Operation) -> list[tuple[int, int]]:
    """Return place and size of each loop bound that makes its loop run 64 blocks and a part."""
    sizes = []
    for number, parameter in enumerate(function.regions[0].blocks[0].args):
        kind = type_of(parameter.type)
        if not kind.is_integer:
            continue
        if _counted_up_to(parameter, set()) and (block := _block(parameter, set())):
            unit = unit_of(function, number)
            size = _rounded_up(_LONG * block + 1, unit)
            if size <= min(most_of(parameter), np.iinfo(kind.dtype).max):
                sizes.append((number, size))
    return sizes


def short_sizes(function: Operation, stages: int) -> list[tuple[int, int]]:
    """Return place and size of loop bounds that make loops run two or three times, the last time in part.

    Args:
        function: the kernel.
        stages: the number of stages of its pipelined loops: there is a size for each number of turns.
    """
    # A pipelined loop begins the work of later turns before it, behind conditions of its own, and masks what
    # a turn has too much. Both decide something only if the loop ends in such a turn, with a part of a block.
    sizes = []
    for number, parameter in enumerate(function.regions[0].blocks[0].args):
        kind = type_of(parameter.type)
        if not kind.is_integer or (step := _step(parameter, set())) <= 1:
            continue
        unit = unit_of(function, number)
        for turns in range(1, max(stages, _FEWEST_STAGES)):
            size = turns * step + _rounded_up(step // 4 + 1, unit)
            if size <= min(most_of(parameter), np.iinfo(kind.dtype).max):
                sizes.append((number, _rounded_up(size, unit)))
    return sizes


def _step(value: SSAValue, visited: set[SSAValue]) -> int:
    """Return how much of a size one turn of a loop takes, the least if there are several; 0 for no loop."""
    if value in visited:
        return 0
    visited.add(value)
    steps = []
    for use in value.uses:
        name, operation = name_of(use.operation), use.operation
        if name == "scf.for" and use.index == 1:
            steps.append(constant_of(operation.operands[2]) or 0)
        elif name in _PASSED_ON:
            steps += [_step(result, visited) for result in operation.results]
        elif name in _DIVIDED and use.index == 0:
            times = constant_of(operation.operands[1]) or 0
            steps += [times * _step(result, visited) for result in operation.results]
        elif name == "tt.call" and (inside := _inside(use)):
            # The function returns the number of blocks, as `tl.cdiv` does, or has a loop of its own.
            within = _divisor(inside)
            steps += [
                _step(inside, visited),
                *(within * _step(result, visited) for result in operation.results),
            ]
    return min(filter(None, steps), default=0)


def _divisor(value: SSAValue) -> int:
    """Return the constant that a value, or what is added to it, is divided by; 0 if there is none."""
    for use in value.uses:
        operation = use.operation
        if name_of(operation) in _DIVIDED and use.index == 0:
            return constant_of(operation.operands[1]) or 0
        if name_of(operation) in _PASSED_ON and (divisor := _divisor(operation.results[0])):
            return divisor
    return 0


def blocks_of(function: Operation) -> dict[int, int]:
    """Return, by place, how much of each size one program or iteration takes; strides have no entry."""
    every = enumerate(function.regions[0].blocks[0].args)
    blocks = {
        place: _block(parameter, set()) for place, parameter in every if type_of(parameter.type).is_integer
    }
    return {place: block for place, block in blocks.items() if block}


def flags(function: Operation) -> tuple[int, ...]:
    """Return the numbers, from 1, of the parameters that point to i1: in memory those are bytes."""
    every = function.regions[0].blocks[0].args
    kinds = [type_of(parameter.type) for parameter in every]
    return tuple(
        number + 1
        for number, parameter in enumerate(kinds)
        if parameter.kind is ValueKind.POINTER and parameter.dtype == np.bool_ and not parameter.shape
    )


def described(following: Sequence[SSAValue], rank: int) -> bool:
    """Return whether the next parameters are a descriptor's sizes and strides, which `desc.shape` reads."""
    kinds = [type_of(parameter.type).dtype for parameter in following[: 2 * rank]]
    return kinds == [np.dtype(np.int32)] * rank + [np.dtype(np.int64)] * rank


def fitting(values: tuple[Any, ...], parameters: Sequence[SSAValue]) -> tuple[Any, ...]:
    """Return the arguments of a text, which has more parameters if a pass expanded descriptors.

    Args:
        values: the arguments of the first text.
        parameters: the parameters of this text.

    Raises:
        UnsupportedIrError: its parameters do not correspond to these arguments.
    """
    expanded = _taken_apart(values, len(parameters)) if len(parameters) != len(values) else values
    for value, parameter in zip(expanded, parameters, strict=True):
        kind = type_of(parameter.type)
        if isinstance(value, TensorDescriptor):
            same = kind == ValueType(ValueKind.DESCRIPTOR, value.block, value.dtype)
        else:
            dtype = POINTER if kind.kind is ValueKind.POINTER else kind.dtype
            same = not kind.shape and value.dtype == dtype
        if not same or kind.kind is ValueKind.MEMORY:
            raise UnsupportedIrError("parameters that are not those of the first text")
    return expanded


def _taken_apart(values: tuple[Any, ...], many: int) -> tuple[Any, ...]:
    # RewriteTensorDescriptorToPointer.cpp makes pointers, sizes and strides of descriptors. How many flags
    # follow differs by release: whether elements outside are NaN, and whether fp32 is rounded to tf32.
    descriptors = [value for value in values if isinstance(value, TensorDescriptor)]
    more = many - len(values) - sum(2 * len(value.shape) for value in descriptors)
    flags, rest = divmod(more, len(descriptors) or 1)
    if not descriptors or rest or not 0 <= flags <= _FLAGS:
        raise UnsupportedIrError("parameters that are not those of the first text")
    expanded: list[Any] = []
    for value in values:
        if isinstance(value, TensorDescriptor):
            numbers = (value.base, *value.shape, *value.strides)
            expanded += [np.asarray(np.int64(value)) for value in numbers]
            expanded += [np.asarray(value) for value in (value.nan, False)[:flags]]
        else:
            expanded.append(value)
    return tuple(expanded)


def _grouped(value: SSAValue) -> bool:
    """Return whether tiles of this size come in groups, as for the L2 cache: `min(tiles - first, GROUP)`."""
    for use in value.uses:
        name, results = name_of(use.operation), use.operation.results
        if name in _PASSED_ON and any(map(_grouped, results)):
            return True
        if (name in _DIVIDED or name == "tt.call") and any(map(_left, results)):
            return True
    return False


def _left(tiles: SSAValue) -> bool:
    return any(
        name_of(minimum.operation) == "arith.minsi"
        for use in tiles.uses
        if name_of(use.operation) == "arith.subi" and not use.index
        for minimum in use.operation.results[0].uses
    )


def _block(value: SSAValue, visited: set[SSAValue]) -> int:
    """Return how much of a size one program or iteration takes; 0 for a stride."""
    # A size is compared with, divided by or counted up to; a stride is only multiplied and added. A recursion
    # through calls and loops may come back to the same value.
    if value in visited:
        return 0
    visited.add(value)
    blocks, alone = [0], True
    for use in value.uses:
        name, operation = name_of(use.operation), use.operation
        alone &= name in ("arith.cmpi", "tt.addptr", "arith.muli")
        if name in _DIVIDED and not _is_assumed_rest(operation):
            blocks.append(constant_of(operation.operands[1 - use.index]) or _UNIT)
        elif name == "arith.cmpi":
            if is_assumed(operation):  # the kernel decides nothing by it
                continue
            shape = type_of(operation.operands[use.index].type).shape
            fixed = not shape and constant_of(operation.operands[1 - use.index]) is not None
            blocks.append(1 if fixed else max(shape, default=_UNIT))
            alone &= fixed
        elif name == "scf.for":
            blocks.append(constant_of(operation.operands[2]) or _STEPS)
        elif name == "tt.call":
            # A stride stays a stride in the function, unless the function may make a size of it.
            inside = _inside(use)
            within = _block(inside, visited) if inside else 0
            may_be_size = inside is None or any(
                type_of(result.type).is_integer for result in operation.results
            )
            blocks.append(within or (_UNIT if may_be_size else 0))
        elif name in _PASSED_ON:
            blocks += [_block(result, visited) for result in operation.results]
    # A number that is only compared with a constant is a flag or a small size: single elements would be too
    # few.
    return _UNIT if alone and max(blocks) == 1 else max(blocks)


def most_of(parameter: SSAValue) -> int:
    """Return the largest value that a parameter is assumed to have, as `tl.assume(n <= 1024)` says."""
    bounds = [np.iinfo(np.int64).max]
    for use in parameter.uses:
        operation = use.operation
        if name_of(operation) == "arith.cmpi" and not use.index and is_assumed(operation):
            bound = constant_of(operation.operands[1])
            less = _BELOW_BOUND.get(integer(operation, "predicate", -1))
            bounds += [bound - less] if bound is not None and less is not None else []
    return int(min(bounds))


def _multiple(parameter: SSAValue) -> int:
    """Return the assumed divisor of a parameter, as `tl.assume(n % 64 == 0)` says; 1 for none."""
    divisor = 1
    for use in parameter.uses:
        if _is_assumed_rest(use.operation) and not use.index:
            divisor = math.lcm(divisor, constant_of(use.operation.operands[1]) or 1)
    return divisor


def _is_assumed_rest(operation: Operation) -> bool:
    """Return whether an operation is a division whose rest only an assumption uses."""
    if name_of(operation) not in ("arith.remsi", "arith.remui"):
        return False
    rests = [use.operation for use in operation.results[0].uses]
    return all(name_of(use) == "arith.cmpi" and is_assumed(use) for use in rests)


def is_assumed(comparison: Operation) -> bool:
    """Return whether a comparison is only assumed."""
    return all(name_of(use.operation) in _ASSUMED for use in comparison.results[0].uses)


def _inside(use: Use) -> SSAValue | None:
    """Return the callee's parameter that a call's operand becomes; None if the function is not there."""
    module = use.operation
    while parent := module.parent_op():
        module = parent
    callee = symbol(attribute(use.operation, "callee"))
    for function in module.regions[0].blocks[0].ops:
        named = name_of(function) == "tt.func" and symbol(attribute(function, "sym_name")) == callee
        if named and function.regions[0].blocks:
            inside: SSAValue = function.regions[0].blocks[0].args[use.index]
            return inside
    return None


def _counted_up_to(value: SSAValue, visited: set[SSAValue]) -> bool:
    """Return whether a loop runs up to a size, or to a part of it."""
    if value in visited:
        return False
    visited.add(value)
    for use in value.uses:
        name, operation = name_of(use.operation), use.operation
        if name == "scf.for" and use.index == 1:
            return True
        if (name in _PASSED_ON or name == "tt.call" or (name in _DIVIDED and use.index == 0)) and any(
            _counted_up_to(result, visited) for result in operation.results
        ):
            return True
    return False


def constant_of(value: SSAValue) -> int | None:
    """Return the value of a constant, or of a cast of one; None for others."""
    # The front end makes an `arith.bitcast` of some constexprs.
    owner = value.owner
    for _ in range(_DEPTH):
        if not isinstance(owner, Operation) or name_of(owner) not in _CASTS:
            break
        owner = owner.operands[0].owner
    if not isinstance(owner, Operation) or name_of(owner) != "arith.constant":
        return None
    number = attribute(owner, "value")
    return int(number.value.data) if isinstance(number, builtin.IntegerAttr) else None
