"""The two sides of `kernel.check A --against B`, the arguments that both get, and the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.boundaries import BoundaryFinder
from tritonsmith.check.grid import LaunchGrid
from tritonsmith.check.inputs import arguments, blocks_of, flags, long_sizes, most_of, unit_of
from tritonsmith.check.memory import Contents, base
from tritonsmith.check.module import (
    UnsupportedIrError,
    ValueKind,
    ValueType,
    name_of,
    type_of,
    without_locations,
)
from tritonsmith.check.runs import TritonKernel, parsed
from tritonsmith.compiler.signature import evaluated
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError

_STAGES = 3  # of loops: enough turns for the pipelines of most configs
_STRIDE = 4096  # elements: strides are no smaller
_MASKED = 2  # operands of a load with a mask and no other value
_MATCHED = 2  # versions
_AXES = 3  # of a grid


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
        compiler: the Triton and the target, which decide what becomes of the IR.
        options: the options of the backend, of which layouts and so the order of sums depend.
    """

    label: str
    text: str
    names: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    grid: str = ""
    captured: tuple[tuple[int, ...], ...] = ()
    compiler: str = ""
    options: str = ""


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
        usual: whether "the same" needs these inputs.
    """

    chooser: int
    seed: int
    contents: Contents = Contents.PLAIN
    sizes: tuple[tuple[str, int], ...] = ()
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
            does not end) or `order` (the second depends on the order of its programs).
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
class PairResult:
    """The answer of a comparison.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`; or `broken`, if only the first compiles.
        why: the reason of `unknown` or `broken`; or why equal bits here need not be equal bits on a GPU.
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


class UndecidedPairError(Exception):
    """A reason why two versions cannot be compared."""


class UnfitError(Exception):
    """A value that one of the parameters cannot have."""


@dataclass(frozen=True)
class ParsedVersion:
    """A version with its kernel.

    Attributes:
        version: the version.
        kernel: its kernel.
        kinds: the types of its parameters, by name and in order.
    """

    version: KernelVersion
    kernel: TritonKernel
    kinds: Mapping[str, ValueType]

    @classmethod
    def of(cls, version: KernelVersion) -> Self:
        """Parse a version.

        Raises:
            UnsupportedIrError: it cannot be run.
            FactError: it cannot be parsed.
        """
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
        kinds = {name: type_of(parameter.type) for name, parameter in zip(names, parameters, strict=True)}
        return cls(replace(version, names=names), kernel, kinds)

    @property
    def function(self) -> Operation:
        """The kernel's function."""
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
        """Return the place of a parameter."""
        return self.version.names.index(name)

    def blocks(self) -> dict[str, int]:
        """Return how much of each size one program or iteration takes."""
        return {self.version.names[place]: block for place, block in blocks_of(self.function).items()}

    def long(self) -> list[tuple[str, int]]:
        """Return sizes that make each loop long."""
        return [(self.version.names[place], size) for place, size in long_sizes(self.function)]


class PairArguments:
    """The arguments of two versions: a parameter that both have gets the same value.

    Attributes:
        sides: the two versions.
        names: the parameters of both.
        notes: what the answer does not cover.

    Raises:
        UndecidedPairError: their parameters do not correspond.
        UnsupportedIrError: one of them cannot be run.
    """

    def __init__(self, request: PairRequest) -> None:
        first, second = map(ParsedVersion.of, request.versions)
        self.sides = (first, second)
        self.names = tuple(dict.fromkeys((*first.version.names, *second.version.names)))
        self.notes: dict[str, None] = {}
        self._set = request.values
        self._check(request)
        sizes = {name for side in self.sides for name in side.blocks()}
        self._sizes = [name for name in self.names if name in sizes]
        self._strides = [name for name in self.names if name not in sizes and self.kind(name).is_integer]

    def kind(self, name: str) -> ValueType:
        """Return the type of a parameter."""
        return next(side.kinds[name] for side in self.sides if name in side.kinds)

    def flags(self) -> tuple[int, ...]:
        """Return the numbers, from 1, of the pointers to i1."""
        return tuple(
            self.names.index(side.version.names[number - 1]) + 1
            for side in self.sides
            for number in flags(side.function)
        )

    def _check(self, request: PairRequest) -> None:
        first, second = self.sides
        for name in self.names:
            kinds = [side.kinds[name] for side in self.sides if name in side.kinds]
            if any(kind.kind is ValueKind.DESCRIPTOR for kind in kinds):
                raise UndecidedPairError(f"{name} is a tensor descriptor of the host")
            if len({kind.kind for kind in kinds}) > 1:
                raise UndecidedPairError(f"{name} is a pointer in one version and a number in the other")
            if kinds[0].kind is ValueKind.POINTER and len({kind.dtype for kind in kinds}) > 1:
                types = " and ".join(f"{kind.dtype}" for kind in kinds)
                raise UndecidedPairError(f"{name} points to {types}: the versions need the same types")
        for side, other in ((first, second), (second, first)):
            for name, kind in side.kinds.items():
                if name in other.kinds or name in other.version.constants:
                    continue
                if kind.kind is ValueKind.POINTER and name not in dict(self._set):
                    self.notes[f"only {side.version.label} has the pointer {name}"] = None
        if unknown := [name for name in request.outputs if name not in self.names]:
            raise UndecidedPairError(f"neither version has an argument {unknown[0]}")

    def all_inputs(self, seeds: int, *, finite: bool) -> Iterator[PairInputs]:
        """Yield the inputs, those that "the same" needs first, and those with NaN last."""
        sides = range(len(self.sides))
        yield from (PairInputs(side, seed, usual=True) for seed in range(min(seeds, 2)) for side in sides)
        yield PairInputs(0, 1, Contents.PRECISE, usual=True)
        yield self.whole_blocks()
        yield from (PairInputs(0, 1, kind) for kind in (Contents.SMALL, Contents.LARGE, Contents.INTEGERS))
        cut = (Contents.ABOVE, Contents.BELOW, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW)
        yield from (PairInputs(0, 0, kind) for kind in cut)
        # A sum of many numbers of one sign shows the type in which it is kept.
        for size in dict(pair for side in self.sides for pair in side.long()).items():
            yield from (PairInputs(0, 0, kind, (size,)) for kind in (Contents.PLAIN, Contents.ABOVE))
        yield from (PairInputs(side, seed) for seed in range(2, seeds) for side in sides)
        yield from self._bounds()
        if not finite:
            yield from (PairInputs(0, seed, Contents.EDGES) for seed in range(2))

    def whole_blocks(self) -> PairInputs:
        """Return inputs whose sizes are multiples of the blocks of both versions."""
        blocks: dict[str, int] = {}
        for side in self.sides:
            for name, block in side.blocks().items():
                blocks[name] = math.lcm(blocks.get(name, 1), block, self._unit(name))
        # No two are equal, as a version may take one for the other.
        sizes = ((name, block * (2 + place)) for place, (name, block) in enumerate(blocks.items()))
        return PairInputs(0, 1, sizes=tuple(sizes))

    def _bounds(self) -> list[PairInputs]:
        """Return inputs with a size at a bound that a version tests."""
        limits = configs.load("passes-check")["inputs"]
        x, y, z = limits["grid"]
        table = self.table(PairInputs(0, 1))
        bounds: dict[PairInputs, None] = {}
        for side in self.sides:
            with suppress(UnfitError):
                values = self.in_order(side, table)
                finder = BoundaryFinder(side.kernel.functions, side.kernel.main, (x, y, z))
                for bound in finder.find(values, limits["bounds"]):
                    if bound.place >= 0:
                        name = side.version.names[bound.place]
                        bounds[PairInputs(0, 1, sizes=((name, bound.value),))] = None
        return list(bounds)[: limits["bounds"]]

    def _unit(self, name: str) -> int:
        """Return the number that all values of a parameter are multiples of, for both versions."""
        units = [unit_of(side.function, side.place(name)) for side in self.sides if name in side.kinds]
        return math.lcm(*units)

    def table(self, inputs: PairInputs) -> dict[str, Any]:
        """Return the arguments by name; a pointer is an address.

        Raises:
            UndecidedPairError: a parameter is a pointer in one version, and a constant of the other.
            UsageError: an expression of `--set` makes no sense.
        """
        table = self._chosen(inputs)
        table |= {name: value for name, value in inputs.sizes if name in table}
        # Rows that are longer than a stride would overlap, and then the order of the programs decides.
        if longest := max((table[name] for name in self._sizes), default=0) // _STRIDE * _STRIDE:
            table |= {name: table[name] + longest for name in self._strides}
        # A number that one version has as a constant is that number for the other, too.
        for side in self.sides:
            for name, value in side.version.constants.items():
                if name in table and (self.kind(name).kind is ValueKind.POINTER or not _is_number(value)):
                    text = f"{name} is {value!r} in one version, and an argument of the other"
                    raise UndecidedPairError(text)
                table |= {name: value} if name in table else {}
        for name, text in self._set:
            if name not in table:
                raise UndecidedPairError(f"--set {name}: neither version has such a parameter at run time")
            table[name] = self._set_value(name, text, table)
        return table

    def _set_value(self, name: str, text: str, table: Mapping[str, Any]) -> Any:
        """Return the value that `--set` gives a parameter.

        Raises:
            UsageError: it is no number, or no integer where the parameter is one.
        """
        value, *more = evaluated(text, self._environment(table, *self.sides), "--set", whole=False)
        if more:
            raise UsageError(f"--set {name} cannot be {text!r}", why="a parameter has one value")
        kind = self.kind(name)
        if kind.is_integer or kind.kind is ValueKind.POINTER:
            if isinstance(value, float) and not value.is_integer():
                what = "an integer" if kind.is_integer else "a pointer"
                hints = [f"--set {name}=n // 2"] if kind.is_integer else []
                raise UsageError(f"--set {name}={text} gives {value}, and {name} is {what}", hints=hints)
            value = int(value)
        return value

    def _chosen(self, inputs: PairInputs) -> dict[str, Any]:
        """Return the arguments that one version chooses, and those that only the other has."""
        table: dict[str, Any] = {}
        for side in (self.sides[inputs.chooser], self.sides[1 - inputs.chooser]):
            chosen = arguments(side.function, inputs.seed, _STAGES)
            for name, argument in zip(side.version.names, chosen, strict=True):
                table.setdefault(name, argument.value.item())
        for place, name in enumerate(self.names):
            kind = self.kind(name)
            if kind.kind is ValueKind.POINTER:
                table[name] = base(place)
            elif kind.is_integer:
                table[name] = -(-table[name] // (unit := self._unit(name))) * unit
        return table

    def _environment(self, table: Mapping[str, Any], *sides: ParsedVersion) -> dict[str, Any]:
        """Return the names that an expression may have: arguments, constants, and names of the second."""
        names: dict[str, Any] = {}
        for side in sides:
            names |= {name: value for name, value in side.version.constants.items() if _is_number(value)}
        names |= table
        for side in sides:
            for own, name in side.version.aliases.items():
                if name in table:
                    names.setdefault(own, table[name])
        return names

    def grid(self, side: ParsedVersion, table: Mapping[str, Any]) -> LaunchGrid | None:
        """Return the grid of a version, as its expression says; None without one."""
        if not side.version.grid:
            return None
        # Its own constants come before arguments: they are what its launch knows.
        own = {name: value for name, value in side.version.constants.items() if _is_number(value)}
        size = evaluated(side.version.grid, {**self._environment(table, side), **own}, "--grid")
        if len(size) > _AXES:
            raise UsageError(f"--grid has {len(size)} axes, and a grid has at most {_AXES}")
        x, y, z = (*size, 1, 1, 1)[:_AXES]
        return LaunchGrid((x, y, z))

    def in_order(self, side: ParsedVersion, table: Mapping[str, Any]) -> list[Any]:
        """Return the arguments of a version as its kernel takes them.

        Raises:
            UnfitError: a number is too large for its type, or for what the kernel assumes.
        """
        values = []
        for name, kind in side.kinds.items():
            if kind.kind is ValueKind.POINTER:
                values.append(np.asarray(np.int64(table[name])))
            elif kind.is_integer:
                least, most = np.iinfo(kind.dtype).min, np.iinfo(kind.dtype).max
                parameter = side.function.regions[0].blocks[0].args[side.place(name)]
                value = int(table[name])
                if not least <= value <= min(most, most_of(parameter)):
                    raise UnfitError(f"{name}={value} is more than {side.version.label} takes")
                values.append(np.asarray(kind.dtype.type(value)))
            else:
                values.append(np.asarray(table[name]).astype(kind.dtype))
        return values


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))
