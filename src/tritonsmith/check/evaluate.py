"""Run one program of a kernel: its operations in order, with the loops of scf and the blocks of cf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue

from tritonsmith.check import arith, asynchronous, descriptors, gpu, tensor_memory, triton
from tritonsmith.check.in_flight import OutOfBoundsError, Turns
from tritonsmith.check.module import Array, UnsupportedIrError, attribute, name_of
from tritonsmith.check.program import MISUSED, EndlessError, OperationTable, TensorProgram, Values, bind

OPERATIONS = OperationTable.of(
    arith.OPERATIONS,
    triton.OPERATIONS,
    gpu.OPERATIONS,
    asynchronous.OPERATIONS,
    descriptors.OPERATIONS,
    tensor_memory.OPERATIONS,
)
_STRUCTURED = OperationTable()  # operations with regions that EvaluatedProgram runs itself
_TERMINATORS = {
    "scf.yield",
    "tt.return",
    "tt.reduce.return",
    "tt.scan.return",
    "scf.condition",
    "tt.map_elementwise.return",
    "ttg.warp_yield",
    "ttg.warp_return",
    "ttg.mask.return",
}
_BRANCHES = {"cf.br", "cf.cond_br"}
_CONTAINERS = {"tt.func", "ttg.warp_specialize.partitions"}  # regions of them run, they themselves never
# Dots of warp groups order themselves: an accumulator that is under way may go into the next dot.
_WARP_GROUP_DOTS = ("warp_group_dot", "warp_group_dot_wait", "dot_async", "dot_wait")
_PRODUCTS = ("dot", "dot_async", "dot_scaled", "mma", "mma_scaled")
_ACCESSES = ("load", "store", "global_to_local", "local_to_global", "gather", "scatter", "atomic_rmw")
_ACCESS_WEIGHT = 8  # an element of memory takes so many times as long as one of a register
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


# xDSL computes these facts anew at each request, and a loop's body runs hundreds of times.
@dataclass(frozen=True)
class BlockLine:
    """An operation, with the facts that every run of it needs.

    Attributes:
        operation: the operation.
        name: its name.
        operands: its operands.
        results: its results, each with its shape if it is a tensor.
        dead: the values that nothing needs after it.
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
    def of(cls, operation: Operation, dead: Sequence[SSAValue] = ()) -> BlockLine:
        """Look up these facts for an operation."""
        name = name_of(operation)
        results = tuple(
            (result, result.type.get_shape() if isinstance(result.type, builtin.TensorType) else None)
            for result in operation.results
        )
        weight = _ACCESS_WEIGHT if name.endswith(_ACCESSES) else 1
        operands = tuple(operation.operands)
        return cls(operation, name, operands, results, tuple(dead), weight, name.endswith(_PRODUCTS))


def _lines_of(block: Block) -> tuple[BlockLine, ...]:
    """Return a block's operations, each with the values that die after it; others leave the block."""
    # A value that is used after its block, in a loop's next block say, must live on: only values whose users
    # are all inside die here. Without this, a long kernel would hold all of its tensors at once.
    order = {operation: number for number, operation in enumerate(block.ops)}
    dead: dict[Operation, list[SSAValue]] = {}
    for value in (*block.args, *(result for operation in order for result in operation.results)):
        users = [block.find_ancestor_op_in_block(use.operation) for use in value.uses]
        inside = [user for user in users if user is not None]
        if len(inside) == len(users) and order:
            owner = value.owner if isinstance(value.owner, Operation) else next(iter(order))
            dead.setdefault(max(inside, key=order.__getitem__, default=owner), []).append(value)
    return tuple(BlockLine.of(operation, dead.get(operation, ())) for operation in order)


def _size(value: Any) -> int:
    """Return the number of elements of a value."""
    size: int = getattr(value, "size", 1)
    return size


@dataclass
class EvaluatedProgram(TensorProgram):
    """The run of one program.

    Attributes:
        most: the largest number of elements that it may compute.
        elements: the number of elements that it has computed.
        lines: the operations of each block, looked up once; runs of the same text share them.
    """

    most: int = MOST
    elements: int = 0
    lines: dict[Block, tuple[BlockLine, ...]] = field(default_factory=dict)

    def launch(self, name: str, values: Values) -> None:
        """Run the kernel."""
        self.call(name, values)
        self.flight.end()

    @property
    def steps(self) -> int:
        """The number of operations that ran."""
        return self._steps

    def call(self, name: str, values: Values) -> Values:
        """Run a function, and return its results."""
        return self._blocks(self.functions[name].regions[0], values)[1]

    def region(self, region: Region, values: Values) -> Values:
        """Run a region, and return the operands of its terminator."""
        return self._blocks(region, values)[1]

    def arithmetic(
        self,
        steps: Sequence[Operation | tuple[SSAValue, SSAValue]],
        known: Mapping[SSAValue, Any],
        results: Sequence[SSAValue],
    ) -> list[Any]:
        """Run single operations outside of their blocks, and return some values.

        Args:
            steps: operations; or a pair of a value and the value that it is a copy of.
            known: values to begin with.
            results: the values to return.
        """
        self._values.update(known)
        for step in steps:
            if isinstance(step, tuple):
                self._values[step[0]] = self._values[step[1]]
            else:
                self._run(BlockLine.of(step))
        return [self._values[value] for value in results]

    def _blocks(self, region: Region, values: Values) -> tuple[Operation, Values]:
        if not region.blocks:
            raise UnsupportedIrError("a function without a body, or an empty region")
        block: Block | None = region.blocks[0]
        while block is not None:
            self.reached.blocks.add(block)
            self._values.update(zip(block.args, values, strict=True))
            self._count()  # a block may have no operation but its branch: an endless loop
            if (lines := self.lines.get(block)) is None:
                lines = self.lines[block] = _lines_of(block)
            for line in lines:
                if line.name in _TERMINATORS:
                    return line.operation, tuple(self._values[operand] for operand in line.operands)
                if line.name in _BRANCHES:
                    block, values = self._branch(line.operation, line.name)
                    break
                self._run(line)
                for value in line.dead:
                    self._values.pop(value, None)
            else:
                raise UnsupportedIrError("a block without an end")
        raise UnsupportedIrError("a region without an end")

    def _branch(self, operation: Operation, name: str) -> tuple[Block, Values]:
        values = self._operands(operation)
        if name == "cf.br":
            return operation.successors[0], values
        condition, if_true, if_false = bind(operation, values, ("condition", "true*", "false*"))
        if bool(condition):
            return operation.successors[0], if_true
        return operation.successors[1], if_false

    def _evaluate(self, operation: Operation, name: str, values: Values) -> Values:
        if (structured := _STRUCTURED.get(name)) is not None:
            return structured(self, operation, *values)
        if (function := OPERATIONS.get(name)) is None:
            raise UnsupportedIrError(name)
        self.name, self.memory.operation = name, operation
        # Control flow above only passes a result on; what computes with it waits for it first.
        if not name.endswith(_WARP_GROUP_DOTS):
            self.flight.use(values)
        return function(self, operation, *values)

    def _weigh(self, line: BlockLine, values: Values, results: Values) -> None:
        """Count the elements against the limit: large tensors take longer than many operations."""
        inner = np.shape(values[0])[-1] if line.product else 1
        self.elements += line.weight * sum(map(_size, values)) + inner * sum(map(_size, results))
        if self.elements > self.most:
            raise UnsupportedIrError(f"a program of more than {self.most} elements")

    def _run(self, line: BlockLine) -> None:
        self._count()
        operation, name = line.operation, line.name
        values = tuple([self._values[operand] for operand in line.operands])
        try:
            results = self._evaluate(operation, name, values)
            self._weigh(line, values, results)
        except OutOfBoundsError as error:
            raise AccessError(str(error), operation) from error
        except MISUSED as error:
            raise UnsupportedIrError(f"{name}: {error}") from error
        for (result, shape), value in zip(line.results, results, strict=True):
            # NumPy broadcasts where MLIR would not: a shape that is not the type's shows a mistake here.
            if shape is not None and np.shape(value) != shape:
                raise UnsupportedIrError(f"{name} with a result of shape {np.shape(value)}")
            self._values[result] = value
        if self.recorder is not None:
            self.recorder(operation, results)

    @_STRUCTURED.known("scf.for", operands=("lower", "upper", "step", "carried*"))
    def _for(self, operation: Operation, lower: Array, upper: Array, step: Array, carried: Values) -> Values:
        if attribute(operation, "unsignedCmp") is not None:
            raise UnsupportedIrError("scf.for of unsigned integers")
        first, end, by = int(lower), int(upper), int(step)
        if by <= 0 and first < end:
            raise EndlessError(f"a loop has a step of {by}")
        iterations = range(first, end, by) if first < end else range(0)
        if len(iterations) > self.limit:  # each turn counts, at least once
            raise EndlessError(f"it does not end within {self.limit} operations")
        self.reached.turned(operation, len(iterations))
        # The bounds are fixed when the loop begins, as MLIR defines it: its body cannot change them.
        for number in iterations:
            induction = np.asarray(lower.dtype.type(number))
            carried = self.region(operation.regions[0], (induction, *carried))
        return carried

    @_STRUCTURED.known("scf.if")
    def _if(self, operation: Operation, condition: Array) -> Values:
        region = operation.regions[0 if bool(condition) else 1]
        return self.region(region, ()) if region.blocks else ()

    @_STRUCTURED.known("scf.while")
    def _while(self, operation: Operation, *values: Any) -> Values:
        before, after = operation.regions
        iterations = 0
        while True:
            _, (condition, *carried) = self._blocks(before, values)
            if not bool(condition):
                self.reached.turned(operation, iterations)
                return tuple(carried)
            values = self.region(after, tuple(carried))
            iterations += 1

    @_STRUCTURED.known("tt.call")
    def _call(self, operation: Operation, *values: Any) -> Values:
        caller = dict(self._values)
        results = self.region(self.callee(operation).regions[0], values)
        # Drop the callee's values, and restore those of the caller that a recursive call has overwritten.
        self._values = caller
        return results

    @_STRUCTURED.known("ttg.warp_specialize")
    def _warp_specialize(self, operation: Operation, *values: Any) -> Values:
        """Run the default partition and the others, which see only the values that they capture."""
        default, rest = operation.regions
        partitions = rest.blocks[0].last_op
        if partitions is None:
            raise UnsupportedIrError("ttg.warp_specialize without partitions")
        # Captured values are operands of `partitions` in some releases, of the operation itself in others.
        captured = self._operands(partitions) or values
        turns = Turns(self.flight.slow)
        others = [
            replace(self, flight=self.flight.part(turns), _values={}, _steps=0, elements=0)
            for _ in partitions.regions
        ]
        self.reached.blocks.add(rest.blocks[0])

        def part(program: EvaluatedProgram, region: Region) -> None:
            program.region(region, captured)
            program.flight.leave(self.flight)

        # The default partition is the warps that came here, with the work that they have under way.
        self.flight.turns = turns
        try:
            parts = [
                partial(part, other, region) for other, region in zip(others, partitions.regions, strict=True)
            ]
            results: Values = turns.run([lambda: self.region(default, ()), *parts])
        finally:
            self.flight.turns = None
        self._steps += sum(other._steps for other in others)  # noqa: SLF001 - of the same class
        return tuple(results)


def known_operations() -> frozenset[str]:
    """Return the names of all operations that a program may have."""
    return frozenset({*OPERATIONS, *_STRUCTURED, *_TERMINATORS, *_BRANCHES, *_CONTAINERS})
