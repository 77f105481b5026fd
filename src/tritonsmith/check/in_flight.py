"""Track what a program does at the same time: asynchronous copies, dots and stores, and partitions of warps.

Sources: TritonGPUOps.td and TritonNvidiaGPUOps.td; groups of copies and mbarriers behave as PTX describes
them (`cp.async.wait_group`, `wgmma.wait_group`, `cp.async.bulk.wait_group.read`, `mbarrier`).
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from tritonsmith.check.module import UnsupportedIrError

Array = np.ndarray[Any, Any]
_UNKNOWN = b"\x5a"  # each byte of unwritten shared memory
_FIRST = 1 << 16  # barriers carry numbers from here on, which unwritten memory does not hold


# Hardware may finish asynchronous work at any time before its wait, and a program whose waits are right
# computes the same whenever that is. Two extremes show those that are not: copies that land as late as their
# waits allow, with all readers at once; and dots and stores that read as late as theirs allow, with all
# copies at once. A result that only one of them shows is a race.
class Order(Enum):
    """The time at which asynchronous work is done."""

    AT_ONCE = "at once"
    COPIES_LATE = "copies land late"
    READS_LATE = "dots and stores read late"


class BarrierError(UnsupportedIrError):
    """A wait for a barrier that never completes here: another program arrives at it, or none does."""


class FreedError(Exception):
    """Memory that is freed while a copy to it, or from it, is under way."""


class OutOfBoundsError(Exception):
    """An access of shared or tensor memory outside of its allocation."""


class OutsideMemory:
    """A part of shared or tensor memory outside of its allocation.

    Args:
        shape: the shape of the part.
        dtype: the dtype of its elements.
        why: the place and the allocation, in words.
    """

    # A program may compute such a place and never use it, as the last iteration of a pipelined loop does. So
    # it is a value, and only an access to it is an error.

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], why: str) -> None:
        self.shape, self.dtype, self.why = shape, dtype, why

    @property
    def size(self) -> int:
        """The number of elements that it would have."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The same in bytes."""
        return self.size * self.dtype.itemsize

    def reshape(self, *shape: Any) -> OutsideMemory:
        """Return another view of the same place."""
        return OutsideMemory(
            np.broadcast_to(np.empty(()), self.shape).reshape(*shape).shape, self.dtype, self.why
        )

    def transpose(self, *order: Any) -> OutsideMemory:
        """Return the same place with its axes in another order."""
        whole = np.broadcast_to(np.empty(()), self.shape)
        return OutsideMemory(whole.transpose(*order).shape, self.dtype, self.why)

    def part(self, shape: tuple[int, ...]) -> OutsideMemory:
        """Return a part of it, which lies outside as well."""
        return OutsideMemory(shape, self.dtype, self.why)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """End the program: every other use that NumPy or an operation makes of an array is an access.

        Raises:
            OutOfBoundsError: always.
        """
        raise OutOfBoundsError(self.why)

    __array__ = __getattr__ = __getitem__ = __setitem__ = __int__ = __iter__ = _refuse


def require_inside(*memories: Any) -> None:
    """Check that memory about to be used is inside its allocation.

    Raises:
        OutOfBoundsError: it is outside.
    """
    for memory in memories:
        if isinstance(memory, OutsideMemory):
            raise OutOfBoundsError(memory.why)


@dataclass(frozen=True)
class _Copy:
    """A copy: its destination, the action that completes it, and the bytes that a barrier counts."""

    memory: Array
    land: Callable[[], None]
    size: int = 0


def unwritten(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return unwritten shared memory: always the same contents, and not 0."""
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(_UNKNOWN * (count * dtype.itemsize), dtype).reshape(shape).copy()


@dataclass
class _Barrier:
    """An mbarrier: a phase ends when all threads and all expected bytes have arrived."""

    count: int
    missing: int
    phase: int = 0
    expected: int = 0
    copies: deque[_Copy] = field(default_factory=deque)

    def arrive(self, many: int) -> None:
        if many > self.missing:
            raise BarrierError("more arrive at a barrier than it waits for")
        self.missing -= many
        self._turn()

    def land(self) -> None:
        copy = self.copies.popleft()
        copy.land()
        self.expected -= copy.size
        self._turn()

    def _turn(self) -> None:
        # The expected bytes may be announced after some have landed, so that the count is negative meanwhile.
        if self.missing == 0 and self.expected == 0:
            self.phase, self.missing = self.phase ^ 1, self.count


@dataclass
class InFlight:
    """The asynchronous work of one program.

    Attributes:
        order: the time at which it is done.
        slow: number of the partition that runs last, if warps are specialized.
        counted: whether barriers count arrivals: those of a warp-specialized program always do.
        turns: the turns of the partitions, while there are any.
    """

    order: Order = Order.AT_ONCE
    slow: int | None = None
    counted: bool = False
    turns: Turns | None = None
    _copies: list[_Copy] = field(default_factory=list)
    _groups: deque[list[_Copy]] = field(default_factory=deque)
    _dots: deque[tuple[Array, Callable[[], None]]] = field(default_factory=deque)
    _stores: deque[Callable[[], None]] = field(default_factory=deque)
    _products: deque[tuple[Callable[[], None], list[_Barrier]]] = field(default_factory=deque)
    _barriers: list[_Barrier] = field(default_factory=list)
    _allocated: dict[Any, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count arrivals if work is late: then a barrier decides when it is over."""
        self.counted |= self.order is not Order.AT_ONCE

    def part(self, turns: Turns) -> InFlight:
        """Return the work of one partition; barriers and products in tensor memory are shared."""
        work = InFlight(self.order, self.slow, self.counted, turns)
        work._barriers, work._products = self._barriers, self._products
        work._allocated = self._allocated
        return work

    @property
    def copies_late(self) -> bool:
        """Report whether copies land late."""
        return self.order is Order.COPIES_LATE

    @property
    def reads_late(self) -> bool:
        """Report whether dots and stores read late."""
        return self.order is Order.READS_LATE

    def allocated(self, operation: Any, contents: Array) -> Array:
        """Return shared memory: an operation allocates the same place in each iteration of a loop."""
        # Late copies need that: one of the iteration before, which is still under way, has to land where it
        # does on the GPU. If all work is done at once, fresh memory shows a read of the iteration before
        # instead.
        if self.order is Order.AT_ONCE:
            return contents
        memory = self._allocated.setdefault(operation, contents)
        memory[...] = contents
        return memory

    def free(self, memory: Array) -> None:
        """Free memory, so that another allocation may write there.

        Raises:
            FreedError: a copy to it is under way.
        """
        require_inside(memory)
        barriers = [copy for barrier in self._barriers for copy in barrier.copies]
        late = [*self._copies, *(copy for group in self._groups for copy in group), *barriers]
        # Only the bounds of the views are compared, which is quick: buffers do not interleave.
        if any(np.may_share_memory(copy.memory, memory) for copy in late):
            raise FreedError
        # A read of freed memory gets what another allocation may have put there.
        if self.order is not Order.AT_ONCE:
            memory[...] = unwritten(memory.shape, memory.dtype)

    def copy(self, memory: Array, land: Callable[[], None]) -> None:
        """Start a copy into shared memory that belongs to the next group."""
        require_inside(memory)
        if self.copies_late:
            self._copies.append(_Copy(memory, land))
        else:
            land()

    def commit(self) -> None:
        """Close a group of copies, which may be empty."""
        self._groups.append(self._copies)
        self._copies = []

    def wait_groups(self, pending: int) -> None:
        """Wait until no more than `pending` groups are under way, the newest ones."""
        while len(self._groups) > pending:
            for copy in self._groups.popleft():
                copy.land()

    def wait_copies(self) -> None:
        """Wait until all copies have landed, including those of no group."""
        self.commit()
        self.wait_groups(0)

    def dot(self, result: Array, compute: Callable[[], None]) -> None:
        """Start an asynchronous dot."""
        if self.reads_late:
            self._dots.append((result, compute))
        else:
            compute()

    def use(self, values: tuple[Any, ...]) -> None:
        """Wait for results under way that an operation other than a dot takes, as ptxas does."""
        # Identity, not equality: the result of a dot under way is the very array that it will fill.
        while any(result is value for result, _ in self._dots for value in values):
            self.wait_dots(len(self._dots) - 1)

    def wait_dots(self, pending: int) -> None:
        """Wait until no more than `pending` dots are under way, the newest ones."""
        while len(self._dots) > pending:
            _, compute = self._dots.popleft()
            compute()

    def store(self, write: Callable[[], None]) -> None:
        """Start a store from shared memory to global memory."""
        if self.reads_late:
            self._stores.append(write)
        else:
            write()

    def wait_stores(self, pending: int) -> None:
        """Wait until no more than `pending` stores have yet to read, the newest ones."""
        while len(self._stores) > pending:
            self._stores.popleft()()

    def leave(self, program: InFlight) -> None:
        """End a partition; its stores continue in the program."""
        self.wait_dots(0)
        program._stores.extend(self._stores)
        self._stores.clear()

    def end(self) -> None:
        """End the program, after which its shared memory may be reused.

        Raises:
            FreedError: a store still reads it.
        """
        if self._stores:
            raise FreedError
        self.wait_dots(0)

    def product(self, compute: Callable[[], None], barriers: list[Array]) -> None:
        """Start a product in tensor memory, or none, after earlier ones; it then arrives at the barriers."""
        require_inside(*barriers)
        if self.reads_late:
            self._products.append((compute, [self._at(place) for place in barriers]))
            self._tell()
            return
        compute()
        for place in barriers:
            self.arrive(place, 1)

    def barrier(self, memory: Array, count: int) -> None:
        """Make a barrier: its memory holds its number."""
        require_inside(memory)
        if self.counted:
            memory[...] = _FIRST + len(self._barriers)
            self._barriers.append(_Barrier(count, count))

    def expect(self, memory: Array, size: int) -> None:
        """Arrive, and let the phase end only after `size` more bytes."""
        require_inside(memory)
        if self.counted:
            mbarrier = self._at(memory)
            mbarrier.expected += size
            self._arrive(mbarrier, 1)

    def arrive(self, memory: Array, many: int) -> None:
        """Arrive at a barrier; where reads are late, its waiters go on before this partition does."""
        require_inside(memory)
        if self.counted:
            self._arrive(self._at(memory), many)
            if self.turns and self.reads_late:
                self.turns.step_aside()

    def _arrive(self, barrier: _Barrier, many: int) -> None:
        barrier.arrive(many)
        self._tell()

    def _land(self, barrier: _Barrier) -> None:
        barrier.land()
        self._tell()

    def _tell(self) -> None:
        if self.turns:
            self.turns.moved()

    def copy_to_barrier(self, barrier: Array, memory: Array, land: Callable[[], None]) -> None:
        """Start a copy into shared memory whose bytes a barrier counts."""
        require_inside(memory, barrier)
        if not self.counted:
            land()
            return
        mbarrier = self._at(barrier)
        mbarrier.copies.append(_Copy(memory, land, memory.nbytes))
        self._tell()
        # The copy was queued all the same: a barrier counts its bytes in the order of the copies.
        if not self.copies_late:
            mbarrier.land()

    def wait_barrier(self, memory: Array, phase: int) -> None:
        """Wait until the phase of this parity has ended.

        Raises:
            BarrierError: no work under way can end it.
        """
        require_inside(memory)
        if not self.counted:
            return
        mbarrier = self._at(memory)
        # A wait takes what it waits for as late as possible: copies to this barrier first, then products that
        # arrive at it, each with those before it; only then do other partitions get their turn.
        while mbarrier.phase == phase:
            if mbarrier.copies:
                self._land(mbarrier)
            elif any(mbarrier is awaited for _, barriers in self._products for awaited in barriers):
                self._next_product()
            else:
                self._pass_on()

    def wait_products(self) -> None:
        """Wait until all products are done: they keep their order."""
        while self._products:
            self._next_product()

    def _next_product(self) -> None:
        compute, barriers = self._products.popleft()
        compute()
        for barrier in barriers:
            self._arrive(barrier, 1)

    def _pass_on(self) -> None:
        if self.turns is None or not self.turns.pass_on():
            raise BarrierError("a wait for a barrier that nothing here completes")

    def _at(self, memory: Array) -> _Barrier:
        # The number is read from memory, not from the view: a barrier may be reached by another view of its
        # place.
        number = int(memory.reshape(-1)[0]) - _FIRST
        if not 0 <= number < len(self._barriers):
            raise BarrierError("a barrier that was not made")
        return self._barriers[number]


@dataclass
class Turns:
    """The turns of the partitions of a warp-specialized program.

    Attributes:
        slow: the number of the partition that runs only while all others wait; None if there is none.
        now: the number of the partition that runs.
        alive: partitions that have not ended.
        waiting: partitions that have waited since a barrier last moved.
    """

    slow: int | None = None
    now: int = 0
    alive: list[int] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    _moved: threading.Condition = field(default_factory=threading.Condition)
    _failed: list[BaseException] = field(default_factory=list)

    def run(self, parts: Sequence[Callable[[], Any]]) -> Any:
        """Run all parts, and return the result of the first one, which runs in this thread.

        The first error is raised again here.
        """
        self.alive = list(range(len(parts)))
        threads = [
            threading.Thread(target=self._part, args=(number, part), daemon=True)
            for number, part in enumerate(parts)
            if number
        ]
        for thread in threads:
            thread.start()
        result = self._part(0, parts[0])
        for thread in threads:
            thread.join()
        if self._failed:  # an interrupt, or the first error
            raise next(
                (failure for failure in self._failed if not isinstance(failure, Exception)), self._failed[0]
            )
        return result

    def _part(self, number: int, part: Callable[[], Any]) -> Any:
        # Threads are only a way to stop in the middle of a partition. Only one of them runs, until it waits
        # for a barrier that nothing completes yet, or ends; so a run is the same each time.
        with self._moved:
            self._moved.wait_for(lambda: self.now == number)
        result = None
        try:
            if not self._failed:
                result = part()
        except BaseException as error:  # noqa: BLE001 - raised again where the parts began
            self._failed.append(error)
        with self._moved:
            # The successor is computed first: `_after` needs the place of this part among the living ones.
            following = self._after(number)
            self.alive.remove(number)
            self.waiting.clear()
            self._go(following)
        return result

    def pass_on(self) -> bool:
        """Let the others run while this part waits; False if they wait as well, or if one has failed."""
        number = self.now
        self.waiting.add(number)
        # If all living parts have waited since a barrier last moved, none of them can move one: a deadlock.
        if stuck := self.waiting.issuperset(self.alive):
            self.waiting.discard(number)
        else:
            self.step_aside()
        return not stuck and not self._failed

    def step_aside(self) -> None:
        """Let the others run until they wait."""
        number = self.now
        with self._moved:
            self._go(self._after(number))
            self._moved.wait_for(lambda: self.now == number)
            self.waiting.discard(number)

    def moved(self) -> None:
        """Wake the waiting parts: a barrier has moved, or work arrived that will move it."""
        self.waiting.clear()

    def _after(self, number: int) -> int:
        place = self.alive.index(number) + 1
        following = [*self.alive[place:], *self.alive[:place]]
        # The slow part runs when no other can: then a read of what it has yet to write shows.
        quick = [part for part in following if part not in (self.slow, number) and part not in self.waiting]
        return quick[0] if quick else following[0]

    def _go(self, number: int) -> None:
        self.now = number
        self._moved.notify_all()
