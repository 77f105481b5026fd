"""The state of a block of threads, as operations of lowered IR see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np

from tritonsmith.check.llvm.memory import ByteMemory, SharedMemory
from tritonsmith.check.module import Array, UnsupportedIrError
from tritonsmith.check.program import EvaluatedIr, Handler, Values

AddressSpace: TypeAlias = ByteMemory | SharedMemory

_GENERIC, _GLOBAL, _SHARED = 0, 1, 3  # address spaces of NVPTX and AMDGPU alike


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
            raise UnsupportedIrError(f"{self.name} where a part of a warp runs")

    def block(self) -> None:
        """Refuse an operation of the whole block if only a part of it runs.

        Raises:
            UnsupportedIrError: some threads are elsewhere.
        """
        if not self.mask.all():
            raise UnsupportedIrError(f"{self.name} where a part of the threads runs")

    def spread(self, value: Array | int) -> Array:
        """Return a value for each thread."""
        return np.broadcast_to(value, self.threads)

    def read(self, memory: AddressSpace, at: Array, width: int, predicate: Array | bool = True) -> Array:
        """Read bytes for each active thread whose predicate is true; 0 for the others."""
        mask = self.mask & predicate
        raw = np.zeros((self.threads, width), np.uint8)
        if mask.any():
            raw[mask] = memory.load(self.spread(at)[mask], width)
        return raw

    def write(self, memory: AddressSpace, at: Array, raw: Array, predicate: Array | bool = True) -> None:
        """Write the bytes of each active thread whose predicate is true."""
        mask = self.mask & predicate
        if mask.any():
            memory.store(self.spread(at)[mask], raw[mask])

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
