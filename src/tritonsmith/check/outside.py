"""Find accesses that their masks do not keep inside a tensor, and program ids that nothing limits.

A kernel says itself where its tensors end: `offsets < n` in the mask of one access is a fact about the others
with the same offsets. Nothing is said about a kernel without such a mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.address_run import UNKNOWN, AddressRun, UnknownValueError
from tritonsmith.check.bounds import BoundsSearch
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.memory import base
from tritonsmith.check.module import UnsupportedIrError, name_of, type_of
from tritonsmith.check.offsets import Access
from tritonsmith.check.polynomials import Fact, Monomial, OffsetSymbol, Polynomial, SymbolKind, normal
from tritonsmith.check.program import EndlessError
from tritonsmith.check.sizes import SizeProblem
from tritonsmith.core import configs

_STEPPING = (SymbolKind.PROGRAM, SymbolKind.TURN)
_FEW = 2  # programs along an axis that nothing limits
_TRIED = 8  # sizes
_WRITES = ("tt.store", "tt.atomic_rmw", "tt.atomic_cas")


@dataclass(frozen=True)
class OutsideWitness:
    """A launch whose grid was run, and one of its programs, which accesses an element past the end.

    Attributes:
        arguments: each integer argument that the address or the masks depend on.
        program: the ids of the program.
        grid: the programs along each axis.
        element: the element that it accesses, counted from the pointer.
        end: the first element past those that the mask of the other access lets through.
    """

    arguments: Mapping[str, int]
    program: tuple[int, ...]
    grid: tuple[int, ...]
    element: int
    end: int

    @property
    def launch_words(self) -> str:
        """The program and its arguments, in words."""
        sizes = ", ".join(f"{name} = {value:,}" for name, value in self.arguments.items())
        return f"program {self.program} of {self.grid} with {sizes}"


@dataclass(frozen=True)
class OutsideAccess:
    """An access beyond what the mask of another access says is there.

    Attributes:
        operation: the load or store.
        other: the access whose mask is compared with.
        size: the argument that the other mask compares with.
        wrong_size: the argument that its own mask compares with instead; None if nothing of it limits the
            offset.
        same: whether both are of the same pointer.
        pointer: the number of the parameter that it goes through.
        witness: the launch that shows it.
    """

    operation: Operation
    other: Operation
    size: OffsetSymbol
    wrong_size: OffsetSymbol | None
    same: bool
    pointer: int
    witness: OutsideWitness

    @property
    def is_proved(self) -> bool:
        """True if the other mask is of the same pointer, and no choice of two sizes was needed for it."""
        return self.same and self.wrong_size is None


@dataclass(frozen=True)
class UnlimitedProgram:
    """A program id that tiles what is written, and that nothing in the kernel limits.

    Attributes:
        program: the program id.
        tile: elements of one program.
        operations: the stores.
    """

    program: OffsetSymbol
    tile: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class _Dimension:
    """An index that the mask of an access keeps below a size.

    Attributes:
        access: the access.
        index: the index: a tile's number times its width, and the place in it.
        size: the argument that it is compared with.
    """

    access: Access
    index: Polynomial
    size: OffsetSymbol


@dataclass(frozen=True)
class _Pair:
    """An access, and the mask of another one that it does not have."""

    access: Access
    bound: _Dimension
    wrong_size: OffsetSymbol | None

    @property
    def same(self) -> bool:
        return self.access.address.base == self.bound.access.address.base


def outside(search: BoundsSearch) -> tuple[OutsideAccess, ...]:
    """Return the accesses that reach past the end of a tensor, as a run of a small grid shows.

    Args:
        search: what runs the kernel's programs.
    """
    accesses = [access for access in search.arithmetic.accesses if access.address.base >= 0]
    if len(accesses) > configs.load("bounds")["outside"]["accesses"]:
        return ()
    bounds = [bound for access in accesses for bound in _dimensions(access)]
    pairs = [pair for access in accesses for pair in _pairs(access, bounds)]
    lacking = frozenset(pair.access.operation for pair in pairs)
    beyond: dict[Operation, OutsideAccess] = {}
    launches: dict[OffsetSymbol | None, _SmallLaunch] = {}
    for pair in sorted(pairs, key=lambda pair: (not pair.same, pair.wrong_size is not None)):
        operation = pair.access.operation
        # Of two masks that differ in their sizes, either may be the wrong one: they are one finding.
        if operation in beyond or (pair.wrong_size and pair.bound.access.operation in beyond):
            continue
        if pair.wrong_size not in launches:
            launches[pair.wrong_size] = _SmallLaunch(search, bounds, pair.wrong_size)
            launches[pair.wrong_size].run(pair.access)
        if witness := launches[pair.wrong_size].witness(pair, lacking):
            beyond[operation] = OutsideAccess(
                operation,
                pair.bound.access.operation,
                pair.bound.size,
                pair.wrong_size,
                pair.same,
                pair.access.address.base,
                witness,
            )
    order = [access.operation for access in accesses]
    return tuple(sorted(beyond.values(), key=lambda row: order.index(row.operation)))


def _dimensions(access: Access) -> Iterator[_Dimension]:
    for fact in _facts(access):
        size = fact.right.symbol
        kinds = {atom.kind for atom in fact.left.symbols}
        # The bound of a loop counts whole tiles: only what holds for each lane says where a tensor ends.
        if (
            size is not None
            and size.kind is SymbolKind.ARGUMENT
            and SymbolKind.LANE in kinds
            and kinds <= {SymbolKind.LANE, *_STEPPING}
            and has_index(access.address.exact, fact.left)
        ):
            yield _Dimension(access, fact.left, size)


def _facts(access: Access) -> list[Fact]:
    return list(dict.fromkeys(part for fact in access.facts for part in normal(fact)))


def _pairs(access: Access, bounds: Sequence[_Dimension]) -> Iterator[_Pair]:
    """Yield the bounds of other accesses that this one lacks."""
    facts = _facts(access)
    for bound in bounds:
        same = access.address.base == bound.access.address.base
        if access.operation is bound.access.operation:
            continue
        for moved in _renamings(bound, access):
            index = _renamed(bound.index, moved)
            # Of another pointer only the same offsets count: tensors of one kernel have many shapes.
            alike = same or access.address.exact == _renamed(bound.access.address.exact, moved)
            if not alike or not has_index(access.address.exact, index):
                continue
            limits = [fact.right for fact in facts if (fact.left - index).interval()[0] >= 0]
            sizes = [limit.symbol for limit in limits]
            if not limits:
                yield _Pair(access, bound, None)
            elif same and bound.size not in sizes and len(sizes) == 1 and _is_size(sizes[0]):
                yield _Pair(access, bound, sizes[0])
            break


def _is_size(atom: OffsetSymbol | None) -> bool:
    return atom is not None and atom.kind is SymbolKind.ARGUMENT


def _renamings(bound: _Dimension, access: Access) -> Iterator[dict[OffsetSymbol, OffsetSymbol]]:
    """Yield what to rename in an index to look for it in another access.

    A mask may have fewer dimensions, and another loop over the same tiles counts its own turns.
    """
    yield {}
    mine = sorted(bound.index.symbols - access.address.exact.symbols, key=lambda atom: atom.order)
    stepping = any(atom.kind in _STEPPING for atom in bound.index.symbols)
    others = sorted(access.address.exact.symbols - bound.index.symbols, key=lambda atom: atom.order)
    choices = [
        [
            other
            for other in others
            if other.kind is atom.kind
            and (atom.kind is SymbolKind.TURN or (atom.kind is SymbolKind.LANE and other.high == atom.high))
        ]
        for atom in mine
    ]
    if stepping and mine and len(mine) <= _FEW:
        for chosen in product(*choices):
            yield dict(zip(mine, chosen, strict=True))


def _renamed(polynomial: Polynomial, moved: Mapping[OffsetSymbol, OffsetSymbol]) -> Polynomial:
    if not moved:
        return polynomial
    terms: dict[Monomial, int] = {}
    for monomial, times in polynomial.terms.items():
        row = tuple(sorted((moved.get(atom, atom) for atom in monomial), key=lambda atom: atom.order))
        terms[row] = terms.get(row, 0) + times
    return Polynomial(terms)


def has_index(address: Polynomial, index: Polynomial) -> bool:
    """Return whether an address has an index, times a stride, as a part of its sum.

    Args:
        address: a sum of indices times strides.
        index: one index.
    """
    variable = {monomial: times for monomial, times in index.terms.items() if monomial}
    pivot, times = max(variable.items(), key=lambda term: (term[0][0].kind in _STEPPING, -term[0][0].order))
    for monomial, scaled in address.terms.items():
        rest = _without(monomial, pivot)
        if rest is None or scaled % times or any(atom.kind is not SymbolKind.ARGUMENT for atom in rest):
            continue
        parts = (Polynomial({rest: scaled // times}) * Polynomial(variable)).terms
        if all(address.terms.get(part) == value for part, value in parts.items()):
            return True
    return False


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


class _SmallLaunch:
    """All programs of a launch whose sizes are no multiples of a block."""

    def __init__(
        self, search: BoundsSearch, bounds: Sequence[_Dimension], larger: OffsetSymbol | None
    ) -> None:
        self._search, self._limits = search, configs.load("bounds")["outside"]
        self._values = dict(search.known.usual)
        for size in dict.fromkeys(bound.size for bound in bounds):
            own = [bound.index for bound in bounds if bound.size is size]
            blocks = _FEW if size is larger else 1
            if size.name not in search.known.fixed and (odd := _odd_size(own, size.unit, blocks)):
                self._values[size] = odd
        self._grid: tuple[int, ...] = (1, 1, 1)
        self._runs: dict[tuple[int, ...], AddressRun] = {}

    def run(self, example: Access) -> None:
        """Run its programs; if one does not run to its end, nothing is known about any.

        Args:
            example: one of the accesses.
        """
        problem = SizeProblem(self._search.known, example, example.address.exact, 1, _FEW)
        along = {atom.number: count for atom, count in problem.grid(self._values).items()}
        self._grid = tuple(along.get(axis, 1) for axis in range(3))
        if math.prod(self._grid) > self._limits["programs"]:
            return
        elements = 0
        runs = {}
        for program in product(*map(range, self._grid)):
            try:
                run = self._search.run(program, self._values, grid=self._grid, wide=True)
            except (UnknownValueError, EndlessError, AssumedError, UnsupportedIrError):
                return
            elements += run.elements
            # Of what did not run, nothing is known: neither where it ends, nor what it accesses.
            if run.hidden or elements > self._limits["elements"]:
                return
            runs[program] = run
        self._runs = runs

    def witness(self, pair: _Pair, lacking: frozenset[Operation]) -> OutsideWitness | None:
        """Return the program that accesses the last element of all, if that is past the end.

        Args:
            pair: an access, and the one whose mask says where the end is.
            lacking: the accesses that lack a mask, and say nothing about an end.
        """
        known = [pair.bound.access]
        if pair.same and pair.wrong_size is None:
            known = [
                access
                for access in self._search.arithmetic.accesses
                if access.address.base == pair.access.address.base and access.operation not in lacking
            ]
        ends = [self._last(access.operation, access.address.base) for access in known]
        mine = self._last(pair.access.operation, pair.access.address.base)
        if pair.bound.access.operation in lacking and pair.wrong_size is None:
            return None
        if mine is None or not ends or None in ends:
            return None
        (end, _), (element, program) = max(row for row in ends if row), mine
        if element <= end or end < 0:
            return None
        shown = self._search.shown(pair.access, self._values) | self._search.shown(
            pair.bound.access, self._values
        )
        return OutsideWitness(shown, program, self._grid, element, end + 1)

    def _last(self, operation: Operation, pointer: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the last element that an access touches, and the program; None if that is not known."""
        size = type_of(operation.operands[0].type).dtype.itemsize
        last: tuple[int, tuple[int, ...]] = (-1, (0, 0, 0))
        for program, run in self._runs.items():
            for (ran, _), (address, mask) in run.accessed.items():
                if ran is not operation:
                    continue
                if address is UNKNOWN or mask is UNKNOWN or not size:
                    return None
                active = np.ones(np.shape(address), bool) if mask is None else mask
                touched = np.broadcast_to(address, np.broadcast_shapes(np.shape(address), np.shape(active)))
                touched = touched[np.broadcast_to(active, touched.shape)]
                if touched.size:
                    last = max(last, ((int(touched.max()) - base(pointer)) // size, program))
        return last


def _odd_size(indices: Sequence[Polynomial], unit: int, blocks: int) -> int | None:
    """Return a size that is no multiple of the blocks by which indices step; None if each size is one.

    Args:
        indices: what is compared with the size.
        unit: the number that the size is a multiple of.
        blocks: whole blocks in the size.
    """
    steps, widths = set(), set()
    for index in indices:
        own = [
            abs(times)
            for monomial, times in index.terms.items()
            if len(monomial) == 1 and monomial[0].kind in _STEPPING
        ]
        if own:
            steps.add(min(own))
        else:
            widths.add(index.interval()[1] + 1)
    if widths:
        # A row in one block: the size is below the block's.
        return next((size for size in range(min(widths) - 1, 0, -1) if size % unit == 0), None)
    first = unit * (blocks * max(steps) // unit + 1)
    sizes = range(first, first + _TRIED * unit, unit)
    return next((size for size in sizes if all(size % step for step in steps)), None)


def unlimited(search: BoundsSearch) -> tuple[UnlimitedProgram, ...]:
    """Return the program ids that tile what is written, and that nothing in the kernel limits.

    Args:
        search: what has read the kernel.
    """
    tiled: dict[OffsetSymbol, tuple[int, dict[Operation, None]]] = {}
    read = search.arithmetic
    for access in read.accesses:
        if name_of(access.operation) not in _WRITES or access.address.base < 0:
            continue
        for program in search.known.axes.values():
            tile = 0 if program in read.limited else _tile(access.address.exact, program)
            if tile:
                tiled.setdefault(program, (tile, {}))[1][access.operation] = None
    return tuple(UnlimitedProgram(atom, tile, tuple(rows)) for atom, (tile, rows) in tiled.items())


def _tile(address: Polynomial, program: OffsetSymbol) -> int:
    """Return how many elements a program's block has, if blocks follow each other without a gap; else 0."""
    for monomial, scaled in address.terms.items():
        rest = _without(monomial, (program,))
        # Where another id or a loop takes such steps, too, this one counts rows that have one block.
        steps = [
            other
            for other, times in address.terms.items()
            if times == scaled
            and any(atom.kind in _STEPPING and _without(other, (atom,)) == rest for atom in other)
        ]
        if rest is None or len(steps) > 1:
            continue
        for other, times in address.terms.items():
            lane = next((atom for atom in other if atom.kind is SymbolKind.LANE), None)
            # Lanes that are a constant apart are rows of a constant length: so many of them are one tensor's.
            if times != 1 and not rest:
                continue
            if lane and _without(other, (lane,)) == rest and scaled == times * (lane.high + 1) and lane.high:
                return lane.high + 1
    return 0
