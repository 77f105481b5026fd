"""Compute with the sizes of a kernel: polynomials over its inputs, facts about them, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from xdsl.ir import Operation

LARGEST = 2**31 - 1  # of 32 bits
WIDE = 1 << 62  # instead of infinity: a product of two bounds is still a plain integer
BITS = 64  # of the widest integer


class SymbolKind(Enum):
    """The kinds of symbols."""

    ARGUMENT = "argument"
    PROGRAM = "program id"
    PROGRAMS = "number of programs"
    LANE = "place along an axis of a tensor"
    TURN = "turn of a loop"
    LOADED = "loaded value"
    COMPUTED = "computed from other values"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class OffsetSymbol:
    """An input of the arithmetic, or a value that is no polynomial of inputs.

    Attributes:
        order: number in the order in which symbols were made.
        kind: the kind.
        name: its name in the kernel's words.
        number: the parameter, the axis of the grid, or the axis of the tensor.
        low: the least value.
        high: the largest value.
        unit: the number that its values are multiples of.
        operation: for a computed value, what computes it: `div`.
        operands: the operands of that.
        condition: for a choice, when the first operand is chosen.
        source: the operation of the kernel that makes an unknown or a loaded value.
    """

    order: int
    kind: SymbolKind
    name: str
    number: int = 0
    low: int = 0
    high: int = WIDE
    unit: int = 1
    operation: str = ""
    operands: tuple[Polynomial, ...] = ()
    condition: Condition | None = None
    source: Operation | None = None


Monomial: TypeAlias = tuple[OffsetSymbol, ...]


class Polynomial:
    """A sum of products of symbols, each with a whole factor."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}

    @classmethod
    def of(cls, value: int | OffsetSymbol) -> Polynomial:
        """Return a number or a symbol as a polynomial."""
        return cls({(): value}) if isinstance(value, int) else cls({(value,): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * Polynomial.of(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, factor in self.terms.items():
            for right, times in other.terms.items():
                monomial = tuple(sorted((*left, *right), key=_order))
                terms[monomial] = terms.get(monomial, 0) + factor * times
        return Polynomial(terms)

    @cached_property
    def symbols(self) -> frozenset[OffsetSymbol]:
        """All symbols of it, and those that they are computed from."""
        inner: set[OffsetSymbol] = set()
        for monomial in self.terms:
            for factor in monomial:
                inner.add(factor)
                parts = [*factor.operands, *(factor.condition.polynomials if factor.condition else ())]
                for part in parts:
                    inner |= part.symbols
        return frozenset(inner)

    @property
    def number(self) -> int | None:
        """The number that it is; None if it has a symbol."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbol(self) -> OffsetSymbol | None:
        """The symbol that it is; None if it is anything else."""
        (monomial, factor), *more = self.terms.items() or [((), 0)]
        return monomial[0] if not more and factor == 1 and len(monomial) == 1 else None

    def interval(self, within: Mapping[OffsetSymbol, tuple[int, int]] | None = None) -> tuple[int, int]:
        """Return the least and the largest value, each symbol on its own.

        Args:
            within: tighter bounds of some symbols.
        """
        low = high = 0
        for monomial, factor in self.terms.items():
            least = most = factor
            for name in _without_quotient(monomial):
                first, last = (within or {}).get(name, (name.low, name.high))
                corners = [least * first, least * last, most * first, most * last]
                least, most = min(corners), max(corners)
            low, high = low + least, high + most
        return max(low, -(WIDE**2)), min(high, WIDE**2)


def _without_quotient(monomial: Monomial) -> Iterable[OffsetSymbol]:
    """Return the factors, with `b * (a // b)` as `a`, which it never exceeds."""
    for atom in monomial:
        if atom.operation == "div" and atom.operands[1].symbol in monomial:
            dividend = atom.operands[0].symbol
            if dividend is not None and dividend.low >= 0:
                rest = list(monomial)
                rest.remove(atom)
                rest.remove(atom.operands[1].symbol)
                return (*rest, dividend)
    return monomial


def _order(atom: OffsetSymbol) -> int:
    return atom.order


@dataclass(frozen=True)
class Fact:
    """`left < right`, in every lane in which the kernel accesses memory."""

    left: Polynomial
    right: Polynomial
    most: int = LARGEST + 1  # of the right side: it is compared in 32 bits, whatever it should be


def normal(fact: Fact) -> tuple[Fact, ...]:
    """Return facts that follow from one, and from which more follows: no minimum, and no negative terms."""
    right = fact.right.symbol
    if right is not None and right.operation == "min":
        return tuple(part for side in right.operands for part in normal(replace(fact, right=side)))
    left = fact.left.symbol
    if left is not None and left.operation == "max":
        return tuple(part for side in left.operands for part in normal(replace(fact, left=side)))
    negative = Polynomial({monomial: factor for monomial, factor in fact.right.terms.items() if factor < 0})
    if any(negative.terms) and () not in negative.terms:
        # `row < rows - start` bounds the sum of both, and so each of them.
        return (Fact(fact.left - negative, fact.right - negative, fact.most),)
    return (fact,)


@dataclass(frozen=True)
class Condition:
    """A condition: facts that hold if it is true.

    Attributes:
        facts: the facts.
        exact: whether it is true if all of them hold.
        loaded: whether something loaded decides about it.
    """

    facts: tuple[Fact, ...] = ()
    exact: bool = False
    loaded: bool = False

    @property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """All sides of its facts."""
        return tuple(side for fact in self.facts for side in (fact.left, fact.right))

    def negated(self) -> Condition:
        """Return the facts that hold where it is false."""
        if not self.exact or len(self.facts) != 1:
            return Condition(loaded=self.loaded)
        (fact,) = self.facts
        return Condition((Fact(fact.right, fact.left + ONE, fact.most),), exact=True, loaded=self.loaded)


ONE = Polynomial.of(1)


def apply(operation: str, values: Sequence[int]) -> int | None:
    """Compute with plain integers; None where the result is not defined.

    Args:
        operation: the name of a computed symbol.
        values: the operands.
    """
    # Exact, as MLIR would compute them if integers had no width: an overflow is what is looked for.
    left, *rest = values
    right = rest[0] if rest else 0
    if operation in ("div", "rem", "cdiv") and right == 0:
        return None
    if operation == "div":  # MLIR rounds toward 0
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if operation == "rem":
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    if operation == "trips":
        step = values[2]
        return max(0, -((left - right) // step)) if step > 0 else None
    if operation == "shr":
        return left >> right if 0 <= right < BITS else None
    plain: dict[str, Callable[[], int]] = {
        "min": lambda: min(left, right),
        "max": lambda: max(left, right),
        "mul": lambda: left * right,
        "and": lambda: left & right,
        "cdiv": lambda: -(-left // right),
        "same": lambda: left,
    }
    return plain[operation]() if operation in plain else None


def interval(  # noqa: C901, PLR0911 - a table
    operation: str, operands: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Return the least and the largest value of a computed symbol."""
    (low, high), *rest = operands
    least, most = rest[0] if rest else (0, 0)
    if operation == "select":
        return min(low, least), max(high, most)
    if operation == "same":
        return low, high
    if operation == "min":
        return min(low, least), min(high, most)
    if operation == "max":
        return max(low, least), max(high, most)
    # A rest has the sign of the dividend, and is no larger.
    if operation == "rem" and low >= 0:
        return 0, high if least < 0 else max(0, min(high, most - 1))
    # Of negative numbers nothing is claimed: a size or an index has none.
    if low < 0 or least < 0:
        return -WIDE, WIDE
    if operation == "div":
        return 0, high // max(least, 1)
    if operation == "cdiv":
        return 0, -(-high // max(least, 1))
    if operation == "and":
        return 0, min(high, most)
    if operation == "shr":
        return 0, high >> min(least, BITS - 1)
    return 0, WIDE


def bounded(facts: Iterable[Fact], polynomials: Iterable[Polynomial]) -> dict[OffsetSymbol, tuple[int, int]]:
    """Return tighter bounds of symbols, as facts about sums of them imply.

    Args:
        facts: the facts.
        polynomials: the polynomials whose symbols are asked for.
    """
    relevant = {atom for polynomial in polynomials for atom in polynomial.symbols}
    within: dict[OffsetSymbol, tuple[int, int]] = {}
    for fact in facts:
        room = min(fact.right.interval(within)[1], fact.most) - 1
        for monomial, factor in fact.left.terms.items():
            if len(monomial) != 1 or factor <= 0 or monomial[0] not in relevant:
                continue
            atom = monomial[0]
            rest = fact.left - Polynomial({monomial: factor})
            least = rest.interval(within)[0]
            low, high = within.get(atom, (atom.low, atom.high))
            within[atom] = (low, min(high, max((room - least) // factor, low)))
    return within


def most(polynomial: Polynomial, facts: Sequence[Fact]) -> int:
    """Return an upper bound of a value where facts hold."""
    facts = [part for fact in facts for part in normal(fact)]
    high = polynomial.interval(bounded(facts, [polynomial]))[1]
    for fact in facts:
        # A part of a sum of what is not negative is no larger than the sum: the whole offset is below the
        # size, and so is the block's first row.
        rest = fact.left - polynomial
        high = min(high, min(fact.right.interval()[1], fact.most) - 1 - rest.interval()[0])
    return high
