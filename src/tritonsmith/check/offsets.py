"""Read what a kernel's addresses are made of: integers as polynomials over its inputs, and its masks.

Values are exact, as if integers had no width. Where the kernel computes them in 32 bits, the operation is
kept beside the value, so that `bounds` can ask from which sizes on the two differ.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue

from tritonsmith.check.module import (
    CmpIPredicate,
    UnsupportedIrError,
    ValueKind,
    ValueType,
    attribute,
    constant,
    integer,
    integers,
    name_of,
    symbol,
    type_of,
)
from tritonsmith.check.polynomials import (
    BITS,
    LARGEST,
    ONE,
    WIDE,
    Condition,
    Fact,
    Monomial,
    OffsetSymbol,
    Polynomial,
    SymbolKind,
    apply,
    interval,
)

_MOST_TERMS = 40  # of a polynomial; a longer one is kept as a sum that can only be evaluated
_TURNS = 1 << 31
_WORD = 4  # bytes of 32 bits
# No size is that near to 2^31: a kernel that rounds up to a block, or looks one block ahead, would overflow
# there whatever it does, and nobody launches it so.
_MARGIN = 1 << 16
_UNNAMED = re.compile(r"arg\d+")
_DEEPEST = 64  # values in values

Narrow: TypeAlias = dict[Operation, Polynomial]


@dataclass(frozen=True)
class Number:
    """An integer, or a pointer as elements from its base.

    Attributes:
        exact: its value, however wide.
        narrow: the operations in 32 bits that it depends on, each with its exact value.
        base: the number of the pointer's parameter; -1 if it is not known, or for an integer.
    """

    exact: Polynomial
    narrow: Narrow = field(default_factory=dict)
    base: int = -1


@dataclass(frozen=True)
class Access:
    """A load, a store or an atomic update.

    Attributes:
        operation: the operation.
        address: the address.
        facts: what the mask and the conditions around it guarantee.
    """

    operation: Operation
    address: Number
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Arithmetic:
    """The integer arithmetic of a kernel.

    Attributes:
        arguments: the symbol of each parameter; None for a pointer or a float.
        accesses: its accesses through pointers, in order.
        descriptors: the number of accesses through descriptors, whose addresses have 64 bits.
        assumed: facts about each program: `tl.assume`, and ids below the step of a loop over all tiles.
        inside: the operations in 32 bits that each of them depends on.
        limited: the program ids that a comparison, a quotient, a minimum or a loop's bound is about.
    """

    arguments: tuple[OffsetSymbol | None, ...]
    accesses: tuple[Access, ...]
    descriptors: int
    assumed: tuple[Fact, ...]
    inside: Mapping[Operation, frozenset[Operation]]
    limited: frozenset[OffsetSymbol]


_SAME = {
    "tt.splat", "tt.unsplat", "tt.broadcast", "arith.extsi", "arith.extui", "arith.trunci",
    "arith.index_cast", "arith.index_castui", "ttg.convert_layout", "tt.bitcast", "arith.bitcast",
}  # fmt: skip
# Kernels that hash or draw numbers wrap on purpose: what comes behind such an operation is not reported.
_WRAPS = ("arith.xori", "arith.ori", "arith.andi", "arith.shrui", "arith.remui", "arith.divui", "tt.mulhiui")
_QUOTIENTS = {
    "arith.divsi": "div", "arith.remsi": "rem", "arith.divui": "div", "arith.remui": "rem",
    "arith.minsi": "min", "arith.minui": "min", "arith.maxsi": "max", "arith.maxui": "max",
    "arith.shrsi": "shr", "arith.shrui": "shr", "arith.ceildivsi": "cdiv", "arith.andi": "and",
}  # fmt: skip
_ACCESSES = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2, "tt.atomic_cas": 9}  # operand of the mask
_SIGNED = {
    CmpIPredicate.ULT: CmpIPredicate.SLT,
    CmpIPredicate.ULE: CmpIPredicate.SLE,
    CmpIPredicate.UGT: CmpIPredicate.SGT,
    CmpIPredicate.UGE: CmpIPredicate.SGE,
}


def arithmetic(
    functions: Mapping[str, Operation],
    main: str,
    names: Sequence[str] = (),
    axes: Sequence[int] = (),
    sizes: Mapping[str, int] | None = None,
) -> Arithmetic:
    """Read a kernel's arithmetic.

    Args:
        functions: the functions of its module.
        main: the name of the kernel.
        names: the names of its parameters, where the IR has none.
        axes: the most programs along each axis of a grid.
        sizes: values of arguments that are known.

    Raises:
        UnsupportedIrError: a type that is not known.
    """
    walk = _OffsetWalk(functions, axes or (LARGEST, LARGEST, LARGEST), sizes or {})
    function = functions[main]
    hints = attribute(function, "arg_attrs")
    rows = hints.data if isinstance(hints, builtin.ArrayAttr) else ()
    for number, parameter in enumerate(function.regions[0].blocks[0].args):
        name = parameter.name_hint or (names[number] if number < len(names) else f"argument {number + 1}")
        walk.parameter(number, parameter, name, rows[number].data if number < len(rows) else {})
    walk.blocks(function.regions[0])
    return Arithmetic(
        tuple(walk.arguments),
        tuple(walk.accesses),
        walk.descriptors,
        tuple(walk.assumed),
        walk.inside,
        frozenset(walk.limited),
    )


@dataclass(frozen=True)
class _Edge:
    """A way into a block: what holds there, and the values of the block's arguments."""

    facts: Sequence[Fact]
    numbers: Sequence[Number | None]


class _OffsetWalk:
    """A walk over all operations, in their order."""

    def __init__(
        self, functions: Mapping[str, Operation], axes: Sequence[int], sizes: Mapping[str, int]
    ) -> None:
        self.arguments: list[OffsetSymbol | None] = []
        self.accesses: list[Access] = []
        self.assumed: list[Fact] = []
        self.inside: dict[Operation, frozenset[Operation]] = {}
        self.limited: set[OffsetSymbol] = set()
        self.descriptors = 0
        self._functions, self._axes, self._sizes = functions, axes, sizes
        self._symbols: dict[object, OffsetSymbol] = {}
        self._numbers: dict[SSAValue, Number] = {}
        self._conditions: dict[SSAValue, Condition] = {}
        self._around: list[Fact] = []
        self._recording, self._deep = True, 0

    def _symbol(self, key: object, kind: SymbolKind, name: str, **more: Any) -> OffsetSymbol:
        if key not in self._symbols:
            self._symbols[key] = OffsetSymbol(len(self._symbols), kind, name, **more)
        return self._symbols[key]

    def parameter(self, number: int, value: SSAValue, name: str, hints: Mapping[str, Any]) -> None:
        """Give a parameter its symbol."""
        kind = type_of(value.type)
        argument = None
        if kind.kind is ValueKind.POINTER:
            self._numbers[value] = Number(Polynomial.of(0), {}, number)
        elif kind.is_integer:
            hint = hints.get("tt.divisibility")
            unit = int(hint.value.data) if isinstance(hint, builtin.IntegerAttr) else 1
            most = (
                min(int(np.iinfo(kind.dtype).max), LARGEST - _MARGIN)
                if kind.dtype.itemsize <= _WORD
                else 1 << 42
            )
            known = self._sizes.get(name)
            low, high = (0, most) if known is None else (known, known)
            argument = self._symbol(
                ("argument", number), SymbolKind.ARGUMENT, name, number=number, low=low, high=high, unit=unit
            )
            self._numbers[value] = Number(Polynomial.of(argument))
        self.arguments.append(argument)

    def _unknown(
        self, value: SSAValue, source: Operation | None, kind: SymbolKind = SymbolKind.UNKNOWN
    ) -> Number:
        of = type_of(value.type)
        wide = of.kind is not ValueKind.NUMBER or of.dtype.itemsize > _WORD
        low, high = (-(1 << 42), 1 << 42) if wide else (-LARGEST - 1, LARGEST)
        if of.kind is ValueKind.NUMBER and of.dtype.itemsize < _WORD:
            high = (1 << 8 * of.dtype.itemsize) - 1
            low = -high
        name = value.name_hint or "a value"
        return Number(
            Polynomial.of(self._symbol((value, kind), kind, name, low=low, high=high, source=source))
        )

    def _computed(
        self, operation: str, operands: tuple[Polynomial, ...], name: str, condition: Condition | None = None
    ) -> Polynomial:
        numbers = [operand.number for operand in operands]
        if operation not in ("same", "mul"):
            self._limit(*operands)
        if operation not in ("select", "trips") and None not in numbers:
            plain = apply(operation, [number or 0 for number in numbers])
            if plain is not None:
                return Polynomial.of(plain)
        if operation in ("div", "rem", "shr") and numbers[0] == 0:
            return Polynomial.of(0)
        intervals = [operand.interval() for operand in operands]
        if operation in ("div", "rem", "cdiv"):
            # A divisor is not 0: where it is a multiple of 8, it is at least 8.
            unit = math.gcd(*operands[1].terms.values())
            intervals[1] = (
                max(intervals[1][0], unit) if intervals[1][0] >= 0 else intervals[1][0],
                intervals[1][1],
            )
        low, high = interval(operation, intervals)
        key = (operation, operands, condition)
        fresh = self._symbol(
            key, SymbolKind.COMPUTED, name, low=low, high=high, operation=operation, operands=operands,
            condition=condition,
        )  # fmt: skip
        return Polynomial.of(fresh)

    def _limit(self, *polynomials: Polynomial) -> None:
        """Note the program ids that something in the kernel is decided by."""
        symbols = {atom for polynomial in polynomials for atom in polynomial.symbols}
        self.limited |= {atom for atom in symbols if atom.kind is SymbolKind.PROGRAM}

    def blocks(self, region: Region) -> tuple[SSAValue, ...]:
        """Walk a region, and return the operands of its last terminator."""
        before, last = list(self._around), ()
        edges = Counter(to for block in region.blocks if block.last_op for to in block.last_op.successors)
        entered: dict[Block, list[_Edge]] = {}
        for block in region.blocks:
            if arrived := entered.get(block):
                self._enter(block, arrived, before, whole=len(arrived) == edges[block])
            for argument in block.args:
                self._fill(argument, None)
            for operation in block.ops:
                self._visit(operation)
            ends = block.last_op
            last = tuple(ends.operands) if ends is not None else ()
            if ends is not None and ends.successors:
                for to, edge in self._leave(ends):
                    entered.setdefault(to, []).append(edge)
        self._around = before
        return last

    def _leave(self, branch: Operation) -> Iterator[tuple[Block, _Edge]]:
        """Yield what each successor of a branch is entered with."""
        values, facts = list(branch.operands), [Condition()]
        if name_of(branch) == "cf.cond_br":
            condition = self._conditions.get(values.pop(0), Condition())
            facts = [condition, condition.negated()]
        for to, known in zip(branch.successors, facts, strict=False):
            numbers = [self._numbers.get(values.pop(0)) for _ in to.args]
            yield to, _Edge((*self._around, *known.facts), numbers)

    def _enter(self, block: Block, arrived: Sequence[_Edge], before: list[Fact], *, whole: bool) -> None:
        """Begin a block with what all ways into it have in common."""
        # Behind an early return inside of an `if`, the other way to this block has not passed its test.
        first, *others = arrived
        shared = [fact for fact in first.facts if all(fact in other.facts for other in others)]
        self._around = shared if whole else list(before)
        for argument, *numbers in zip(block.args, *(edge.numbers for edge in arrived), strict=True):
            known = [number for number in numbers if number is not None]
            if len(known) == len(numbers):
                self._forget(argument)
                self._numbers[argument] = self._merged(argument, known, whole=whole)

    def _merged(self, value: SSAValue, ways: Sequence[Number], *, whole: bool = True) -> Number:
        """Return a value that comes by several ways: unknown, but made of the operations of them all."""
        first = ways[0]
        narrow = {key: exact for way in ways for key, exact in way.narrow.items()}
        alike = whole and all((way.exact, way.base) == (first.exact, first.base) for way in ways)
        number = first if alike else self._unknown(value, None)
        base = first.base if all(way.base == first.base for way in ways) else -1
        return replace(number, narrow=narrow, base=base)

    def _fill(self, value: SSAValue, source: Operation | None) -> None:
        """Give a value a symbol, unless it has one or needs none."""
        if value in self._numbers or value in self._conditions:
            return
        try:
            of = type_of(value.type)
        except UnsupportedIrError:
            return
        if of.kind is ValueKind.POINTER or (of.kind is ValueKind.NUMBER and of.dtype.kind == "i"):
            # What a reduction or a cast of a pointer yields is unknown, but an overflow before it stays one.
            passed = () if source is None or name_of(source) in _WRAPS else source.operands
            known = [self._numbers[operand] for operand in passed if operand in self._numbers]
            narrow = {key: exact for number in known for key, exact in number.narrow.items()}
            self._numbers[value] = replace(self._unknown(value, source), narrow=narrow)
        elif of.kind is ValueKind.NUMBER and of.dtype == np.bool_:
            self._conditions[value] = Condition(loaded=True)

    def _visit(self, operation: Operation) -> None:  # noqa: C901 - a table
        name = name_of(operation)
        if name in _ACCESSES:
            self._access(operation)
        elif name == "scf.for":
            self._for(operation)
        elif name == "scf.if":
            self._if(operation)
        elif name == "scf.while":
            self._while(operation)
        elif name == "tt.call":
            self._call(operation)
        elif name in ("llvm.intr.assume", "tt.assert") and not self._deep:
            # One inside of an `if` says nothing about the programs that do not get there.
            row = self.assumed if _is_always_reached(operation) else self._around
            row += self._conditions.get(operation.operands[0], Condition()).facts
        elif name.startswith("tt.descriptor_"):
            self.descriptors += self._recording
        elif name not in ("tt.reduce", "tt.scan"):  # their regions combine elements
            for region in operation.regions:
                self.blocks(region)
        if name not in ("scf.for", "scf.if", "scf.while", "tt.call", *_ACCESSES):
            self._evaluate(operation, name)
        for result in operation.results:
            self._fill(result, operation)

    def _if(self, operation: Operation) -> None:
        condition = self._conditions.get(operation.operands[0], Condition())
        ends = []
        for region, facts in zip(operation.regions, (condition, condition.negated()), strict=True):
            before = list(self._around)
            self._around += facts.facts
            ends.append(self.blocks(region) if region.blocks else ())
            self._around = before
        for result, *ways in zip(operation.results, *ends, strict=False):
            left, right = (self._numbers.get(way) for way in ways)
            if left is not None and right is not None:
                self._numbers[result] = self._choice(result, condition, left, right)

    def _choice(self, result: SSAValue, condition: Condition, left: Number, right: Number) -> Number:
        narrow = left.narrow | right.narrow
        if left.exact == right.exact and left.base == right.base:
            return replace(left, narrow=narrow)
        if left.base != right.base:
            return replace(self._unknown(result, None), narrow=narrow)
        chosen = self._computed(
            "select", (left.exact, right.exact), result.name_hint or "a choice", condition
        )
        return Number(chosen, narrow, left.base)

    def _call(self, operation: Operation) -> None:
        callee = self._functions.get(symbol(attribute(operation, "callee")))
        if callee is None or not callee.regions[0].blocks or self._deep > _DEEPEST:
            return
        block = callee.regions[0].blocks[0]
        for inside in callee.regions[0].walk():
            for result in inside.results:
                self._forget(result)
        for argument, value in zip(block.args, operation.operands, strict=True):
            self._forget(argument)
            if value in self._numbers:
                self._numbers[argument] = self._numbers[value]
            if value in self._conditions:
                self._conditions[argument] = self._conditions[value]
        self._deep += 1
        ends = self.blocks(callee.regions[0])
        self._deep -= 1
        for result, value in zip(operation.results, ends, strict=False):
            if value in self._numbers:
                self._numbers[result] = self._numbers[value]

    def _for(self, operation: Operation) -> None:
        lower, upper, step = (self._number(value) for value in operation.operands[:3])
        block = operation.regions[0].blocks[0]
        induction, *carried = block.args
        inits = operation.operands[3:]
        # MLIR calls what has no name of Python's `arg8`.
        words = induction.name_hint or ""
        words = "turn" if _UNNAMED.fullmatch(words) or not words else words
        turn = self._symbol(("turn", operation), SymbolKind.TURN, words, high=_TURNS, source=operation)
        start = Number(lower.exact + step.exact * Polynomial.of(turn), lower.narrow | step.narrow)
        self._limit(lower.exact, upper.exact)
        first = lower.exact.symbol
        if first and first.kind is SymbolKind.PROGRAM:
            # `for tile in range(pid, tiles, PROGRAMS)`: the step is the size of the grid.
            self.assumed.append(Fact(lower.exact, step.exact))
        before, recording = list(self._around), self._recording
        self._around.append(Fact(start.exact, upper.exact, _compared(operation.operands[0])))
        # Twice: first with a symbol for each value that the loop carries, to see what a turn adds to it.
        held: dict[SSAValue, Polynomial] = {}
        for argument, init in zip(carried, inits, strict=True):
            if init in self._numbers:
                self._forget(argument)
                number = self._unknown(argument, operation)
                held[argument] = number.exact
                self._numbers[argument] = replace(number, base=self._numbers[init].base)
        self._recording = recording and not held
        self._numbers[induction] = start
        ends = self._again(operation.regions[0])
        deltas = self._deltas(held, carried, ends, turn)
        if held:
            self._recording = recording
            for argument, init in zip(carried, inits, strict=True):
                if argument in deltas:
                    begin, end = self._numbers[init], self._numbers.get(ends[carried.index(argument)])
                    narrow = begin.narrow | (end.narrow if end else {})
                    value = begin.exact + deltas[argument] * Polynomial.of(turn)
                    self._numbers[argument] = Number(value, narrow, begin.base)
                elif argument in held:
                    end = self._numbers.get(ends[carried.index(argument)])
                    ways = [self._numbers[init], *([end] if end else [])]
                    self._numbers[argument] = self._merged(argument, ways, whole=False)
            self._numbers[induction] = start
            ends = self._again(operation.regions[0])
        self._around = before
        self._after(operation, carried, deltas, (lower.exact, upper.exact, step.exact), ends)

    def _while(self, operation: Operation) -> None:
        test, body = (region.blocks[0] for region in operation.regions)
        recording, yielded = self._recording, tuple[SSAValue, ...]()
        # Twice, as for `scf.for`: what a turn computes goes into the next one.
        for is_last in (False, True):
            self._recording = recording and is_last
            self._carry(test.args, operation.operands, yielded)
            _, *passed = self._again(operation.regions[0])
            self._carry(body.args, passed)
            yielded = self._again(operation.regions[1])
        self._carry(operation.results, passed)

    def _carry(self, into: Sequence[SSAValue], *rows: Sequence[SSAValue]) -> None:
        """Give values that change with each turn the operations in 32 bits that they come from."""
        for place, value in enumerate(into):
            ways = [self._numbers[row[place]] for row in rows if row and row[place] in self._numbers]
            if ways:
                self._forget(value)
                self._numbers[value] = self._merged(value, ways, whole=False)

    def _again(self, region: Region) -> tuple[SSAValue, ...]:
        """Walk a loop's body, whose values of an earlier walk are dropped."""
        for operation in region.walk():
            for result in operation.results:
                self._forget(result)
        return self.blocks(region)

    def _forget(self, value: SSAValue) -> None:
        self._numbers.pop(value, None)
        self._conditions.pop(value, None)

    def _deltas(
        self,
        held: Mapping[SSAValue, Polynomial],
        carried: Sequence[SSAValue],
        ends: Sequence[SSAValue],
        turn: OffsetSymbol,
    ) -> dict[SSAValue, Polynomial]:
        """Return what each turn adds to a carried value, where that is the same in all turns."""
        own = {symbol for polynomial in held.values() for symbol in polynomial.symbols} | {turn}
        deltas = {}
        for argument, end in zip(carried, ends, strict=False):
            after = self._numbers.get(end)
            if argument in held and after is not None and after.base == self._numbers[argument].base:
                delta = after.exact - held[argument]
                if not delta.symbols & own:
                    deltas[argument] = delta
        return deltas

    def _after(
        self,
        operation: Operation,
        carried: Sequence[SSAValue],
        deltas: Mapping[SSAValue, Polynomial],
        bounds: tuple[Polynomial, Polynomial, Polynomial],
        ends: Sequence[SSAValue],
    ) -> None:
        inits = operation.operands[3:]
        for result, argument, init, end in zip(operation.results, carried, inits, ends, strict=True):
            if argument in deltas:
                begin, inside = self._numbers[init], self._numbers[argument]
                trips = self._computed("trips", bounds, "the number of turns")
                value = begin.exact + deltas[argument] * trips
                self._numbers[result] = Number(value, inside.narrow, begin.base)
            else:
                self._carry([result], [init], [end])

    def _number(self, value: SSAValue) -> Number:
        if value not in self._numbers:
            self._numbers[value] = self._unknown(value, None)
        return self._numbers[value]

    def _access(self, operation: Operation) -> None:
        pointer = operation.operands[0]
        mask = mask_of(operation)
        facts = [*self._around]
        if mask is not None:
            facts += self._conditions.get(mask, Condition()).facts
        if pointer in self._numbers and self._recording:
            self.accesses.append(Access(operation, self._numbers[pointer], tuple(facts)))
        for result in operation.results:
            of = type_of(result.type)
            if of.kind is ValueKind.POINTER or (of.kind is ValueKind.NUMBER and of.dtype.kind == "i"):
                self._numbers[result] = self._unknown(result, operation, SymbolKind.LOADED)

    def _evaluate(self, operation: Operation, name: str) -> None:
        if len(operation.results) != 1:
            return
        result = operation.results[0]
        try:
            of = type_of(result.type)
        except UnsupportedIrError:
            return
        if of.kind is ValueKind.NUMBER and of.dtype == np.bool_:
            self._conditions[result] = self._condition(operation, name)
        elif of.kind is ValueKind.POINTER or (of.kind is ValueKind.NUMBER and of.dtype.kind == "i"):
            number = self._value(operation, name, of)
            if number is not None:
                self._numbers[result] = self._kept(operation, number, of)

    def _kept(self, operation: Operation, number: Number, of: ValueType) -> Number:
        name = name_of(operation)
        if len(number.exact.terms) > _MOST_TERMS:
            number = replace(number, exact=self._computed("same", (number.exact,), "a sum"))
        if name in ("arith.addi", "arith.subi", "arith.muli", "arith.shli", "arith.trunci") and (
            of.dtype.itemsize == _WORD
        ):
            self.inside[operation] = frozenset(number.narrow)
            number = replace(number, narrow={**number.narrow, operation: number.exact})
        return number

    def _value(  # noqa: C901, PLR0911 - a table
        self, operation: Operation, name: str, of: ValueType
    ) -> Number | None:
        """Return the value of an integer or a pointer; None if it is not understood."""
        operands = [self._numbers.get(operand) for operand in operation.operands]
        if (source := self._source(operation, name, of)) is not None:
            return source
        if not operands or any(operand is None for operand in operands if name != "arith.select"):
            return None
        known = [operand for operand in operands if operand is not None]
        narrow = {key: value for operand in known for key, value in operand.narrow.items()}
        if name in _WRAPS:
            narrow = {}
        if name in ("arith.divsi", "arith.remsi", "arith.ceildivsi"):
            # A divisor counts tiles or heads: no grid has so many programs that the count overflows.
            narrow = known[0].narrow
        if name in _SAME:
            return replace(known[0], narrow=narrow)
        if name == "tt.addptr":
            return Number(known[0].exact + known[1].exact, narrow, known[0].base)
        if name in ("arith.addi", "arith.subi", "arith.muli"):
            left, right = known[0].exact, known[1].exact
            if len(left.terms) * len(right.terms) > _MOST_TERMS and name == "arith.muli":
                return Number(self._computed("mul", (left, right), "a product"), narrow)
            exact = (
                left + right
                if name == "arith.addi"
                else left - right
                if name == "arith.subi"
                else left * right
            )
            return Number(exact, narrow)
        if name == "arith.shli" and (amount := known[1].exact.number) is not None and 0 <= amount < BITS - 1:
            return Number(known[0].exact * Polynomial.of(1 << amount), narrow)
        if name == "arith.select" and None not in operands[1:]:
            condition = self._conditions.get(operation.operands[0], Condition())
            return self._choice(operation.results[0], condition, known[0], known[1])
        if name in _QUOTIENTS:
            words = operation.results[0].name_hint or _QUOTIENTS[name]
            return Number(self._computed(_QUOTIENTS[name], (known[0].exact, known[1].exact), words), narrow)
        return self._shaped(operation, name, replace(known[0], narrow=narrow))

    def _source(self, operation: Operation, name: str, of: ValueType) -> Number | None:
        """Return the value of an operation without operands of its own."""
        if name == "arith.constant":
            value = constant(attribute(operation, "value"), of)
            if not value.size or int(value.min()) != int(value.max()):
                return None
            return Number(Polynomial.of(int(value.min())))
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            axis = integer(operation, "axis")
            most = self._axes[axis]
            if name == "tt.get_program_id":
                words = f"tl.program_id({axis})"
                fresh = self._symbol(name + str(axis), SymbolKind.PROGRAM, words, number=axis, high=most - 1)
            else:
                words = f"tl.num_programs({axis})"
                fresh = self._symbol(
                    name + str(axis), SymbolKind.PROGRAMS, words, number=axis, low=1, high=most
                )
            return Number(Polynomial.of(fresh))
        if name == "tt.make_range":
            start, end = integer(operation, "start"), integer(operation, "end")
            return Number(Polynomial.of(start) + Polynomial.of(self._lane(0, end - start)))
        return None

    def _lane(self, axis: int, size: int) -> OffsetSymbol:
        # A lane is known by its axis: an index of rows and one of columns may be one `tt.make_range`.
        return self._symbol(
            ("lane", axis, size), SymbolKind.LANE, f"[0..{size - 1}]", number=axis, high=size - 1
        )

    def _shaped(self, operation: Operation, name: str, number: Number) -> Number | None:
        before, after = type_of(operation.operands[0].type).shape, type_of(operation.results[0].type).shape
        if name == "tt.expand_dims":
            axis = integer(operation, "axis")
            return self._moved(number, lambda old: old + (old >= axis))
        if name == "tt.trans":
            order = integers(operation, "order") or tuple(reversed(range(len(before))))
            return self._moved(number, order.index)
        if name in ("tt.reshape", "tt.view"):
            wide = [size for size in before if size > 1]
            if wide == [size for size in after if size > 1]:
                old = [axis for axis, size in enumerate(before) if size > 1]
                new = [axis for axis, size in enumerate(after) if size > 1]
                return self._moved(number, lambda axis: new[old.index(axis)] if axis in old else 0)
        return None

    def _moved(self, number: Number, to: Callable[[int], int]) -> Number:
        memo: dict[OffsetSymbol, OffsetSymbol] = {}
        return Number(
            self._renamed(number.exact, to, memo),
            {key: self._renamed(value, to, memo) for key, value in number.narrow.items()},
            number.base,
        )

    def _renamed(
        self, polynomial: Polynomial, to: Callable[[int], int], memo: dict[OffsetSymbol, OffsetSymbol]
    ) -> Polynomial:
        if not any(atom.kind is SymbolKind.LANE for atom in polynomial.symbols):
            return polynomial
        terms: dict[Monomial, int] = {}
        for monomial, factor in polynomial.terms.items():
            moved = tuple(
                sorted(
                    (self._renamed_symbol(atom, to, memo) for atom in monomial), key=lambda atom: atom.order
                )
            )
            terms[moved] = terms.get(moved, 0) + factor
        return Polynomial(terms)

    def _renamed_symbol(
        self, atom: OffsetSymbol, to: Callable[[int], int], memo: dict[OffsetSymbol, OffsetSymbol]
    ) -> OffsetSymbol:
        if atom not in memo:
            if atom.kind is SymbolKind.LANE:
                memo[atom] = self._lane(to(atom.number), atom.high + 1)
            elif atom.operands:
                operands = tuple(self._renamed(part, to, memo) for part in atom.operands)
                condition = self._renamed_condition(atom.condition, to, memo)
                fresh = self._computed(atom.operation, operands, atom.name, condition).symbol
                memo[atom] = fresh or atom
            else:
                memo[atom] = atom
        return memo[atom]

    def _renamed_condition(
        self, condition: Condition | None, to: Callable[[int], int], memo: dict[OffsetSymbol, OffsetSymbol]
    ) -> Condition | None:
        if condition is None:
            return None
        facts = tuple(
            Fact(self._renamed(fact.left, to, memo), self._renamed(fact.right, to, memo), fact.most)
            for fact in condition.facts
        )
        return replace(condition, facts=facts)

    def _condition(self, operation: Operation, name: str) -> Condition:
        parts = [self._conditions.get(operand) for operand in operation.operands]
        if name == "arith.cmpi":
            return self._comparison(operation)
        if name == "arith.constant":
            value = constant(attribute(operation, "value"), type_of(operation.results[0].type))
            return Condition(exact=bool(value.all()))
        if name == "arith.andi":
            both = [part or Condition(loaded=True) for part in parts]
            return Condition(
                tuple(fact for part in both for fact in part.facts),
                exact=all(part.exact for part in both),
                loaded=any(part.loaded for part in both),
            )
        if name in _SAME and parts[0] is not None:
            return parts[0]
        if name in ("tt.expand_dims", "tt.trans", "tt.reshape", "tt.view") and parts[0] is not None:
            return self._moved_condition(operation, name, parts[0])
        return Condition(loaded=True)

    def _moved_condition(self, operation: Operation, name: str, condition: Condition) -> Condition:
        facts = []
        for fact in condition.facts:
            sides = [self._shaped(operation, name, Number(side)) for side in (fact.left, fact.right)]
            if sides[0] is None or sides[1] is None:
                return Condition(loaded=True)
            facts.append(Fact(sides[0].exact, sides[1].exact, fact.most))
        return replace(condition, facts=tuple(facts))

    def _comparison(self, operation: Operation) -> Condition:
        numbers = [self._numbers.get(operand) for operand in operation.operands]
        if numbers[0] is None or numbers[1] is None:
            return Condition(loaded=True)
        left, right = numbers[0].exact, numbers[1].exact
        self._limit(left, right)
        predicate = CmpIPredicate(integer(operation, "predicate"))
        predicate = _SIGNED.get(predicate, predicate)
        kinds = {atom.kind for side in (left, right) for atom in side.symbols}
        loaded = bool(kinds & {SymbolKind.LOADED, SymbolKind.UNKNOWN})
        most = _compared(operation.operands[0])
        facts = {
            CmpIPredicate.SLT: (Fact(left, right, most),),
            CmpIPredicate.SLE: (Fact(left, right + ONE, most),),
            CmpIPredicate.SGT: (Fact(right, left, most),),
            CmpIPredicate.SGE: (Fact(right, left + ONE, most),),
            CmpIPredicate.EQ: (Fact(left, right + ONE, most), Fact(right, left + ONE, most)),
        }.get(predicate, ())
        return Condition(facts, exact=bool(facts), loaded=loaded)


def _is_always_reached(operation: Operation) -> bool:
    """Return whether an operation stands in the first block of a function."""
    block, function = operation.parent, operation.parent_op()
    return function is not None and name_of(function) == "tt.func" and block is function.regions[0].blocks[0]


def _compared(value: SSAValue) -> int:
    """Return the largest number that a comparison of such values can be with, and 1."""
    return LARGEST + 1 if type_of(value.type).dtype.itemsize <= _WORD else WIDE


def mask_of(operation: Operation) -> SSAValue | None:
    """Return the mask of an access; None if it has none."""
    sizes = integers(operation, "operandSegmentSizes")
    place = _ACCESSES[name_of(operation)]
    if len(operation.operands) > place and (not sizes or sizes[place]):
        mask: SSAValue = operation.operands[place]
        return mask
    return None


def returns(block: Block) -> bool:
    """Return whether a block only ends the kernel."""
    first = block.first_op
    return first is not None and name_of(first) == "tt.return"
