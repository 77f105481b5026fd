"""Find 32-bit offsets that overflow: the sizes from which they do, and a program that proves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.address_run import UNKNOWN, AddressRun, UnknownValueError
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.memory import Contents, GlobalMemory, base, where
from tritonsmith.check.module import UnsupportedIrError, ValueKind, name_of, type_of
from tritonsmith.check.offsets import Access, Arithmetic, arithmetic
from tritonsmith.check.polynomials import (
    LARGEST,
    Fact,
    OffsetSymbol,
    Polynomial,
    SymbolKind,
    most,
    normal,
)
from tritonsmith.check.program import EndlessError, Values
from tritonsmith.check.runs import TritonKernel
from tritonsmith.check.sizes import KnownSizes, SizeProblem
from tritonsmith.core import configs

_NARROW = np.dtype(np.int32)
_GIB = 1 << 30
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
        facts = [*read.assumed, *(fact for access in read.accesses for fact in access.facts)]
        facts = [_without_lanes(part) for fact in facts for part in normal(fact)]
        # A launch has no programs without work: each of them has an element that its masks let through.
        evidence = _tightest(
            fact
            for fact in facts
            if any(atom.kind is SymbolKind.PROGRAM for atom in fact.left.symbols | fact.right.symbols)
        )
        axes = {
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
        self._known = KnownSizes(evidence, self._usual(), given, axes)

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
        facts = (*access.facts, *self._read.assumed, *filter(_is_of_programs, self._known.evidence))
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
                problem = SizeProblem(self._known, access, target, scale, self.programs * programs)
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
        ids = [self._known.axes.get(axis) for axis in range(3)]
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
                value = np.asarray(kind.dtype.type(values.get(argument, self._known.usual[argument])))
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
            atom.name: values.get(atom, self._known.usual[atom])
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
    def known(self) -> KnownSizes:
        """The facts and sizes that hold for every launch."""
        return self._known

    @property
    def programs(self) -> int:
        """Programs along an axis that no mask bounds."""
        number: int = self._limits["sizes"]["programs"]
        return number

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the kernel."""
        return self._read


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
