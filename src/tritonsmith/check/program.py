"""The state of a run, as operations see it, and the table in which they are registered.

`evaluate` runs a program of Triton's IR, a tensor at a time; `llvm.machine` runs a block of threads. Both
look their operations up in an `OperationTable`, and hand themselves to the function that they find there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

from xdsl.ir import Operation, Region, SSAValue

from tritonsmith.check.blame import ReachedCode
from tritonsmith.check.in_flight import InFlight
from tritonsmith.check.memory import GlobalMemory
from tritonsmith.check.module import UnsupportedIrError, attribute, integers, symbol

# Values of a run: arrays, descriptors, block pointers, views outside of memory, and None for a token. Which
# of them an operation takes is written in its .td file, and MLIR verified it before it printed the text.
Values: TypeAlias = tuple[Any, ...]
Handler: TypeAlias = Callable[..., Values]
Recorder: TypeAlias = Callable[[Operation, Values], None]  # called with each operation and its results

HandlerT = TypeVar("HandlerT", bound=Handler)
MemoryT = TypeVar("MemoryT")

# A text may be anybody's, and a release may give an operation another form: Python and NumPy then raise
# these, and the text is unknown, not wrong.
MISUSED = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
_MANY, _OPTIONAL = "*", "?"


class OperationTable(dict[str, Handler]):
    """Functions that run operations, by the operations' names in MLIR.

    A function is called with the run, the operation and the values of the operands.
    """

    def known(self, *names: str, operands: tuple[str, ...] = ()) -> Callable[[HandlerT], HandlerT]:
        """Register a function for operations of these names.

        Args:
            names: names of operations; a dialect is spelled differently from release to release.
            operands: names of the operands as `bind` takes them, for operations with optional or variadic
                ones in the middle: the function then gets one argument for each name.
        """

        def register(function: HandlerT) -> HandlerT:
            def bound(run: AnyRun, operation: Operation, *values: Any) -> Values:
                return function(run, operation, *bind(operation, values, operands))

            self.update(dict.fromkeys(names, bound if operands else function))
            return function

        return register

    @classmethod
    def of(cls, *tables: OperationTable) -> OperationTable:
        """Return all operations of several tables, whose names are distinct."""
        table = cls()
        for part in tables:
            table.update(part)
        return table


def bind(operation: Operation, values: Values, names: Sequence[str]) -> Values:
    """Divide the operands' values among their names in the operation's .td file.

    Args:
        operation: the operation.
        values: the values of all operands in order.
        names: `ptr` is one operand, `mask?` an optional one, `indices*` any number of them.

    Returns:
        For each name a value; or a value or None; or a tuple of values.

    Raises:
        ValueError: the operation does not have these operands.
    """
    sizes = integers(operation, "operandSegmentSizes") or _sizes(names, len(values))
    # Operands that a later release appends are optional: an older one has no segment for them.
    sizes += (0,) * sum(name.endswith((_OPTIONAL, _MANY)) for name in names[len(sizes) :])
    if len(sizes) != len(names) or sum(sizes) != len(values):
        raise ValueError(f"{len(values)} operands for {', '.join(names)}")
    bound: list[Any] = []
    at = 0
    for name, size in zip(names, sizes, strict=True):
        segment = values[at : at + size]
        at += size
        if name.endswith(_MANY):
            bound.append(segment)
        elif size == 1:
            bound.append(segment[0])
        elif size == 0 and name.endswith(_OPTIONAL):
            bound.append(None)
        else:
            raise ValueError(f"{size} operands for {name}")
    return tuple(bound)


def _sizes(names: Sequence[str], total: int) -> tuple[int, ...]:
    """Return the number of operands of each name for an operation that does not list them."""
    # MLIR leaves the sizes out where they follow from the total: one operand is optional or variadic, or all
    # variadic ones are equally long (SameVariadicOperandSize).
    more = total - sum(not name.endswith((_OPTIONAL, _MANY)) for name in names)
    variadic = sum(name.endswith(_MANY) for name in names)
    length, rest = divmod(more, variadic) if variadic else (0, 0)
    sizes = []
    for name in names:
        if name.endswith(_MANY):
            sizes.append(length)
        elif name.endswith(_OPTIONAL):
            sizes.append(min(1, max(0, more)) if not variadic else 0)
            more -= sizes[-1]
        else:
            sizes.append(1)
    if length < 0 or rest or sum(sizes) != total:
        raise ValueError(f"{total} operands for {', '.join(names)}")
    return tuple(sizes)


class EndlessError(Exception):
    """The program does not end under these inputs."""


@dataclass
class EvaluatedIr(Generic[MemoryT]):
    """The run of a program, for any kind of values.

    Attributes:
        functions: the module's functions by name.
        memory: global memory.
        program: the ids of the program.
        grid: the number of programs along each axis.
        limit: the largest number of operations that it may run; a spin lock that stays closed never ends.
        name: the name of the operation that runs.
        recorder: a function that is called with each operation and its results; None for no recording.
        rounds: whether dots of tf32 round their operands; not if the reference itself has such dots.
    """

    functions: dict[str, Operation]
    memory: MemoryT
    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    limit: int
    name: str = ""
    recorder: Recorder | None = None
    rounds: bool = False
    _values: dict[SSAValue, Any] = field(default_factory=dict)
    _steps: int = 0

    def _count(self) -> None:
        """Count an operation.

        Raises:
            EndlessError: more have run than the limit allows.
        """
        self._steps += 1
        if self._steps > self.limit:
            raise EndlessError(f"it does not end within {self.limit} operations")

    def _operands(self, operation: Operation) -> Values:
        """Return the values of an operation's operands."""
        return tuple(self._values[operand] for operand in operation.operands)


AnyRun: TypeAlias = EvaluatedIr[Any]  # operations of arith and math know nothing of memory


@dataclass
class TensorProgram(EvaluatedIr[GlobalMemory], ABC):
    """The run of one program of Triton's IR, whose values are tensors.

    Attributes:
        scratch: numbers for pieces of scratch memory.
        descriptors: descriptors made in scratch memory, by address.
        flight: asynchronous operations under way.
        reached: the code that ran.
        assumed: whether the program's assumptions have to hold.
        assumptions: operations that ran and assume something.
    """

    scratch: Iterator[int] = field(default_factory=count)
    descriptors: dict[int, DeviceDescriptor] = field(default_factory=dict)
    flight: InFlight = field(default_factory=InFlight)
    reached: ReachedCode = field(default_factory=ReachedCode)
    assumed: bool = True
    assumptions: set[Operation] = field(default_factory=set)

    @abstractmethod
    def region(self, region: Region, values: Values) -> Values:
        """Run a region, and return the operands of its terminator."""

    def callee(self, operation: Operation) -> Operation:
        """Return the function that `tt.call` calls.

        Raises:
            UnsupportedIrError: the module has no such function.
        """
        name = symbol(attribute(operation, "callee"))
        if name not in self.functions:
            raise UnsupportedIrError(f"a call of {name}, which the module does not have")
        return self.functions[name]


@dataclass(frozen=True)
class DeviceDescriptor:
    """A descriptor that the kernel itself wrote to memory; its block is in the type of what reads it.

    Attributes:
        base: byte address of the tensor.
        sizes: elements along each axis, the innermost first.
        strides: bytes along each axis but the innermost.
        nan: whether elements outside are NaN.
    """

    base: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    nan: bool
