"""The answer of a check: its passes, the culprit, and the runs of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from tritonsmith.check.memory import Contents, GlobalMemory, RecordingMemory, Written, regions, spans, where
from tritonsmith.core import configs

KNOWN = ("same text", "equal", "close", "reference")


class ResultChange(StrEnum):
    """The ways in which a pass changes a kernel."""

    RESULT = "result"
    COPIES = "copies land late"
    READS = "dots and stores read late"
    OUTSIDE = "reads outside"
    BEYOND = "accesses shared memory outside of its allocation"
    ENDLESS = "does not end"
    ASSUMED = "assumes what does not hold"


@dataclass(frozen=True)
class CheckedPass:
    """A text that a pass left, and the outcome of running it.

    Attributes:
        number: the number of the dump that was run.
        name: the pass that left it, as a command line names it; empty for the input of the first pass.
        status: `reference`, `same text`, `equal`, `close`, `differs`, `unknown`, or `lowered` once there
            is no Triton IR any more.
        why: the reason for `unknown`, such as an operation that the check does not know.
        apart: the largest relative difference within the tolerance.
        waits: why its waits and barriers could not be checked; empty if they were, or if there are none.
        others: passes that ran in between and left no text of the whole module.
    """

    number: int
    name: str
    status: str
    why: str = ""
    apart: float = 0.0
    waits: str = ""
    others: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Return whether nothing is left open: the text was compared, and so were its waits."""
        return self.status in KNOWN and not self.waits


@dataclass(frozen=True)
class Culprit:
    """The first pass that changes the result.

    Attributes:
        checked: the pass.
        change: the kind of change.
        difference: the first element that differs, or that is read outside; None if there is none.
        seed: the seed of the inputs.
        program: ids of the program that wrote the element.
        contents: the contents of memory in that run.
        arguments: the kernel's arguments by name, without pointers.
        store: name of the argument whose memory holds the element.
        operation: the first operation after the pass whose value is new; empty if there is none.
        line: FILE:LINE of that operation.
        suspects: candidate passes; more than one if a text between them could not be run.
        place: the place in shared memory that is accessed outside its allocation; else empty.
    """

    checked: CheckedPass
    change: ResultChange
    difference: Difference | None
    seed: int
    program: tuple[int, int, int]
    contents: Contents
    arguments: dict[str, Any]
    store: str
    operation: str
    line: str
    suspects: tuple[str, ...]
    place: str = ""


@dataclass(frozen=True)
class InterpretedRuns:
    """The results of TRITON_INTERPRET=1, compared with those of the first text.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`.
        why: the reason for `unknown`, from the interpreter or from the comparison.
        apart: the largest relative difference within the tolerance.
        seed: the seed of the inputs under which they differ.
        program: ids of the program that differs.
        contents: the contents of memory in that run.
        difference: the first element; None if the interpreter only reads memory that the first text does not.
        store: name of the argument whose memory holds the element.
        hints: suggestions where the status is `unknown`.
    """

    status: str
    why: str = ""
    apart: float = 0.0
    seed: int = 0
    program: tuple[int, int, int] = (0, 0, 0)
    contents: Contents = Contents.PLAIN
    difference: Difference | None = None
    store: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckAnswer:
    """The answer of a check of one kernel.

    Attributes:
        kernel: its name.
        target: `cuda:90`; empty if the dump does not say.
        passes: the texts that were run, in order.
        culprit: None if no pass changed the result.
        elements: number of elements that the runs of the reference wrote.
        runs: number of inputs (seed, program, contents) under which the kernel was run.
        left_out: number of inputs under which it does not end, or makes an assumption that does not hold.
        racing: number of elements that one operation wrote more than once, with different values.
        gaps: parts of the first text that these inputs do not exercise.
        interpreted: the runs of the interpreter; None if they were not requested.
    """

    kernel: str
    target: str
    passes: tuple[CheckedPass, ...]
    culprit: Culprit | None
    elements: int
    runs: int
    left_out: int
    racing: int
    gaps: tuple[str, ...]
    interpreted: InterpretedRuns | None = None

    @property
    def checked(self) -> int:
        """The number of passes that were compared."""
        return sum(row.status in KNOWN for row in self.passes)

    @property
    def open(self) -> tuple[CheckedPass, ...]:
        """The texts at either end that were not compared: before the first certain one, or after the last."""
        sure = [number for number, row in enumerate(self.passes) if row.sure]
        ends = (*self.passes[: sure[0]], *self.passes[sure[-1] + 1 :]) if sure else self.passes
        return tuple(row for row in ends if row.status == "unknown" or row.waits)

    @property
    def reasons(self) -> list[str]:
        """The reasons why those texts are open, sorted and without duplicates."""
        return sorted({row.why or row.waits for row in self.open})


# Compare the memory that two runs wrote: the same bits, close or not, and where they first differ.

_SINGLE = 4  # bytes


@dataclass(frozen=True)
class Difference:
    """The first element that differs, in the order of arguments and addresses.

    Attributes:
        argument: number of the pointer argument; None for memory reached through a pointer in memory.
        offset: distance of the element from that pointer, in elements.
        before: its value in the first run; None if it was not written.
        after: its value in the second run; None if it was not written.
        count: number of elements that differ.
        written: number of elements that either run wrote.
        address: byte address of the element.
    """

    argument: int | None
    offset: int
    before: float | None
    after: float | None
    count: int
    written: int
    address: int


@dataclass(frozen=True)
class ReadRange:
    """The range that a kernel accesses in its memory: sizes are not known, so this is what counts as inside.

    Attributes:
        spans: first and last byte address that is read or written, by region of memory.
    """

    spans: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, memories: Sequence[RecordingMemory]) -> ReadRange:
        """Return the union of the ranges of all these runs."""
        union: dict[int, tuple[int, int]] = {}
        for memory in memories:
            for reach in (memory.reach, spans(memory.written.at)):
                for number, (first, last) in reach.items():
                    low, high = union.get(number, (first, last))
                    union[number] = min(low, first), max(high, last)
        return cls(union)

    def outside(self, memory: RecordingMemory) -> Difference | None:
        """Return the first element that a run reads outside the range; None if there is none."""
        if all(self._has(number, *reach) for number, reach in memory.reach.items()):
            return None
        at = memory.read
        inside = np.zeros(at.shape, np.bool_)
        for low, high in self.spans.values():
            inside |= (at >= low) & (at <= high)
        address = int(at[~inside][0])
        argument, distance = where(address)
        offset = distance // memory.width(address)
        return Difference(argument, offset, None, None, int((~inside).sum()), int(at.size), address)

    def _has(self, number: int, first: int, last: int) -> bool:
        low, high = self.spans.get(number, (1, 0))
        return low <= first and last <= high


def compare_memory(
    before: GlobalMemory,
    after: GlobalMemory,
    least: float = 0.0,
    slack: float = 1.0,
    *,
    narrow: bool = False,
    whole: bool | None = None,
) -> tuple[float, Difference | None]:
    """Return the largest relative difference within the tolerance, and the first element beyond it.

    Args:
        before: one run.
        after: another run.
        least: smaller numbers are compared as if they had this size.
        slack: factor on the tolerance of fp32 and fp64.
        narrow: sums that cancel may have been accumulated in their own type, even fp16.
        whole: integers have to be equal; None: only if `least` and `slack` have their defaults.
    """
    first, second = before.written, after.written
    exact = whole if whole is not None else not least and slack == 1
    addresses = np.union1d(first.at, second.at)
    if not addresses.size:
        return 0.0, None
    wrong = ~(np.isin(addresses, first.at) & np.isin(addresses, second.at))
    both = addresses[~wrong]
    mine, yours = first.index(both), second.index(both)
    unequal = first.bits[mine] != second.bits[yours]
    largest = 0.0
    if unequal.any():
        bad = unequal.copy()
        for dtype in {first.dtypes[int(number)] for number in first.kinds[mine[unequal]]}:
            chosen = (
                unequal
                & (first.kinds[mine] == first.dtypes.index(dtype))
                & (second.kind_of(yours) == str(dtype))
            )
            values = first.values(mine[chosen], dtype), second.values(yours[chosen], dtype)
            sizes = _sizes(first, first.at[mine[chosen]], dtype)
            if str(dtype) not in configs.load("passes-check")["tolerance"]:
                close, most = _whole(*values, least, 0.0 if exact else slack)
            else:
                close, most = _close(*values, dtype, least, slack, sizes, narrow=narrow)
            bad[np.flatnonzero(chosen)[close]] = False
            largest = max(largest, most)
        wrong[np.flatnonzero(~wrong)[bad]] = True
    if not wrong.any():
        return largest, None
    address = int(addresses[wrong][0])
    argument, distance = where(address)
    owner = first if np.isin(address, first.at) else second
    size = owner.dtypes[int(owner.kinds[owner.index(np.asarray([address]))[0]])].itemsize
    difference = Difference(
        argument,
        distance // size,
        first.value(address),
        second.value(address),
        int(wrong.sum()),
        int(addresses.size),
        address,
    )
    return largest, difference


def _sizes(of: Written, at: Any, dtype: Any) -> Any:
    """Return, per address, the largest finite absolute value of this dtype in its argument's memory."""
    same = of.kinds == of.dtypes.index(dtype)
    numbers, values = regions(of.at[same]), np.abs(of.values(np.flatnonzero(same), dtype).astype(np.float64))
    values[~np.isfinite(values)] = 0.0
    largest = {number: values[numbers == number].max() for number in np.unique(numbers)}
    return np.asarray([largest[number] for number in regions(at)])


def _close(
    before: Any, after: Any, dtype: Any, least: float, slack: float, sizes: Any, *, narrow: bool
) -> tuple[Any, float]:
    """Return a mask of the elements that are close, and the largest relative difference among them.

    Two numbers are close within the tolerance of their type; so are sums in fp32 whose difference is rounding
    error of parts as large as the largest result: where a sum is near 0, its parts cancelled.

    """
    table = configs.load("passes-check")["tolerance"]
    least = max(least, table["least"])
    tolerance = table[str(dtype)] * (slack if dtype.itemsize >= _SINGLE else 1.0)
    lost = tolerance if narrow else min(tolerance, slack * table["float32"])
    lost = lost * np.minimum(sizes, table["cancelled"])
    with np.errstate(all="ignore"):
        wide, plain = before.astype(np.float64), after.astype(np.float64)
        scale = np.maximum(np.maximum(np.abs(wide), np.abs(plain)), np.maximum(least, lost / tolerance))
        apart = np.where(wide == plain, 0.0, np.abs(wide - plain) / scale)
    apart = np.where(np.isnan(wide) & np.isnan(plain), 0.0, apart)
    close = apart <= tolerance  # NaN is not
    return close, float(apart[close].max(initial=0.0))


def _whole(before: Any, after: Any, least: float, slack: float) -> tuple[Any, float]:
    """Do the same for integers; where numbers are not exact, integers made from them may be off by one."""
    tolerance = slack * configs.load("passes-check")["tolerance"]["float32"]
    unsigned = np.dtype(f"u{before.dtype.itemsize}")
    high, low = (each(before, after).astype(unsigned) for each in (np.maximum, np.minimum))
    apart = (high - low).astype(np.float64)
    sizes = np.maximum(np.abs(before.astype(np.float64)), np.abs(after.astype(np.float64)))
    close = apart <= (np.maximum(1.0, tolerance * np.maximum(sizes, least)) if tolerance else 0.0)
    return close, float((apart / np.maximum(sizes, 1.0))[close].max(initial=0.0))
