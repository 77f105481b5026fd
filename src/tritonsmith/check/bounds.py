"""Find 32-bit offsets that overflow: the sizes from which they do, and a program that proves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation

from tritonsmith.check.evaluate import BlockLine, EvaluatedProgram
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.memory import Contents, GlobalMemory, base, where
from tritonsmith.check.module import UnsupportedIrError, ValueKind, name_of, result_type, type_of
from tritonsmith.check.offsets import (
    LARGEST,
    Access,
    Arithmetic,
    Fact,
    OffsetSymbol,
    Polynomial,
    SymbolKind,
    apply,
    arithmetic,
    mask_of,
    most,
    normal,
    returns,
)
from tritonsmith.check.program import MISUSED, EndlessError, Values, bind
from tritonsmith.check.runs import TritonKernel
from tritonsmith.core import configs

_ACCESSES = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2, "tt.atomic_cas": 9}
_NARROW = np.dtype(np.int32)
_GIB = 1 << 30
_PARTS = (1, 2, 3, 5, 7, 11, 13)  # of the largest id, which are tried
_LOADED = "it depends on values that the kernel loads"
_HIDDEN = f"{_LOADED}, or computes from floats"
# Why a value has no polynomial, by the operation that makes it.
_NOT_FOLLOWED = {
    "tt.reduce": "it depends on a reduction, such as tl.sum or tl.max, whose result is not followed",
    "tt.scan": "it depends on a scan, such as tl.cumsum, whose result is not followed",
    "tt.call": "it depends on what a function returns that is not inlined, and that is not followed",
    "scf.for": "it depends on a value that a loop changes, and not by the same sum in each turn",
    "scf.while": "it depends on a value that a while loop changes",
    "tt.histogram": "it depends on a histogram, whose result is not followed",
}
_SEVERAL_WAYS = "it depends on a value that comes by several ways: of a branch, or of a loop's turns"
_NO_BASE = "its pointer is loaded, or computed from an integer"


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


class _Undefined(Exception):  # noqa: N818 - no error: the search goes on
    """A value is not defined for these inputs: a division by 0, as past the end of a grid."""


class _Hidden(Exception):  # noqa: N818 - no error: what it is about is skipped
    """A value cannot be computed: it depends on what is loaded."""


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


@dataclass(frozen=True)
class Witness:
    """A launch and one of its programs, in which an address is wrong.

    Attributes:
        grown: the symbol whose size was increased until it overflowed.
        size: the value of it: a number of programs for a program id.
        arguments: each integer argument that the address or the mask depends on.
        program: the ids of the program.
        nearest: bytes from the tensor's base to the first element whose address is wrong.
        wrong: where 32 bits put that element, in bytes from the base.
    """

    grown: OffsetSymbol
    size: int
    arguments: Mapping[str, int]
    program: tuple[int, int, int]
    nearest: int = 0
    wrong: int = 0

    @property
    def size_words(self) -> str:
        """The size from which an offset overflows, in words."""
        if self.grown.kind is SymbolKind.PROGRAM:
            return f"{self.size:,} programs along axis {self.grown.number}"
        return f"{self.grown.name} = {self.size:,}"

    @property
    def launch_words(self) -> str:
        """The program and its arguments, in words."""
        sizes = ", ".join(f"{name} = {value:,}" for name, value in self.arguments.items())
        return f"program {self.program}" + (f" with {sizes}" if sizes else "")


@dataclass(frozen=True)
class Overflow:
    """An operation in 32 bits that overflows, and whose result becomes an address.

    Attributes:
        operation: the operation.
        exact: its value.
        accesses: the loads and stores that it decides about.
        witness: the launch that proves it; None if it only may.
        why: why nothing was proved.
    """

    operation: Operation
    exact: Polynomial
    accesses: tuple[Operation, ...]
    witness: Witness | None = None
    why: str = ""

    @property
    def is_in_block(self) -> bool:
        """True if it overflows within one block, by a stride alone."""
        kinds = {atom.kind for atom in self.exact.symbols}
        return kinds <= {SymbolKind.ARGUMENT, SymbolKind.LANE}

    @property
    def is_proved(self) -> bool:
        """True if a witness shows it."""
        return self.witness is not None


@dataclass(frozen=True)
class KernelBounds:
    """The knowledge about the offsets of a kernel.

    Attributes:
        overflows: the operations that overflow or may.
        accesses: the number of accesses through pointers.
        descriptors: the number of accesses through descriptors.
        arithmetic: the arithmetic that was read.
        search: what runs its programs.
    """

    overflows: tuple[Overflow, ...]
    accesses: int
    descriptors: int
    arithmetic: Arithmetic
    search: BoundsSearch


def bounds(
    kernel: TritonKernel,
    backend: str = "cuda",
    names: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    grid: Sequence[int] = (),
    usual: Mapping[str, int] | None = None,
) -> KernelBounds:
    """Find the offsets of a kernel that overflow 32 bits.

    Args:
        kernel: the kernel.
        backend: `cuda` or `hip`, whose grids have a largest size.
        names: the names of its parameters, where the IR has none.
        sizes: values of arguments that are known.
        grid: the programs along each axis, if they are known.
        usual: values of arguments in captured launches, instead of the usual sizes.

    Raises:
        UnsupportedIrError: a type that is not known.
    """
    limits = configs.load("bounds")
    axes = [*grid, *limits["grid"][backend][len(grid) :]]
    read = arithmetic(kernel.functions, kernel.main, names, axes, sizes)
    search = BoundsSearch(kernel, read, limits, dict(sizes or {}), dict(usual or {}))
    overflows = tuple(search.overflows())
    return KernelBounds(overflows, len(read.accesses), read.descriptors, read, search)


class BoundsSearch:
    """The search for launches in which addresses are wrong."""

    def __init__(
        self,
        kernel: TritonKernel,
        read: Arithmetic,
        limits: Mapping[str, Any],
        given: Mapping[str, int],
        captured: Mapping[str, int],
    ) -> None:
        self._kernel, self._read, self._limits, self._given = kernel, read, limits, given
        self._captured = captured
        self._proved: dict[Operation, Overflow] = {}
        self._stopped = ""
        evidence = [*read.assumed, *(fact for access in read.accesses for fact in access.facts)]
        evidence = [_without_lanes(part) for fact in evidence for part in normal(fact)]
        # A launch has no programs without work: each of them has an element that its masks let through.
        self._evidence = _tightest(
            fact
            for fact in evidence
            if any(atom.kind is SymbolKind.PROGRAM for atom in fact.left.symbols | fact.right.symbols)
        )
        self._axes = {
            atom.number: atom
            for access in read.accesses
            for polynomial in (
                access.address.exact,
                # Of what comes by several ways the address says nothing, and each way has its own ids.
                *access.address.narrow.values(),
                *(side for fact in access.facts for side in (fact.left, fact.right)),
            )
            for atom in polynomial.symbols
            if atom.kind is SymbolKind.PROGRAM
        }
        self._defaults = self._usual()

    def overflows(self) -> Iterator[Overflow]:
        """Yield the operations that overflow or may, in the order of the kernel."""
        groups: dict[Operation, list[Access]] = {}
        for access in self._read.accesses:
            for operation in self._large(access):
                groups.setdefault(operation, []).append(access)
        unproved: dict[Operation, str] = {}
        tried = 0
        for operation, accesses in groups.items():
            # Name what an overflow was made of, not each sum that it goes into. A product of such a part may
            # overflow at far smaller sizes, though.
            before = self._read.inside[operation]
            is_sum = name_of(operation) != "arith.muli"
            if operation in self._proved or (is_sum and before & self._proved.keys()):
                continue
            tried += 1
            many = tried > self._limits["proof"]["groups"]
            why = "the kernel has more of them than are tried" if many else self._prove(operation, accesses)
            if why and not before & unproved.keys():
                unproved[operation] = why
        for operation, accesses in groups.items():
            inside = self._read.inside[operation]
            if operation in self._proved:
                yield self._proved[operation]
            elif (
                operation in unproved
                and not inside & self._proved.keys()
                # A factor of what overflows does so later, if at all.
                and not any(operation in self._read.inside[proved] for proved in self._proved)
            ):
                affected = tuple(access.operation for access in accesses)
                exact = accesses[0].address.narrow[operation]
                yield Overflow(operation, exact, affected, None, unproved[operation])

    def _large(self, access: Access) -> list[Operation]:
        """Return the operations of an address that may exceed 32 bits for some sizes."""
        # Not the evidence of loops: a program may have no turn of them.
        facts = (*access.facts, *self._read.assumed, *filter(_is_of_programs, self._evidence))
        return [
            operation for operation, exact in access.address.narrow.items() if most(exact, facts) > LARGEST
        ]

    def _prove(self, operation: Operation, accesses: Sequence[Access]) -> str:
        """Look for a witness; return why there is none, or nothing."""
        why = "no size of one argument reaches it, with the others as usual"
        for access in accesses[: self._limits["proof"]["accesses"]]:
            target = access.address.narrow[operation]
            if not_followed := _not_followed(target):
                why = not_followed
                continue
            for scale, programs in self._limits["sizes"]["scales"]:
                problem = SizeProblem(self, access, target, scale, self.programs * programs)
                for grown in problem.growing():
                    # Each program begins in the same way: what one cannot get past stops the others, too.
                    if self._stopped:
                        return self._stopped
                    if (values := problem.smallest(grown)) is None:
                        continue
                    why = self._witness(access, grown, values)
                    if not why:
                        return ""
        return why

    def _witness(self, access: Access, grown: OffsetSymbol, values: Mapping[OffsetSymbol, int]) -> str:
        """Run the program of these values in 32 and in 64 bits; return why that proves nothing."""
        ids = [self._axes.get(axis) for axis in range(3)]
        program = tuple(values.get(atom, 0) if atom else 0 for atom in ids)
        why = ""
        for quick in (True, False):
            runs = []
            for wide in (False, True):
                try:
                    run = self.run(program, values, frozenset(access.address.narrow), wide=wide, quick=quick)
                except UnknownValueError:
                    self._stopped = "the kernel decides by values that it loads"
                    return self._stopped
                except EndlessError:
                    return "a run of it takes too long"
                except AssumedError:
                    return "tl.assume rules out the sizes that were tried"
                except UnsupportedIrError as error:
                    return str(error)
                runs.append(run)
            why = self._compare(access, grown, values, program, *runs)
            if not why or not any(run.cut for run in runs):
                break
        return why

    def run(
        self,
        program: tuple[int, ...],
        values: Mapping[OffsetSymbol, int],
        watched: frozenset[Operation] = frozenset(),
        *,
        grid: tuple[int, ...] = (),
        wide: bool,
        quick: bool = False,
    ) -> AddressRun:
        """Run the integers of one program.

        Args:
            program: its ids.
            values: arguments that do not have their usual size.
            watched: the operations whose results are kept.
            grid: the programs along each axis; this one is the last one if it is empty.
            wide: compute integers of 32 bits in 64.
            quick: run only the first turn of a loop that carries addresses.

        Raises:
            UnknownValueError: the kernel decides by a value that it loads.
            EndlessError: it takes too long.
            AssumedError: an assumption of the kernel does not hold.
            UnsupportedIrError: an operation is not known, or its tensors are too large.
        """
        proof = self._limits["proof"]
        run = AddressRun(
            functions=self._kernel.functions,
            memory=GlobalMemory(0, Contents.PLAIN),
            program=program,  # type: ignore[arg-type]
            grid=grid or tuple(number + 1 for number in program),  # type: ignore[arg-type]
            limit=proof["operations"],
            most=proof["elements"],
            lines=self._kernel.lines,
            wide=wide,
            quick=quick,
            turns=proof["turns"],
            watched=watched,
        )
        run.launch(self._kernel.main, self._arguments(values, wide=wide))
        return run

    def _arguments(self, values: Mapping[OffsetSymbol, int], *, wide: bool) -> Values:
        parameters = self._kernel.function.regions[0].blocks[0].args
        row: list[Any] = []
        for number, (parameter, argument) in enumerate(zip(parameters, self._read.arguments, strict=True)):
            kind = type_of(parameter.type)
            if argument is not None:
                value = np.asarray(kind.dtype.type(values.get(argument, self._defaults[argument])))
                row.append(value.astype(np.int64) if wide and value.dtype == _NARROW else value)
            elif kind.kind is ValueKind.POINTER:
                row.append(np.asarray(np.int64(base(number))))
            else:
                row.append(UNKNOWN)
        return tuple(row)

    def _compare(
        self,
        access: Access,
        grown: OffsetSymbol,
        values: Mapping[OffsetSymbol, int],
        program: tuple[int, ...],
        narrow: AddressRun,
        wide: AddressRun,
    ) -> str:
        why = _HIDDEN if wide.hidden else "the program of the witness does not reach it"
        for key, (exact, mask) in wide.accessed.items():
            if key[0] is not access.operation or key not in narrow.accessed:
                continue
            address = narrow.accessed[key][0]
            if any(value is UNKNOWN for value in (exact, mask, address)):
                why = _HIDDEN
                continue
            # Of a pointer that is one of several, the run knows which one it was.
            pointer = access.address.base if access.address.base >= 0 else where(int(np.max(exact)))[0]
            if pointer is None:
                why = _NO_BASE
                continue
            distance = exact - base(pointer)
            active = np.ones(exact.shape, bool) if mask is None else np.broadcast_to(mask, exact.shape)
            room = self._limits["sizes"]["largest-tensor"] * _GIB
            wrong = active & (address != exact) & (distance >= 0)
            if not wrong.any():
                why = "no element that the mask lets through is at a wrong address"
                continue
            if not (wrong := wrong & (distance < room)).any():
                why = f"its tensor would have more than {self._limits['sizes']['largest-tensor']} GiB"
                continue
            if (culprit := _first_wrong(narrow, wide)) is None:
                continue
            place = np.unravel_index(
                int(np.argmin(np.where(wrong, distance, np.iinfo(np.int64).max))), wrong.shape
            )
            self._keep(
                access, culprit,
                Witness(
                    grown,
                    values[grown] + (grown.kind is SymbolKind.PROGRAM),
                    self.shown(access, values),
                    program,  # type: ignore[arg-type]
                    int(distance[place]),
                    int(address[place]) - base(pointer),
                ),
            )  # fmt: skip
            return ""
        return why

    def _keep(self, access: Access, culprit: Operation, witness: Witness) -> None:
        if culprit not in self._proved:
            affected = tuple(
                other.operation for other in self._read.accesses if culprit in other.address.narrow
            )
            exact = access.address.narrow[culprit]
            self._proved[culprit] = Overflow(culprit, exact, affected, witness)

    def shown(self, access: Access, values: Mapping[OffsetSymbol, int]) -> dict[str, int]:
        """Return the arguments that an access depends on.

        Args:
            access: the access.
            values: the values that are not the usual ones.
        """
        polynomials = [access.address.exact, *access.address.narrow.values()]
        polynomials += [side for fact in access.facts for side in (fact.left, fact.right)]
        symbols = {atom for polynomial in polynomials for atom in polynomial.symbols}
        return {
            atom.name: values.get(atom, self._defaults[atom])
            for atom in self._read.arguments
            if atom is not None and atom in symbols
        }

    def _usual(self) -> dict[OffsetSymbol, int]:
        """Return the usual size of each argument."""
        sizes = self._limits["sizes"]
        usual = {
            atom: _rounded_up(sizes["default"], atom.unit)
            for atom in self._read.arguments
            if atom is not None
        }
        for access in self._read.accesses:
            for polynomial in (access.address.exact, *(fact.left for fact in access.facts)):
                for atom in polynomial.symbols:
                    self._limit_divisor(atom, usual)
            # A program that takes a whole row in one block is launched for rows that fit the block.
            for fact in access.facts:
                kinds = {atom.kind for atom in fact.left.symbols}
                argument = fact.right.symbol
                if kinds == {SymbolKind.LANE} and argument in usual:
                    usual[argument] = min(usual[argument], max(fact.left.interval()[1] + 1, argument.unit))
        for atom in usual:
            if atom.name in self._given:
                usual[atom] = self._given[atom.name]
            elif 0 < (size := self._captured.get(atom.name, 0)) <= atom.high:
                usual[atom] = _rounded_up(size, atom.unit)
        return usual

    def _limit_divisor(self, atom: OffsetSymbol, usual: dict[OffsetSymbol, int]) -> None:
        """Lower an argument by which a program id is divided: a number of heads, not a length."""
        if atom.operation in ("div", "rem") and (divisor := atom.operands[1].symbol) in usual:
            inside = {part.kind for part in atom.operands[0].symbols}
            if SymbolKind.PROGRAM in inside and SymbolKind.LANE not in inside:
                usual[divisor] = _rounded_up(self._limits["sizes"]["heads"], divisor.unit)

    @property
    def evidence(self) -> tuple[Fact, ...]:
        """Facts about every program of a launch."""
        return self._evidence

    @property
    def defaults(self) -> Mapping[OffsetSymbol, int]:
        """The usual sizes."""
        return self._defaults

    @property
    def given(self) -> Mapping[str, int]:
        """The sizes that are known."""
        return self._given

    @property
    def programs(self) -> int:
        """Programs along an axis that no mask bounds."""
        number: int = self._limits["sizes"]["programs"]
        return number

    @property
    def axes(self) -> Mapping[int, OffsetSymbol]:
        """The program ids that addresses and masks depend on, by their axes."""
        return self._axes

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the kernel."""
        return self._read

    def program_of(self, axis: int) -> OffsetSymbol | None:
        """Return the symbol of the program id of an axis."""
        return self._axes.get(axis)


class SizeProblem:
    """The smallest sizes for which an address of one access needs more than 32 bits."""

    def __init__(
        self, search: BoundsSearch, access: Access, target: Polynomial, scale: int, programs: int
    ) -> None:
        self._search, self._target, self._scale = search, target, scale
        self._programs = programs
        self._facts = tuple(
            fact for fact in access.facts if not _is_loaded(fact.left) and not _is_loaded(fact.right)
        )
        sides = [side for fact in (*self._facts, *search.evidence) for side in (fact.left, fact.right)]
        symbols = {atom for polynomial in (target, *sides) for atom in polynomial.symbols}
        self._symbols = sorted(symbols, key=lambda atom: atom.order)
        # Sizes that programs or turns are counted up to: with a few tiles of each, no stride is ever large.
        self._counted = {
            atom
            for fact in (*self._facts, *search.evidence)
            for atom in fact.right.symbols
            if atom.kind is SymbolKind.ARGUMENT and fact.left.symbols & target.symbols
        } - target.symbols
        self._values: dict[OffsetSymbol, int] = {}
        self._memo: dict[OffsetSymbol, int] = {}

    def growing(self) -> Iterator[OffsetSymbol]:
        """Yield the symbols that may grow: sizes in masks, ids of programs, then strides."""
        inputs = self._target.symbols
        sizes: dict[OffsetSymbol, None] = {}
        for fact in (*self._facts, *self._search.evidence):
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
            if atom.name not in self._search.given:
                yield atom

    def smallest(self, grown: OffsetSymbol) -> dict[OffsetSymbol, int] | None:
        """Return values of all inputs, with the least of one symbol that overflows; None if there is none."""
        unit = grown.unit
        least = self._search.defaults.get(grown, 0) // unit
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
        for atom in sorted(self._search.axes.values(), key=lambda atom: atom.order):
            self._set(atom, self._largest(atom, self._search.evidence))
            last[atom] = self._values[atom] + 1
            self._set(atom, 0)
        return last

    def _is_free(self, program: OffsetSymbol) -> bool:
        every = (*self._facts, *self._search.evidence)
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
            atom: self._search.defaults[atom] * self._scale
            for atom in self._counted
            if atom.name not in self._search.given
        }
        self._values = {**self._search.defaults, **scaled, **values}
        self._memo = {}

    def _exceeds(self, grown: OffsetSymbol, size: int) -> bool:
        """Complete the values of a launch, and return whether an offset exceeds 32 bits."""
        self._start({grown: size})
        every = (*self._facts, *self._search.evidence)
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
            program = self._search.program_of(atom.number)
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


def _is_of_programs(fact: Fact) -> bool:
    """Return whether a fact is about program ids and arguments alone."""
    kinds = {atom.kind for atom in fact.left.symbols | fact.right.symbols}
    return not kinds & {SymbolKind.TURN, SymbolKind.LANE, SymbolKind.LOADED, SymbolKind.UNKNOWN}


def _without_lanes(fact: Fact) -> Fact:
    """Return what a fact says about the first lane, which has the least index."""
    terms = {
        monomial: factor
        for monomial, factor in fact.left.terms.items()
        if factor < 0 or not any(atom.kind is SymbolKind.LANE for atom in monomial)
    }
    return replace(fact, left=Polynomial(terms))


def _tightest(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts without those that others imply: an unrolled loop has one for each of its turns."""
    kept: dict[tuple[Polynomial, Polynomial, int], tuple[int, Fact]] = {}
    for fact in facts:
        constant = fact.left.terms.get((), 0)
        key = (fact.left - Polynomial.of(constant), fact.right, fact.most)
        if key not in kept or constant > kept[key][0]:
            kept[key] = (constant, fact)
    return tuple(fact for _, fact in kept.values())


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


def _not_followed(target: Polynomial) -> str:
    """Return why no size can be found for which a value overflows; empty if one may be."""
    unknown = [atom for atom in target.symbols if atom.kind in (SymbolKind.LOADED, SymbolKind.UNKNOWN)]
    if any(atom.kind is SymbolKind.LOADED for atom in unknown):
        return _LOADED
    for atom in sorted(unknown, key=lambda atom: atom.order):
        source = name_of(atom.source) if atom.source else ""
        return _NOT_FOLLOWED.get(
            source, f"it depends on {source}, which is not followed" if source else _SEVERAL_WAYS
        )
    return ""


def _first_wrong(narrow: AddressRun, wide: AddressRun) -> Operation | None:
    """Return the first operation whose result does not fit 32 bits."""
    for key, exact in wide.trace.items():
        value = narrow.trace.get(key, UNKNOWN)
        if exact is not UNKNOWN and value is not UNKNOWN and np.any(value != exact):
            return key[0]
    return None


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
