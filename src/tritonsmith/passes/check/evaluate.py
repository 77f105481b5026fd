"""Run one program of a kernel: its operations in order, with scf's loops and cf's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue

from tritonsmith.passes.check import (  # noqa: F401 - they register their operations
    arith,
    asynchronous,
    descriptors,
    gathers,
    gpu,
    scaled,
    tensor_memory,
    tensormap,
    triton,
)
from tritonsmith.passes.check.in_flight import InFlight
from tritonsmith.passes.check.memory import GlobalMemory
from tritonsmith.passes.check.module import UnsupportedIrError, attribute, integers, name_of, symbol
from tritonsmith.passes.check.reached import ReachedCode
from tritonsmith.passes.check.registry import OPERATIONS
from tritonsmith.passes.check.warps import Turns

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
_MOST = 1 << 30  # elements that a program may compute: some minutes


class EndlessError(Exception):
    """The program does not end under these inputs."""


@dataclass
class EvaluatedProgram:
    """A run.

    Attributes:
        functions: by name.
        memory: global memory.
        program: its ids.
        grid: how many programs there are.
        limit: operations; a spin lock that nobody opens never ends.
        name: of the operation that runs.
        seen: gets each operation and its results, if somebody looks.
        scratch: numbers of pieces of scratch memory.
        descriptors: those that were made there, by address.
        flight: what is asynchronous, and under way.
        reached: what ran.
        rounds: whether dots of tf32 round what they are given: not where the reference allows them.
        assumed: whether what the program assumes has to hold.
        assumptions: operations that assume something, and ran.
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
    _values: dict[SSAValue, Any] = field(default_factory=dict)
    _steps: int = 0
    _elements: int = 0

    def launch(self, name: str, values: tuple[Any, ...]) -> int:
        """Run the kernel; how many operations that took."""
        self.call(name, values)
        self.flight.end()
        return self._steps

    def call(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a function."""
        return self._blocks(self.functions[name].regions[0], values)[1]

    def callee(self, operation: Operation) -> Operation:
        """The function that `tt.call` calls."""
        name = symbol(attribute(operation, "callee"))
        if name not in self.functions:
            raise UnsupportedIrError(f"a call of {name}, which the module does not have")
        return self.functions[name]

    def region(self, region: Region, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a region; what its terminator gives."""
        return self._blocks(region, values)[1]

    def _blocks(self, region: Region, values: tuple[Any, ...]) -> tuple[Operation, tuple[Any, ...]]:
        if not region.blocks:
            raise UnsupportedIrError("a function without a body, or an empty region")
        block: Block | None = region.blocks[0]
        while block is not None:
            self.reached.blocks.add(block)
            self._values.update(zip(block.args, values, strict=True))
            self._count()  # a loop need not have any operation
            for operation in block.ops:
                name = name_of(operation)
                if name in _ENDS:
                    return operation, tuple(self._values[one] for one in operation.operands)
                if name in ("cf.br", "cf.cond_br"):
                    block, values = self._branch(operation, name)
                    break
                self._run(operation, name)
            else:
                raise UnsupportedIrError("a block without an end")
        raise UnsupportedIrError("a region without an end")

    def _branch(self, operation: Operation, name: str) -> tuple[Block, tuple[Any, ...]]:
        values = [self._values[one] for one in operation.operands]
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
        found: tuple[Any, ...] = function(self, operation, *values)
        return found

    def _count(self) -> None:
        self._steps += 1
        if self._steps > self.limit:
            raise EndlessError(f"it does not end in {self.limit} operations")

    def _weigh(self, name: str, values: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Count the elements: large tensors take longer than many operations."""
        weight = _ACCESS if name.endswith(_ACCESSES) else 1
        inner = np.shape(values[0])[-1] if name.endswith(_PRODUCTS) else 1
        self._elements += weight * sum(map(np.size, values)) + inner * sum(map(np.size, found))
        if self._elements > _MOST:
            raise UnsupportedIrError(f"a program of more than {_MOST} elements")

    def _run(self, operation: Operation, name: str) -> None:
        self._count()
        values = tuple(self._values[one] for one in operation.operands)
        try:
            found = self._found(operation, name, values)
            self._weigh(name, values, found)
        except _MISUSED as error:  # shapes, types and places that this operation cannot have
            raise UnsupportedIrError(f"{name}: {error}") from error
        for result, value in zip(operation.results, found, strict=True):
            if isinstance(result.type, builtin.TensorType) and np.shape(value) != result.type.get_shape():
                raise UnsupportedIrError(f"{name} with a result of shape {np.shape(value)}")
            self._values[result] = value
        if self.seen is not None:
            self.seen(operation, found)


def _for(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    lower, upper, step = (int(one) for one in values[:3])
    carried = values[3:]
    if attribute(operation, "unsignedCmp") is not None:
        raise UnsupportedIrError("scf.for of unsigned integers")
    if step <= 0 and lower < upper:
        raise EndlessError(f"a loop has a step of {step}")
    turns = range(lower, upper, step) if lower < upper else range(0)
    run.reached.turned(operation, len(turns))
    for number in turns:
        at = np.asarray(values[0].dtype.type(number))
        carried = run.region(operation.regions[0], (at, *carried))
    return carried


def _if(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    region = operation.regions[0 if bool(values[0]) else 1]
    return run.region(region, ()) if region.blocks else ()


def _while(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    before, after = operation.regions
    turns = 0
    while True:
        _, (condition, *given) = run._blocks(before, values)  # noqa: SLF001
        if not bool(condition):
            run.reached.turned(operation, turns)
            return tuple(given)
        values = run.region(after, tuple(given))
        turns += 1


def _call(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    kept = dict(run._values)  # noqa: SLF001
    found = run.region(run.callee(operation).regions[0], values)
    run._values = kept  # noqa: SLF001
    return found


def _warp_specialize(run: EvaluatedProgram, operation: Operation, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The default part, and the others, which see only what they are given: by one operation or the other."""
    default, rest = operation.regions
    partitions = rest.blocks[0].last_op
    if partitions is None:
        raise UnsupportedIrError("ttg.warp_specialize without partitions")
    given = tuple(run._values[one] for one in partitions.operands) or values  # noqa: SLF001
    turns = Turns(run.flight.slow)
    others = [
        replace(run, flight=run.flight.part(turns), _values={}, _steps=0, _elements=0)
        for _ in partitions.regions
    ]
    run.reached.blocks.add(rest.blocks[0])

    def part(mine: EvaluatedProgram, region: Region) -> None:
        mine.region(region, given)
        mine.flight.leave(run.flight)

    run.flight.turns = turns  # the default part is the warps that came here, with what they have under way
    try:
        parts = [partial(part, mine, region) for mine, region in zip(others, partitions.regions, strict=True)]
        found = turns.run([lambda: run.region(default, ()), *parts])
    finally:
        run.flight.turns = None
    run._steps += sum(one._steps for one in others)  # noqa: SLF001
    return tuple(found)


_STRUCTURED = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "tt.call": _call,
    "ttg.warp_specialize": _warp_specialize,
}


def known_operations() -> frozenset[str]:
    """The names of all operations that a program may have."""
    return frozenset({*OPERATIONS, *_STRUCTURED, *_ENDS, *_REST})
