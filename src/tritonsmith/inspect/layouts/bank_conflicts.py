"""Count bank conflicts in the shared memory of NVIDIA GPUs, for plain loads and stores of one warp.

Accesses by `ldmatrix` and TMA are not counted, and loads are assumed to use the widest possible vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.core import configs
from tritonsmith.ir.layouts import Element, LinearLayout


@dataclass(frozen=True)
class BankAccess:
    """An access of one warp to shared memory.

    Attributes:
        what: the access in words.
        width: bytes per lane at once.
        instructions: of the warp.
        wavefronts: number that they take.
        least: number that they would take without conflicts.
    """

    what: str
    width: int
    instructions: int
    wavefronts: int
    least: int

    @property
    def ways(self) -> float:
        """The `n` of an `n`-way conflict: wavefronts for each that is needed."""
        return self.wavefronts / self.least


def along(shared: LinearLayout, bits: int) -> Iterator[BankAccess]:
    """Yield accesses by adjacent lanes along each dimension, one element each."""
    lanes = configs.load("layouts")["banks"]["lanes"]
    for dim in range(len(shared.shape)):
        if shared.shape[dim] < lanes:
            continue
        elements = [
            tuple(lane if at == dim else 0 for at in range(len(shared.shape))) for lane in range(lanes)
        ]
        yield _access(f"{lanes} elements along dim{dim}", shared, [[[element] for element in elements]], bits)


def by(shared: LinearLayout, threads: LinearLayout, bits: int, what: str) -> BankAccess:
    """Return the access of the first warp of a layout, by the widest vectors that both layouts allow."""
    order, width = _vectors(shared, threads, bits)
    registers = [
        sum((number >> at & 1) << bit for at, bit in enumerate(order)) for number in range(1 << len(order))
    ]
    instructions = []
    for first in range(0, len(registers), width):
        group = registers[first : first + width]
        lanes = range(threads.size("lane"))
        instructions.append([[_held(threads, lane, register) for register in group] for lane in lanes])
    return _access(what, shared, instructions, bits)


def _held(threads: LinearLayout, lane: int, register: int) -> Element:
    values = {"lane": lane, "register": register}
    return threads.element(tuple(values.get(name, 0) for name in threads.inputs))


def _vectors(shared: LinearLayout, threads: LinearLayout, bits: int) -> tuple[list[int], int]:
    """Return the bits of the register's number, those of the vector first; and the elements of a vector."""
    # A vector is made of registers whose elements are neighbours in shared memory, from the first element on.
    offsets = [shared.offset(tuple(basis)) for basis in threads.bases["register"]]
    chosen: list[int] = []
    widest = configs.load("layouts")["banks"]["widest"] * 8 // bits
    while 1 << len(chosen) < widest and 1 << len(chosen) in offsets:
        chosen.append(offsets.index(1 << len(chosen)))
    rest = [bit for bit, offset in enumerate(offsets) if offset and bit not in chosen]  # offset 0: a copy
    return [*chosen, *rest], 1 << len(chosen)


def _access(
    what: str, shared: LinearLayout, instructions: Sequence[Sequence[Sequence[Element]]], bits: int
) -> BankAccess:
    """Count the wavefronts of instructions: lists of lanes, each a list of its vector's elements."""
    banks = configs.load("layouts")["banks"]
    width = max(1, len(instructions[0][0]) * bits // 8)
    # A request serves so many bytes: lanes with wide vectors take turns, and those in one turn cannot
    # conflict with those in another.
    together = min(banks["lanes"], banks["request"] // max(width, banks["bytes"]))
    wavefronts = least = 0
    for lanes in instructions:
        for first in range(0, len(lanes), together):
            # A set: lanes that read the same word share it, which is no conflict.
            words = {
                shared.offset(element) * bits // 8 // banks["bytes"]
                for lane in lanes[first : first + together]
                for element in lane
            }
            hits = [0] * banks["count"]
            for word in words:
                hits[word % banks["count"]] += 1
            wavefronts += max(hits)
            least += -(-len(words) // banks["count"])
    return BankAccess(what, width, len(instructions), wavefronts, least)
