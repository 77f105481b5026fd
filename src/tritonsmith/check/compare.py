"""What two runs wrote: the same bits, close, or not; and where they differ first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tritonsmith.check.memory import GlobalMemory, RecordingMemory, Written, regions, spans, where
from tritonsmith.core import configs

_SINGLE = 4  # bytes


@dataclass(frozen=True)
class Difference:
    """The first element that differs, in the order of arguments and addresses.

    Attributes:
        argument: number of the pointer argument; None for memory that a pointer in memory leads to.
        offset: of the element from that pointer, in elements.
        before: its value; None if it was not written.
        after: its value; None if it is not written.
        count: of the elements that differ.
        written: of all elements that one of both wrote.
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
    """How far a kernel reaches in its memory: no sizes are known, so this is what counts as inside.

    Attributes:
        spans: first and last byte address that it reads or writes, by region of memory.
    """

    spans: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, memories: Sequence[RecordingMemory]) -> ReadRange:
        """The range of all these runs together."""
        found: dict[int, tuple[int, int]] = {}
        for memory in memories:
            for reach in (memory.reach, spans(memory.written.at)):
                for number, (first, last) in reach.items():
                    low, high = found.get(number, (first, last))
                    found[number] = min(low, first), max(high, last)
        return cls(found)

    def outside(self, memory: RecordingMemory) -> Difference | None:
        """The first element that a run reads outside; None if there is none."""
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


def compare(
    before: GlobalMemory,
    after: GlobalMemory,
    least: float = 0.0,
    slack: float = 1.0,
    *,
    narrow: bool = False,
    whole: bool | None = None,
) -> tuple[float, Difference | None]:
    """The largest relative difference that is within the tolerance, and the first one beyond it.

    Args:
        before: one run.
        after: another run.
        least: numbers smaller than this are compared as if they were as large.
        slack: of fp32 and fp64, by how much the tolerance is larger.
        narrow: what cancels may have been summed in its own type, were that fp16.
        whole: integers are exact; None for where `least` and `slack` leave numbers as they are.
    """
    one, other = before.written, after.written
    exact = whole if whole is not None else not least and slack == 1
    every = np.union1d(one.at, other.at)
    if not every.size:
        return 0.0, None
    wrong = ~(np.isin(every, one.at) & np.isin(every, other.at))
    both = every[~wrong]
    mine, yours = one.index(both), other.index(both)
    unequal = one.bits[mine] != other.bits[yours]
    largest = 0.0
    if unequal.any():
        bad = unequal.copy()
        for dtype in {one.dtypes[int(number)] for number in one.kinds[mine[unequal]]}:
            chosen = (
                unequal & (one.kinds[mine] == one.dtypes.index(dtype)) & (other.kind_of(yours) == str(dtype))
            )
            values = one.values(mine[chosen], dtype), other.values(yours[chosen], dtype)
            sizes = _sizes(one, one.at[mine[chosen]], dtype)
            if str(dtype) not in configs.load("passes-check")["tolerance"]:
                close, most = _whole(*values, least, 0.0 if exact else slack)
            else:
                close, most = _close(*values, dtype, least, slack, sizes, narrow=narrow)
            bad[np.flatnonzero(chosen)[close]] = False
            largest = max(largest, most)
        wrong[np.flatnonzero(~wrong)[bad]] = True
    if not wrong.any():
        return largest, None
    address = int(every[wrong][0])
    argument, distance = where(address)
    first = one if np.isin(address, one.at) else other
    size = first.dtypes[int(first.kinds[first.index(np.asarray([address]))[0]])].itemsize
    found = Difference(
        argument,
        distance // size,
        one.value(address),
        other.value(address),
        int(wrong.sum()),
        int(every.size),
        address,
    )
    return largest, found


def _sizes(of: Written, at: Any, dtype: Any) -> Any:
    """The largest finite number, without its sign, behind the argument that each of these is behind."""
    same = of.kinds == of.dtypes.index(dtype)
    numbers, values = regions(of.at[same]), np.abs(of.values(np.flatnonzero(same), dtype).astype(np.float64))
    values[~np.isfinite(values)] = 0.0
    largest = {number: values[numbers == number].max() for number in np.unique(numbers)}
    return np.asarray([largest[number] for number in regions(at)])


def _close(
    one: Any, other: Any, dtype: Any, least: float, slack: float, sizes: Any, *, narrow: bool
) -> tuple[Any, float]:
    """Which are close, and the largest relative difference among those.

    Numbers are, and so is what a sum in fp32 loses where its parts are as large as the largest result: the
    parts of one that is near 0 cancelled.
    """
    table = configs.load("passes-check")["tolerance"]
    least = max(least, table["least"])
    tolerance = table[str(dtype)] * (slack if dtype.itemsize >= _SINGLE else 1.0)
    lost = tolerance if narrow else min(tolerance, slack * table["float32"])
    lost = lost * np.minimum(sizes, table["cancelled"])
    with np.errstate(all="ignore"):
        wide, plain = one.astype(np.float64), other.astype(np.float64)
        scale = np.maximum(np.maximum(np.abs(wide), np.abs(plain)), np.maximum(least, lost / tolerance))
        apart = np.where(wide == plain, 0.0, np.abs(wide - plain) / scale)
    apart = np.where(np.isnan(wide) & np.isnan(plain), 0.0, apart)
    close = apart <= tolerance  # NaN is not
    return close, float(apart[close].max(initial=0.0))


def _whole(one: Any, other: Any, least: float, slack: float) -> tuple[Any, float]:
    """The same of integers: where numbers are not exact, those that were made of them may be the next one."""
    tolerance = slack * configs.load("passes-check")["tolerance"]["float32"]
    unsigned = np.dtype(f"u{one.dtype.itemsize}")
    high, low = (each(one, other).astype(unsigned) for each in (np.maximum, np.minimum))
    apart = (high - low).astype(np.float64)
    sizes = np.maximum(np.abs(one.astype(np.float64)), np.abs(other.astype(np.float64)))
    close = apart <= (np.maximum(1.0, tolerance * np.maximum(sizes, least)) if tolerance else 0.0)
    return close, float((apart / np.maximum(sizes, 1.0))[close].max(initial=0.0))
