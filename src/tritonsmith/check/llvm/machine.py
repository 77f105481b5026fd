"""Run one block of threads in lockstep.

Among the blocks where threads wait, the first in the text runs next, with all threads that wait there: so
threads that diverged meet again where their paths end, and those that left a loop wait for the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, SSAValue

from tritonsmith.check.evaluate import EndlessError
from tritonsmith.check.llvm import amd, operations, ptx  # noqa: F401 - they register their operations
from tritonsmith.check.llvm.memory import ByteMemory, SharedMemory
from tritonsmith.check.llvm.types import llvm_type, merge
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import (
    OPERATIONS,
    THREADED,
    UnsupportedIrError,
    attribute,
    element_type,
    integer,
    integers,
    name_of,
    parse,
    text,
    without_locations,
)
from tritonsmith.core.errors import SmithError

_BRANCHES = ("llvm.br", "llvm.cond_br", "cf.br", "cf.cond_br")
_PLAIN = ("arith.", "math.")  # whose operations mean the same in each thread
_RETURNS = ("llvm.return", "tt.return")

Array = np.ndarray[Any, Any]


@dataclass
class LockstepRun:
    """The run of one block of threads.

    Attributes:
        functions: the module's functions by name.
        memory: global memory.
        shared: shared memory.
        program: ids of the program.
        grid: number of programs along each axis.
        threads: number of threads of a block.
        warp: number of threads of a warp.
        limit: most operations that it may run; beyond them it counts as endless.
        name: name of the operation that runs.
        mask: threads that run it.
        seen: called with each operation and its results; None for no recording.
        rounds: whether products of tf32 round their operands.
    """

    functions: dict[str, Operation]
    memory: ByteMemory
    shared: SharedMemory
    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    threads: int
    warp: int
    limit: int
    name: str = ""
    mask: Array = field(default_factory=lambda: np.empty(0, np.bool_))
    seen: Any = None
    rounds: bool = False
    _values: dict[SSAValue, Any] = field(default_factory=dict)
    _steps: int = 0

    def start(self, name: str, values: tuple[Any, ...]) -> None:
        """Run the kernel."""
        self.mask = np.ones(self.threads, np.bool_)
        with np.errstate(all="ignore"):
            self.call(name, values)

    def call(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a function with the threads that are active."""
        blocks = list(self.functions[name].regions[0].blocks)
        order = {block: number for number, block in enumerate(blocks)}
        here, results = self.mask, None
        self._set(blocks[0].args, values)
        waiting = {0: here}
        while waiting:
            # The first block in the text goes first, so that diverged threads meet again where paths join.
            number = min(waiting)
            self.mask = waiting.pop(number)
            end, operands = self._block(blocks[number])
            if name_of(end) in _RETURNS:
                results = operands if results is None else merge(self.mask, operands, results)
                continue
            for block, mask, passed in self._ways(end, operands):
                self.mask = mask
                self._set(block.args, passed)
                at = order[block]
                waiting[at] = waiting[at] | mask if at in waiting else mask
        self.mask = here
        return results or ()

    def _block(self, block: Block) -> tuple[Operation, tuple[Any, ...]]:
        for operation in block.ops:
            name = name_of(operation)
            values = tuple(self._values[operand] for operand in operation.operands)
            if name in _BRANCHES or name in _RETURNS:
                return operation, values
            self._steps += 1
            if self._steps > self.limit:
                raise EndlessError(f"it does not end in {self.limit} operations")
            function = THREADED.get(name)
            if function is None and name.startswith(_PLAIN):
                function = OPERATIONS.get(name)
            if function is None:
                raise UnsupportedIrError(name)
            self.name = name
            results = function(self, operation, *values)
            self._set(operation.results, results)
            if self.seen is not None:
                self.seen(operation, results)
        raise UnsupportedIrError("a block without an end")

    def _ways(self, end: Operation, values: tuple[Any, ...]) -> list[tuple[Block, Array, tuple[Any, ...]]]:
        """Return where the threads go on: the block, a mask of threads, and the block's arguments."""
        if len(end.successors) == 1:
            return [(end.successors[0], self.mask, values)]
        _, first, second = integers(end, "operandSegmentSizes")
        condition = np.broadcast_to(values[0], self.threads)
        ways = (
            (end.successors[0], self.mask & condition, values[1 : 1 + first]),
            (end.successors[1], self.mask & ~condition, values[1 + first : 1 + first + second]),
        )
        return [way for way in ways if way[1].any()]

    def _set(self, names: Any, values: tuple[Any, ...]) -> None:
        whole = bool(self.mask.all())
        for name, value in zip(names, values, strict=True):
            old = None if whole else self._values.get(name)
            self._values[name] = value if old is None else merge(self.mask, value, old)

    def warps(self) -> None:
        """Refuse an operation of whole warps if only a part of a warp runs it.

        Raises:
            UnsupportedIrError: some threads of a warp are elsewhere.
        """
        lanes = self.mask.reshape(-1, self.warp)
        if (lanes.any(axis=1) != lanes.all(axis=1)).any():
            raise UnsupportedIrError(f"{self.name} where a part of a warp runs")

    def block(self) -> None:
        """Refuse an operation of the whole block if only a part of it runs.

        Raises:
            UnsupportedIrError: some threads are elsewhere.
        """
        if not self.mask.all():
            raise UnsupportedIrError(f"{self.name} where a part of the threads runs")

    def spread(self, value: Any) -> Array:
        """Return a value for each thread."""
        return np.broadcast_to(value, self.threads)

    def read(self, memory: Any, at: Any, width: int, wanted: Any = True) -> Array:
        """Read bytes for each active thread that wants them; 0 for the others."""
        mask = self.mask & wanted
        raw = np.zeros((self.threads, width), np.uint8)
        if mask.any():
            raw[mask] = memory.load(self.spread(at)[mask], width)
        return raw

    def write(self, memory: Any, at: Any, raw: Array, wanted: Any = True) -> None:
        """Write the bytes of each active thread that wants it."""
        mask = self.mask & wanted
        if mask.any():
            memory.store(self.spread(at)[mask], raw[mask])

    def space(self, number: int) -> Any:
        """Return the memory of an address space.

        Raises:
            UnsupportedIrError: it is neither global nor shared memory.
        """
        if number in (0, 1):
            return self.memory
        if number == 3:  # noqa: PLR2004 - LLVM's number of shared memory
            return self.shared
        raise UnsupportedIrError(f"address space {number}")


# Parse a kernel in LLVM's dialect, and run it with one block of threads.

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
        given: tuple[Any, ...],
        reference: GlobalMemory,
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        limit: int,
        seen: Any = None,
        *,
        rounds: bool = False,
    ) -> GlobalMemory:
        """Run a block of threads on the reference's arguments; return its writes as the reference's elements.

        Raises:
            UnsupportedIrError: the kernel has an operation, a type or an access that is not known.
        """
        function = self.functions[self.main]
        parameters = function.regions[0].blocks[0].args
        scratch = parameters[len(given) :]
        if any(not isinstance(argument, np.ndarray) for argument in given) or any(
            llvm_type(str(parameter.type)).space != 1 for parameter in scratch
        ):
            raise UnsupportedIrError("parameters that are not those of Triton's IR")
        if reference.racing:  # which thread is the last one is not defined
            raise UnsupportedIrError("elements that one operation of the reference writes twice")
        memory = ByteMemory.of(reference, self._pointees())
        warp, warps = integer(self.module, "ttg.threads-per-warp"), integer(self.module, "ttg.num-warps")
        if not warp or not warps or integer(self.module, "ttg.num-ctas", 1) != 1:
            raise UnsupportedIrError("a cluster of blocks, or an unknown number of threads")
        if integer(self.module, "ttg.total-num-warps", warps) != warps:
            raise UnsupportedIrError("warp specialization")
        shared = SharedMemory(integer(self.module, "ttg.shared"))
        run = LockstepRun(self.functions, memory, shared, program, grid, warp * warps, warp, limit)
        run.seen, run.rounds = seen, rounds
        more = tuple(np.asarray(np.int64(base(number))) for number in range(len(given), len(parameters)))
        run.start(self.main, (*given, *more))
        return memory.result(len(given))

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
