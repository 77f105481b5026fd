"""Run the integers and addresses of one program, as a kernel computes them or without overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation

from tritonsmith.check.evaluate import BlockLine, EvaluatedProgram
from tritonsmith.check.module import UnsupportedIrError, ValueKind, result_type, type_of
from tritonsmith.check.offsets import mask_of, returns
from tritonsmith.check.program import MISUSED, EndlessError, Values, bind

_ACCESSES = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2, "tt.atomic_cas": 9}
_NARROW = np.dtype(np.int32)


class UnknownValueError(Exception):
    """The kernel decides by a value that it loads."""


class _Unknown:
    """A value that depends on what is in memory, or on floats."""

    size = 1

    def __bool__(self) -> bool:
        raise UnknownValueError

    def __int__(self) -> int:
        raise UnknownValueError

    __index__ = __int__


UNKNOWN = _Unknown()


@dataclass
class AddressRun(EvaluatedProgram):
    """A run of a program's integers and addresses: nothing is loaded, stored or computed in floats.

    Attributes:
        wide: whether integers of 32 bits are computed in 64.
        quick: whether only the first turn of a loop runs that carries addresses.
        turns: the most turns of a loop that carries addresses.
        cut: whether a loop was not run to its end.
        hidden: whether code did not run because it depends on what is loaded.
        watched: the operations whose results are kept.
        accessed: the address and mask of each access, by the operation and how often it ran before.
        trace: the results of watched operations, in the order in which they ran.
    """

    wide: bool = False
    quick: bool = False
    turns: int = 0
    cut: bool = False
    hidden: bool = False
    watched: frozenset[Operation] = frozenset()
    accessed: dict[tuple[Operation, int], tuple[Any, Any]] = field(default_factory=dict)
    trace: dict[tuple[Operation, int], Any] = field(default_factory=dict)
    ran: dict[Operation, int] = field(default_factory=dict)

    def _run(self, line: BlockLine) -> None:
        self._count()
        values = tuple([self._values[operand] for operand in line.operands])
        results = self._outcome(line, values)
        operation = line.operation
        if operation in self.watched:
            self.trace[self._key(operation)] = results[0]
        for (result, _), value in zip(line.results, results, strict=True):
            self._values[result] = value
            self.elements += getattr(value, "size", 1)
        if self.elements > self.most:
            raise UnsupportedIrError("its tensors are too large to be run")

    def _key(self, operation: Operation) -> tuple[Operation, int]:
        number = self.ran.get(operation, 0)
        self.ran[operation] = number + 1
        return operation, number

    def _outcome(self, line: BlockLine, values: Values) -> Values:  # noqa: PLR0911 - a table
        operation, name = line.operation, line.name
        nothing = (UNKNOWN,) * len(operation.results)
        if name in _ACCESSES:
            mask = mask_of(operation)
            known = None if mask is None else self._values[mask]
            self.accessed[self._key(operation)] = (values[0], known)
            return nothing
        if name == "scf.for":
            return self._turns(operation, values)
        # What is behind a condition that is loaded is not run: nothing in it is proved.
        if name == "scf.if" and values[0] is UNKNOWN:
            self.hidden = True
            return nothing
        if name in ("scf.if", "scf.while", "tt.call"):
            return self._evaluate(operation, name, values)
        if any(value is UNKNOWN for value in values) or not _is_integral(operation):
            return nothing
        try:
            results = self._evaluate(operation, name, values)
        except (UnsupportedIrError, *MISUSED):
            return nothing
        return self._widened(operation, name, values, results) if self.wide else results

    def _widened(self, operation: Operation, name: str, values: Values, results: Values) -> Values:
        """Return the results as 64 bits hold them."""
        if name in ("arith.trunci", "arith.bitcast", "arith.index_cast") and (
            result_type(operation).dtype == _NARROW
        ):
            results = values[:1]
        return tuple(
            # An operation on two arrays of no axes yields a NumPy scalar, which has a dtype all the same.
            result.astype(np.int64) if getattr(result, "dtype", None) == _NARROW else result
            for result in results
        )

    def _branch(self, operation: Operation, name: str) -> tuple[Block, Values]:
        # A program that returns at once because of what it loads has no work, and shows nothing.
        if name == "cf.cond_br" and self._values[operation.operands[0]] is UNKNOWN:
            for place, (block, other) in enumerate(
                zip(operation.successors, operation.successors[::-1], strict=True)
            ):
                if returns(other) and not returns(block):
                    _, *ways = bind(operation, self._operands(operation), ("condition", "true*", "false*"))
                    return block, ways[place]
        return super()._branch(operation, name)

    def _turns(self, operation: Operation, values: Values) -> Values:
        lower, upper, step, *carried = values
        if any(value is UNKNOWN for value in (lower, upper, step)):
            self.hidden = True
            return (UNKNOWN,) * len(carried)
        first, end, by = int(lower), int(upper), int(step)
        if by <= 0:
            raise EndlessError("a loop without an end")
        turns: Sequence[int] = range(first, end, by)
        known = [value is not UNKNOWN for value in carried]
        # A turn without known values from the turn before depends on the induction variable alone.
        if turns and not any(known):
            turns = tuple(dict.fromkeys((turns[0], turns[-1])))
        if self.quick and len(turns) > 1 and any(known):
            # The first turn is what it is, however many follow; only what comes behind the loop is not known.
            self.cut = True
            induction = np.asarray(lower.dtype.type(turns[0]))
            self.region(operation.regions[0], (induction, *carried))
            return (UNKNOWN,) * len(carried)
        if len(turns) > self.turns:
            raise UnsupportedIrError(f"a loop of {len(turns):,} turns that carries addresses")
        for number in turns:
            induction = np.asarray(lower.dtype.type(number))
            ends = self.region(operation.regions[0], (induction, *carried))
            carried = [end if is_known else UNKNOWN for end, is_known in zip(ends, known, strict=True)]
        return tuple(carried)


@lru_cache(maxsize=4096)
def _is_integral(operation: Operation) -> bool:
    """Return whether all results are integers, flags or pointers."""
    try:
        kinds = [type_of(result.type) for result in operation.results]
    except UnsupportedIrError:
        return False
    return all(
        kind.kind is ValueKind.POINTER or (kind.kind is ValueKind.NUMBER and kind.dtype.kind in "ib")
        for kind in kinds
    )
