"""Find sizes on both sides of each bound that a kernel tests, loops without a turn, and its grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, SSAValue

from tritonsmith.check.evaluate import AccessError, EvaluatedProgram
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.inputs import constant_of, is_assumed, most_of, unit_of
from tritonsmith.check.memory import GlobalMemory
from tritonsmith.check.module import UnsupportedIrError, attribute, integer, name_of, symbol, type_of
from tritonsmith.check.program import EndlessError

_IDS, _GRID = "tt.get_program_id", "tt.get_num_programs"
_COMPARED = {"arith.cmpi", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"}
_CONTROL = {"scf.if", "cf.cond_br", "scf.condition"}
_AXES = 3
_LONGEST = 200  # operations of such arithmetic
_LARGEST = 1 << 16  # larger sizes make the loops of a run too long
_MOST_IDS = 256
_FEW = 12  # constants whose products are tried, too: all of them take a second for a decision
_STEPS = 20_000
_FAR = 4093  # an id that no grid of these sizes has
_EMPTY = 16  # programs in a row that write nothing: the grid has ended before them
_WRONG = (UnsupportedIrError, EndlessError, AssumedError, AccessError, KeyError)


@dataclass(frozen=True)
class Boundary:
    """A parameter or program id that differs from the usual inputs.

    Attributes:
        place: the number of the parameter, from 0; or -1, -2, -3 for the program ids.
        value: the value that it gets instead.
    """

    place: int
    value: int


@dataclass
class _Decision:
    """A decision of a kernel, with the arithmetic that leads to it.

    Attributes:
        steps: operations in order; or a parameter of a function, with the operand of its only call.
        operands: the two numbers that are compared, or the condition itself.
        loop: whether it decides if a loop has a turn.
        places: the parameters and program ids that it depends on, as in `Boundary`.
        constants: the constants of that arithmetic.
    """

    operands: tuple[SSAValue, ...]
    loop: bool
    steps: list[Operation | tuple[SSAValue, SSAValue]] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    constants: set[int] = field(default_factory=set)


class BoundaryFinder:
    """The search for the bounds of a kernel.

    Args:
        functions: the functions of its module.
        main: the name of the kernel.
        grid: the number of programs along each axis.
    """

    def __init__(self, functions: Mapping[str, Operation], main: str, grid: tuple[int, int, int]) -> None:
        self._functions, self._main, self._grid = dict(functions), functions[main], grid
        self._parameters: list[SSAValue] = list(self._main.regions[0].blocks[0].args)
        self._calls: dict[str, list[Operation]] = {}
        for function in functions.values():
            for operation in function.walk():
                if name_of(operation) == "tt.call":
                    self._calls.setdefault(symbol(attribute(operation, "callee")), []).append(operation)

    def find(self, usual: Sequence[Any], most: int) -> list[Boundary]:
        """Find numbers at the bounds; those that decide about control flow come first.

        Args:
            usual: the kernel's arguments in the usual inputs.
            most: the largest number of bounds.
        """
        # Where a decision follows from parameters and program ids alone, by arithmetic, it is evaluated for
        # likely values of each of them: those near the constants of that arithmetic. Values where it changes
        # are bounds.
        values = {place: int(usual[place]) for place in self._free()}
        # Program 0 runs, where no bound is about the ids: see `ReferenceRuns`.
        values |= {-1 - axis: 0 for axis in range(_AXES)}
        bounds: dict[Boundary, None] = {}
        for decision in self._decisions():
            for place in sorted(decision.places, reverse=True):
                for value in self._flips(decision, place, values):
                    if value != values[place]:
                        bounds.setdefault(Boundary(place, value))
        return list(bounds)[:most]

    def _free(self) -> list[int]:
        """List the places of integer parameters."""
        types = [type_of(parameter.type) for parameter in self._parameters]
        return [place for place, kind in enumerate(types) if kind.is_integer]

    def _decisions(self) -> Iterator[_Decision]:
        """Yield the decisions of control flow, then other comparisons."""
        # A scalar comparison, the smaller or larger of two numbers, and the bounds of a loop are decisions.
        every = [operation for function in self._functions.values() for operation in function.walk()]
        control = {
            operand
            for operation in every
            if name_of(operation) in _CONTROL
            for operand in operation.operands[:1]
        }
        first, later = [], []
        for operation in every:
            name = name_of(operation)
            if name == "scf.for":
                first.append(_Decision((operation.operands[0], operation.operands[1]), loop=True))
            elif operation.results and operation.results[0] in control:
                first.append(_Decision((operation.results[0],), loop=False))
            elif name == "arith.cmpi" and not is_assumed(operation):
                later.append(_Decision((operation.results[0],), loop=False))
            elif name in _COMPARED:
                later.append(_Decision(tuple(operation.operands), loop=False))
        for decision in (*first, *later):
            if all(self._lead(operand, decision, set()) for operand in decision.operands):
                yield decision

    def _lead(self, value: SSAValue, decision: _Decision, visited: set[SSAValue]) -> bool:
        """Collect the arithmetic by which a value follows from parameters and ids; False if it does not."""
        if value in visited or any(
            result == value for step in decision.steps for result in _results_of(step)
        ):
            return True
        visited.add(value)
        if len(decision.steps) > _LONGEST or not _is_number(value):
            return False
        owner = value.owner
        if isinstance(owner, Block):
            return self._lead_out(value, owner, decision, visited)
        name = name_of(owner)
        if (number := constant_of(value)) is not None:
            decision.constants.add(number)
        if name == _IDS:
            decision.places.add(-1 - integer(owner, "axis"))
        elif not name.startswith("arith.") and name not in ("tt.call", _GRID):
            return False
        if not all(self._lead(operand, decision, visited) for operand in owner.operands):
            return False
        decision.steps.append(owner)
        return True

    def _lead_out(self, value: SSAValue, block: Block, decision: _Decision, visited: set[SSAValue]) -> bool:
        """Do the same for a parameter of the kernel, or of a function that is called once."""
        if value in self._parameters:
            decision.places.add(self._parameters.index(value))
            return True
        function = block.parent_op()
        if function is None or name_of(function) != "tt.func" or function.regions[0].blocks[0] is not block:
            return False
        calls = self._calls.get(symbol(attribute(function, "sym_name")), [])
        # With several calls a value of the function does not follow from the kernel's parameters alone.
        if len(calls) != 1:
            return False
        outside = next(
            argument
            for parameter, argument in zip(block.args, calls[0].operands, strict=True)
            if parameter is value
        )
        if not self._lead(outside, decision, visited):
            return False
        decision.steps.append((value, outside))
        return True

    def _flips(self, decision: _Decision, place: int, values: Mapping[int, int]) -> list[int]:
        """Return the values on both sides of each change of the decision, and the smallest candidate."""
        outcomes = []
        for value in self._likely(decision, place, values):
            outcome = self._outcome(decision, {**values, place: value})
            if outcome is not None:
                outcomes.append((value, outcome))
        # Both sides of a change: a pass that turns `<` into `<=` is wrong on one of them only.
        flips = [
            value
            for before, after in pairwise(outcomes)
            if before[1] != after[1]
            for value in (before[0], after[0])
        ]
        return [*flips, outcomes[0][0]] if flips else []

    def _likely(self, decision: _Decision, place: int, values: Mapping[int, int]) -> list[int]:
        """Return likely values of a parameter, sorted: near 0, the constants, their products, and others."""
        numbers = {number for number in decision.constants if 0 < number < _LARGEST}
        centres = {0, *numbers}
        if len(numbers) <= _FEW:
            centres |= {left * right for left in numbers for right in numbers}
        centres |= {values[other] for other in decision.places}
        if place < 0:
            return sorted(
                {
                    centre + offset
                    for centre in centres
                    for offset in (-1, 0, 1)
                    if 0 <= centre + offset < _MOST_IDS
                }
            )
        # Multiples of the unit only: `tl.assume(n % 16 == 0)` must hold for each input.
        unit, most = unit_of(self._main, place), min(most_of(self._parameters[place]), _LARGEST)
        near = {(centre + offset) // unit * unit for centre in centres for offset in (-unit, -1, 0, 1, unit)}
        return sorted(value for value in near if 0 <= value <= most)

    def _outcome(self, decision: _Decision, values: Mapping[int, int]) -> bool | None:
        """Evaluate the decision; None if it cannot be computed."""
        # The arithmetic is run by the same code as the kernel, so that it wraps and divides in the same way.
        program = (values[-1], values[-2], values[-3])
        run = EvaluatedProgram(self._functions, GlobalMemory(0), program, self._grid, _STEPS)
        known: dict[SSAValue, Any] = {
            parameter: np.asarray(values[place]).astype(type_of(parameter.type).dtype)
            for place, parameter in enumerate(self._parameters)
            if place in values
        }
        try:
            results = [int(value) for value in run.arithmetic(decision.steps, known, decision.operands)]
        except _WRONG:
            return None
        return bool(results[0]) if len(results) == 1 else results[0] < results[1]


def _results_of(step: Operation | tuple[SSAValue, SSAValue]) -> Sequence[SSAValue]:
    return step[:1] if isinstance(step, tuple) else step.results


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.type, (builtin.IntegerType, builtin.IndexType))


Program = tuple[int, int, int]


def find_grid(
    functions: Iterable[Operation],
    launched: Program,
    program: Program,
    writes: Callable[[Program], bool],
    most: int,
) -> list[Program]:
    """Return a grid that has all programs with work beside one of them; empty if that is too large.

    Args:
        functions: the functions of the kernel's module.
        launched: the number of programs along each axis, as the kernel is told.
        program: the ids of a program that belongs to the grid.
        writes: returns whether a program writes anything.
        most: the largest number of programs.
    """
    every = [operation for function in functions for operation in function.walk()]
    axes = {integer(operation, "axis") for operation in every if name_of(operation) == _IDS}
    counted = {integer(operation, "axis") for operation in every if name_of(operation) == _GRID}
    sizes = {axis: max(launched[axis], program[axis] + 1) for axis in axes & counted}
    free = axes - counted
    # Neither the IR nor a launch that nobody makes says how many programs there are. Where the ids of an axis
    # are compared with a size, those that are too large write nothing.
    base = program if writes(program) else _with(program, dict.fromkeys(free, 0))
    for axis in sorted(free):
        # Any number of batches may be launched: then all programs of this one are the grid.
        if writes(_with(base, {axis: _FAR})):
            continue
        last = _last((_with(base, {axis: place}) for place in range(most + 1)), writes)
        sizes[axis] = max(last, program[axis]) + 1
    ranges = [range(sizes[axis]) if axis in sizes else (program[axis],) for axis in range(_AXES)]
    total = 1
    for ids in ranges:
        total *= len(ids)
    # The first axis is the fastest one, as on a GPU: atomics and locks see the programs in this order.
    return [(x, y, z) for z, y, x in product(*reversed(ranges))] if total <= most else []


def _with(program: Program, ids: Mapping[int, int]) -> Program:
    x, y, z = (ids.get(axis, own) for axis, own in enumerate(program))
    return x, y, z


def _last(programs: Iterable[Program], writes: Callable[[Program], bool]) -> int:
    """Return the number of the last program before a long row of those that write nothing."""
    last = 0
    for place, program in enumerate(programs):
        if writes(program):
            last = place
        elif place - last > _EMPTY:
            break
    return last
