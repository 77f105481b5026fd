"""Find the least sizes for which an offset needs more than 32 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tritonsmith.check.offsets import Access
from tritonsmith.check.polynomials import (
    LARGEST,
    Fact,
    OffsetSymbol,
    Polynomial,
    SymbolKind,
    apply,
)

_PARTS = (1, 2, 3, 5, 7, 11, 13)  # of the largest id, which are tried


class _Undefined(Exception):  # noqa: N818 - no error: the search goes on
    """A value is not defined for these inputs: a division by 0, as past the end of a grid."""


class _Hidden(Exception):  # noqa: N818 - no error: what it is about is skipped
    """A value cannot be computed: it depends on what is loaded."""


@dataclass(frozen=True)
class KnownSizes:
    """Facts and sizes that hold for every launch of a kernel, before any size is chosen.

    Attributes:
        evidence: facts about every program of a launch.
        usual: the usual size of each argument.
        fixed: the sizes that are known.
        axes: the program ids that addresses and masks depend on, by their axes.
    """

    evidence: tuple[Fact, ...]
    usual: Mapping[OffsetSymbol, int]
    fixed: Mapping[str, int]
    axes: Mapping[int, OffsetSymbol]


class SizeProblem:
    """The smallest sizes for which an address of one access needs more than 32 bits."""

    def __init__(
        self, sizes: KnownSizes, access: Access, target: Polynomial, scale: int, programs: int
    ) -> None:
        self._sizes, self._target, self._scale = sizes, target, scale
        self._programs = programs
        self._facts = tuple(
            fact for fact in access.facts if not _is_loaded(fact.left) and not _is_loaded(fact.right)
        )
        sides = [side for fact in (*self._facts, *sizes.evidence) for side in (fact.left, fact.right)]
        symbols = {atom for polynomial in (target, *sides) for atom in polynomial.symbols}
        self._symbols = sorted(symbols, key=lambda atom: atom.order)
        # Sizes that programs or turns are counted up to: with a few tiles of each, no stride is ever large.
        self._counted = {
            atom
            for fact in (*self._facts, *sizes.evidence)
            for atom in fact.right.symbols
            if atom.kind is SymbolKind.ARGUMENT and fact.left.symbols & target.symbols
        } - target.symbols
        self._values: dict[OffsetSymbol, int] = {}
        self._memo: dict[OffsetSymbol, int] = {}

    def growing(self) -> Iterator[OffsetSymbol]:
        """Yield the symbols that may grow: sizes in masks, ids of programs, then strides."""
        inputs = self._target.symbols
        sizes: dict[OffsetSymbol, None] = {}
        for fact in (*self._facts, *self._sizes.evidence):
            kinds = {atom.kind for atom in fact.left.symbols}
            sides = fact.left.symbols | fact.right.symbols
            if kinds & {SymbolKind.PROGRAM, SymbolKind.TURN} and sides & inputs:
                own = sorted(fact.right.symbols, key=lambda atom: atom.order)
                sizes |= dict.fromkeys(atom for atom in own if atom.kind is SymbolKind.ARGUMENT)
        programs = [atom for atom in self._symbols if atom.kind is SymbolKind.PROGRAM and atom in inputs]
        free = [atom for atom in programs if self._is_free(atom)]
        # A size that is a stride, too, comes after those that are only counted.
        counted = [atom for atom in sizes if atom not in inputs]
        rest = [atom for atom in self._symbols if atom.kind is SymbolKind.ARGUMENT and atom in inputs]
        for atom in dict.fromkeys((*counted, *free, *sizes, *rest)):
            if atom.name not in self._sizes.fixed:
                yield atom

    def smallest(self, grown: OffsetSymbol) -> dict[OffsetSymbol, int] | None:
        """Return values of all inputs, with the least of one symbol that overflows; None if there is none."""
        # Sizes that the hints of a signature rule out, such as 17 where 16 divides, are not tried.
        unit = grown.unit
        least = self._sizes.usual.get(grown, 0) // unit
        last = grown.high // unit
        low, high = least, max(least, 1)
        while not self._exceeds(grown, high * unit):
            if high >= last:
                return None
            low, high = high, min(2 * high, last)
        if low == high or self._exceeds(grown, low * unit):
            # Even the usual size is too large: what is asked is how small it has to be.
            low, high = 0, low
        while high - low > 1:
            middle = (low + high) // 2
            if self._exceeds(grown, middle * unit):
                high = middle
            else:
                low = middle
        return dict(self._values) if self._exceeds(grown, high * unit) else None

    def grid(self, values: Mapping[OffsetSymbol, int]) -> dict[OffsetSymbol, int]:
        """Return the number of programs along each axis that have something to do with such sizes."""
        self._start(values)
        last = {}
        for atom in sorted(self._sizes.axes.values(), key=lambda atom: atom.order):
            self._set(atom, self._largest(atom, self._sizes.evidence))
            last[atom] = self._values[atom] + 1
            self._set(atom, 0)
        return last

    def _is_free(self, program: OffsetSymbol) -> bool:
        every = (*self._facts, *self._sizes.evidence)
        self._start({})
        return self._is_unbounded(program, [fact for fact in every if program in _symbols_of(fact)])

    def _is_unbounded(self, program: OffsetSymbol, facts: Sequence[Fact]) -> bool:
        """Return whether facts hold for some of the largest ids, so that they bound none."""
        # Facts about a remainder hold again and again: batches follow each other, and each has all tiles.
        for part in _PARTS:
            self._set(program, program.high // part)
            if self._holds(facts):
                return True
        return False

    def _start(self, values: Mapping[OffsetSymbol, int]) -> None:
        scaled = {
            atom: self._sizes.usual[atom] * self._scale
            for atom in self._counted
            if atom.name not in self._sizes.fixed
        }
        self._values = {**self._sizes.usual, **scaled, **values}
        self._memo = {}

    def _exceeds(self, grown: OffsetSymbol, size: int) -> bool:
        """Complete the values of a launch, and return whether an offset exceeds 32 bits."""
        self._start({grown: size})
        every = (*self._facts, *self._sizes.evidence)
        for kind in (SymbolKind.PROGRAM, SymbolKind.TURN, SymbolKind.LANE):
            facts = self._facts if kind is SymbolKind.LANE else every
            for atom in self._symbols:
                if atom.kind is kind and atom is not grown:
                    self._set(atom, self._largest(atom, facts))
        if not self._holds(self._facts):
            return False
        if self._is_large():
            return True
        # Behind a remainder, the last row of a block may be the first one of the tensor again.
        if any(atom.kind is SymbolKind.COMPUTED for atom in self._target.symbols):
            for atom in self._symbols:
                if atom.kind is SymbolKind.LANE:
                    self._set(atom, 0)
            return self._is_large()
        return False

    def _is_large(self) -> bool:
        try:
            return self._evaluated(self._target) > LARGEST
        except (_Hidden, _Undefined):
            return False

    def _set(self, atom: OffsetSymbol, value: int) -> None:
        self._values[atom] = value
        self._memo = {}

    def _largest(self, atom: OffsetSymbol, facts: Sequence[Fact]) -> int:
        """Return the largest value under which facts hold, with the inputs after it at 0."""
        facts = [fact for fact in facts if atom in fact.left.symbols or atom in fact.right.symbols]
        most_programs = min(self._programs - 1, atom.high)
        if not facts:
            return {SymbolKind.LANE: atom.high, SymbolKind.PROGRAM: most_programs}.get(atom.kind, 0)
        straight = [fact for fact in facts if _is_straight(fact, atom)]
        bent = [fact for fact in facts if fact not in straight]
        high = min((self._reach(atom, fact) for fact in straight), default=atom.high)
        high = max(min(high, atom.high), 0)
        if atom.kind is SymbolKind.PROGRAM and high == atom.high and self._is_unbounded(atom, bent):
            return most_programs
        self._set(atom, high)
        if self._holds(bent):
            return high
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            self._set(atom, middle)
            low, high = (middle, high) if self._holds(bent) else (low, middle)
        return low

    def _reach(self, atom: OffsetSymbol, fact: Fact) -> int:
        """Return the largest value under which a fact holds whose sides are linear in it."""
        rooms = []
        for value in (0, 1):
            self._set(atom, value)
            try:
                rooms.append(self._evaluated(fact.right) - self._evaluated(fact.left))
            except (_Hidden, _Undefined):
                return atom.high
        slope = rooms[0] - rooms[1]
        return atom.high if slope <= 0 else (rooms[0] - 1) // slope

    def _holds(self, facts: Sequence[Fact]) -> bool:
        for fact in facts:
            try:
                if self._evaluated(fact.left) >= self._evaluated(fact.right):
                    return False
            except _Hidden:
                continue
            except _Undefined:
                return False
        return True

    def _evaluated(self, polynomial: Polynomial) -> int:
        total = 0
        for monomial, factor in polynomial.terms.items():
            product = factor
            for atom in monomial:
                product *= self._value(atom)
            total += product
        return total

    def _value(self, atom: OffsetSymbol) -> int:
        if atom in self._values:
            return self._values[atom]
        if atom in self._memo:
            return self._memo[atom]
        if atom.kind in (SymbolKind.LANE, SymbolKind.TURN, SymbolKind.PROGRAM):
            return 0
        if atom.kind is SymbolKind.PROGRAMS:
            program = self._sizes.axes.get(atom.number)
            return self._value(program) + 1 if program else 1
        if atom.kind is not SymbolKind.COMPUTED:
            raise _Hidden
        if atom.operation == "select":
            if atom.condition is None or not atom.condition.exact:
                raise _Hidden
            holds = all(
                self._evaluated(fact.left) < self._evaluated(fact.right) for fact in atom.condition.facts
            )
            value: int | None = self._evaluated(atom.operands[0 if holds else 1])
        else:
            value = apply(atom.operation, [self._evaluated(operand) for operand in atom.operands])
        if value is None:
            raise _Undefined
        self._memo[atom] = value
        return value


def _symbols_of(fact: Fact) -> frozenset[OffsetSymbol]:
    return fact.left.symbols | fact.right.symbols


def _is_straight(fact: Fact, atom: OffsetSymbol) -> bool:
    """Return whether both sides of a fact are linear in a symbol."""
    for side in (fact.left, fact.right):
        for monomial in side.terms:
            inner = [
                part
                for part in monomial
                if part.operands and any(atom in other.symbols for other in part.operands)
            ]
            if inner or monomial.count(atom) > 1:
                return False
    return True


def _is_loaded(polynomial: Polynomial) -> bool:
    return any(atom.kind in (SymbolKind.LOADED, SymbolKind.UNKNOWN) for atom in polynomial.symbols)
