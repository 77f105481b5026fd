"""Run all programs of a launch on one memory, and find out how many there are.

A grid is an expression over the kernel's parameters (`signature.evaluated`), or as many programs as write
something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.blame import LargestValue, ReachedCode
from tritonsmith.check.evaluate import AccessError, EvaluatedProgram
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.in_flight import InFlight, Order
from tritonsmith.check.memory import Array, RecordingMemory
from tritonsmith.check.module import UnsupportedIrError, integer, name_of
from tritonsmith.check.program import EndlessError
from tritonsmith.core import configs

if TYPE_CHECKING:
    from tritonsmith.check.runs import TritonKernel

Grid: TypeAlias = tuple[int, int, int]

_AXES = 3
_IDS, _COUNTS = "tt.get_program_id", "tt.get_num_programs"
_OPERATION = 500  # elements that take as long as an operation
_LONGER = 10
EMPTY = 3  # programs in a row that write nothing: no further one does
# Ids beyond every grid that can be run; primes, so that no period hides them. Times a block of 8192 elements,
# the last one still fits 32 bits.
_FAR = (1009, 200_003)
_MANY = "more programs write something than can be run (--set smaller sizes, or --grid)"


@dataclass
class GridMemory(RecordingMemory):
    """The memory of all programs of a launch, which notes where one program depends on another.

    Attributes:
        crossed: whether the order of the programs may matter: one reads what another writes, or two write
            different values to one address.
        adds: whether an atomic operation of floats met an element that another program had changed.
        unguarded: whether a program read, by no atomic operation, what another one writes.
    """

    crossed: bool = False
    adds: bool = False
    unguarded: bool = False
    _written_before: Array = field(default_factory=lambda: np.empty(0, np.int64))
    _read_before: Array = field(default_factory=lambda: np.empty(0, np.int64))
    _read_plainly_before: Array = field(default_factory=lambda: np.empty(0, np.int64))
    _reading: list[Array] = field(default_factory=list)
    _reading_plainly: list[Array] = field(default_factory=list)
    _writing: list[Array] = field(default_factory=list)
    # What a program overwrote without having read it: the addresses and the elements of the others.
    _overwritten: list[tuple[Array, Array, Operation | None]] = field(default_factory=list)

    def load(self, at: Array, dtype: np.dtype[Any]) -> Array:
        """Return the elements at byte addresses, and note that this program read them."""
        flat = at.reshape(-1)
        self._reading.append(flat)
        if not self._is_atomic:
            self._reading_plainly.append(flat)
        if self._is_atomic and dtype.kind in "fV" and np.isin(flat, self._written_before).any():
            self.adds = True
        return super().load(at, dtype)

    def store(self, at: Array, values: Array) -> None:
        """Write elements, and note where another program had written another value."""
        flat = np.ascontiguousarray(at).reshape(-1)
        again = np.isin(flat, self._written_before)
        if again.any():
            # Programs that share an axis often write the same to one place, as the statistics of a row.
            raw = np.ascontiguousarray(np.broadcast_to(values, np.shape(at))).reshape(-1)[again]
            old = self.peek(flat[again], values.dtype)
            self.crossed |= bool((old.view(np.uint8) != raw.view(np.uint8)).any())
            self._overwrite(flat[again], old)
        self._writing.append(flat)
        super().store(at, values)

    def _overwrite(self, at: Array, old: Array) -> None:
        """Keep what this program overwrites, unless it has read it, or written there before."""
        # Who reads a place first may add to it, or hold a lock: the order of programs shows what comes of it.
        if not self._is_atomic:
            known = np.concatenate((*self._reading, *self._writing, np.empty(0, np.int64)))
            blind = ~np.isin(at, known)
            if blind.any():
                self._overwritten.append((at[blind], old[blind], self.operation))

    @property
    def _is_atomic(self) -> bool:
        # A descriptor's reduction is atomic as well.
        name = name_of(self.operation) if self.operation else ""
        return "atomic" in name or "_reduce" in name

    def next_program(self) -> None:
        """End a program: what it read and wrote belongs to another one from now on."""
        for at, old, operation in self._overwritten:
            raw = self.peek(at, old.dtype)
            differ = (raw.view(np.uint8) != old.view(np.uint8)).reshape(at.size, -1).any(axis=1)
            self.races.add(np.unique(at[differ]), operation, programs=True)
        reads, plain, writes = (
            np.unique(np.concatenate([*parts, np.empty(0, np.int64)]))
            for parts in (self._reading, self._reading_plainly, self._writing)
        )
        if np.isin(reads, self._written_before).any() or np.isin(writes, self._read_before).any():
            self.crossed = True
        self.unguarded |= bool(
            np.isin(plain, self._written_before).any() or np.isin(writes, self._read_plainly_before).any()
        )
        self._written_before = np.union1d(self._written_before, writes)
        self._read_before = np.union1d(self._read_before, reads)
        self._read_plainly_before = np.union1d(self._read_plainly_before, plain)
        self._reading, self._reading_plainly, self._writing, self._overwritten = [], [], [], []

    @property
    def is_empty(self) -> bool:
        """Report whether the program that has just run wrote nothing."""
        return not any(part.size for part in self._writing)


@dataclass(frozen=True)
class LaunchGrid:
    """The programs of a launch.

    Attributes:
        size: the number of programs along each axis.
        guessed: the axes along which the kernel does not say how many there are.
        probed: the axes whose last program was found by running one after the other, with 0 for other axes.
    """

    size: Grid
    guessed: tuple[int, ...] = ()
    probed: tuple[int, ...] = ()

    @property
    def is_likely(self) -> bool:
        """Report whether no program is missing; there may be more than a launch has."""
        # Of several axes, the programs at 0 of the others need not be those that have the most work.
        return not self.guessed and len(self.probed) <= 1

    def programs(self) -> Iterator[Grid]:
        """Yield the ids of all programs, in the order in which a GPU starts them."""
        for z, y, x in product(*map(range, reversed(self.size))):
            yield x, y, z


@dataclass
class GridRunner:
    """Runs a kernel with one set of arguments.

    Attributes:
        kernel: the kernel.
        values: its arguments in order.
        memory: makes the memory that it starts with.
        rounds: whether its dots of tf32 round.
        spent: the cost of all runs so far, in elements.
        steps: the operations of all runs so far.
        reached: the code that ran.
    """

    kernel: TritonKernel
    values: Sequence[Any]
    memory: Callable[[], GridMemory]
    rounds: bool
    spent: int = 0
    steps: int = 0
    reached: ReachedCode = field(default_factory=ReachedCode)
    _more: int = 0

    def allow(self, steps: int) -> None:
        """Let each program run ten times as many operations, if that is more than usual."""
        self._more = _LONGER * steps

    def run(
        self,
        grid: LaunchGrid,
        *,
        backwards: bool = False,
        undefined: int = 0,
        recorder: LargestValue | None = None,
    ) -> GridMemory:
        """Run all programs, and return the memory that they leave.

        Args:
            grid: the programs.
            backwards: the last program runs first.
            undefined: the value of masked elements of a load without another value.
            recorder: gets all values.

        Raises:
            UnsupportedIrError: it cannot be run, or has too many programs.
            EndlessError: a program does not end.
            AssumedError: an assumption does not hold.
            AccessError: an access of shared memory outside of its allocation.
        """
        most = configs.load("passes-check")["against"]["programs"]
        programs = list(grid.programs())
        if len(programs) > most:
            raise UnsupportedIrError(f"a grid of more than {most} programs")
        memory = self.memory()
        memory.undefined, memory.backwards = undefined, backwards
        for program in reversed(programs) if backwards else programs:
            self._run(program, grid.size, memory, self.reached, recorder)
            memory.next_program()
        return memory

    def infer(self, captured: Sequence[Sequence[int]] = ()) -> LaunchGrid:
        """Find the number of programs that write something.

        Args:
            captured: grids of captured launches: an axis that is 1 in all of them is 1.

        Raises:
            UnsupportedIrError: as `run`, and so the others.
        """
        count = configs.load("passes-check")["against"]["axis"]
        used = {axis: self._uses(_IDS, axis) for axis in range(_AXES)}
        size, guessed, probed = [1, 1, 1], [], []
        for axis in range(_AXES):
            largest = max((grid[axis] for grid in captured if len(grid) > axis), default=0)
            if not used[axis] or (captured and largest <= 1):
                continue
            # A persistent kernel divides its work among any number of programs.
            if self._uses(_COUNTS, axis):
                size[axis] = count
            elif self._writes(axis, _FAR[-1]):
                size[axis] = min(count, largest) if largest else count
                guessed.append(axis)
            else:
                size[axis] = self._last(axis) + 1
                probed.append(axis)
        if len(probed) > 1:
            self._widen(size, probed)
        return LaunchGrid(_triple(size), tuple(guessed), tuple(probed))

    def _widen(self, size: list[int], probed: Sequence[int]) -> None:
        """Look for programs along an axis with the others at their last program."""
        # A causal kernel's programs above the diagonal have no work: at 0 of one axis, there is only one.
        for axis in probed:
            others = [number - 1 for number in size]
            size[axis] = max(size[axis], self._last(axis, others) + 1)

    def _uses(self, operation: str, axis: int) -> bool:
        return any(
            name_of(candidate) == operation and integer(candidate, "axis") == axis
            for function in self.kernel.functions.values()
            for candidate in function.walk()
        )

    def _last(self, axis: int, others: Sequence[int] = (0, 0, 0)) -> int:
        """Return the last program along an axis that writes something, 0 if none does."""
        if any(self._writes(axis, far, others) for far in _FAR):
            raise UnsupportedIrError(_MANY)
        last, place = 0, 0
        while place <= last + EMPTY:
            if self._writes(axis, place, others):
                last = place
            place += 1
            if place > configs.load("passes-check")["against"]["programs"]:
                raise UnsupportedIrError(_MANY)
        return last

    def _writes(self, axis: int, place: int, others: Sequence[int] = (0, 0, 0)) -> bool:
        """Report whether a program writes something; one beyond the grid may fail."""
        program = list(others)
        program[axis] = place
        grid = [number + 1 for number in program]
        memory = self.memory()
        with suppress(EndlessError, AssumedError, AccessError):
            self._run(_triple(program), _triple(grid), memory, ReachedCode())
        return not memory.is_empty

    def _run(
        self,
        program: Grid,
        grid: Grid,
        memory: GridMemory,
        reached: ReachedCode,
        recorder: LargestValue | None = None,
    ) -> None:
        table = configs.load("passes-check")
        run = EvaluatedProgram(
            self.kernel.functions,
            memory,
            program,
            grid,
            max(table["inputs"]["steps"], self._more),
            flight=InFlight(Order.AT_ONCE, None, counted=self.kernel.parts > 0),
            rounds=self.rounds,
            most=table["against"]["most"],
            reached=reached,
            lines=self.kernel.lines,
        )
        run.recorder = recorder
        run.launch(self.kernel.main, tuple(self.values))
        self.steps += run.steps
        self.spent += run.elements + _OPERATION * run.steps


def _triple(values: Sequence[int]) -> Grid:
    x, y, z = values
    return x, y, z
