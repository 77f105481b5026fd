"""Run two versions of a kernel on the same arguments and memory, and compare all that they write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tritonsmith.check.answer import (
    Difference,
    ReadRange,
    compare_memory,
    distances,
    largest_beside,
    race_text,
)
from tritonsmith.check.blame import LargestValue
from tritonsmith.check.evaluate import AccessError
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.grid import EMPTY, GridMemory, GridRunner, LaunchGrid
from tritonsmith.check.memory import WHOLE, Array, Contents, Written, base, regions
from tritonsmith.check.module import (
    UnsupportedIrError,
    ValueKind,
    behaviour,
    name_of,
    type_of,
    without_locations,
)
from tritonsmith.check.program import EndlessError
from tritonsmith.check.versions import (
    ElementPair,
    PairArguments,
    PairInputs,
    PairRequest,
    PairResult,
    PairWitness,
    ParsedVersion,
    UndecidedPairError,
    UnfitError,
)
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError

_SCALE = 1 << 10  # of numbers that are only compared
_UNDEFINED = 1000  # stands for what a load leaves in masked elements: more than any number in memory
_INEXACT = (Contents.LARGE, Contents.INTEGERS)
_ABOUT_FLOATS = (Contents.ABOVE, Contents.BELOW, Contents.PRECISE, Contents.LARGE, Contents.SMALL)
_NOT_ENDING = (EndlessError, AssumedError)
# Where the order of operations is open in the IR: a GPU's follows from layouts.
_OPEN = ("tt.reduce", "tt.scan", "tt.dot", "tt.dot_scaled", "tt.atomic_rmw", "tt.descriptor_reduce")
_SHORT = 2  # sizes that show a race: less than a block, and several blocks
_PROBED = f"the grid was taken to end where {EMPTY} programs in a row write nothing (--grid)"
_SPENT = "the budget is spent"
_NAMED = 3  # operations that a reason names


def compare_versions(request: PairRequest) -> PairResult:
    """Compare two versions of a kernel in this process."""
    try:
        return _compared(request)
    except (UndecidedPairError, UnsupportedIrError) as error:
        return PairResult("unknown", str(error))
    except FactError as error:
        return PairResult("unknown", error.line)
    except (RecursionError, MemoryError) as error:
        return PairResult("unknown", str(error) or type(error).__name__)


def _compared(request: PairRequest) -> PairResult:
    comparison = _PairComparison(request)
    answer = comparison.answer()
    if answer.status != "unknown" or not comparison.repeats:
        return answer
    # Indices in memory that repeat may be the reason, which those of a launch do not.
    ordered = _PairComparison(request, ordered=True).answer()
    return answer if ordered.status == "unknown" else ordered


@dataclass(frozen=True)
class _Launches:
    """The runs of both versions under the same inputs.

    Attributes:
        inputs: the inputs.
        table: the arguments by name.
        runners: what runs the versions.
        grids: the grids of both.
    """

    inputs: PairInputs
    table: Mapping[str, Any]
    runners: tuple[GridRunner, GridRunner]
    grids: tuple[LaunchGrid, LaunchGrid]

    @property
    def are_sure(self) -> bool:
        """Report whether an element that only one version writes is a difference."""
        # A program beyond the launch may write what it should not, if masks rely on the launch. Where both
        # versions stop at the same program, neither does.
        first, second = self.grids
        known = not any(grid.guessed or grid.probed for grid in self.grids)
        return known or (first.is_likely and second.is_likely and first.size == second.size)


@dataclass(frozen=True)
class _Chosen:
    """The part of a memory that `compare_memory` takes."""

    written: Written


class _PairComparison:
    """The comparison of two versions.

    Args:
        request: the two, and how they are compared.
        ordered: integers in memory ascend.

    Attributes:
        repeats: whether under some inputs the order of threads or programs decides, and integers are read.
    """

    def __init__(self, request: PairRequest, *, ordered: bool = False) -> None:
        self._request, self._arguments = request, PairArguments(request)
        self._sides, self._names = self._arguments.sides, self._arguments.names
        self._notes = self._arguments.notes
        self._tally = _Tally(self._names)
        self._left_out = Counter[str]()
        self._spent = 0
        self._runners: tuple[list[GridRunner], list[GridRunner]] = ([], [])
        self._plain: dict[PairInputs, GridMemory | None] = {}
        self._tried: set[tuple[Any, ...]] = set()
        self._ordered, self.repeats = ordered, False
        if ordered:
            self._notes["integers in memory ascend: where they repeat, the order of writes decides"] = None

    def answer(self) -> PairResult:
        """Run both under all inputs, until they differ."""
        self._note_precision()
        if self._have_same_text():
            return self._of_same_text()
        seeds = self._request.seeds or configs.load("passes-check")["inputs"]["seeds"]
        most = configs.load("passes-check")["against"]["elements"]
        unsure: list[str] = []
        for inputs in self._arguments.all_inputs(seeds, finite=self._request.finite):
            # Runs with NaN come last, and cost no more than the first ones.
            if self._spent > most and not inputs.usual and inputs.contents is not Contents.EDGES:
                self._left_out[_SPENT] += 1
                continue
            outcome = self._compared(inputs)
            if isinstance(outcome, PairWitness):
                self._look_at_whole_blocks(outcome, unsure)
                return self._finished("differs", witness=outcome)
            unsure += [outcome] if outcome else []
            if unsure and self.repeats and not self._ordered:
                break  # further inputs of this kind leave as much open
        if why := (unsure[0] if unsure else self._lacks()):
            return self._finished("unknown", why)
        why = "" if self._tally.largest else self._doubt()
        return self._finished("close" if self._tally.largest or why else "equal", why)

    def _have_same_text(self) -> bool:
        first, second = (
            (
                behaviour(without_locations(side.version.text)),
                side.version.names,
                side.version.grid,
                side.version.captured,
                side.version.constants if side.version.grid else None,
            )
            for side in self._sides
        )
        return first == second

    def _of_same_text(self) -> PairResult:
        """Return the answer where nothing has to be run."""
        first, second = (side.version for side in self._sides)
        # The same text with the same options is the same binary, whatever its order of sums is.
        same = (first.compiler, first.options) == (second.compiler, second.options)
        doubt = "" if same else self._doubt()
        if not same and (race := self._race_of_same_text()):
            return PairResult("unknown", race, notes=tuple(self._notes))
        text = "both have the same IR, and nothing had to be run"
        why = "; ".join(filter(None, (text, doubt)))
        return PairResult("close" if doubt else "equal", why, notes=tuple(self._notes))

    def _race_of_same_text(self) -> str:
        """Return what depends on which thread comes last, which other options or another compiler decide."""
        side, races = self._sides[0], ""
        for inputs in (PairInputs(0, seed, usual=True) for seed in range(_SHORT)):
            table = self._arguments.table(inputs)
            runner = self._runner(side, inputs, table)
            try:
                memory = runner.run(self._arguments.grid(side, table) or runner.infer(side.version.captured))
            except (*_NOT_ENDING, UnfitError, AccessError, UnsupportedIrError) as error:
                self._notes[f"whether its threads write to one place was not tried: {error}"] = None
                continue
            self.repeats |= memory.reads_integers and memory.races.any
            races = races or self._race(side, memory)
        return races

    def _finished(self, status: str, why: str = "", witness: PairWitness | None = None) -> PairResult:
        for side, runners in zip(self._sides, self._runners, strict=True):
            for runner in runners[1:]:
                runners[0].reached.add(runner.reached)
            if runners and not witness:
                gaps = runners[0].reached.gaps(side.kernel.functions, side.version.text)
                self._notes |= {f"not tried in {side.version.label}: {gap}": None for gap in gaps}
        # What both versions have and nobody ran is probably the same; what one alone has may do anything.
        if status in ("equal", "close") and (alone := self._missed_alone()):
            status, why = "unknown", f"no input reached code that only one version has ({alone})"
        tally = self._tally
        return PairResult(
            status,
            why,
            witness,
            tally.largest,
            tally.inputs,
            dict(self._left_out),
            dict(tally.elements),
            dict(tally.unclear),
            {name: list(values) for name, values in tally.sizes.items()},
            tally.grids,
            tally.guessed,
            tuple(self._notes),
        )

    def _missed_alone(self) -> str:
        """Return the operations that one version has more of in code that did not run; empty if none."""
        missed = [
            runners[0].reached.missed(side.kernel.functions) if runners else Counter[str]()
            for side, runners in zip(self._sides, self._runners, strict=True)
        ]
        first, second = missed
        return ", ".join(sorted((first - second) + (second - first))[:_NAMED])

    def _compared(self, inputs: PairInputs) -> PairWitness | str:
        """Run both versions; return a witness, or a reason why these inputs leave open what others need."""
        table = self._arguments.table(inputs)
        # Both versions may choose the same sizes, and constants leave nothing to choose.
        key = (*table.values(), inputs.seed, inputs.contents)
        if key in self._tried:
            return ""
        self._tried.add(key)
        try:
            return self._run(inputs, table)
        except (*_NOT_ENDING, UnfitError) as error:
            return self._leave_out(inputs, str(error))
        except (AccessError, UnsupportedIrError) as error:
            # Without these inputs there is no answer; the others only add to it.
            if inputs.usual:
                raise UnsupportedIrError(str(error)) from error
            return self._leave_out(inputs, str(error))

    def _run(self, inputs: PairInputs, table: Mapping[str, Any]) -> PairWitness | str:
        first, second = (self._runner(side, inputs, table) for side in self._sides)
        first_grid, second_grid = (
            self._arguments.grid(side, table) or runner.infer(side.version.captured)
            for side, runner in zip(self._sides, (first, second), strict=True)
        )
        launches = _Launches(inputs, table, (first, second), (first_grid, second_grid))
        if any(grid.probed for grid in launches.grids):
            self._notes[_PROBED] = None
        recorder = LargestValue() if inputs.contents in _INEXACT else None
        try:
            before = first.run(first_grid, recorder=recorder)
            before.least = recorder.largest if recorder else 0.0
            if not self._tests_something(inputs, before):
                return ""
            try:
                # One program of it may do the work of all programs of the first.
                second.allow(first.steps)
                after = second.run(second_grid)
            except EndlessError:
                return self._witness(launches, "endless")
        finally:
            self._spent += first.spent + second.spent
        return self._judged(launches, before, after)

    def _judged(self, launches: _Launches, before: GridMemory, after: GridMemory) -> PairWitness | str:
        """Compare what both have written."""
        inputs = launches.inputs
        spread = any(memory.races.spread for memory in (before, after))
        difference = None if spread else self._difference(before, after)
        if difference:
            return self._judged_by_value(launches, before, after, difference)
        if (race := self._judged_by_race(inputs, before, after)) is not None:
            return race
        if (outcome := self._judged_by_order(launches, before, after)) is not None:
            return outcome
        if outside := ReadRange.of([before]).outside(after):
            return self._witness(launches, "reads", outside)
        if inputs.usual:
            self._look_at_undefined(launches, (before, after))
        written = self._chosen(before).written, self._chosen(after).written
        if written[0].at.size:
            self._tally.count(*written, launches.grids, self._numbers(launches.table), before)
        return ""

    def _judged_by_value(
        self, launches: _Launches, before: GridMemory, after: GridMemory, difference: Difference
    ) -> PairWitness | str:
        """Return the answer where elements differ."""
        if why := self._excuse(launches, before, after):
            self._left_out[why] += 1
            return why
        if _is_ordered(before) and (why := self._why_by_order(before, self._backwards(launches, 0))):
            return self._leave_out(launches.inputs, why)
        return self._witness(launches, "value", difference)

    def _judged_by_race(self, inputs: PairInputs, *memories: GridMemory) -> str | None:
        """Return why the answer is open where threads store different values to one place; None if not."""
        first, second = (self._race(side, memory) for side, memory in zip(self._sides, memories, strict=True))
        self.repeats |= bool(first or second) and any(memory.reads_integers for memory in memories)
        if first:
            return self._leave_out(inputs, first)
        if second:
            self._left_out[second] += 1
            return second
        return None

    def _race(self, side: ParsedVersion, memory: GridMemory) -> str:
        """Return what of the compared outputs depends on which thread comes last; empty if nothing does."""
        places = memory.races.places
        places = places[self._is_compared(places)]
        if not (memory.races.spread or places.size):
            return ""
        place, _, rest = race_text(memory, self._names, side.version.text, places).partition(" depends")
        return f"{place} of {side.version.label} depends{rest}"

    def _judged_by_order(
        self, launches: _Launches, before: GridMemory, after: GridMemory
    ) -> PairWitness | str | None:
        """Return the answer where two equal memories depend on the order of programs; None if they do not."""
        if not (_is_ordered(before) or _is_ordered(after)):
            return None
        own, reverse = (self._backwards(launches, side) for side in range(len(self._sides)))
        if why := self._why_by_order(before, own):
            return self._leave_out(launches.inputs, why)
        if difference := self._difference(before, reverse):
            return self._witness(launches, "order", difference)
        if race := self._race(self._sides[1], reverse):
            return race
        if after.unguarded and not before.unguarded:
            # One after the other, a load and a store add as well as an atomic operation, in any order.
            label = self._sides[1].version.label
            return f"a program of {label} reads, without atomics, what another one writes"
        return None

    def _backwards(self, launches: _Launches, side: int) -> GridMemory:
        return launches.runners[side].run(launches.grids[side], backwards=True)

    def _why_by_order(self, before: GridMemory, own: GridMemory) -> str:
        """Return why the result of the first version depends on an order; empty if it does not."""
        if not (self._difference(before, own) or self._race(self._sides[0], own)):
            return ""
        self.repeats |= before.reads_integers
        who = "programs" if before.crossed or before.adds else "threads"
        return f"the result of {self._sides[0].version.label} depends on the order of its {who}"

    def _runner(self, side: ParsedVersion, inputs: PairInputs, table: Mapping[str, Any]) -> GridRunner:
        flagged, seed = self._arguments.flags(), inputs.seed + 1
        scale = _SCALE if all(each.kernel.compares for each in self._sides) else 1
        runner = GridRunner(
            side.kernel,
            self._arguments.in_order(side, table),
            lambda: GridMemory(seed, inputs.contents, flagged, ordered=self._ordered, scale=scale),
            # If both have dots of tf32, they are computed exactly, and differ by no rounding.
            rounds=not all(each.kernel.tf32 for each in self._sides),
        )
        self._runners[self._sides.index(side)].append(runner)
        return runner

    def _tests_something(self, inputs: PairInputs, before: GridMemory) -> bool:
        """Report whether such contents test anything: see `ReferenceRuns`."""
        if inputs.contents in WHOLE:
            plain = self._plain_run(replace(inputs, contents=Contents.PLAIN))
            return (
                before.reads_integers
                and plain is not None
                and np.array_equal(before.read, plain.read)
                and np.array_equal(before.written.at, plain.written.at)
            )
        return before.reads_floats or inputs.contents not in _ABOUT_FLOATS

    def _plain_run(self, inputs: PairInputs) -> GridMemory | None:
        """Return the memory that the first version leaves; None if it does not end."""
        if inputs not in self._plain:
            side, table = self._sides[0], self._arguments.table(inputs)
            runner = self._runner(side, inputs, table)
            self._plain[inputs] = None
            with suppress(*_NOT_ENDING, UnsupportedIrError):
                grid = self._arguments.grid(side, table) or runner.infer(side.version.captured)
                self._plain[inputs] = runner.run(grid)
        return self._plain[inputs]

    def _leave_out(self, inputs: PairInputs, why: str) -> str:
        self._left_out[why] += 1
        return why if inputs.usual else ""

    def _difference(self, before: GridMemory, after: GridMemory) -> Difference | None:
        # `compare_memory` reads nothing of a memory but what was written.
        first, second = (self._chosen(memory) for memory in (before, after))
        raced = np.union1d(before.races.places, after.races.places)
        return compare_memory(first, second, before.least, before.slack, without=raced)[1]

    def _chosen(self, memory: GridMemory) -> Any:
        """Return a memory of the outputs that are compared."""
        written = memory.written
        if self._request.outputs:
            kept = self._is_compared(written.at)
            written = Written(written.at[kept], written.bits[kept], written.kinds[kept], written.dtypes)
        return _Chosen(written)

    def _is_compared(self, at: Array) -> Array:
        """Return a mask of the addresses in the outputs that are compared."""
        if not self._request.outputs:
            return np.ones(at.shape, np.bool_)
        return np.isin(regions(at), [self._names.index(name) + 1 for name in self._request.outputs])

    def _excuse(self, launches: _Launches, before: GridMemory, after: GridMemory) -> str:
        """Return why a difference need not be one; empty if it is one."""
        first, second = self._chosen(before), self._chosen(after)
        shared = any(memory.crossed or memory.adds for memory in (before, after))
        if not launches.are_sure and (shared or not np.array_equal(first.written.at, second.written.at)):
            return "the number of programs is not known, and the versions write different elements (--grid)"
        if launches.inputs.contents is Contents.EDGES and any(side.kernel.ordered for side in self._sides):
            return "an argmax over NaN depends on the order of its comparisons"
        if (
            all(side.kernel.narrow for side in self._sides)
            and not compare_memory(first, second, before.least, before.slack, narrow=True)[1]
        ):
            return "both add in fp16 or bf16, which each order rounds in its own way"
        return ""

    def _lacks(self) -> str:
        """Return why "the same" would claim too much; empty if it would not."""
        tally = self._tally
        for name in self._request.outputs:
            if not tally.elements[name]:
                return f"nothing is written to {name} under these inputs"
        if not tally.elements:
            return next(iter(self._left_out), "neither version writes anything under these inputs")
        for name, count in tally.elements.items():
            if tally.unclear[name] == count:
                return f"all that is written to {name or 'memory'} is NaN"
            owners = [side.version.label for side in self._sides if name in side.kinds]
            if len(owners) == 1 and name not in self._request.outputs:
                return f"only {owners[0]} has {name}, and writes to it (--rename, --outputs)"
        return ""

    def _doubt(self) -> str:
        """Return why bits that are equal here need not be equal on a GPU; empty if they are."""
        first, second = (side.version for side in self._sides)
        if first.compiler != second.compiler:
            return "what the two compilers make of this IR is not compared"
        operations = (
            operation
            for side in self._sides
            for function in side.kernel.functions.values()
            for operation in function.walk()
            if name_of(operation) in _OPEN
        )
        kinds = (type_of(value.type) for operation in operations for value in operation.operands)
        if any(kind.kind is ValueKind.NUMBER and kind.dtype.kind in "fV" for kind in kinds):
            return "the bits are equal here; on a GPU, layouts decide the order inside of tl.sum and tl.dot"
        return ""

    def _note_precision(self) -> None:
        """Note where one version is less precise than the other."""
        for kept, what in (("narrow", "adds in fp16 or bf16"), ("tf32", "allows tf32 in a dot")):
            having = [side.version.label for side in self._sides if getattr(side.kernel, kept)]
            if len(having) == 1:
                self._notes[f"only {having[0]} {what}"] = None

    def _look_at_undefined(self, launches: _Launches, memories: tuple[GridMemory, GridMemory]) -> None:
        """Note a version whose result depends on masked elements of a load without `other`."""
        # They are undefined, but NVIDIA's and AMD's code makes them 0, which many kernels rely on.
        pairs = zip(self._sides, launches.runners, launches.grids, memories, strict=True)
        for side, runner, grid, memory in pairs:
            if not side.leaves_undefined:
                continue
            with suppress(*_NOT_ENDING, AccessError, UnsupportedIrError):
                undefined = runner.run(grid, undefined=_UNDEFINED)
                if self._difference(memory, undefined):
                    note = f"{side.version.label} takes 0 for masked elements of a load without other="
                    self._notes[note] = None

    def _look_at_whole_blocks(self, witness: PairWitness, unsure: Sequence[str]) -> None:
        """Note whether the versions agree where all sizes are multiples of their blocks, or without NaN."""
        # In other memory the two might agree whatever the sizes are.
        inputs = replace(self._arguments.whole_blocks(), contents=witness.contents)
        compared = self._tally.inputs
        with suppress(UndecidedPairError, UnsupportedIrError, *_NOT_ENDING, AccessError):
            if inputs.sizes and self._compared(inputs) == "" and self._tally.inputs > compared:
                self._notes["where all sizes are multiples of the blocks, the two are the same"] = None
        if witness.contents is Contents.EDGES and not unsure and not self._lacks():
            self._notes["without infinities and NaN in memory, the two are the same (--finite)"] = None

    def _numbers(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that are no pointers."""
        kinds = {name: self._arguments.kind(name).kind for name in self._names}
        return {name: table[name] for name, kind in kinds.items() if kind is not ValueKind.POINTER}

    def _witness(self, launches: _Launches, kind: str, difference: Difference | None = None) -> PairWitness:
        element = None
        if difference:
            known = difference.argument is not None and difference.argument < len(self._names)
            name = self._names[difference.argument or 0] if known else ""
            element = ElementPair(name, difference.offset, difference.before, difference.after)
        return PairWitness(
            kind,
            element,
            difference.count if difference else 0,
            difference.written if difference else 0,
            self._numbers(launches.table),
            launches.inputs.seed,
            launches.inputs.contents,
            (launches.grids[0].size, launches.grids[1].size),
        )


def _is_ordered(memory: GridMemory) -> bool:
    """Report whether the order of programs, or of an atomic operation's lanes, may matter."""
    return memory.crossed or memory.adds or memory.contended


class _Tally:
    """The count of what was compared.

    Attributes:
        inputs: the number of inputs.
        elements: by argument, the number of elements.
        unclear: by argument, how many of them are NaN by both.
        sizes: the sizes, by parameter.
        largest: the largest difference.
        grids: the grids of the first inputs.
        guessed: whether the number of programs was not known.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.inputs = 0
        self.elements, self.unclear = Counter[str](), Counter[str]()
        self.sizes: dict[str, dict[int, None]] = {}
        self.largest: ElementPair | None = None
        self.grids: tuple[tuple[int, ...], ...] = ()
        self.guessed = False

    def count(
        self,
        first: Written,
        second: Written,
        grids: Sequence[LaunchGrid],
        numbers: Mapping[str, Any],
        memory: GridMemory,
    ) -> None:
        """Add a comparison whose elements are equal, or close; the memory is that of the first."""
        least, slack = memory.least, memory.slack
        self.inputs += 1
        self.grids = self.grids or tuple(grid.size for grid in grids)
        self.guessed |= any(grid.guessed for grid in grids)
        for name, value in numbers.items():
            if isinstance(value, int):
                self.sizes.setdefault(name, {})[value] = None
        owners, nan = regions(first.at), _nan_of(first)
        for number in np.unique(owners):
            name = self._name(int(number))
            self.elements[name] += int((owners == number).sum())
            self.unclear[name] += int((nan & (owners == number)).sum())
        for dtype in first.dtypes:
            self._look_for_largest(first, second, dtype, least, slack)

    def _look_for_largest(
        self, first: Written, second: Written, dtype: np.dtype[Any], least: float, slack: float
    ) -> None:
        """Keep the element whose difference is the largest so far; that of integers is absolute."""
        # The sign and the payload of NaN are no result: each machine has its own. Those of 0 are.
        unequal = (first.bits != second.bits) & ~(_nan_of(first) & _nan_of(second))
        chosen = np.flatnonzero((first.kinds == first.dtypes.index(dtype)) & unequal)
        if not chosen.size:
            return
        before, after = (part.values(chosen, dtype) for part in (first, second))
        if str(dtype) in configs.load("passes-check")["tolerance"]:
            sizes = largest_beside(first, first.at[chosen], dtype)
            apart = distances(before, after, dtype, least, slack, sizes)
        else:
            apart = np.abs(before.astype(np.float64) - after.astype(np.float64))
        place = int(np.argmax(apart))
        if self.largest and apart[place] <= self.largest.apart:
            return
        address = int(first.at[chosen[place]])
        number = int(regions(np.asarray([address]))[0])
        offset = (address - (base(number - 1) if number > 0 else 0)) // dtype.itemsize
        numbers = float(before[place]), float(after[place]), float(apart[place])
        self.largest = ElementPair(self._name(number), offset, *numbers)

    def _name(self, region: int) -> str:
        """Return the name of the argument that a region belongs to; empty for none."""
        return self._names[region - 1] if 0 < region <= len(self._names) else ""


def _nan_of(written: Written) -> Any:
    """Return a mask of the elements that are NaN."""
    nan = np.zeros(written.at.shape, np.bool_)
    for number, dtype in enumerate(written.dtypes):
        if dtype.kind in "fV":
            chosen = np.flatnonzero(written.kinds == number)
            nan[chosen] = np.isnan(written.values(chosen, dtype).astype(np.float64))
    return nan
