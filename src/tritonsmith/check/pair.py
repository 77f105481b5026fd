"""Run two versions of a kernel on the same arguments and memory, and compare all that they write."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.answer import Difference, ReadRange, compare_memory
from tritonsmith.check.blame import LargestValue
from tritonsmith.check.boundaries import BoundaryFinder
from tritonsmith.check.evaluate import AccessError
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.grid import GridMemory, GridRunner, LaunchGrid, evaluated
from tritonsmith.check.inputs import arguments, blocks_of, flags, long_sizes, most_of, unit_of
from tritonsmith.check.memory import WHOLE, Contents, Written, base, regions
from tritonsmith.check.module import (
    UnsupportedIrError,
    ValueKind,
    ValueType,
    behaviour,
    name_of,
    type_of,
    without_locations,
)
from tritonsmith.check.program import EndlessError
from tritonsmith.check.runs import TritonKernel, parsed
from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError

_STAGES = 3  # of loops: enough turns for the pipelines of most configs
_STRIDE = 4096  # elements: strides are no smaller
_SCALE = 1 << 10  # of numbers that are only compared
_INEXACT = (Contents.LARGE, Contents.INTEGERS)
_ABOUT_FLOATS = (Contents.ABOVE, Contents.BELOW, Contents.PRECISE, Contents.LARGE, Contents.SMALL)
_NOT_ENDING = (EndlessError, AssumedError)
# Where the order of operations is open in the IR: a GPU's follows from layouts.
_OPEN = ("tt.reduce", "tt.scan", "tt.dot", "tt.dot_scaled", "tt.atomic_rmw", "tt.descriptor_reduce")
_UNDEFINED = 1000  # stands for what a load leaves in masked elements: more than any number in memory
_MASKED = 2  # operands of a load with a mask and no other value


@dataclass(frozen=True)
class KernelVersion:
    """One side of a comparison.

    Attributes:
        label: its name on the screen.
        text: its IR in generic form.
        names: its parameters that are no constants, in order, by the names of the first version.
        aliases: its own name of each renamed parameter, to that of the first version.
        constants: the other parameters and their values; 1 for those that are specialized to 1.
        grid: the number of programs, as an expression; empty if it is not known.
        captured: the grids of captured launches.
    """

    label: str
    text: str
    names: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    grid: str = ""
    captured: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class PairRequest:
    """A comparison of two versions.

    Attributes:
        versions: the two; the first one chooses most of the inputs.
        values: expressions for parameters, in order: they may name parameters.
        outputs: the arguments to compare; all if empty.
        finite: leave out inputs with infinities and NaN.
        seeds: how many random sizes; None for the usual number.
    """

    versions: tuple[KernelVersion, KernelVersion]
    values: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    finite: bool = False
    seeds: int | None = None

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Return a request that went through JSON."""
        first, second = (
            KernelVersion(
                **{
                    **version,
                    "names": tuple(version["names"]),
                    "captured": tuple(map(tuple, version["captured"])),
                }
            )
            for version in content["versions"]
        )
        typed = {
            "versions": (first, second),
            "values": tuple((name, text) for name, text in content["values"]),
            "outputs": tuple(content["outputs"]),
        }
        return cls(**{**content, **typed})


@dataclass(frozen=True)
class PairInputs:
    """The inputs of both versions.

    Attributes:
        chooser: the version whose blocks decide about the sizes: 0 or 1.
        seed: the seed of the arguments and of memory.
        contents: the kind of numbers in memory.
        sizes: parameters with other values than those of the seed.
        whole: whether all sizes are multiples of the blocks of both versions.
        usual: whether "the same" needs these inputs.
    """

    chooser: int
    seed: int
    contents: Contents = Contents.PLAIN
    sizes: tuple[tuple[str, int], ...] = ()
    whole: bool = False
    usual: bool = False


@dataclass(frozen=True)
class ElementPair:
    """An element that both versions write, or one of them.

    Attributes:
        argument: the name of the argument whose memory holds it; empty for memory behind a pointer in memory.
        offset: its distance from that pointer, in elements.
        before: its value by the first version; None if that does not write it.
        after: its value by the second.
        apart: the relative difference.
    """

    argument: str
    offset: int
    before: float | None
    after: float | None
    apart: float = math.inf


@dataclass(frozen=True)
class PairWitness:
    """Inputs under which two versions differ.

    Attributes:
        kind: `value`, `reads` (the second reads memory that the first does not reach), `endless` (the second
            does not end), `order` (the second depends on the order of its programs) or `masked` (the second
            depends on what a load without `other` leaves in masked elements).
        element: the first element that differs, or that is read; None for `endless`.
        count: the number of elements that differ.
        written: the number of elements that either version writes.
        arguments: the arguments that are numbers.
        seed: the seed of memory.
        contents: the kind of numbers in memory.
        grids: the two grids.
    """

    kind: str
    element: ElementPair | None
    count: int
    written: int
    arguments: dict[str, Any]
    seed: int
    contents: Contents
    grids: tuple[tuple[int, int, int], tuple[int, int, int]]


@dataclass(frozen=True)
class PairAnswer:
    """The answer of a comparison.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`.
        why: the reason of `unknown`; or why equal bits here need not be equal bits on a GPU.
        witness: the first inputs under which they differ; None if there are none.
        largest: the largest difference within the tolerance; None if all bits are equal.
        inputs: the number of inputs under which both ran and were compared.
        left_out: reasons and how many inputs were left out for them.
        elements: by argument, how many elements were compared under all inputs.
        unclear: by argument, how many of these are NaN by both.
        sizes: the sizes that were tried, by parameter.
        grids: the grids of the first inputs.
        guessed: whether an axis of a grid is unknown, and a few programs of it were run.
        notes: what the answer does not cover, and what differs without a difference.
    """

    status: str
    why: str = ""
    witness: PairWitness | None = None
    largest: ElementPair | None = None
    inputs: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    unclear: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    grids: tuple[tuple[int, ...], ...] = ()
    guessed: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Return an answer that went through JSON."""
        witness, largest = content["witness"], content["largest"]
        if witness:
            element = witness["element"]
            typed = {
                "element": ElementPair(**element) if element else None,
                "contents": Contents(witness["contents"]),
                "grids": tuple(map(tuple, witness["grids"])),
            }
            witness = PairWitness(**{**witness, **typed})
        typed = {
            "witness": witness,
            "largest": ElementPair(**largest) if largest else None,
            "grids": tuple(map(tuple, content["grids"])),
            "notes": tuple(content["notes"]),
        }
        return cls(**{**content, **typed})


class _UndecidedPairError(Exception):
    """A reason why two versions cannot be compared."""


class _UnfitError(Exception):
    """A value that one of the parameters cannot have."""


def compare_versions(request: PairRequest) -> PairAnswer:
    """Compare two versions of a kernel in this process."""
    try:
        return _Pair(request).answer()
    except (_UndecidedPairError, UnsupportedIrError) as error:
        return PairAnswer("unknown", str(error))
    except (RecursionError, MemoryError) as error:
        return PairAnswer("unknown", str(error) or type(error).__name__)


@dataclass(frozen=True)
class _Side:
    """A version, parsed."""

    version: KernelVersion
    kernel: TritonKernel
    kinds: Mapping[str, ValueType]

    @classmethod
    def of(cls, version: KernelVersion) -> _Side:
        kernel = parsed(without_locations(version.text))
        if kernel is None:
            raise UnsupportedIrError("the text is in LLVM's dialect")
        parameters = kernel.function.regions[0].blocks[0].args
        names = version.names
        if len(names) != len(parameters):
            hinted = tuple(parameter.name_hint or "" for parameter in parameters)
            if not all(hinted) or not set(names) <= set(hinted):
                raise UnsupportedIrError(f"{version.label} has other parameters in its IR than in its source")
            names = hinted
        kinds = {
            name: type_of(parameter.type) for name, parameter in zip(names, parameters, strict=True)
        }
        return cls(replace(version, names=names), kernel, kinds)

    @property
    def function(self) -> Operation:
        return self.kernel.function

    @cached_property
    def leaves_undefined(self) -> bool:
        """Report whether a load has a mask, and no value for the elements outside."""
        return any(
            name_of(operation) == "tt.load" and len(operation.operands) == _MASKED
            for function in self.kernel.functions.values()
            for operation in function.walk()
        )

    def place(self, name: str) -> int:
        return self.version.names.index(name)

    def blocks(self) -> dict[str, int]:
        return {self.version.names[place]: block for place, block in blocks_of(self.function).items()}

    def long(self) -> list[tuple[str, int]]:
        return [(self.version.names[place], size) for place, size in long_sizes(self.function)]


class _Pair:
    """The comparison of two versions."""

    def __init__(self, request: PairRequest) -> None:
        self._request = request
        first, second = map(_Side.of, request.versions)
        self._sides = (first, second)
        self._names = tuple(dict.fromkeys((*first.version.names, *second.version.names)))
        self._spent = 0
        self._elements, self._unclear = Counter[str](), Counter[str]()
        self._left_out, self._inputs = Counter[str](), 0
        self._sizes: dict[str, dict[int, None]] = {}
        self._notes: dict[str, None] = {}
        self._largest: ElementPair | None = None
        self._grids: tuple[LaunchGrid, LaunchGrid] | None = None
        self._guessed, self._adds = False, False
        self._runners: list[list[GridRunner]] = [[], []]
        self._tried: set[tuple[Any, ...]] = set()
        sizes = {name for side in self._sides for name in side.blocks()}
        self._strides = [
            name
            for name in self._names
            if name not in sizes and all(side.kinds[name].is_integer for side in self._sides if name in side.kinds)
        ]
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Refuse versions whose parameters do not correspond.

        Raises:
            _UndecidedPairError: they do not.
        """
        first, second = self._sides
        for name in self._names:
            kinds = [side.kinds[name] for side in self._sides if name in side.kinds]
            if any(kind.kind is ValueKind.DESCRIPTOR for kind in kinds):
                raise _UndecidedPairError(f"{name} is a tensor descriptor of the host")
            if len({kind.kind for kind in kinds}) > 1:
                raise _UndecidedPairError(f"{name} is a pointer in one version and a number in the other")
            if kinds[0].kind is ValueKind.POINTER and len({kind.dtype for kind in kinds}) > 1:
                types = " and ".join(f"{kind.dtype}" for kind in kinds)
                raise _UndecidedPairError(f"{name} points to {types}: the versions need the same types")
        for side, other in ((first, second), (second, first)):
            for name, kind in side.kinds.items():
                if name in other.kinds or name in other.version.constants:
                    continue
                if kind.kind is ValueKind.POINTER and name not in dict(self._request.values):
                    self._notes[f"only {side.version.label} has the pointer {name}"] = None
        unknown = [name for name in self._request.outputs if name not in self._names]
        if unknown:
            raise _UndecidedPairError(f"neither version has an argument {unknown[0]}")

    def answer(self) -> PairAnswer:
        """Run both under all inputs, until they differ."""
        if self._same_text():
            return PairAnswer("equal", "both have the same IR, and nothing had to be run")
        witness = None
        unsure: list[str] = []
        for inputs in self._all_inputs():
            outcome = self._compared(inputs)
            if isinstance(outcome, str):
                unsure.append(outcome)
            elif outcome:
                witness = outcome
                break
        if witness:
            self._look_at_whole_blocks(witness)
            return self._answer("differs", witness=witness)
        if why := self._lacks(unsure):
            return self._answer("unknown", why)
        if self._largest:
            return self._answer("close")
        # A GPU adds in the order of its layouts: these may differ where texts or options do.
        if why := self._open_order():
            return self._answer("close", why)
        return self._answer("equal")

    def _same_text(self) -> bool:
        first, second = (
            (behaviour(without_locations(side.version.text)), side.version.names, side.version.grid,
             side.version.captured, side.version.constants if side.version.grid else None)
            for side in self._sides
        )  # fmt: skip
        return first == second

    def _answer(self, status: str, why: str = "", witness: PairWitness | None = None) -> PairAnswer:
        for side, runners in zip(self._sides, self._runners, strict=True):
            reached = runners[0].reached if runners else None
            for runner in runners[1:]:
                reached.add(runner.reached)  # type: ignore[union-attr] # the first one's
            if reached and not witness:
                gaps = reached.gaps(side.kernel.functions, side.version.text)
                self._notes |= {f"not tried: {gap} of {side.version.label}": None for gap in gaps}
        return PairAnswer(
            status,
            why,
            witness,
            self._largest,
            self._inputs,
            dict(self._left_out),
            dict(self._elements),
            dict(self._unclear),
            {name: list(values) for name, values in self._sizes.items()},
            tuple(grid.size for grid in self._grids or ()),
            self._guessed,
            tuple(self._notes),
        )

    # -- inputs ---------------------------------------------------------------------------------------------

    def _all_inputs(self) -> Iterator[PairInputs]:
        """Yield the inputs, those that "the same" needs first, and those with NaN last."""
        seeds = self._request.seeds or configs.load("passes-check")["inputs"]["seeds"]
        sides = range(2)
        yield from (PairInputs(side, seed, usual=True) for seed in range(min(seeds, 2)) for side in sides)
        yield PairInputs(0, 1, Contents.PRECISE, usual=True)
        yield PairInputs(0, 1, sizes=self._whole_blocks(), whole=True)
        later = [PairInputs(0, 1, kind) for kind in (Contents.LARGE, Contents.INTEGERS)]
        later.insert(0, PairInputs(0, 1, Contents.SMALL))
        cut = (Contents.ABOVE, Contents.BELOW, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW)
        later += [PairInputs(0, 0, kind) for kind in cut]
        long = dict(pair for side in self._sides for pair in side.long())
        later += [
            PairInputs(0, 0, kind, sizes=((name, size),))
            for name, size in long.items()
            for kind in (Contents.PLAIN, Contents.ABOVE)
        ]
        later += [PairInputs(side, seed) for seed in range(2, seeds) for side in sides]
        later += self._bounds()
        for inputs in later:
            if self._spent > configs.load("passes-check")["against"]["elements"]:
                self._left_out["the budget is spent"] += 1
            else:
                yield inputs
        if not self._request.finite:
            yield from (PairInputs(0, seed, Contents.EDGES) for seed in range(2))

    def _whole_blocks(self) -> tuple[tuple[str, int], ...]:
        """Return sizes that are multiples of the blocks of both versions."""
        blocks: dict[str, int] = {}
        for side in self._sides:
            for name, block in side.blocks().items():
                blocks[name] = math.lcm(blocks.get(name, 1), block, self._unit(name))
        # No two are equal, as a version may take one for the other.
        return tuple((name, block * (2 + place)) for place, (name, block) in enumerate(blocks.items()))

    def _bounds(self) -> list[PairInputs]:
        """Return inputs with a size at a bound that a version tests."""
        most = configs.load("passes-check")["inputs"]["bounds"]
        x, y, z = configs.load("passes-check")["inputs"]["grid"]
        table = self._values(PairInputs(0, 1))
        found: dict[PairInputs, None] = {}
        for side in self._sides:
            values = self._in_order(side, table)
            finder = BoundaryFinder(side.kernel.functions, side.kernel.main, (x, y, z))
            for bound in finder.find(values, most):
                if bound.place >= 0:
                    name = side.version.names[bound.place]
                    found[PairInputs(0, 1, sizes=((name, bound.value),))] = None
        return list(found)[:most]

    def _unit(self, name: str) -> int:
        """Return the number that all values of a parameter are multiples of, for both versions."""
        units = [unit_of(side.function, side.place(name)) for side in self._sides if name in side.kinds]
        return math.lcm(*units)

    def _values(self, inputs: PairInputs) -> dict[str, Any]:
        """Return the arguments by name, the constants of either version included; a pointer is its address."""
        table: dict[str, Any] = {}
        for side in (self._sides[inputs.chooser], self._sides[1 - inputs.chooser]):
            chosen = arguments(side.function, inputs.seed, _STAGES)
            for name, argument in zip(side.version.names, chosen, strict=True):
                table.setdefault(name, argument.value.item())
        for name in self._names:
            kind = next(side.kinds[name] for side in self._sides if name in side.kinds)
            if kind.kind is ValueKind.POINTER:
                table[name] = base(self._names.index(name))
            elif kind.is_integer:
                table[name] = -(-table[name] // (unit := self._unit(name))) * unit
        table |= {name: value for name, value in inputs.sizes if name in table}
        # Rows of a long loop would overlap, and then the order of the programs decides.
        if longest := max((value for _, value in inputs.sizes), default=0) // _STRIDE * _STRIDE:
            for name in self._strides:
                table[name] += longest
        # A number that one version has as a constant is that number for the other, too.
        for side in self._sides:
            for name, value in side.version.constants.items():
                if name in table:
                    table[name] = self._constant(name, value)
        for name, text in self._request.values:
            if name not in table:
                raise _UndecidedPairError(f"--set {name}: neither version has such a parameter at run time")
            environment = {**self._constants(), **table, **self._aliases(table)}
            table[name] = evaluated(text, environment, "--set", whole=False)[0]
        return table

    def _constant(self, name: str, value: Any) -> Any:
        kind = next(side.kinds[name] for side in self._sides if name in side.kinds)
        if kind.kind is ValueKind.POINTER or not isinstance(value, (int, float)):
            raise _UndecidedPairError(f"{name} is {value!r} in one version, and an argument of the other")
        return value

    def _constants(self, *sides: _Side) -> dict[str, Any]:
        numbers: dict[str, Any] = {}
        for side in sides or self._sides:
            numbers |= {
                name: value for name, value in side.version.constants.items() if isinstance(value, (int, float))
            }
        return numbers

    def _aliases(self, table: Mapping[str, Any], *sides: _Side) -> dict[str, Any]:
        return {
            own: table[name]
            for side in sides or self._sides
            for own, name in side.version.aliases.items()
            if name in table and own not in table
        }

    def _in_order(self, side: _Side, table: Mapping[str, Any]) -> list[Any]:
        values = []
        for name, kind in side.kinds.items():
            if kind.kind is ValueKind.POINTER:
                values.append(np.asarray(np.int64(table[name])))
            elif kind.is_integer:
                least, most = np.iinfo(kind.dtype).min, np.iinfo(kind.dtype).max
                parameter = side.function.regions[0].blocks[0].args[side.place(name)]
                value = int(table[name])
                if not least <= value <= min(most, most_of(parameter)):
                    raise _UnfitError(f"{name}={value} is more than {side.version.label} takes")
                values.append(np.asarray(kind.dtype.type(value)))
            else:
                values.append(np.asarray(table[name]).astype(kind.dtype))
        return values

    # -- runs -----------------------------------------------------------------------------------------------

    def _compared(self, inputs: PairInputs) -> PairWitness | str | None:
        """Run both versions; return a witness, a reason why these inputs tell nothing, or None."""
        table = self._values(inputs)
        # Both versions may choose the same sizes, and constants leave nothing to choose.
        key = (*table.values(), inputs.seed, inputs.contents)
        if key in self._tried:
            return None
        self._tried.add(key)
        try:
            first, second = (self._runner(place, inputs, table) for place in range(2))
        except _UnfitError as error:
            return self._leave_out(inputs, str(error))
        recorder = LargestValue() if inputs.contents in _INEXACT else None
        try:
            grids = tuple(
                self._grid(side, runner, table)
                for side, runner in zip(self._sides, (first, second), strict=True)
            )
            before = first.run(grids[0], recorder=recorder)
        except AccessError as error:
            raise UnsupportedIrError(f"an access outside of shared memory: {error}") from error
        except _NOT_ENDING as error:
            return self._leave_out(inputs, str(error))
        witness = _WitnessMaker(inputs, table, (grids[0], grids[1]), self._names, self._sides)
        if not self._fits(inputs, before):
            return self._leave_out(inputs, "")
        try:
            after = second.run(grids[1])
        except EndlessError:
            return witness.make("endless")
        except AssumedError as error:
            return self._leave_out(inputs, str(error))
        finally:
            self._spent += first.spent + second.spent
        before.least = recorder.largest if recorder else 0.0
        return self._judged(inputs, (first, second), (before, after), witness)

    def _judged(
        self,
        inputs: PairInputs,
        runners: tuple[GridRunner, GridRunner],
        memories: tuple[GridMemory, GridMemory],
        witness: _WitnessMaker,
    ) -> PairWitness | str | None:
        before, after = memories
        guessed = any(grid.guessed for grid in witness.grids)
        apart, difference = self._difference(before, after)
        if difference:
            if why := self._excuse(inputs, memories, difference, guessed=guessed):
                self._left_out[why] += 1
                return why
            return witness.make("value", difference)
        if any(memory.crossed or memory.adds for memory in memories):
            own, reversed_ = (
                runner.run(grid, backwards=True)
                for runner, grid in zip(runners, witness.grids, strict=True)
            )
            if self._difference(before, own)[1]:
                why = f"the result of {self._sides[0].version.label} depends on the order of its programs"
                return self._leave_out(inputs, why)
            if difference := self._difference(before, reversed_)[1]:
                return witness.make("order", difference)
            self._adds |= any(memory.adds for memory in memories)
        if outside := ReadRange.of([before]).outside(after):
            return witness.make("reads", outside)
        if inputs.usual and (difference := self._undefined(runners, memories, witness.grids)):
            return witness.make("masked", difference)
        self._count(before, after, apart, witness)
        return None

    def _undefined(
        self,
        runners: tuple[GridRunner, GridRunner],
        memories: tuple[GridMemory, GridMemory],
        grids: tuple[LaunchGrid, LaunchGrid],
    ) -> Difference | None:
        """Return a difference that shows where masked elements of a load without `other` are not 0."""
        # They are undefined. NVIDIA's code makes them 0, which many kernels rely on: so it is a difference
        # only if the first version does not.
        for place, (side, runner, grid) in enumerate(zip(self._sides, runners, grids, strict=True)):
            if not side.leaves_undefined:
                continue
            try:
                undefined = runner.run(grid, undefined=_UNDEFINED)
            except (*_NOT_ENDING, AccessError, UnsupportedIrError):
                return None
            difference = self._difference(memories[place], undefined)[1]
            if difference and place == 1:
                return difference
            if difference:
                self._notes[f"{side.version.label} takes 0 for masked elements of a load without other="] = None
                return None
        return None

    def _runner(self, place: int, inputs: PairInputs, table: Mapping[str, Any]) -> GridRunner:
        side = self._sides[place]
        regions_of_flags = tuple(
            self._names.index(each.version.names[number - 1]) + 1
            for each in self._sides
            for number in flags(each.function)
        )
        scale = _SCALE if all(each.kernel.compares for each in self._sides) else 1
        runner = GridRunner(
            side.kernel,
            self._in_order(side, table),
            lambda: GridMemory(inputs.seed + 1, inputs.contents, regions_of_flags, scale=scale),
            rounds=not all(each.kernel.tf32 for each in self._sides),
        )
        self._runners[place].append(runner)
        return runner

    def _grid(self, side: _Side, runner: GridRunner, table: Mapping[str, Any]) -> LaunchGrid:
        if not side.version.grid:
            return runner.infer(side.version.captured)
        names = {**table, **self._aliases(table, side), **self._constants(side)}
        size = evaluated(side.version.grid, names, "--grid")
        x, y, z = (*size, 1, 1, 1)[:3]
        return LaunchGrid((x, y, z))

    def _fits(self, inputs: PairInputs, before: GridMemory) -> bool:
        """Report whether such contents test anything: see `ReferenceRuns`."""
        if inputs.contents in WHOLE:
            plain = self._plain(inputs)
            return (
                before.reads_integers
                and plain is not None
                and np.array_equal(before.read, plain.read)
                and np.array_equal(before.written.at, plain.written.at)
            )
        if inputs.contents in _ABOUT_FLOATS:
            return before.reads_floats
        return True

    def _plain(self, inputs: PairInputs) -> GridMemory | None:
        """Return the memory that the first version leaves under the same sizes and plain contents."""
        plain = replace(inputs, contents=Contents.PLAIN)
        table = self._values(plain)
        runner = self._runner(0, plain, table)
        with suppress(*_NOT_ENDING, UnsupportedIrError):
            return runner.run(self._grid(self._sides[0], runner, table))
        return None

    def _leave_out(self, inputs: PairInputs, why: str) -> str | None:
        if why:
            self._left_out[why] += 1
        return why if inputs.usual and why else None

    # -- comparison -----------------------------------------------------------------------------------------

    def _difference(self, before: GridMemory, after: GridMemory) -> tuple[float, Difference | None]:
        chosen = [self._chosen(memory) for memory in (before, after)]
        return compare_memory(chosen[0], chosen[1], before.least, before.slack)

    def _chosen(self, memory: GridMemory) -> Any:
        """Return a memory of the outputs that are compared."""
        outputs = self._request.outputs
        return _Chosen(_of_regions(memory.written, {self._names.index(name) + 1 for name in outputs})
                       if outputs else memory.written)  # fmt: skip

    def _excuse(
        self,
        inputs: PairInputs,
        memories: tuple[GridMemory, GridMemory],
        difference: Difference,
        *,
        guessed: bool,
    ) -> str:
        """Return why a difference need not be one; empty if it is one."""
        before, after = (self._chosen(memory) for memory in memories)
        one_sided = not np.array_equal(before.written.at, after.written.at)
        if guessed and (one_sided or any(memory.crossed or memory.adds for memory in memories)):
            return "the number of programs is not known, and the versions write different elements (--grid)"
        kernels = [side.kernel for side in self._sides]
        if inputs.contents is Contents.EDGES and any(kernel.ordered for kernel in kernels):
            return "an argmax over NaN depends on the order of its comparisons"
        if all(kernel.narrow for kernel in kernels) and not compare_memory(
            before, after, memories[0].least, memories[0].slack, narrow=True
        )[1]:
            return "both add in fp16 or bf16, which each order rounds in its own way"
        return ""

    def _count(
        self, before: GridMemory, after: GridMemory, apart: float, witness: _WitnessMaker
    ) -> None:
        """Record what was compared, and the largest difference."""
        first, second = (self._chosen(memory).written for memory in (before, after))
        self._inputs += 1
        self._grids = self._grids or witness.grids
        self._guessed |= any(grid.guessed for grid in witness.grids)
        for name, value in witness.numbers().items():
            if isinstance(value, int):
                self._sizes.setdefault(name, {})[value] = None
        numbers = regions(first.at)
        nan = _is_nan(first)
        for number in np.unique(numbers):
            name = self._names[number - 1] if number > 0 else ""
            self._elements[name] += int((numbers == number).sum())
            self._unclear[name] += int((nan & (numbers == number)).sum())
        if apart:
            found = _largest(first, second, self._names)
            if found and (self._largest is None or found.apart > self._largest.apart):
                self._largest = found

    def _lacks(self, unsure: Sequence[str]) -> str:
        """Return why "the same" would claim too much; empty if it would not."""
        if unsure:
            return unsure[0]
        if not self._inputs:
            return "no inputs could be compared"
        for name in self._request.outputs or self._written_pointers():
            if not self._elements[name]:
                return f"nothing is written to {name} under these inputs"
        for name, count in self._elements.items():
            if count and self._unclear[name] == count:
                return f"all that is written to {name or 'memory'} is NaN"
        if not self._elements:
            return "neither version writes anything under these inputs"
        for side, other in (self._sides, self._sides[::-1]):
            for name in self._elements:
                if name in side.kinds and name not in other.kinds and not self._request.outputs:
                    return f"only {side.version.label} has {name}, and writes to it (--outputs, --rename)"
        return ""

    def _written_pointers(self) -> list[str]:
        return []

    def _open_order(self) -> str:
        """Return what leaves the order of operations open; empty if nothing does."""
        for side in self._sides:
            for function in side.kernel.functions.values():
                for operation in function.walk():
                    if name_of(operation) in _OPEN and any(
                        type_of(value.type).dtype.kind in "fV" for value in operation.operands
                        if type_of(value.type).kind is ValueKind.NUMBER
                    ):
                        return "the bits are equal here, but a GPU's layouts decide the order inside of "\
                            "tl.sum, tl.dot and atomic additions"  # fmt: skip
        return ""

    def _look_at_whole_blocks(self, witness: PairWitness) -> None:
        """Note whether the versions agree where all sizes are multiples of their blocks."""
        whole = PairInputs(0, 1, sizes=self._whole_blocks(), whole=True)
        with suppress(UnsupportedIrError, _UndecidedPairError, SmithError):
            if whole.sizes and self._compared(whole) is None:
                self._notes["where all sizes are multiples of the blocks, the two are the same"] = None
        if witness.contents is Contents.EDGES:
            self._notes["without infinities and NaN in memory, the two are the same"] = None


@dataclass(frozen=True)
class _Chosen:
    """The part of a memory that `compare_memory` takes."""

    written: Written


@dataclass(frozen=True)
class _WitnessMaker:
    """Makes witnesses of one pair of runs."""

    inputs: PairInputs
    table: Mapping[str, Any]
    grids: tuple[LaunchGrid, LaunchGrid]
    names: tuple[str, ...]
    sides: tuple[_Side, _Side]

    def numbers(self) -> dict[str, Any]:
        """Return the arguments that are no pointers."""
        return {
            name: self.table[name]
            for name in self.names
            if all(side.kinds[name].kind is not ValueKind.POINTER for side in self.sides if name in side.kinds)
        }

    def make(self, kind: str, difference: Difference | None = None) -> PairWitness:
        element = None
        if difference:
            known = difference.argument is not None and difference.argument < len(self.names)
            name = self.names[difference.argument or 0] if known else ""
            element = ElementPair(name, difference.offset, difference.before, difference.after)
        return PairWitness(
            kind,
            element,
            difference.count if difference else 0,
            difference.written if difference else 0,
            self.numbers(),
            self.inputs.seed,
            self.inputs.contents,
            (self.grids[0].size, self.grids[1].size),
        )


def _of_regions(written: Written, numbers: set[int]) -> Written:
    kept = np.isin(regions(written.at), list(numbers))
    return Written(written.at[kept], written.bits[kept], written.kinds[kept], written.dtypes)


def _is_nan(written: Written) -> Any:
    nan = np.zeros(written.at.shape, np.bool_)
    for number, dtype in enumerate(written.dtypes):
        if dtype.kind in "fV":
            chosen = np.flatnonzero(written.kinds == number)
            nan[chosen] = np.isnan(written.values(chosen, dtype).astype(np.float64))
    return nan


def _largest(first: Written, second: Written, names: Sequence[str]) -> ElementPair | None:
    """Return the element whose relative difference is the largest; both have the same elements."""
    best: ElementPair | None = None
    for number, dtype in enumerate(first.dtypes):
        chosen = np.flatnonzero((first.kinds == number) & (first.bits != second.bits))
        if not chosen.size:
            continue
        before, after = (part.values(chosen, dtype).astype(np.float64) for part in (first, second))
        with np.errstate(all="ignore"):
            scale = np.maximum(np.abs(before), np.abs(after))
            apart = np.where(before == after, 0.0, np.abs(before - after) / scale)
        apart = np.where(np.isfinite(apart), apart, 0.0)
        place = int(np.argmax(apart))
        if best is None or apart[place] > best.apart:
            address = int(first.at[chosen[place]])
            region = int(regions(np.asarray([address]))[0])
            name = names[region - 1] if 0 < region <= len(names) else ""
            offset = (address - base(region - 1)) // dtype.itemsize if name else address // dtype.itemsize
            best = ElementPair(name, offset, float(before[place]), float(after[place]), float(apart[place]))
    return best
