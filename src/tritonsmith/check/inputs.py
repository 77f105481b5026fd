"""Choose the arguments of a run: addresses far apart, small sizes, large strides."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation, SSAValue, Use

from tritonsmith.check.memory import TensorDescriptor, base
from tritonsmith.check.module import POINTER, UnsupportedIrError, attribute, integer, name_of, symbol, type_of

_PASSED_ON = {
    "arith.addi", "arith.subi", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.splat",
    "tt.broadcast", "tt.expand_dims", "arith.maxsi", "arith.minsi", "arith.bitcast",
}  # fmt: skip
_DIVIDED = {"arith.remsi", "arith.remui", "arith.divsi", "arith.divui", "arith.ceildivsi"}
_SAME = {"arith.bitcast", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"}
_DEPTH = 8  # of those, one upon another
_BOUNDS = {0: 0, 2: 1, 3: 0, 6: 1, 7: 0}  # predicates of equal and less, to how much less
_ASSUMED = {"llvm.intr.assume", "tt.assert"}
_STRIDE = 4096  # elements; larger than a block, so that rows do not overlap
_OTHER = 300  # times that, for every second stride: rows and columns do not overlap either
_OTHER_WIDE = 32768  # the same of i64: offsets do not fit 32 bits from row 16 on, where the far program is
_SINGLE = 4  # bytes
_STEPS = 4  # of a loop whose step is not known: that of the number of programs, say
_UNIT = 16  # a size that nothing tells the block of
_LOOPED = 64  # the same, of one that a loop counts up to
_TURNS = 4  # blocks of a size that a loop counts up to, one more than the stages of most pipelines
_ROWS = 10  # of tiles that come in groups: more than a group has, and the far program is in the last one
_FEW = 9  # turns and two of a loop in a loop, or beside one, that has many
_LONG = 65  # turns of a loop that shall be long: code for so many blocks may be of its own
_REACH = 28  # bits of the largest stride of a descriptor: other arguments are 2^40 bytes away
_FLAGS = 2  # of a descriptor that was taken apart
_BLOCKS = (1, 6, _ROWS + 1)  # of a tensor behind a descriptor, along each axis, by seed: the last one is cut


@dataclass(frozen=True)
class Argument:
    """One argument of the kernel.

    Attributes:
        name: the parameter's name in the source; empty if the IR does not say.
        value: its value, an array of no axes or a descriptor.
    """

    name: str
    value: Any


def arguments(function: Operation, seed: int, stages: int = 0) -> tuple[Argument, ...]:  # noqa: C901 - by kinds
    """Choose one value per kernel parameter; the same for each module of a dump.

    Sizes never coincide, so that a pass which swaps two of them is caught. Parameters keep their order
    throughout a dump.

    Args:
        function: the kernel.
        seed: the seed of the sizes.
        stages: number of stages of its pipelined loops, which get at least one iteration more than that.

    Raises:
        UnsupportedIrError: a parameter has a type that is not supported.
    """
    rule = random.Random(seed)  # noqa: S311 - no secret
    hints = _hints(function)
    chosen = []
    near = any("tt.pointer_range" in hint.data for hint in hints)  # offsets fit 32 bits
    every = function.regions[0].blocks[0].args
    grouped = [candidate for candidate in every if is_far(seed) and _grouped(candidate)]
    nested = False  # loops of single elements may nest, so one of them is long
    used: set[int] = set()  # no two sizes are the same: one may stand where the other should
    parts: list[int] = []  # of the descriptor before: the kernel's source has no such parameters
    for number, parameter in enumerate(every):
        of = type_of(parameter.type)
        even, unit = _is_even(function, number), unit_of(function, number)
        small, eighths = rule.randrange(1, 7), rule.randrange(1, 16)
        if parts:
            value: Any = np.asarray(of.dtype.type(parts.pop(0)))
        elif of.kind == "pointer":
            value = np.asarray(np.int64(base(number)))
        elif of.kind == "descriptor":
            shape = tuple(max(size * _BLOCKS[seed % 3] - 1, 1) for size in of.shape)
            row = min(_STRIDE, 1 << _REACH // max(len(shape) - 1, 1))
            strides = tuple(row ** (len(shape) - 1 - axis) for axis in range(len(shape)))
            value = TensorDescriptor(base(number), shape, strides, of.shape, of.dtype)
            parts = [*shape, *strides] if described(every[number + 1 :], len(shape)) else []
        elif of.kind != "number" or of.shape:
            raise UnsupportedIrError(f"a parameter of type {parameter.type}")
        elif of.dtype.kind in "fV":
            value = np.asarray(eighths / 8).astype(of.dtype)
        elif of.dtype == np.bool_:
            value = np.asarray(bool(small % 2))
        elif block := _block(parameter, set()):
            size = _size(parameter, block, seed, rule, grouped, stages, unit)
            if is_far(seed) and block < _UNIT and _counted_up_to(parameter, set()):
                size, nested = (-(-(size % _FEW + 2) // unit) * unit if nested else size), True
            alone = seed % 3 or not _counted_up_to(parameter, set())  # else one turn, whatever others have
            while (alone and size in used) or (seed % 3 and unit < block and size % block == 0):
                size += unit
            used.add(size)
            value = np.asarray(of.dtype.type(min(size, most_of(parameter), np.iinfo(of.dtype).max)))
        else:
            other = _OTHER_WIDE if of.dtype.itemsize > _SINGLE and not near else _OTHER
            stride = _STRIDE * (other if number % 2 else 1) + 16 * number
            stride = -(-(stride + (0 if even else 1)) // unit) * unit
            value = np.asarray(of.dtype.type(min(stride, most_of(parameter), np.iinfo(of.dtype).max)))
        chosen.append(Argument(parameter.name_hint or "", value))
    return tuple(chosen)


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


def with_sizes(given: Sequence[Argument], sizes: Sequence[tuple[int, int]]) -> tuple[Argument, ...]:
    """Return the arguments with some numbers replaced, by their place."""
    replaced = list(given)
    for place, value in sizes:
        old = replaced[place]
        replaced[place] = Argument(old.name, np.asarray(old.value.dtype.type(value)))
    return tuple(replaced)


def long_sizes(function: Operation) -> list[tuple[int, int]]:
    """Return place and size of each loop bound that makes its loop run 64 blocks and a part."""
    sizes = []
    for number, parameter in enumerate(function.regions[0].blocks[0].args):
        of = type_of(parameter.type)
        if of.kind != "number" or of.shape or of.dtype.kind != "i":
            continue
        if _counted_up_to(parameter, set()) and (block := _block(parameter, set())):
            unit = unit_of(function, number)
            size = -(-(_LONG * block + 1) // unit) * unit
            if size <= min(most_of(parameter), np.iinfo(of.dtype).max):
                sizes.append((number, size))
    return sizes


def flags(function: Operation) -> tuple[int, ...]:
    """Return the numbers, from 1, of the parameters that point to i1: in memory those are bytes."""
    every = function.regions[0].blocks[0].args
    kinds = [type_of(parameter.type) for parameter in every]
    return tuple(
        number + 1
        for number, parameter in enumerate(kinds)
        if parameter.kind == "pointer" and parameter.dtype == np.bool_ and not parameter.shape
    )


def described(following: Sequence[SSAValue], rank: int) -> bool:
    """Return whether the next parameters are a descriptor's sizes and strides, which `desc.shape` reads."""
    kinds = [type_of(parameter.type).dtype for parameter in following[: 2 * rank]]
    return kinds == [np.dtype(np.int32)] * rank + [np.dtype(np.int64)] * rank


def fitting(values: tuple[Any, ...], parameters: Sequence[SSAValue]) -> tuple[Any, ...]:
    """Return the arguments of a text, which has more parameters if a pass expanded descriptors.

    RewriteTensorDescriptorToPointer.cpp makes pointers, sizes and strides of them. How many flags follow the
    strides differs by release: whether NaN lies outside, and whether fp32 is rounded to tf32.

    Args:
        values: the arguments of the first text.
        parameters: the parameters of this text.

    Raises:
        UnsupportedIrError: its parameters do not correspond to these arguments.
    """
    expanded = _taken_apart(values, len(parameters)) if len(parameters) != len(values) else values
    for value, parameter in zip(expanded, parameters, strict=True):
        of = type_of(parameter.type)
        if isinstance(value, TensorDescriptor):
            same = (of.kind, of.shape, of.dtype) == ("descriptor", value.block, value.dtype)
        else:
            same = not of.shape and value.dtype == (POINTER if of.kind == "pointer" else of.dtype)
        if not same or of.kind == "memory":
            raise UnsupportedIrError("parameters that are not those of the first text")
    return expanded


def _taken_apart(values: tuple[Any, ...], many: int) -> tuple[Any, ...]:
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


def _size(
    parameter: SSAValue,
    block: int,
    seed: int,
    rule: random.Random,
    grouped: Sequence[SSAValue],
    stages: int,
    unit: int,
) -> int:
    """Return a size: less than a block, or full blocks and a part, which shows what masks are for.

    The second program then has work, and the third one less; a pipelined loop comes back to its first buffer;
    and a group of tiles ends. The least part shows what is rounded up to blocks.

    """
    if seed % 3 == 0:
        return unit if unit >= _UNIT else -(-rule.randrange(3, 16, 2) // unit) * unit
    if parameter in grouped:
        turns = _ROWS
    elif _counted_up_to(parameter, set()) and (block >= _UNIT or not is_far(seed)):
        turns, block = 1 if is_far(seed) else max(_TURNS, stages + 1), _LOOPED if block == _UNIT else block
    elif grouped or not is_far(seed):
        turns = 2
    else:  # any size
        return -(-rule.randrange(17, 88) // unit) * unit
    parts = range(unit, max(block, unit + 1), unit)
    return -(-turns * block // unit) * unit + (parts[0] if is_far(seed) else rule.choice(parts))


def is_far(seed: int) -> bool:
    """Return whether a seed's programs include one far from the first, and its grouped tiles are many."""
    return seed % 3 == 2  # noqa: PLR2004 - the last of three


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


def _block(value: SSAValue, seen: set[SSAValue]) -> int:
    """Return how much of a size one program or iteration takes; 0 for a stride.

    A size is a number that is compared with, divided by or counted up to.

    """
    if value in seen:
        return 0
    seen.add(value)
    blocks, alone = [0], True
    for use in value.uses:
        name, operation = name_of(use.operation), use.operation
        alone &= name in ("arith.cmpi", "tt.addptr", "arith.muli")
        if name in _DIVIDED and not _is_assumed_rest(operation):
            blocks.append(constant_of(operation.operands[1 - use.index]) or _UNIT)
        elif name == "arith.cmpi":
            if is_assumed(operation):
                continue  # nothing is asked
            shape = type_of(operation.operands[use.index].type).shape
            fixed = not shape and constant_of(operation.operands[1 - use.index]) is not None
            blocks.append(1 if fixed else max(shape, default=_UNIT))
            alone &= fixed
        elif name == "scf.for":
            blocks.append(constant_of(operation.operands[2]) or _STEPS)
        elif name == "tt.call":  # a stride is one in the function, too, unless a size may come of it
            inside = _inside(use)
            within = _block(inside, seen) if inside else 0
            may_be_size = inside is None or any(map(_is_integer, operation.results))
            blocks.append(within or (_UNIT if may_be_size else 0))
        elif name in _PASSED_ON:
            blocks += [_block(result, seen) for result in operation.results]
    return _UNIT if alone and max(blocks) == 1 else max(blocks)  # of what is only compared with a constant


def most_of(parameter: SSAValue) -> int:
    """Return the largest value that a parameter is assumed to have, as `tl.assume(n <= 1024)` says."""
    bounds = [np.iinfo(np.int64).max]
    for use in parameter.uses:
        operation = use.operation
        if name_of(operation) == "arith.cmpi" and not use.index and is_assumed(operation):
            bound = constant_of(operation.operands[1])
            less = _BOUNDS.get(integer(operation, "predicate", -1))
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


def _is_integer(value: SSAValue) -> bool:
    of = type_of(value.type)
    return of.kind == "number" and not of.shape and of.dtype.kind == "i"


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


def _counted_up_to(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Return whether a loop runs up to a size, or to a part of it."""
    if value in seen:
        return False
    seen.add(value)
    for use in value.uses:
        name, operation = name_of(use.operation), use.operation
        if name == "scf.for" and use.index == 1:
            return True
        if (name in _PASSED_ON or name == "tt.call" or (name in _DIVIDED and use.index == 0)) and any(
            _counted_up_to(result, seen) for result in operation.results
        ):
            return True
    return False


def constant_of(value: SSAValue) -> int | None:
    """Return a constant, also one behind the front end's `arith.bitcast` of a constexpr; None for others."""
    owner = value.owner
    for _ in range(_DEPTH):
        if not isinstance(owner, Operation) or name_of(owner) not in _SAME:
            break
        owner = owner.operands[0].owner
    if not isinstance(owner, Operation) or name_of(owner) != "arith.constant":
        return None
    number = attribute(owner, "value")
    return int(number.value.data) if isinstance(number, builtin.IntegerAttr) else None
