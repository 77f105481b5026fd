"""Run one block of threads in lockstep.

Of the blocks that threads wait at, the first in the text runs next, with all that wait there: so threads that
took two ways meet again where these end, and those that left a loop wait for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tritonsmith.check.evaluate import EndlessError
from tritonsmith.check.llvm import amd, atomics, ptx  # noqa: F401 - they register their operations
from tritonsmith.check.llvm.memory import ByteMemory, SharedMemory
from tritonsmith.check.llvm.types import merge
from tritonsmith.check.module import UnsupportedIrError, integers, name_of
from tritonsmith.check.registry import OPERATIONS, THREADED

_BRANCHES = ("llvm.br", "llvm.cond_br", "cf.br", "cf.cond_br")
_PLAIN = ("arith.", "math.")  # whose operations mean the same in each thread
_RETURNS = ("llvm.return", "tt.return")

Array = np.ndarray[Any, Any]


@dataclass
class LockstepRun:
    """A run of one block of threads.

    Attributes:
        functions: by name.
        memory: global memory.
        shared: shared memory.
        program: its ids.
        grid: how many programs there are.
        threads: of a block.
        warp: threads of one.
        limit: operations, after which it does not end.
        name: of the operation that runs.
        mask: threads that run it.
        seen: gets each operation and its results, if somebody looks.
        rounds: whether products of tf32 round what they are given.
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
        """Run a function by the threads that are here."""
        blocks = list(self.functions[name].regions[0].blocks)
        order = {block: number for number, block in enumerate(blocks)}
        here, found = self.mask, None
        self._set(blocks[0].args, values)
        waiting = {0: here}
        while waiting:
            number = min(waiting)
            self.mask = waiting.pop(number)
            end, given = self._block(blocks[number])
            if name_of(end) in _RETURNS:
                found = given if found is None else merge(self.mask, given, found)
                continue
            for block, mask, passed in self._ways(end, given):
                self.mask = mask
                self._set(block.args, passed)
                at = order[block]
                waiting[at] = waiting[at] | mask if at in waiting else mask
        self.mask = here
        return found or ()

    def _block(self, block: Block) -> tuple[Operation, tuple[Any, ...]]:
        for operation in block.ops:
            name = name_of(operation)
            values = tuple(self._values[one] for one in operation.operands)
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
            found = function(self, operation, *values)
            self._set(operation.results, found)
            if self.seen is not None:
                self.seen(operation, found)
        raise UnsupportedIrError("a block without an end")

    def _ways(self, end: Operation, values: tuple[Any, ...]) -> list[tuple[Block, Array, tuple[Any, ...]]]:
        """Where the threads go on: block, threads, its arguments."""
        if len(end.successors) == 1:
            return [(end.successors[0], self.mask, values)]
        _, first, second = integers(end, "operandSegmentSizes")
        condition = np.broadcast_to(values[0], self.threads)
        ways = (
            (end.successors[0], self.mask & condition, values[1 : 1 + first]),
            (end.successors[1], self.mask & ~condition, values[1 + first : 1 + first + second]),
        )
        return [one for one in ways if one[1].any()]

    def _set(self, names: Any, values: tuple[Any, ...]) -> None:
        whole = bool(self.mask.all())
        for name, value in zip(names, values, strict=True):
            old = None if whole else self._values.get(name)
            self._values[name] = value if old is None else merge(self.mask, value, old)

    def warps(self) -> None:
        """Refuse an operation of whole warps in a part of one.

        Raises:
            UnsupportedIrError: threads of a warp are elsewhere.
        """
        lanes = self.mask.reshape(-1, self.warp)
        if (lanes.any(axis=1) != lanes.all(axis=1)).any():
            raise UnsupportedIrError(f"{self.name} where a part of a warp runs")

    def block(self) -> None:
        """Refuse an operation of the whole block in a part of it.

        Raises:
            UnsupportedIrError: threads are elsewhere.
        """
        if not self.mask.all():
            raise UnsupportedIrError(f"{self.name} where a part of the threads runs")

    def spread(self, value: Any) -> Array:
        """A value of each thread."""
        return np.broadcast_to(value, self.threads)

    def read(self, memory: Any, at: Any, width: int, wanted: Any = True) -> Array:
        """Bytes for each thread that runs and wants them; 0 for others."""
        mask = self.mask & wanted
        found = np.zeros((self.threads, width), np.uint8)
        if mask.any():
            found[mask] = memory.load(self.spread(at)[mask], width)
        return found

    def write(self, memory: Any, at: Any, raw: Array, wanted: Any = True) -> None:
        """Write bytes of each thread that runs and wants it."""
        mask = self.mask & wanted
        if mask.any():
            memory.store(self.spread(at)[mask], raw[mask])

    def space(self, number: int) -> Any:
        """The memory behind pointers of an address space.

        Raises:
            UnsupportedIrError: it is another one.
        """
        if number in (0, 1):
            return self.memory
        if number == 3:  # noqa: PLR2004 - LLVM's number of shared memory
            return self.shared
        raise UnsupportedIrError(f"address space {number}")
