"""Run a kernel in LLVM's dialect with one block of threads, in lockstep."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, SSAValue

from tritonsmith.check import arith
from tritonsmith.check.llvm import intrinsics, operations, ptx
from tritonsmith.check.llvm.operations import Value, llvm_type, merge
from tritonsmith.check.llvm.threads import ByteMemory, RaceError, SharedMemory, ThreadBlock
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import (
    Array,
    UnsupportedIrError,
    attribute,
    element_type,
    integer,
    name_of,
    parse,
    text,
    without_locations,
)
from tritonsmith.check.program import MISUSED, OperationTable, Recorder, Values, bind
from tritonsmith.core.errors import SmithError

_BRANCHES = {"llvm.br", "llvm.cond_br", "cf.br", "cf.cond_br"}
_RETURNS = {"llvm.return", "tt.return"}
# They work element by element, so that they mean the same for an array over threads.
_PLAIN = OperationTable(
    {name: run for name, run in arith.OPERATIONS.items() if name.startswith(("arith.", "math."))}
)


@dataclass
class LockstepRun(ThreadBlock):
    """The run of one block of threads."""

    operations: ClassVar[OperationTable] = OperationTable.of(
        _PLAIN,
        operations.THREADED,
        intrinsics.THREADED,
        ptx.THREADED,
    )

    def start(self, name: str, values: Values) -> None:
        """Run the kernel."""
        self.mask = np.ones(self.threads, np.bool_)
        with np.errstate(all="ignore"):
            self.call(name, values)

    def call(self, name: str, values: Values) -> Values:
        """Run a function with the threads that are active."""
        blocks = list(self.functions[name].regions[0].blocks)
        order = {block: number for number, block in enumerate(blocks)}
        active, results = self.mask, None
        self._set(blocks[0].args, values)
        waiting = {0: active}
        while waiting:
            # Of the blocks where threads wait, the first in the text runs next, with all that wait there: so
            # threads that diverged meet again where their paths join, and those that left a loop wait for the
            # others.
            number = min(waiting)
            self.mask = waiting.pop(number)
            terminator, operands = self._block(blocks[number])
            if name_of(terminator) in _RETURNS:
                # Threads may return at different places, each with a value of its own.
                results = operands if results is None else merge(self.mask, operands, results)
                continue
            for block, mask, arguments in self._ways(terminator, operands):
                self.mask = mask
                self._set(block.args, arguments)
                # Threads that wait there already are joined, and run as one from here on.
                at = order[block]
                waiting[at] = waiting[at] | mask if at in waiting else mask
        self.mask = active
        return results or ()

    def _block(self, block: Block) -> tuple[Operation, Values]:
        """Run a block, and return its terminator with the values of that one's operands."""
        for operation in block.ops:
            name = name_of(operation)
            values = self._operands(operation)
            if name in _BRANCHES or name in _RETURNS:
                return operation, values
            self._count()
            if (function := self.operations.get(name)) is None:
                raise UnsupportedIrError(name)
            self.name = name
            try:
                results = function(self, operation, *values)
            except RaceError as error:
                error.operation = operation
                raise
            except MISUSED as error:
                raise UnsupportedIrError(f"{name}: {error}") from error
            self._set(operation.results, results)
            if self.recorder is not None:
                self.recorder(operation, results)
        raise UnsupportedIrError("a block without an end")

    def _ways(self, terminator: Operation, values: Values) -> list[tuple[Block, Array, Values]]:
        """Return where the threads go on: the block, a mask of threads, and the block's arguments."""
        if len(terminator.successors) == 1:
            return [(terminator.successors[0], self.mask, values)]
        condition, if_true, if_false = bind(terminator, values, ("condition", "true*", "false*"))
        taken = np.broadcast_to(condition, self.threads)
        ways = (
            (terminator.successors[0], self.mask & taken, if_true),
            (terminator.successors[1], self.mask & ~taken, if_false),
        )
        return [way for way in ways if way[1].any()]

    def _set(self, names: Iterable[SSAValue], values: Iterable[Value]) -> None:
        """Set values for the active threads; the others keep what they had."""
        whole = bool(self.mask.all())
        for name, value in zip(names, values, strict=True):
            # Threads that are elsewhere keep their value, which they may read when they come back.
            old = None if whole else self._values.get(name)
            self._values[name] = value if old is None else merge(self.mask, value, old)


_ALIAS = re.compile(r"^#di_\w* = .*\n?", re.MULTILINE)  # debug information, which xDSL does not read


@dataclass(frozen=True)
class LoweredKernel:
    """A module in LLVM's dialect, without Triton's functions.

    Attributes:
        module: the parsed module.
        functions: its functions by name.
        main: the name of the kernel.
    """

    module: Operation
    functions: dict[str, Operation]
    main: str

    def run(
        self,
        values: Values,
        reference: GlobalMemory,
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        limit: int,
        recorder: Recorder | None = None,
        *,
        rounds: bool = False,
    ) -> GlobalMemory:
        """Run a block of threads on the reference's arguments; return its writes as the reference's elements.

        Raises:
            UnsupportedIrError: the kernel has an operation, a type or an access that is not known.
            RaceError: warps access the same shared memory without a barrier between them.
        """
        function = self.functions[self.main]
        parameters = function.regions[0].blocks[0].args
        scratch = parameters[len(values) :]
        if any(not isinstance(argument, np.ndarray) for argument in values) or any(
            llvm_type(str(parameter.type)).space != 1 for parameter in scratch
        ):
            raise UnsupportedIrError("parameters that are not those of Triton's IR")
        # Which thread writes last is undefined on a GPU, so either value is right.
        if reference.races.any:
            raise UnsupportedIrError("elements that one operation of the reference writes twice")
        memory = ByteMemory.of(reference, self._pointees())
        warp, warps = integer(self.module, "ttg.threads-per-warp"), integer(self.module, "ttg.num-warps")
        if not warp or not warps or integer(self.module, "ttg.num-ctas", 1) != 1:
            raise UnsupportedIrError("a cluster of blocks, or an unknown number of threads")
        if integer(self.module, "ttg.total-num-warps", warps) != warps:
            raise UnsupportedIrError("warp specialization")
        shared = SharedMemory(integer(self.module, "ttg.shared"))
        run = LockstepRun(
            self.functions,
            memory,
            program,
            grid,
            limit,
            recorder=recorder,
            rounds=rounds,
            shared=shared,
            threads=warp * warps,
            warp=warp,
        )
        # Further parameters point to scratch memory, whose regions are no argument's: nothing in them is a
        # result.
        scratch_values = tuple(
            np.asarray(np.int64(base(number))) for number in range(len(values), len(parameters))
        )
        run.start(self.main, (*values, *scratch_values))
        return memory.result(len(values))

    def _pointees(self) -> tuple[np.dtype[Any] | None, ...]:
        """Return the dtype that each parameter points to; None where the attributes do not say."""
        hints = attribute(self.functions[self.main], "arg_attrs")
        dtypes: list[np.dtype[Any] | None] = []
        for hint in hints.data if isinstance(hints, builtin.ArrayAttr) else ():
            spelling = str(hint.data.get("tt.pointee_type", ""))
            try:
                dtypes.append(element_type(spelling))
            except UnsupportedIrError:
                dtypes.append(None)
        return tuple(dtypes)


def lowered(raw: str) -> LoweredKernel | None:
    """Parse a module in generic form; None if it has no functions of LLVM's dialect.

    Raises:
        FactError: xDSL cannot parse it.
        SmithError: the module has no kernel, or more than one.
    """
    module = parse(_ALIAS.sub("", without_locations(raw)))
    functions = {
        text(attribute(function, "sym_name")).strip('"'): function
        for function in module.walk()
        if name_of(function) in ("llvm.func", "tt.func")
    }
    shown = [
        name
        for name, function in functions.items()
        if function.regions[0].blocks and "internal" not in str(attribute(function, "linkage"))
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    return LoweredKernel(module, functions, shown[0])
