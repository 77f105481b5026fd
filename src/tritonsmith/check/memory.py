"""Model global memory: written elements over contents that follow from an address alone, without sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.module import UnsupportedIrError, integers

# Each argument has 2^40 bytes of its own, half of them below its address. Its memory has no size, so that a
# program which reads in front of it or behind it does not meet another argument's.
_REGION = 40  # bits
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_OWN = 1 << 39  # addresses below are scratch memory of the program's own: no result lies there
_SMALL = 8  # integers in memory lie below this, as indices and counts do
_LONG = 160  # the same of every third seed: a loop that counts up to one has several turns
_LONG_SEED = 2
# From one integer to the next if they ascend, by seed. Some are lengths of rows or sequences: more than most
# blocks, or these would overlap.
_STEPS = (260, 131, 196)
_STRETCH = 14  # bits: about every second stretch of such memory has more NaN among edge cases
_NANS = 12  # one of so many there
_NEAR_ONE = np.uint64(125)  # of those of one byte, many are this or one of the next five: 127 is the scale 1
_ROOM = 1 << 20  # addresses that are read, before those that repeat are dropped
_MOST_READ = 1 << 25  # of addresses that do not repeat
_RECENT = 1 << 12  # elements that are written before they are merged into all others
_SLACK = 8.0
_HALF = 1 << _REGION - 1

Array = np.ndarray[Any, Any]


class Contents(StrEnum):
    """The contents of memory; for floats they are multiples of 1/32 below 2, unless noted."""

    PLAIN = "plain"
    EDGES = "edges"  # zeros, infinities, NaN and 1e-30 as well: sums of the others are still exact
    LARGE = "large"  # zeros and 6e4, and nothing below 0: what overflows does so in any order of a sum
    # All bits of a fraction: what is rounded to a narrower type on the way is another number.
    PRECISE = "precise"
    INTEGERS = "integers"  # integers of all sizes and both signs; else they are small, as indices are
    # Above 0: what stands for masked elements, or what a maximum begins with, is another number.
    ABOVE = "above"
    BELOW = "below"  # below 0
    INTEGERS_ABOVE = "integers above"  # the same of integers
    INTEGERS_BELOW = "integers below"
    # Their squares are less than the constants that keep a division from 0, such as the eps of a norm.
    SMALL = "small"


_EDGES: dict[Contents, tuple[tuple[float, ...], int]] = {  # each is one of so many
    Contents.EDGES: ((0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30), 64),
    Contents.LARGE: ((0.0, 6e4), 4),
}
WHOLE = (Contents.INTEGERS, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW)  # about integers
_TINY = 2.0**-14  # factor on small numbers: fp16 has them as well
_LEAST = 3  # of numbers that are all above or all below 0


def base(number: int) -> int:
    """Return the address of a pointer argument."""
    return (number + 1) << _REGION


def where(address: int) -> tuple[int | None, int]:
    """Return the argument that an address belongs to, or None, and the distance from it in bytes."""
    number = (address + (1 << _REGION - 1)) >> _REGION
    return (number - 1, address - (number << _REGION)) if number > 0 else (None, address)


def regions(at: Array) -> Array:
    """Return the region of each address: an argument's, from 1; 0 or less for the one below all of them."""
    numbers: Array = (at + _HALF) >> _REGION
    return numbers


def spans(at: Array) -> dict[int, tuple[int, int]]:
    """Return the first and last of these addresses by region: an argument's, or the one below all of them."""
    if not at.size:
        return {}
    first, last = int(at.min()), int(at.max())
    # An operation nearly always accesses one argument, and this runs at each of them.
    if (first + _HALF) >> _REGION == (number := (last + _HALF) >> _REGION):
        return {number: (first, last)}
    numbers = regions(at)
    return {
        int(number): (int(at[numbers == number].min()), int(at[numbers == number].max()))
        for number in np.unique(numbers)
    }


@dataclass(frozen=True)
class Written:
    """The elements that a run wrote, in order of addresses.

    Attributes:
        at: byte address of each element.
        bits: the bits of each element.
        kinds: index of each element's dtype in `dtypes`.
        dtypes: the dtypes that occur.
    """

    at: Array
    bits: Array
    kinds: Array
    dtypes: tuple[np.dtype[Any], ...]

    def index(self, at: Array) -> Array:
        """Return the positions of these addresses, which have to be present."""
        return np.searchsorted(self.at, at)

    def values(self, index: Array, dtype: np.dtype[Any]) -> Array:
        """Return the elements at these positions, all of one dtype."""
        return self.bits[index].astype(_BITS[dtype.itemsize]).view(dtype)

    def kind_of(self, index: Array) -> Array:
        """Return the name of each element's dtype."""
        return np.asarray([str(dtype) for dtype in self.dtypes])[self.kinds[index]]

    def width(self, address: int) -> int:
        """Return the number of bytes of an element; 1 if it was not written."""
        positions = np.flatnonzero(self.at == address)
        return self.dtypes[int(self.kinds[positions[0]])].itemsize if positions.size else 1

    def value(self, address: int) -> float | None:
        """Return one element; None if it was not written."""
        positions = np.flatnonzero(self.at == address)
        if not positions.size:
            return None
        dtype = self.dtypes[int(self.kinds[positions[0]])]
        value = self.values(positions, dtype)[0]
        return int(value) if dtype.kind in "iu" else float(value)


@dataclass(frozen=True)
class _Elements:
    """Written elements in order of addresses: their bits, and the indices of their dtypes."""

    at: Array = field(default_factory=lambda: np.empty(0, np.int64))
    bits: Array = field(default_factory=lambda: np.empty(0, np.uint64))
    kinds: Array = field(default_factory=lambda: np.empty(0, np.int64))

    def find(self, at: Array) -> tuple[Array, Array]:
        """Return a mask of the addresses that are present, and the positions of those."""
        if not self.at.size:
            return np.zeros(at.shape, np.bool_), np.empty(0, np.int64)
        place = np.minimum(np.searchsorted(self.at, at), self.at.size - 1)
        there = self.at[place] == at
        return there, place[there]

    def under(self, newer: _Elements) -> _Elements:
        """Return these elements with newer ones written over them."""
        if not self.at.size or not newer.at.size:
            return newer if newer.at.size else self
        kept = ~newer.find(self.at)[0]
        at = np.concatenate((self.at[kept], newer.at))
        order = np.argsort(at, kind="stable")
        bits, kinds = (
            np.concatenate((mine[kept], yours))[order]
            for mine, yours in ((self.bits, newer.bits), (self.kinds, newer.kinds))
        )
        return _Elements(at[order], bits, kinds)


@dataclass
class Races:
    """The places where nothing says which of several values stays.

    Attributes:
        places: their addresses, sorted.
        spread: whether such a value was read: then any result may depend on it.
    """

    # A later store to such a place does not settle it: nothing orders it after another thread's first one.
    places: Array = field(default_factory=lambda: np.empty(0, np.int64))
    spread: bool = False
    # The first place of each operation, and whether it is programs that write different values there.
    _first: dict[tuple[Operation | None, bool], int] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Report whether there are such places."""
        return self.places.size > 0

    def add(self, at: Array, operation: Operation | None, *, programs: bool = False) -> None:
        """Add places to which lanes of an operation, or it and another program, write different values."""
        if at.size:
            self.places = np.union1d(self.places, at)
            self._first.setdefault((operation, programs), int(at[0]))

    def read(self, at: Array) -> None:
        """Note that these places are read."""
        if self.any and not self.spread:
            self.spread = bool(np.isin(at, self.places).any())

    def first(self, at: Array) -> tuple[int, Operation | None, bool]:
        """Return one of these places, the operation that wrote it, and whether programs differ there."""
        for (operation, programs), address in self._first.items():
            if np.isin(address, at).any():
                return address, operation, programs
        (operation, programs), address = next(iter(self._first.items()))
        return int(at[0]) if at.size else address, operation, programs


@dataclass
class GlobalMemory:
    """The global memory of one run.

    Attributes:
        seed: the seed of its contents.
        contents: the kind of its contents before anything is written.
        flags: the numbers of regions, 1 for the first argument, whose bytes are 0 or 1.
        races: what depends on which lane or program writes last.
        operation: the operation that runs; None before one does.
        backwards: whether an atomic operation takes its lanes in reverse.
        contended: whether lanes of an atomic operation met in one place.
        ordered: whether integers of more than a byte ascend with their addresses, as distinct indices do.
        scale: the factor on numbers that are all above or all below 0.
        undefined: the value of masked elements of a load without another value.
    """

    seed: int
    contents: Contents = Contents.PLAIN
    flags: tuple[int, ...] = ()
    races: Races = field(default_factory=Races)
    operation: Operation | None = None
    backwards: bool = False
    contended: bool = False
    ordered: bool = False
    scale: int = 1
    undefined: int = 0
    _old: _Elements = field(default_factory=_Elements)
    _new: _Elements = field(default_factory=_Elements)
    _dtypes: list[np.dtype[Any]] = field(default_factory=list)

    def load(self, at: Array, dtype: np.dtype[Any]) -> Array:
        """Return the elements at byte addresses."""
        flat = _outside(at)
        self.races.read(flat)
        return self.peek(flat, dtype).reshape(at.shape)

    def peek(self, flat: Array, dtype: np.dtype[Any]) -> Array:
        """Return a row of elements, as no operation of the program."""
        values = self._fresh(flat, dtype)
        for part in (self._old, self._new):  # newer elements are written over older ones
            there, place = part.find(flat)
            if there.any():
                widths = np.asarray([written.itemsize for written in self._dtypes])[part.kinds[place]]
                # A bit pattern of another width would have to be put together from several elements.
                if (widths != dtype.itemsize).any():
                    raise UnsupportedIrError("memory is read in another width than it was written in")
                bits = part.bits[place].astype(_BITS[dtype.itemsize])
                values[there] = bits.view(np.uint8 if dtype == np.bool_ else dtype)
        return values

    def store(self, at: Array, values: Array) -> None:
        """Write elements; of several to one address the last one stays."""
        flat, dtype = _outside(at), values.dtype
        if not flat.size:
            return
        flat, bits, last, twice = _by_address(flat, values)
        flat, bits = flat[last], bits[last]
        self.races.add(twice, self.operation)
        if dtype not in self._dtypes:
            self._dtypes.append(dtype)
        kinds = np.full(flat.size, self._dtypes.index(dtype))
        self._new = self._new.under(_Elements(flat, bits, kinds))
        # Merging copies all elements, so recent ones are kept apart until they are an eighth of the others.
        if self._new.at.size > max(_RECENT, self._old.at.size >> 3):
            self._merge()

    def exchanged(self, at: Array, values: Array) -> None:
        """Note that lanes of an atomic operation wrote these values one after another, in no fixed order."""
        if self.contended and at.size:
            *_, twice = _by_address(at.reshape(-1), values)
            self.races.add(twice, self.operation)

    def _merge(self) -> None:
        self._old, self._new = self._old.under(self._new), _Elements()

    @property
    def written(self) -> Written:
        """All elements that were written."""
        self._merge()
        return Written(self._old.at, self._old.bits, self._old.kinds, tuple(self._dtypes))

    def _fresh(self, flat: Array, dtype: np.dtype[Any]) -> Array:
        """Return unwritten contents: they follow from the address of an element."""
        # A hash of the address instead of an array: no size is known, and any address may be read. An element
        # that is read twice is the same, and neighbours, which a wrong offset would read, differ.
        mixed = self._hashes(flat)
        if dtype == np.bool_:
            return (mixed & np.uint64(1)).astype(np.uint8)
        if dtype.kind in "iu":
            return self._integers(flat, mixed, dtype)
        # Multiples of 1/32 in [-2, 2): exact in each type of float but the smallest, and sums of them in f32.
        plain = ((mixed >> np.uint64(8)) & np.uint64(127)).astype(np.float64) / 32 - 2
        if self.contents is Contents.PRECISE:
            plain = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-51 - 2
        if self.contents is Contents.LARGE:
            plain = np.abs(plain)
        if self.contents is Contents.SMALL:
            plain *= _TINY
        if self.contents in (Contents.ABOVE, Contents.BELOW):
            sign = -1 if self.contents is Contents.BELOW else 1
            scale = self.scale if dtype.itemsize > 1 else 1
            plain = sign * scale * (plain + 2 + _LEAST)  # as many bits of a fraction as the others
        # Edge cases are chosen by other bits than the numbers, or each edge would replace the same numbers.
        if self.contents in _EDGES:
            edges, among = _EDGES[self.contents]
            kind = (mixed >> np.uint64(40)) % np.uint64(among)
            for number, edge in enumerate(edges):
                plain[kind == number] = edge
        # Some rows have several NaN, others none: a maximum meets two in a row, and some sum is a number.
        if self.contents is Contents.EDGES:
            stretch = _mixed((flat >> _STRETCH).astype(np.uint64) + np.uint64(self.seed))
            plain[(stretch % np.uint64(2) == 1) & (mixed % np.uint64(_NANS) == 0)] = np.nan
        with np.errstate(all="ignore"):
            return plain.astype(dtype)

    def _hashes(self, flat: Array) -> Array:
        """Return 64 bits for each address that look random."""
        return _mixed(flat.astype(np.uint64) + np.uint64(self.seed * 0x9E37_79B9_7F4A_7C15 % (1 << 64)))

    def _integers(self, flat: Array, mixed: Array, dtype: np.dtype[Any]) -> Array:
        # Bytes are fp8, fp4 or scales as often as integers: both signs; and as scales of e8m0 powers of two
        # near 1.
        if dtype.itemsize == 1:
            more = mixed >> np.uint64(8)
            small = np.where(mixed & np.uint64(1), _NEAR_ONE + more % np.uint64(6), more % np.uint64(_SMALL))
            small = np.where(mixed & np.uint64(6), small, np.uint64(0))
            if self.flags:
                small = np.where(np.isin(flat + _HALF >> _REGION, self.flags), mixed & np.uint64(1), small)
            return small.astype(np.uint8).view(dtype)
        if self.contents is Contents.INTEGERS:
            return _wide(mixed, dtype)
        if self.ordered and self.contents not in WHOLE:
            number = ((flat + _HALF) % (1 << _REGION) - _HALF) // dtype.itemsize
            return ((number + 1) * _STEPS[self.seed % len(_STEPS)]).astype(dtype)
        long = mixed % np.uint64(_LONG)
        if self.contents in WHOLE:
            scale = min(self.scale, np.iinfo(dtype).max // (2 * _LONG))
            sign = -1 if self.contents is Contents.INTEGERS_BELOW else 1
            return (sign * (_LEAST + long.astype(np.int64) * scale)).astype(dtype)
        # A run's memory has the seed of its arguments plus 1: for the seeds whose sizes are several blocks,
        # loops that count up to a loaded number are long, too.
        return (long if self.seed % 3 == _LONG_SEED else mixed % np.uint64(_SMALL)).astype(dtype)


@dataclass
class RecordingMemory(GlobalMemory):
    """Global memory that records which elements were read, and as which dtype.

    Attributes:
        reads: the addresses that were read, by dtype.
        reach: the first and last address that was read, by region.
        image: the same memory in bytes, made on demand.
        least: smaller numbers are compared as if they had this size: sums of large numbers lose as much.
        assumptions: number of operations of the program that assumed something.
        tally: the sum of the hashes of all addresses that were read, modulo 2^64.
    """

    reads: dict[np.dtype[Any], list[Array]] = field(default_factory=dict)
    reach: dict[int, tuple[int, int]] = field(default_factory=dict)
    image: Any = None
    least: float = 0.0
    assumptions: int = 0
    tally: int = 0
    _kept: int = 0
    _room: int = _ROOM
    _read: Array | None = None

    @property
    def slack(self) -> float:
        """The factor on the tolerance: sums of fractions are not exact in any order."""
        return _SLACK if self.contents is Contents.PRECISE else 1.0

    def load(self, at: Array, dtype: np.dtype[Any]) -> Array:
        """Return the elements at byte addresses, and record that they were read."""
        self._read = None
        self.reads.setdefault(dtype, []).append(at.reshape(-1))
        self._kept += at.size
        if self._kept > self._room:
            self._condense()
        for number, (first, last) in spans(at).items():
            low, high = self.reach.get(number, (first, last))
            self.reach[number] = min(low, first), max(high, last)
        return super().load(at, dtype)

    def _hashes(self, flat: Array) -> Array:
        """Add the hashes up: two runs that read the same places have the same sum, in any order."""
        hashes = super()._hashes(flat)
        self.tally = (self.tally + int(hashes.sum())) % (1 << 64)
        return hashes

    def _condense(self) -> None:
        """Keep each address that was read once.

        Raises:
            UnsupportedIrError: there are too many of them.
        """
        self.reads = {dtype: [np.unique(np.concatenate(parts))] for dtype, parts in self.reads.items()}
        self._kept = sum(parts[0].size for parts in self.reads.values())
        if self._kept > _MOST_READ:
            raise UnsupportedIrError(f"a program that reads more than {_MOST_READ} elements")
        self._room = 2 * self._kept + _ROOM

    @property
    def reads_floats(self) -> bool:
        """Report whether floats were read."""
        return any(dtype.kind in "fV" for dtype in self.reads)

    @property
    def reads_integers(self) -> bool:
        """Report whether integers of more than a byte were read."""
        return any(dtype.kind in "iu" and dtype.itemsize > 1 for dtype in self.reads)

    @property
    def read(self) -> Array:
        """The addresses that were read, sorted."""
        # The reference's are needed for each text.
        if self._read is None:
            every = [at for parts in self.reads.values() for at in parts]
            self._read = np.unique(np.concatenate(every)) if every else np.empty(0, np.int64)
        return self._read

    def beyond(self, others: Iterable[RecordingMemory]) -> Array:
        """Return the addresses that were read here, and neither read nor written by any of the others."""
        at = self.read
        for other in others:
            for known in (other.read, other.written.at):
                if at.size:
                    at = np.setdiff1d(at, known, assume_unique=True)
        return at

    def width(self, address: int) -> int:
        """Return the number of bytes of the element that was read at an address."""
        return next(
            dtype.itemsize
            for dtype, parts in self.reads.items()
            if any(np.isin(address, at).item() for at in parts)
        )


def _by_address(flat: Array, values: Array) -> tuple[Array, Array, Array, Array]:
    """Sort elements by address.

    Returns:
        The addresses, the elements' bits, a mask of the last lane of each address, and the addresses to which
        lanes write different values.
    """
    raw = np.ascontiguousarray(values).reshape(-1)
    bits = raw.view(_BITS[values.dtype.itemsize]).astype(np.uint64)
    # A stable sort keeps the order of lanes, so that the last one to write an address is the last here.
    order = np.argsort(flat, kind="stable")
    flat, bits = flat[order], bits[order]
    last = np.append(flat[1:] != flat[:-1], True)
    twice = np.unique(flat[1:][(flat[1:] == flat[:-1]) & (bits[1:] != bits[:-1])])
    return flat, bits, last, twice


def _outside(at: Array) -> Array:
    """Return the addresses as one row.

    Raises:
        UnsupportedIrError: one lies in scratch memory, which is not modelled.
    """
    # Addresses from 2^38 to 2^39 are the kernel's scratch memory, where only descriptors may be
    # (`descriptors`).
    flat = np.ascontiguousarray(at).reshape(-1)
    if ((flat >= _OWN >> 1) & (flat < _OWN)).any():
        raise UnsupportedIrError("scratch memory in use")
    return flat


def _wide(mixed: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers of any size; one of eight is 0, -1, the least or the largest."""
    most = np.iinfo(dtype)
    integers = (mixed >> np.uint64(8)).astype(_BITS[dtype.itemsize]).view(dtype)
    for number, edge in enumerate((0, -1, most.min, most.max)):
        integers[mixed % np.uint64(8) == number] = edge
    return integers


def _mixed(value: Array) -> Array:
    """Apply SplitMix64's finalizer, whose 64 bits look random."""
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        result: Array = value ^ (value >> np.uint64(31))
    return result


@dataclass(frozen=True)
class TensorDescriptor:
    """A tensor in global memory: address, sizes and strides in elements, block, and the padding outside."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    dtype: np.dtype[Any]
    nan: bool = False

    def addresses(self, at: tuple[int, ...], axes: tuple[int, ...] | None = None) -> tuple[Array, Array]:
        """Return the block's byte addresses, and a mask of those inside along all axes, or along these."""
        address, inside = np.asarray(np.int64(self.base)), np.asarray(True)
        for axis, size in enumerate(self.block):
            index = np.arange(size, dtype=np.int64) + at[axis]
            shape = [1] * len(self.block)
            shape[axis] = size
            address = address + (index * self.strides[axis] * self.dtype.itemsize).reshape(shape)
            if axes is None or axis in axes:
                inside = inside & ((index >= 0) & (index < self.shape[axis])).reshape(shape)
        return address, np.broadcast_to(inside, address.shape)


@dataclass(frozen=True)
class BlockPointer:
    """A block of a tensor in global memory, and the offsets at which it begins."""

    tensor: TensorDescriptor
    at: tuple[int, ...]

    def addresses(self, operation: Operation) -> tuple[Array, Array]:
        """Return the byte addresses, and a mask of those inside along the axes that the operation checks."""
        return self.tensor.addresses(self.at, integers(operation, "boundaryCheck"))
