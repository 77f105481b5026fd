"""The state of a block of threads, as operations of lowered IR see it: its values and its memory in bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.memory import GlobalMemory, RecordingMemory, base, where
from tritonsmith.check.module import Array, UnsupportedIrError
from tritonsmith.check.program import EvaluatedIr, Handler, Values

_GENERIC, _GLOBAL, _SHARED = 0, 1, 3  # address spaces of NVPTX and AMDGPU alike
_PAGE = 6  # bits: elements may be far apart
_KNOWN, _WRITTEN = 1, 2


class ByteMemory:
    """The global memory of a run in LLVM's dialect, in pages."""

    # Lowered code loads and stores bits, such as 128 at once, of which the reference's elements have to be
    # made again: so their types are those with which the reference read and wrote each place.

    def __init__(self, reference: GlobalMemory, pointees: tuple[np.dtype[Any] | None, ...]) -> None:
        self._reference, self._pointees = reference, pointees
        self._contents = GlobalMemory(
            reference.seed,
            reference.contents,
            reference.flags,
            ordered=reference.ordered,
            scale=reference.scale,
        )
        self._pages, self._slots = np.empty(0, np.int64), np.empty(0, np.int64)
        self._data, self._state = np.zeros(1 << _PAGE, np.uint8), np.zeros(1 << _PAGE, np.uint8)
        if isinstance(reference, RecordingMemory):
            reads = {dtype: np.unique(np.concatenate(every)) for dtype, every in reference.reads.items()}
            _refuse_overlaps(reference, reads)
            for dtype, at in reads.items():
                self._paint(at, dtype)

    @classmethod
    def of(cls, reference: GlobalMemory, pointees: tuple[np.dtype[Any] | None, ...]) -> ByteMemory:
        """Return the memory that the reference began with, which is built once and copied."""
        if not isinstance(reference, RecordingMemory):
            return cls(reference, pointees)
        # Each text in LLVM's dialect begins with the same memory, and painting it takes longer than to copy
        # it.
        if reference.image is None:
            reference.image = cls(reference, pointees)
        memory: ByteMemory = copy(reference.image)
        memory._pointees = pointees
        memory._data, memory._state = memory._data.copy(), memory._state.copy()
        return memory

    def _paint(self, at: Array, dtype: np.dtype[Any]) -> None:
        """Fill in the contents of unwritten elements."""
        index = self._index(at[:, None] + np.arange(dtype.itemsize))
        raw = np.ascontiguousarray(self._contents.load(at, dtype)).view(np.uint8).reshape(index.shape)
        self._data[index], self._state[index] = raw, _KNOWN

    def _index(self, at: Array) -> Array:
        """Return the positions of bytes, adding pages as needed."""
        page = at >> _PAGE
        place = np.searchsorted(self._pages, page)
        known = self._pages[np.minimum(place, self._pages.size - 1)] == page if self._pages.size else False
        if not np.all(known):
            fresh = np.setdiff1d(page, self._pages)
            first = self._pages.size
            pages = np.concatenate((self._pages, fresh))
            slots = np.concatenate((self._slots, np.arange(first, first + fresh.size)))
            order = np.argsort(pages)
            self._pages, self._slots = pages[order], slots[order]
            # Twice as much as needed: pages come one by one, and each growth copies all.
            if (needed := pages.size << _PAGE) > self._data.size:
                more = np.zeros(needed, np.uint8)
                self._data, self._state = np.append(self._data, more), np.append(self._state, more)
            place = np.searchsorted(self._pages, page)
        positions: Array = (self._slots[place] << _PAGE) + (at & (1 << _PAGE) - 1)
        return positions

    def load(self, at: Array, width: int, _warps: Array | None = None) -> Array:
        """Return the bytes at addresses: an array of addresses by width."""
        every = at[:, None] + np.arange(width)
        index = self._index(every)
        unknown = self._state[index] == 0
        if unknown.any():
            self._guess(every[unknown])
        return self._data[index]

    def _guess(self, at: Array) -> None:
        """Fill in elements that the reference did not read, with the type of the argument's pointee."""
        for address in np.unique(at).tolist():
            argument, distance = where(address)
            known = argument is not None and argument < len(self._pointees)
            dtype = self._pointees[argument] if known and argument is not None else None
            if dtype is None or argument is None:
                self._state[self._index(np.asarray([address]))] = _KNOWN
                continue
            element = np.asarray([base(argument) + distance // dtype.itemsize * dtype.itemsize])
            index = self._index(element + np.arange(dtype.itemsize))
            raw = np.ascontiguousarray(self._contents.load(element, dtype)).view(np.uint8)
            fresh = self._state[index] == 0
            self._data[index[fresh]], self._state[index[fresh]] = raw[fresh], _KNOWN

    def store(self, at: Array, raw: Array, _warps: Array | None = None) -> None:
        """Write bytes; of several to one address the last one stays."""
        index = self._index(at[:, None] + np.arange(raw.shape[1]))
        self._data[index], self._state[index] = raw, _WRITTEN

    def unwritten(self) -> tuple[Array, Array]:
        """Return addresses and bytes that the reference read and that were not written, in order."""
        slots = np.flatnonzero(self._state == _KNOWN)
        at = self._addresses(slots)
        order = np.argsort(at)
        return at[order], self._data[slots[order]]

    def _addresses(self, slots: Array) -> Array:
        pages = np.empty(self._pages.size, np.int64)
        pages[self._slots] = self._pages
        at: Array = (pages[slots >> _PAGE] << _PAGE) + (slots & (1 << _PAGE) - 1)
        return at

    def result(self, arguments: int) -> GlobalMemory:
        """Return the written memory as elements of the reference; memory of no argument is scratch."""
        memory = GlobalMemory(self._reference.seed, self._reference.contents, self._reference.flags)
        expected = self._reference.written
        left = self._state == _WRITTEN
        # Lowered code may write an element in parts, or several at once: bytes become elements as the
        # reference wrote them. A part of an element stays a rest.
        for number, dtype in enumerate(expected.dtypes):
            at = expected.at[expected.kinds == number]
            if not at.size:
                continue
            index = self._index(at[:, None] + np.arange(dtype.itemsize))
            left = np.append(left, np.zeros(self._state.size - left.size, np.bool_))  # of new pages
            whole = (self._state[index] == _WRITTEN).all(axis=1)
            raw = np.ascontiguousarray(self._data[index[whole]])
            memory.store(at[whole], raw.view(dtype).reshape(-1))
            left[index[whole]] = False
        slots = np.flatnonzero(left)
        rest = self._addresses(slots)
        # What is written beyond the reference's elements is compared as bytes: there are few, if any.
        mine = np.asarray([(where(address)[0] or 0) < arguments for address in rest.tolist()], np.bool_)
        memory.store(rest[mine], self._data[slots[mine]])
        return memory


def _refuse_overlaps(reference: GlobalMemory, reads: dict[np.dtype[Any], Array]) -> None:
    """Refuse elements that overlap in the reference, whose bytes are unknown."""
    written = reference.written
    parts = [(at, dtype.itemsize) for dtype, at in reads.items()]
    parts += [
        (written.at[written.kinds == number], dtype.itemsize) for number, dtype in enumerate(written.dtypes)
    ]
    if not parts:  # it touched nothing
        return
    every = np.unique(np.concatenate([np.stack((at, at + size), axis=1) for at, size in parts]), axis=0)
    if (every[:-1, 1] > every[1:, 0]).any():
        raise UnsupportedIrError("elements that overlap in memory")


class RaceError(Exception):
    """An access of shared memory that no barrier separates from another warp's access to the same bytes.

    Attributes:
        operation: the operation that accesses it, once it is known.
    """

    operation: Operation | None = None


class SharedMemory:
    """The memory that the threads of a block share.

    Args:
        size: its size in bytes.
    """

    # Threads run in lockstep, so a missing barrier changes no result: instead, the warps are kept that have
    # accessed a byte since the last barrier. Threads of one warp count as ordered, as Triton's code relies on
    # it where data moves within a warp.

    def __init__(self, size: int) -> None:
        self._data = np.zeros(size, np.uint8)
        # A bit for each warp.
        self._writers, self._readers = np.zeros(size, np.uint64), np.zeros(size, np.uint64)

    def _index(self, at: Array, width: int) -> Array:
        index = at[:, None] + np.arange(width)
        if index.size and (index.min() < 0 or index.max() >= self._data.size):
            raise UnsupportedIrError(f"shared memory of {self._data.size} bytes, at {int(at.max())}")
        return index

    def load(self, at: Array, width: int, warps: Array | None = None) -> Array:
        """Return the bytes at addresses; `warps` are those of the threads that read, if it matters.

        Raises:
            RaceError: only other warps have written there since the last barrier.
        """
        index = self._index(at, width)
        if warps is not None:
            own = _bits(warps, index)
            # Warps that hold copies of a tensor write the same bytes, and each may read them.
            others = np.where(self._writers[index] & own, np.uint64(0), self._writers[index])
            _refuse(index, own, others, "reads", "written")
            np.bitwise_or.at(self._readers, index, own)
        return self._data[index]

    def store(self, at: Array, raw: Array, warps: Array | None = None) -> None:
        """Write bytes.

        Raises:
            RaceError: another warp has read there since the last barrier, or has written something else.
        """
        index = self._index(at, raw.shape[1])
        if warps is not None:
            own = _bits(warps, index)
            _refuse(index, own, self._readers[index] & ~own, "writes", "read")
            others = np.where(self._data[index] != raw, self._writers[index] & ~own, np.uint64(0))
            _refuse(index, own, others, "writes", "written")
            np.bitwise_or.at(self._writers, index, own)
        self._data[index] = raw

    def synchronize(self) -> None:
        """Let all accesses so far come before those that follow."""
        self._writers[:], self._readers[:] = 0, 0


def _bits(warps: Array, index: Array) -> Array:
    """Return the bit of each thread's warp, for each byte that the thread accesses."""
    return np.broadcast_to((np.uint64(1) << warps.astype(np.uint64))[:, None], index.shape)


def _refuse(index: Array, own: Array, others: Array, verb: str, before: str) -> None:
    """Refuse an access to bytes that others have accessed since the last barrier."""
    if not others.any():
        return
    place = tuple(part[0] for part in np.nonzero(others))
    warps = [warp for warp in range(64) if int(others[place]) >> warp & 1]
    who = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]} and others"
    mine = int(own[place]).bit_length() - 1
    raise RaceError(
        f"warp {mine} {verb} byte {int(index[place])} of shared memory, "
        f"{before} by {who} since the last barrier"
    )


AddressSpace: TypeAlias = ByteMemory | SharedMemory


@dataclass
class ThreadBlock(EvaluatedIr[ByteMemory], ABC):
    """The run of one block of threads, whose values are arrays over threads.

    Attributes:
        operations: the functions of all operations that threads run.
        shared: shared memory.
        threads: number of threads of a block.
        warp: number of threads of a warp.
        mask: threads that run the current operation.
    """

    operations: ClassVar[Mapping[str, Handler]] = {}

    shared: SharedMemory = field(kw_only=True)
    threads: int = field(kw_only=True)
    warp: int = field(kw_only=True)
    mask: Array = field(default_factory=lambda: np.empty(0, np.bool_))

    @abstractmethod
    def call(self, name: str, values: Values) -> Values:
        """Run a function with the threads that are active."""

    def warps(self) -> None:
        """Refuse an operation of whole warps if only a part of a warp runs it.

        Raises:
            UnsupportedIrError: some threads of a warp are elsewhere.
        """
        lanes = self.mask.reshape(-1, self.warp)
        if (lanes.any(axis=1) != lanes.all(axis=1)).any():
            raise UnsupportedIrError(f"{self.name} while only a part of a warp runs")

    def block(self) -> None:
        """Refuse an operation of the whole block if only a part of it runs.

        Raises:
            UnsupportedIrError: some threads are elsewhere.
        """
        if not self.mask.all():
            raise UnsupportedIrError(f"{self.name} while only a part of the threads runs")

    @property
    def _warps(self) -> Array:
        """The warp of each thread."""
        return np.arange(self.threads) // self.warp

    def spread(self, value: Array | int) -> Array:
        """Return a value for each thread."""
        return np.broadcast_to(value, self.threads)

    def read(self, memory: AddressSpace, at: Array, width: int, predicate: Array | bool = True) -> Array:
        """Read bytes for each active thread whose predicate is true; 0 for the others."""
        mask = self.mask & predicate
        raw = np.zeros((self.threads, width), np.uint8)
        if mask.any():
            raw[mask] = memory.load(self.spread(at)[mask], width, self._warps[mask])
        return raw

    def write(self, memory: AddressSpace, at: Array, raw: Array, predicate: Array | bool = True) -> None:
        """Write the bytes of each active thread whose predicate is true."""
        mask = self.mask & predicate
        if mask.any():
            memory.store(self.spread(at)[mask], raw[mask], self._warps[mask])

    def space(self, number: int) -> AddressSpace:
        """Return the memory of an address space.

        Raises:
            UnsupportedIrError: it is neither global nor shared memory.
        """
        if number in (_GENERIC, _GLOBAL):
            return self.memory
        if number == _SHARED:
            return self.shared
        raise UnsupportedIrError(f"address space {number}")
