"""Parse kernels in Triton's IR, run the reference and another text on the same inputs, and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from xdsl.ir import Block, Operation

from tritonsmith.check import asynchronous
from tritonsmith.check.answer import (
    Difference,
    ReadRange,
    ResultChange,
    compare_memory,
    first_read,
    race_text,
)
from tritonsmith.check.blame import LargestValue, ReachedCode, ValueRecorder
from tritonsmith.check.boundaries import BoundaryFinder, Program, find_grid
from tritonsmith.check.evaluate import MOST, AccessError, EvaluatedProgram
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.grid import GridMemory
from tritonsmith.check.in_flight import BarrierError, FreedError, InFlight, Order
from tritonsmith.check.inputs import Argument, arguments, fitting, flags, long_sizes, short_sizes, with_sizes
from tritonsmith.check.llvm.machine import LoweredKernel
from tritonsmith.check.llvm.threads import RaceError
from tritonsmith.check.memory import WHOLE, Contents, GlobalMemory, RecordingMemory
from tritonsmith.check.module import UnsupportedIrError, attribute, name_of, parse, symbol, text
from tritonsmith.check.program import EndlessError
from tritonsmith.check.triton import has_precision, is_narrow_sum, is_ordered, is_tf32
from tritonsmith.core import configs
from tritonsmith.core.errors import UndecidedError

_CHANGES = {
    Order.AT_ONCE: ResultChange.RESULT,
    Order.COPIES_LATE: ResultChange.COPIES,
    Order.READS_LATE: ResultChange.READS,
}
_INEXACT = (Contents.LARGE, Contents.INTEGERS)
_USUAL = 1  # the seed whose sizes are several blocks and a part
_SCALE = 1 << 10  # of numbers that are only compared
_STEP = 500  # elements that take as long as an operation
# A program that runs more operations than so many times those of the reference, and _SOME, does not end:
# passes unroll loops and take tensors apart, but not by more than that.
_LONGER = 10
_SOME = 10_000


_COMPUTING = (
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.fptosi", "arith.fptoui",
    "dot", "dot_scaled", "tt.extern_elementwise", "tt.fp_to_fp", "arith.truncf",
)  # fmt: skip


@dataclass(frozen=True)
class TritonKernel:
    """A parsed module, with the properties that decide how it is run and compared.

    Attributes:
        functions: the functions by name.
        main: the name of the kernel.
        orders: orders in which to run it so that its waits are checked; none if nothing is asynchronous.
        parts: number of partitions if warps are specialized; else 0.
        tf32: whether a dot of fp32 may be one of tf32.
        mixed: whether some dots of fp32 may be dots of tf32, and others may not.
        ordered: whether a reduction has several values, as argmax has: over NaN its order matters.
        narrow: whether it sums in fp16 or bf16, where each order rounds differently.
        atomic: whether it has atomics, by which several programs may write to one place.
        compares: whether it only moves and compares floats, so that large ones serve as well as others.
        lines: the operations of each block, as `EvaluatedProgram` keeps them for its further runs.
    """

    functions: dict[str, Operation]
    main: str
    orders: tuple[Order, ...]
    parts: int
    tf32: bool
    mixed: bool
    ordered: bool
    narrow: bool
    atomic: bool
    compares: bool
    lines: dict[Block, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def function(self) -> Operation:
        """The kernel's function."""
        return self.functions[self.main]


# The first text, and those before and after the culprit, are needed again when it is blamed. Nothing changes
# a module once it is parsed.
@lru_cache(maxsize=4)
def parsed(raw: str) -> TritonKernel | None:
    """Parse the functions of a module, and find the kernel; None if LLVM's dialect has begun.

    Raises:
        FactError: xDSL cannot parse it.
        UnsupportedIrError: it has not exactly one kernel, or nested modules, or two functions of one name.
    """
    module = parse(raw)
    functions: dict[str, Operation] = {}
    names = {name_of(candidate) for candidate in module.ops}
    if "builtin.module" in names:
        raise UnsupportedIrError("a module in a module")
    for operation in module.ops:
        if name_of(operation) == "tt.func":
            name = symbol(attribute(operation, "sym_name"))
            if name in functions:
                raise UnsupportedIrError(f"two functions of the name {name}")
            functions[name] = operation
    shown = [
        name
        for name, candidate in functions.items()
        if text(attribute(candidate, "sym_visibility")).strip('"') == "public"
    ]
    # Once functions are LLVM's, tensors are gone: the check of Triton's IR ends here.
    if not functions and any(
        candidate.regions[0].blocks for candidate in module.ops if name_of(candidate) == "llvm.func"
    ):
        return None
    if len(shown) != 1 or not functions[shown[0]].regions[0].blocks:
        raise UnsupportedIrError(f"{len(shown) or 'no'} kernels in the module")
    others = [
        len(candidate.regions)
        for candidate in module.walk()
        if name_of(candidate) == "ttg.warp_specialize.partitions"
    ]
    parts = max(others, default=-1) + 1
    every = list(module.walk())
    # With dots of both kinds no rounding is right for all of them: see `mixed`.
    dots = [is_tf32(candidate) for candidate in every if has_precision(candidate)]
    return TritonKernel(
        functions,
        shown[0],
        asynchronous.orders(module),
        parts,
        tf32=any(dots),
        mixed=len(set(dots)) > 1,
        ordered=any(map(is_ordered, every)),
        narrow=any(map(is_narrow_sum, every)),
        atomic=any("atomic_" in name_of(candidate) for candidate in every),
        compares=not any(
            name_of(candidate).endswith(_COMPUTING) or name_of(candidate).startswith("math.")
            for candidate in every
        ),
    )


MemoryT = TypeVar("MemoryT", bound=RecordingMemory)


@dataclass(frozen=True)
class CheckInputs:
    """The inputs of a run.

    Attributes:
        seed: the seed of the arguments and of the contents of memory.
        program: the ids of the program that runs.
        contents: the kind of numbers in memory.
        sizes: arguments that replace those of the seed, as pairs of place and value: see `boundaries`.
    """

    seed: int
    program: tuple[int, int, int]
    contents: Contents = Contents.PLAIN
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def arguments(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The key of the arguments: the seed and the replaced sizes."""
        return self.seed, self.sizes

    @property
    def optional(self) -> bool:
        """Report whether a kernel that cannot run with these inputs may skip them."""
        return bool(self.sizes) or self.contents in (*WHOLE, Contents.ABOVE, Contents.BELOW)


@dataclass(frozen=True)
class ChangedRun:
    """A run that differs from the reference's.

    Attributes:
        change: the kind of change.
        inputs: the inputs of the run.
        order: the order in which asynchronous work was done.
        slow: the number of the partition that ran last; None for none.
        difference: the first element that differs; None where the run does not end, makes an assumption that
            does not hold, accesses shared memory outside of its allocation, or a copy outlives its memory.
        place: the place in shared memory that is accessed outside of its allocation, or in a race; or empty.
        by: the operation that accesses it; else None.
    """

    change: ResultChange
    inputs: CheckInputs
    order: Order
    slow: int | None
    difference: Difference | None
    place: str = ""
    by: Operation | None = None


@dataclass(frozen=True)
class RunComparison:
    """The outcome of all runs of a text.

    Attributes:
        apart: the largest relative difference that is within the tolerance.
        waits: why waits and barriers could not be checked; empty if they were.
        changed: the first run that differs from the reference's; None if there is none.
        moved: whether programs do the work of others, so that only the whole grid leaves the same memory.
    """

    apart: float = 0.0
    waits: str = ""
    changed: ChangedRun | None = None
    moved: bool = False


class ReferenceRuns:
    """The runs of the first text that can be run, the reference.

    Args:
        usual: the inputs.
        names: the names of the parameters, where the IR has none.
        stages: the number of stages of the pipelined loops; 0 if it is not known.
        stop: a function that returns whether to give up; called before each run.
        more: further inputs for a kernel whose runs are short.

    Attributes:
        memories: the memory that each run left, by inputs.
        given: the kernel's arguments as the reference takes them, by seed and sizes.
        kernel: the reference; None before it ran.
        reached: the code of the reference that ran.
        ordered: whether integers in memory ascend.
    """

    def __init__(
        self,
        usual: list[CheckInputs],
        names: tuple[str, ...] = (),
        stages: int = 0,
        stop: Callable[[], bool] = lambda: False,
        more: Sequence[CheckInputs] = (),
    ) -> None:
        self.memories: dict[CheckInputs, RecordingMemory] = {}
        self.given: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[Argument, ...]] = {}
        self.kernel: TritonKernel | None = None
        self._usual, self._names, self._stages, self._stop = usual, names, stages, stop
        self._more, self._spent = more, 0
        self._steps: dict[CheckInputs, int] = {}
        self._ranges: dict[tuple[int, tuple[tuple[int, int], ...]], ReadRange] = {}
        self._grids: dict[CheckInputs, tuple[list[Program], GridMemory | None]] = {}
        self._moved = False
        self.reached = ReachedCode()
        self.ordered = False
        # The reason why the waits of the reference itself do not hold, or cannot be checked.
        self._untimed = ""

    @property
    def left_out(self) -> int:
        """The number of inputs under which it does not end, or makes an assumption that does not hold."""
        return sum(inputs not in self.memories for inputs in self._usual if not inputs.optional)

    def refer(self, kernel: TritonKernel) -> RunComparison:
        """Run the first text, then again in the orders that its waits allow, which shows a race of its own.

        Raises:
            UnsupportedIrError: it cannot be run, or writes nothing under any inputs.
            UndecidedError: it ends under no inputs.
        """
        self.kernel = kernel
        self._refer_usual(kernel)
        if self._raced():
            # Indices in memory that repeat may be the reason, which those of a launch do not.
            self._refer_ordered(kernel)
        self._refer_more(kernel)
        # No other text can be tried: it is the same program, and would not end either.
        if not self.memories:
            why = "it does not end, or assumes what does not hold, under all inputs"
            raise UndecidedError("nothing of this kernel can be run", why=why)
        if not any(memory.written.at.size for memory in self.memories.values()):
            self.memories.clear()
            raise UnsupportedIrError("it writes nothing under all inputs")
        if not kernel.orders:  # the same runs once more would leave the same
            return RunComparison()
        # The reference itself runs late, too: a race of the kernel's own must not be blamed on a pass.
        try:
            comparison = self.compare(kernel)
            race = comparison.changed and f"the kernel itself has a race: {comparison.changed.change}"
            self._untimed = race or comparison.waits
        except UnsupportedIrError as error:
            self._untimed = str(error)
        return RunComparison(waits=self._untimed)

    def _refer_usual(self, kernel: TritonKernel) -> None:
        """Run the first text with the usual inputs.

        Raises:
            UnsupportedIrError: it cannot be run.
        """
        try:
            for inputs in self._usual:
                if inputs.contents in (*WHOLE, Contents.ABOVE, Contents.BELOW):
                    self._refer_contents(kernel, inputs)
                    continue
                with suppress(EndlessError, AssumedError):
                    self.memories[inputs] = self._referred(kernel, inputs)
        except UnsupportedIrError:
            # It may have run under other inputs, which must not make it the reference.
            self.forget()
            raise
        except AccessError as error:
            self.forget()
            why = f"the kernel itself accesses shared memory outside of its allocation ({error})"
            raise UnsupportedIrError(why) from error

    def _refer_ordered(self, kernel: TritonKernel) -> None:
        """Run it with integers in memory that ascend, and keep these runs if no threads race in them."""
        repeated = self.memories.copy(), self.given.copy(), self._steps.copy(), self.reached
        self.forget()
        self.ordered = True
        with suppress(UnsupportedIrError):
            self._refer_usual(kernel)
        if self._raced() or not any(memory.written.at.size for memory in self.memories.values()):
            self.forget()
            self.ordered = False
            self.memories, self.given, self._steps, self.reached = repeated

    def _raced(self) -> tuple[CheckInputs, RecordingMemory] | None:
        """Return the first run in which different values were stored to one place."""
        return next(((inputs, memory) for inputs, memory in self.memories.items() if memory.races.any), None)

    def racing(self, text: str) -> str:
        """Return what depends on which thread comes last; empty if nothing does.

        Args:
            text: the first text with its locations.
        """
        if (raced := self._raced()) is None or self.kernel is None:
            return ""
        inputs, memory = raced
        names = [argument.name for argument in self.given[inputs.arguments]]
        return race_text(memory, names, text)

    def _referred(self, kernel: TritonKernel, inputs: CheckInputs, most: int = MOST) -> RecordingMemory:
        recorder = LargestValue() if inputs.contents in _INEXACT else None
        memory: RecordingMemory = self.run(kernel, inputs, recorder, most=most)
        memory.least = recorder.largest if recorder else 0.0
        return memory

    def _refer_contents(self, kernel: TritonKernel, inputs: CheckInputs) -> None:
        """Run with other contents if the kernel reads such numbers and uses none as index, bound or mask."""
        # A kernel that reads no floats would do the same again.
        others = (replace(inputs, contents=kind) for kind in (Contents.PLAIN, Contents.EDGES))
        plain = next((self.memories[candidate] for candidate in others if candidate in self.memories), None)
        whole = inputs.contents in WHOLE
        if plain is None or not (plain.reads_integers if whole else plain.reads_floats):
            return

        # If other numbers change which addresses are accessed, they are indices, and any result would be
        # noise.
        def fits(memory: RecordingMemory) -> bool:
            same = np.array_equal(memory.read, plain.read)
            return not whole or (same and np.array_equal(memory.written.at, plain.written.at))

        self._try(kernel, inputs, fits)

    def _try(
        self,
        kernel: TritonKernel,
        inputs: CheckInputs,
        fits: Callable[[RecordingMemory], bool] = lambda _: True,
        most: int = MOST,
    ) -> None:
        """Run with optional inputs, and keep the run if it ends and fits."""
        # Code that only a discarded run reached was not checked, so it must not count as reached.
        reached, self.reached = self.reached, ReachedCode()
        with suppress(EndlessError, AssumedError, UnsupportedIrError, AccessError):
            memory = self._referred(kernel, inputs, most)
            if fits(memory) and not memory.races.any:
                self.memories[inputs] = memory
                reached.add(self.reached)
        self.reached = reached
        if inputs not in self.memories:
            self._steps.pop(inputs, None)

    def _refer_more(self, kernel: TritonKernel) -> None:
        """Run with sizes at the bounds that the kernel tests, long loops, and more seeds if that is cheap."""
        # Cheap is what the runs so far have cost, before those at the bounds: their number is bounded anyway.
        table = configs.load("passes-check")["inputs"]
        x, y, z = table["grid"]
        cheap = self._spent <= table["cheap"]
        base = next(
            (candidate for candidate in self.memories if candidate.seed == _USUAL and not candidate.optional),
            None,
        )
        if base is not None and len(self._usual) > 1:
            values = [candidate.value for candidate in self.given[base.arguments]]
            finder = BoundaryFinder(kernel.functions, kernel.main, (x, y, z))
            for bound in finder.find(values, table["bounds"]):
                ids = [bound.value if bound.place == -1 - axis else 0 for axis in range(3)]
                sizes = ((bound.place, bound.value),) if bound.place >= 0 else ()
                inputs = CheckInputs(_USUAL, (ids[0], ids[1], ids[2]), Contents.PLAIN, sizes)
                if inputs not in self.memories:
                    self._try(kernel, inputs, most=table["most"])
            loops = [*long_sizes(kernel.function), *short_sizes(kernel.function, self._stages)]
            for size in loops:
                self._try(kernel, CheckInputs(0, (0, 0, 0), Contents.PLAIN, (size,)), most=table["most"])
        for inputs in self._more if cheap else ():
            self._try(kernel, inputs, most=table["most"])

    def forget(self) -> None:
        """Drop the runs, so that the next text becomes the reference."""
        for kept in (self.memories, self.given, self._steps, self._ranges, self._grids):
            kept.clear()
        self._untimed = ""
        self.reached = ReachedCode()

    def compare(self, kernel: TritonKernel | LoweredKernel) -> RunComparison:
        """Run a text on all inputs, until a run differs."""
        apart, waits, self._moved = 0.0, "", False
        orders = kernel.orders if isinstance(kernel, TritonKernel) else ()
        if orders and self._untimed:
            orders, waits = (), self._untimed
        for inputs, memory in self.memories.items():
            for order, slow in _schedules(kernel, orders):
                try:
                    most, changed = self._compared(kernel, inputs, memory, order, slow)
                    # A difference in a late order is a race only if there is none at once.
                    if changed and order is not Order.AT_ONCE:
                        _, at_once = self._compared(kernel, inputs, memory, Order.AT_ONCE)
                        changed = at_once or _race(changed)
                # A barrier that another CTA completes is beyond one program: the result can be compared all
                # the same.
                except BarrierError as error:
                    waits = str(error)
                    most, changed = self._compared(kernel, inputs, memory, Order.AT_ONCE)
                if changed:
                    return RunComparison(apart, waits, changed)
                apart = max(apart, most)
        return RunComparison(apart, waits, moved=self._moved)

    def _compared(
        self,
        kernel: TritonKernel | LoweredKernel,
        inputs: CheckInputs,
        memory: RecordingMemory,
        order: Order,
        slow: int | None = None,
    ) -> tuple[float, ChangedRun | None]:
        changed = partial(ChangedRun, inputs=inputs, order=order, slow=slow)
        assumed = True
        try:
            try:
                mine = self.run(kernel, inputs, order=order, slow=slow)
            # The reference's assumptions held: that this one does not is the pass's doing, unless the
            # assumption stands in a turn that is predicated off. So the result is compared first.
            except AssumedError:
                assumed = False
                mine = self.run(kernel, inputs, order=order, slow=slow, assumed=False)
        except (EndlessError, FreedError, AccessError, RaceError) as error:
            if isinstance(error, EndlessError) and isinstance(kernel, LoweredKernel):
                raise UnsupportedIrError(str(error)) from error
            return 0.0, _ended(error, ChangedRun(_CHANGES[order], inputs, order, slow, None))
        apart, difference = _comparison(memory, mine)
        if difference and (shared := self._shared(kernel, inputs, mine, order, slow)) is not None:
            apart = shared
        elif difference:
            self._ask(kernel, inputs, mine)
            return apart, changed(_CHANGES[order], difference=difference)
        elif isinstance(mine, RecordingMemory) and (outside := self._outside(inputs, mine)):
            return apart, changed(ResultChange.OUTSIDE, difference=outside)
        elif mine.races.any and not memory.races.any:
            raise UnsupportedIrError(race_text(mine))
        if not assumed and mine.assumptions <= memory.assumptions:
            return apart, changed(ResultChange.ASSUMED, difference=None)
        # A pipelined loop has turns that are predicated off, and `predicateOp` leaves their assumptions as
        # they are.
        if not assumed:
            raise UnsupportedIrError("it assumes more than the first text, and that does not hold")
        return apart, None

    def _ask(self, kernel: TritonKernel | LoweredKernel, inputs: CheckInputs, after: GlobalMemory) -> None:
        """Refuse a difference that another order of a reduction may explain.

        Raises:
            UnsupportedIrError: another order may explain it.
        """
        # Not a verdict: argmax over NaN depends on the order of its comparisons, and LLVM's code reduces in
        # another order than the IR above it, which leaves the order open.
        first, before = self.kernel, self.memories[inputs]
        over_nan = isinstance(kernel, LoweredKernel) and inputs.contents is Contents.EDGES
        if first and first.ordered and over_nan:
            raise UnsupportedIrError("a reduction over NaN, in another order than that of the first text")
        if (
            first
            and first.narrow
            and not compare_memory(before, after, before.least, before.slack, narrow=True)[1]
        ):
            raise UnsupportedIrError("a sum in fp16 or bf16, which each order rounds in its own way")

    def _shared(
        self,
        kernel: TritonKernel | LoweredKernel,
        inputs: CheckInputs,
        mine: GlobalMemory,
        order: Order,
        slow: int | None,
    ) -> float | None:
        """Return how far apart the results of the whole grids are; None if they differ, or are not known."""
        # A pass may give the work of one program to another: only all of them together are the result. If a
        # program writes to the same places as before, something else is there; unless others add to it.
        first, before = self.kernel, self.memories[inputs]
        if first is None or not isinstance(kernel, TritonKernel) or not isinstance(mine, RecordingMemory):
            return None
        if not first.atomic and np.array_equal(before.written.at, mine.written.at):
            return None
        programs, whole = self._grid(inputs)
        if whole is None or len(programs) == 1:
            return None
        after = self._all(kernel, inputs, programs, order, slow)
        if after is None:
            return None
        raced = np.union1d(whole.races.places, after.races.places)
        apart, difference = compare_memory(whole, after, before.least, before.slack, without=raced)
        if difference and (whole.crossed or whole.adds) and self._depends(inputs, programs, whole):
            raise UnsupportedIrError("the result of the whole grid depends on the order of its programs")
        if difference or after.beyond([whole]).size:
            return None
        if whole.races.any or after.races.any:
            raise UnsupportedIrError(race_text(whole if whole.races.any else after))
        self._moved = True
        return apart

    def _depends(self, inputs: CheckInputs, programs: Sequence[Program], whole: GridMemory) -> bool:
        """Report whether the first text leaves something else if its programs run in reverse."""
        assert self.kernel is not None  # noqa: S101 - it has run
        reverse = self._all(self.kernel, inputs, programs[::-1])
        return reverse is None or compare_memory(whole, reverse, whole.least, whole.slack)[1] is not None

    def _grid(self, inputs: CheckInputs) -> tuple[list[Program], GridMemory | None]:
        """Return all programs of a launch, and the memory that the reference leaves; None if unknown."""
        if inputs not in self._grids:
            table, first = configs.load("passes-check")["inputs"], self.kernel
            assert first is not None  # noqa: S101 - it ran before anything is compared with it
            grid = (table["grid"][0], table["grid"][1], table["grid"][2])

            def writes(program: Program) -> bool:
                alone = self._all(first, inputs, [program])
                # What cannot run by itself is not the end of a grid.
                return alone is None or alone.written.at.size > 0

            functions, most = first.functions.values(), table["grid-programs"]
            programs = find_grid(functions, grid, inputs.program, writes, most)
            self._grids[inputs] = programs, self._all(first, inputs, programs) if programs else None
        return self._grids[inputs]

    def _all(
        self,
        kernel: TritonKernel,
        inputs: CheckInputs,
        programs: Sequence[Program],
        order: Order = Order.AT_ONCE,
        slow: int | None = None,
    ) -> GridMemory | None:
        """Run programs one after another on one memory; None if one cannot be run, or all take too long."""
        table = configs.load("passes-check")["inputs"]
        memory, left = self._memory(kernel, inputs, GridMemory), table["grid-most"]
        try:
            for program in programs:
                run = self._launched(kernel, replace(inputs, program=program), memory, order, slow, most=left)
                left -= run.elements
                memory.next_program()
        except (EndlessError, FreedError, AccessError, AssumedError, UnsupportedIrError):
            return None
        return memory

    def _outside(self, inputs: CheckInputs, mine: RecordingMemory) -> Difference | None:
        """Return the first element that a run reads, and that no program of the reference reads or writes."""
        if mine.tally == self.memories[inputs].tally:
            return None
        if outside := self._range(inputs).outside(mine):
            return outside
        # Between two rows is memory that belongs to none, as strides are long here; on a GPU it is the next
        # row, or behind the last one. Programs that did not run may read it, so all of them are asked.
        known = [self.memories[inputs], *self._with_same_sizes(inputs)]
        if not mine.beyond(known).size:
            return None
        _, whole = self._grid(inputs)
        if not whole:
            return None
        beyond = mine.beyond([*known, whole])
        return first_read(mine, beyond) if beyond.size else None

    def _range(self, inputs: CheckInputs) -> ReadRange:
        """Return the range that all programs reach with the same sizes, or with those of the same seed."""
        if inputs.arguments not in self._ranges:
            self._ranges[inputs.arguments] = ReadRange.of(self._with_same_sizes(inputs))
        return self._ranges[inputs.arguments]

    def _with_same_sizes(self, inputs: CheckInputs) -> list[RecordingMemory]:
        same = (inputs.arguments, (inputs.seed, ()))
        return [memory for other, memory in self.memories.items() if other.arguments in same]

    def run(
        self,
        kernel: TritonKernel | LoweredKernel,
        inputs: CheckInputs,
        recorder: ValueRecorder | LargestValue | None = None,
        order: Order = Order.AT_ONCE,
        slow: int | None = None,
        *,
        assumed: bool = True,
        most: int = MOST,
    ) -> Any:
        """Run a text, and return the memory that it leaves; its assumptions may be ignored.

        Raises:
            UnsupportedIrError: the text has an operation, a type or an access that is not known.
            BarrierError: in this order it waits for a barrier that never completes.
            EndlessError: it does not end.
            AssumedError: it makes an assumption that does not hold.
            UndecidedError: the check was stopped.
        """
        if self._stop():
            raise UndecidedError("the check was stopped, or takes too long")
        table = configs.load("passes-check")["inputs"]
        if isinstance(kernel, LoweredKernel):
            values = tuple(argument.value for argument in self.given[inputs.arguments])
            reference, grid, limit = self.memories[inputs], tuple(table["grid"]), table["llvm-steps"]
            return kernel.run(values, reference, inputs.program, grid, limit, recorder, rounds=self._rounds)
        memory = self._memory(kernel, inputs, RecordingMemory)
        first = inputs not in self._steps
        run = self._launched(
            kernel,
            inputs,
            memory,
            order,
            slow,
            recorder=recorder,
            assumed=assumed,
            most=most,
            reached=self.reached if first else None,
        )
        # The first run under these inputs is the reference's: others are limited by its number of operations.
        if first:
            self._steps[inputs] = run.steps
            self._spent += run.elements + _STEP * run.steps
        memory.assumptions = len(run.assumptions)
        return memory

    def _memory(self, kernel: TritonKernel, inputs: CheckInputs, kind: type[MemoryT]) -> MemoryT:
        """Return the memory that a run begins with."""
        # Numbers that are only compared and moved may be large, which tells them from any default; sums may
        # not.
        scale = _SCALE if self.kernel is None or self.kernel.compares else 1
        flagged = flags(kernel.function)
        return kind(inputs.seed + 1, inputs.contents, flagged, ordered=self.ordered, scale=scale)

    def _launched(
        self,
        kernel: TritonKernel,
        inputs: CheckInputs,
        memory: RecordingMemory,
        order: Order,
        slow: int | None,
        *,
        recorder: ValueRecorder | LargestValue | None = None,
        assumed: bool = True,
        most: int = MOST,
        reached: ReachedCode | None = None,
    ) -> EvaluatedProgram:
        """Run one program on a memory."""
        table = configs.load("passes-check")["inputs"]
        run = EvaluatedProgram(
            kernel.functions,
            memory,
            inputs.program,
            (table["grid"][0], table["grid"][1], table["grid"][2]),
            self._limit(inputs, table["steps"] if most == MOST else table["most-steps"]),
            flight=InFlight(order, slow, counted=kernel.parts > 0),
            rounds=self._rounds,
            assumed=assumed,
            most=most,
            reached=reached or ReachedCode(),
            lines=kernel.lines,
        )
        run.recorder = recorder
        values = tuple(argument.value for argument in self._arguments(kernel, inputs))
        run.launch(kernel.main, fitting(values, kernel.function.regions[0].blocks[0].args))
        return run

    @property
    def _rounds(self) -> bool:
        # If the reference has dots of tf32, both sides are computed exactly, and differ by no rounding; if it
        # has none, a pass that makes one tf32 has to be seen.
        return self.kernel is not None and not self.kernel.tf32

    def _limit(self, inputs: CheckInputs, usual: int) -> int:
        """Return how many operations a run may have: the usual number for the reference itself."""
        return self._steps[inputs] * _LONGER + _SOME if inputs in self._steps else usual

    def _arguments(self, kernel: TritonKernel, inputs: CheckInputs) -> tuple[Argument, ...]:
        """Return the kernel's arguments, as the first text takes them."""
        if inputs.arguments not in self.given:
            chosen = arguments(kernel.function, inputs.seed, self._stages)
            if len(self._names) == len(chosen):
                chosen = tuple(
                    replace(argument, name=name) for argument, name in zip(chosen, self._names, strict=True)
                )
            self.given[inputs.arguments] = with_sizes(chosen, inputs.sizes)
        return self.given[inputs.arguments]


def _schedules(
    kernel: TritonKernel | LoweredKernel, orders: tuple[Order, ...]
) -> Iterator[tuple[Order, int | None]]:
    """Yield the orders; where reads are late, each partition is the last one once."""
    # Which partition lags behind is up to the hardware, and a missing wait shows only if its writer does.
    for order in orders or (Order.AT_ONCE,):
        yield order, None
        if order is Order.READS_LATE and isinstance(kernel, TritonKernel):
            yield from ((order, part) for part in range(kernel.parts))


def _comparison(before: RecordingMemory, after: GlobalMemory) -> tuple[float, Difference | None]:
    """Compare what two runs wrote, but for places of which several threads decide.

    Raises:
        UnsupportedIrError: what they decided was read, and the results differ.
    """
    # Another text may leave another value of those that the threads store.
    raced = before.races.places
    apart, difference = compare_memory(before, after, before.least, before.slack, without=raced)
    if difference and before.races.spread:
        raise UnsupportedIrError(race_text(before))
    return apart, difference


def _ended(error: EndlessError | FreedError | AccessError | RaceError, run: ChangedRun) -> ChangedRun:
    """Describe a run that did not come to its end."""
    if isinstance(error, EndlessError):
        return replace(run, change=ResultChange.ENDLESS)
    if isinstance(error, AccessError):
        return replace(run, change=ResultChange.BEYOND, place=str(error), by=error.operation)
    if isinstance(error, RaceError):
        return replace(run, change=ResultChange.THREADS, place=str(error), by=error.operation)
    return run


def _race(run: ChangedRun) -> ChangedRun:
    """Describe as a race a run that does not end, or reads elsewhere, only in some order."""
    if run.change is ResultChange.BEYOND:
        return run
    difference = run.difference if run.change is _CHANGES[run.order] else None
    return replace(run, change=_CHANGES[run.order], difference=difference)
