"""Run one program of a kernel: its operations in order, with the loops of scf and the blocks of cf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue

from tritonsmith.check import (  # noqa: F401 - they register their operations
    arith,
    asynchronous,
    descriptors,
    gpu,
    tensor_memory,
    triton,
)
from tritonsmith.check.blame import ReachedCode
from tritonsmith.check.in_flight import InFlight, OutOfBoundsError
from tritonsmith.check.memory import GlobalMemory
from tritonsmith.check.module import OPERATIONS, UnsupportedIrError, attribute, integers, name_of, symbol
from tritonsmith.check.warps import Turns

_ENDS = {
    "scf.yield", "tt.return", "tt.reduce.return", "tt.scan.return", "scf.condition",
    "tt.map_elementwise.return", "ttg.warp_yield", "ttg.warp_return", "ttg.mask.return",
}  # fmt: skip
_REST = {"cf.br", "cf.cond_br", "tt.func", "ttg.warp_specialize.partitions"}
_DOTS = ("warp_group_dot", "warp_group_dot_wait", "dot_async", "dot_wait")


_PRODUCTS = ("dot", "dot_async", "dot_scaled", "mma", "mma_scaled")
_ACCESSES = ("load", "store", "global_to_local", "local_to_global", "gather", "scatter", "atomic_rmw")
_ACCESS = 8  # times as long for an address of memory as for an element
_MISUSED = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
MOST = 1 << 30  # elements that a program may compute: some minutes


class AccessError(Exception):
    """An access of shared or tensor memory outside of its allocation.

    Args:
        why: the place and the allocation, in words.
        operation: the operation that accesses it.
    """

    def __init__(self, why: str, operation: Operation) -> None:
        super().__init__(why)
        self.operation = operation


class EndlessError(Exception):
    """The program does not end under these inputs."""


@dataclass(frozen=True)
class _BlockLine:
    """An operation, with the facts that every run of it needs.

    Attributes:
        operation: the operation.
        name: its name.
        operands: its operands.
        results: its results, each with its shape if it is a tensor.
        dead: values that nothing needs after it.
        weight: its cost per element of an operand.
        product: whether it is a dot.
    """

    operation: Operation
    name: str
    operands: tuple[SSAValue, ...]
    results: tuple[tuple[SSAValue, tuple[int, ...] | None], ...]
    dead: tuple[SSAValue, ...]
    weight: int
    product: bool

    @classmethod
    def of(cls, operation: Operation, dead: Sequence[SSAValue] = ()) -> _BlockLine:
        """Look up these facts for an operation."""
        name = name_of(operation)
        results = tuple(
            (result, result.type.get_shape() if isinstance(result.type, builtin.TensorType) else None)
            for result in operation.results
        )
        weight = _ACCESS if name.endswith(_ACCESSES) else 1
        operands = tuple(operation.operands)
        return cls(operation, name, operands, results, tuple(dead), weight, name.endswith(_PRODUCTS))


def _lines_of(block: Block) -> tuple[_BlockLine, ...]:
    """Return a block's operations, each with the values that die after it; others leave the block."""
    order = {operation: number for number, operation in enumerate(block.ops)}
    dead: dict[Operation, list[SSAValue]] = {}
    for value in (*block.args, *(result for operation in order for result in operation.results)):
        users = [block.find_ancestor_op_in_block(use.operation) for use in value.uses]
        inside = [user for user in users if user is not None]
        if len(inside) == len(users) and order:
            owner = value.owner if isinstance(value.owner, Operation) else next(iter(order))
            dead.setdefault(max(inside, key=order.__getitem__, default=owner), []).append(value)
    return tuple(_BlockLine.of(operation, dead.get(operation, ())) for operation in order)


def _size(value: Any) -> int:
    """Return the number of elements of a value."""
    size: int = getattr(value, "size", 1)
    return size


@dataclass
class EvaluatedProgram:
    """The run of one program.

    Attributes:
        functions: the module's functions by name.
        memory: global memory.
        program: ids of the program.
        grid: number of programs along each axis.
        limit: most operations that it may run; a spin lock that nobody opens never ends.
        name: name of the operation that runs.
        seen: called with each operation and its results; None for no recording.
        scratch: numbers for pieces of scratch memory.
        descriptors: descriptors made in scratch memory, by address.
        flight: asynchronous operations under way.
        reached: the code that ran.
        rounds: whether dots of tf32 round their operands; not if the reference itself has such dots.
        assumed: whether the program's assumptions have to hold.
        assumptions: operations that ran and assume something.
        most: most elements that it may compute.
        elements: number of elements that it has computed.
    """

    functions: dict[str, Operation]
    memory: GlobalMemory
    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    limit: int
    name: str = ""
    seen: Any = None
    scratch: Iterator[int] = field(default_factory=count)
    descriptors: dict[int, Any] = field(default_factory=dict)
    flight: InFlight = field(default_factory=InFlight)
    reached: ReachedCode = field(default_factory=ReachedCode)
    rounds: bool = False
    assumed: bool = True
    assumptions: set[Operation] = field(default_factory=set)
    most: int = MOST
    elements: int = 0
    _values: dict[SSAValue, Any] = field(default_factory=dict)
    _lines: dict[Block, tuple[_BlockLine, ...]] = field(default_factory=dict)
    _steps: int = 0

    def launch(self, name: str, values: tuple[Any, ...]) -> int:
        """Run the kernel, and return the number of operations that ran."""
        self.call(name, values)
        self.flight.end()
        return self._steps

    def call(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a function, and return its results."""
        return self._blocks(self.functions[name].regions[0], values)[1]

    def callee(self, operation: Operation) -> Operation:
        """Return the function that `tt.call` calls."""
        name = symbol(attribute(operation, "callee"))
        if name not in self.functions:
            raise UnsupportedIrError(f"a call of {name}, which the module does not have")
        return self.functions[name]

    def region(self, region: Region, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a region, and return the operands of its terminator."""
        return self._blocks(region, values)[1]

    def arithmetic(
        self,
        steps: Sequence[Operation | tuple[SSAValue, SSAValue]],
        known: Mapping[SSAValue, Any],
        asked: Sequence[SSAValue],
    ) -> list[Any]:
        """Run single operations outside of their blocks, and return the values that are asked for.

        Args:
            steps: operations; or a pair of a value and the value that it is a copy of.
            known: values to begin with.
            asked: the values to return.
        """
        self._values.update(known)
        for step in steps:
            if isinstance(step, tuple):
                self._values[step[0]] = self._values[step[1]]
            else:
                self._run(_BlockLine.of(step))
        return [self._values[value] for value in asked]

    def _blocks(self, region: Region, values: tuple[Any, ...]) -> tuple[Operation, tuple[Any, ...]]:
        if not region.blocks:
            raise UnsupportedIrError("a function without a body, or an empty region")
        block: Block | None = region.blocks[0]
        while block is not None:
            self.reached.blocks.add(block)
            self._values.update(zip(block.args, values, strict=True))
            self._count()  # a loop need not have any operation
            if (lines := self._lines.get(block)) is None:
                lines = self._lines[block] = _lines_of(block)
            for line in lines:
                if line.name in _ENDS:
                    return line.operation, tuple(self._values[operand] for operand in line.operands)
                if line.name in ("cf.br", "cf.cond_br"):
                    block, values = self._branch(line.operation, line.name)
                    break
                self._run(line)
                for value in line.dead:
                    self._values.pop(value, None)
            else:
                raise UnsupportedIrError("a block without an end")
        raise UnsupportedIrError("a region without an end")

    def _branch(self, operation: Operation, name: str) -> tuple[Block, tuple[Any, ...]]:
        values = [self._values[operand] for operand in operation.operands]
        if name == "cf.br":
            return operation.successors[0], tuple(values)
        _, first, second = integers(operation, "operandSegmentSizes")
        if bool(values[0]):
            return operation.successors[0], tuple(values[1 : 1 + first])
        return operation.successors[1], tuple(values[1 + first : 1 + first + second])

    def _found(self, operation: Operation, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if (structured := _STRUCTURED.get(name)) is not None:
            return structured(self, operation, values)
        if (function := OPERATIONS.get(name)) is None:
            raise UnsupportedIrError(name)
        self.name = name
        if not name.endswith(_DOTS):
            self.flight.use(values)
        results: tuple[Any, ...] = function(self, operation, *values)
        return results

    def _count(self) -> None:
        self._steps += 1
        if self._steps > self.limit:
            raise EndlessError(f"it does not end in {self.limit} operations")

    def _weigh(self, line: _BlockLine, values: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Count the elements against the limit: large tensors take longer than many operations."""
        inner = np.shape(values[0])[-1] if line.product else 1
        self.elements += line.weight * sum(map(_size, values)) + inner * sum(map(_size, found))
        if self.elements > self.most:
            raise UnsupportedIrError(f"a program of more than {self.most} elements")

    def _run(self, line: _BlockLine) -> None:
        self._count()
        operation, name = line.operation, line.name
        values = tuple(self._values[operand] for operand in line.operands)
        try:
            results = self._found(operation, name, values)
            self._weigh(line, values, results)
        except OutOfBoundsError as error:
            raise AccessError(str(error), operation) from error
        except _MISUSED as error:  # shapes, types and places that this operation cannot have
            raise UnsupportedIrError(f"{name}: {error}") from error
        for (result, shape), value in zip(line.results, results, strict=True):
            if shape is not None and np.shape(value) != shape:
                raise UnsupportedIrError(f"{name} with a result of shape {np.shape(value)}")
            self._values[result] = value
        if self.seen is not None:
            self.seen(operation, results)


def _for(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    lower, upper, step = (int(bound) for bound in values[:3])
    carried = values[3:]
    if attribute(operation, "unsignedCmp") is not None:
        raise UnsupportedIrError("scf.for of unsigned integers")
    if step <= 0 and lower < upper:
        raise EndlessError(f"a loop has a step of {step}")
    iterations = range(lower, upper, step) if lower < upper else range(0)
    if len(iterations) > run.limit:  # each turn counts, at least once
        raise EndlessError(f"it does not end in {run.limit} operations")
    run.reached.turned(operation, len(iterations))
    for number in iterations:
        at = np.asarray(values[0].dtype.type(number))
        carried = run.region(operation.regions[0], (at, *carried))
    return carried


def _if(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    region = operation.regions[0 if bool(values[0]) else 1]
    return run.region(region, ()) if region.blocks else ()


def _while(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    before, after = operation.regions
    iterations = 0
    while True:
        _, (condition, *carried) = run._blocks(before, values)  # noqa: SLF001
        if not bool(condition):
            run.reached.turned(operation, iterations)
            return tuple(carried)
        values = run.region(after, tuple(carried))
        iterations += 1


def _call(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    kept = dict(run._values)  # noqa: SLF001
    results = run.region(run.callee(operation).regions[0], values)
    # Drop the values of the callee, and restore those of the caller that a recursive call has overwritten.
    run._values = kept  # noqa: SLF001
    return results


def _warp_specialize(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run the default partition and the others, which see only the values that they capture."""
    default, rest = operation.regions
    partitions = rest.blocks[0].last_op
    if partitions is None:
        raise UnsupportedIrError("ttg.warp_specialize without partitions")
    captured = tuple(run._values[value] for value in partitions.operands) or values  # noqa: SLF001
    turns = Turns(run.flight.slow)
    others = [
        replace(run, flight=run.flight.part(turns), _values={}, _steps=0, elements=0)
        for _ in partitions.regions
    ]
    run.reached.blocks.add(rest.blocks[0])

    def part(mine: EvaluatedProgram, region: Region) -> None:
        mine.region(region, captured)
        mine.flight.leave(run.flight)

    run.flight.turns = turns  # the default part is the warps that came here, with what they have under way
    try:
        parts = [partial(part, mine, region) for mine, region in zip(others, partitions.regions, strict=True)]
        results = turns.run([lambda: run.region(default, ()), *parts])
    finally:
        run.flight.turns = None
    run._steps += sum(other._steps for other in others)  # noqa: SLF001
    return tuple(results)


_STRUCTURED = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "tt.call": _call,
    "ttg.warp_specialize": _warp_specialize,
}


def known_operations() -> frozenset[str]:
    """Return the names of all operations that a program may have."""
    return frozenset({*OPERATIONS, *_STRUCTURED, *_ENDS, *_REST})
