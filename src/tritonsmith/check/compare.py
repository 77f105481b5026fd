"""Compare the memory that two runs wrote: the same bits, close or not, and where they first differ."""

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


def compare(
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
