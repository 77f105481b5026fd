"""Represent linear layouts: places (registers of lanes of warps, offsets) to elements, by XOR of bases.

Source: include/triton/Tools/LinearLayout.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

Element = tuple[int, ...]
Place = tuple[int, ...]
THREADS = ("block", "warp", "lane", "register")


@dataclass(frozen=True)
class LinearLayout:
    """A layout of a tensor.

    Attributes:
        shape: of the tensor.
        bases: name of an input (`register`, `lane`, `warp`, `block`; `offset`; `row`, `column`) to the
            element that each of its bits adds.
        padding: intervals and the padding after each, in elements; for shared memory.
    """

    shape: tuple[int, ...]
    bases: Mapping[str, Sequence[Element]]
    padding: tuple[tuple[int, int], ...] = ()

    @property
    def distributed(self) -> bool:
        """True if threads hold the elements, False if memory does."""
        return "lane" in self.bases

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, the slowest first."""
        order = THREADS if self.distributed else ("block", *(name for name in self.bases if name != "block"))
        return tuple(name for name in order if name in self.bases)

    def size(self, name: str) -> int:
        """Return the number of values of an input."""
        return 1 << len(self.bases.get(name, ()))

    @property
    def copies(self) -> int:
        """The number of places that hold each element."""
        return prod(map(self.size, self.inputs)) // prod(self.shape)

    def element(self, place: Place) -> Element:
        """Return the element at a place: values of `inputs`."""
        result = [0] * len(self.shape)
        for name, value in zip(self.inputs, place, strict=True):
            for bit, basis in enumerate(self.bases[name]):
                if value >> bit & 1:
                    result = [index ^ other for index, other in zip(result, basis, strict=True)]
        return tuple(result)

    def holders(self, element: Element) -> tuple[Place, ...]:
        """Return the places of an element, in order; empty if no place holds it."""
        pivots, copies = self._solved
        left, number = self._of_element(element), 0
        while left:
            if left.bit_length() not in pivots:
                return ()
            vector, bits = pivots[left.bit_length()]
            left, number = left ^ vector, number ^ bits
        numbers = [number]
        for bits in copies:
            numbers += [place ^ bits for place in numbers]
        return tuple(map(self._place, sorted(numbers)))

    @cached_property
    def _solved(self) -> tuple[Mapping[int, tuple[int, int]], Sequence[int]]:
        """The bases by the highest bit of their element, with their place's bits; and places of element 0."""
        # Gaussian elimination over single bits. The numbers of places and elements concatenate those of all
        # inputs, and of all dimensions.
        bases = [basis for name in reversed(self.inputs) for basis in self.bases[name]]
        pivots: dict[int, tuple[int, int]] = {}
        copies = []
        for bit, basis in enumerate(bases):
            left, bits = self._of_element(basis), 1 << bit
            while left and left.bit_length() in pivots:
                vector, more = pivots[left.bit_length()]
                left, bits = left ^ vector, bits ^ more
            if left:
                pivots[left.bit_length()] = left, bits
            else:
                copies.append(bits)
        return pivots, copies

    def _of_element(self, element: Element) -> int:
        number = 0
        for size, index in zip(self.shape, element, strict=True):
            number = number * size + index
        return number

    def _place(self, number: int) -> Place:
        place = []
        for name in reversed(self.inputs):
            place.append(number % self.size(name))
            number //= self.size(name)
        return tuple(reversed(place))

    def spelled(self, element: Element) -> str:
        """Spell an element's places as `triton-tensor-layout` does: `T4:1|T5:1`, `B1:T4:1`; or offsets."""
        return "|".join(map(self._spelled, self.holders(element)))

    def _spelled(self, place: Place) -> str:
        values = dict(zip(self.inputs, place, strict=True))
        block = f"B{values['block']}:" if self.size("block") > 1 else ""
        if self.distributed:
            return f"{block}T{values['lane'] + values['warp'] * self.size('lane')}:{values['register']}"
        rest = [value for name, value in values.items() if name != "block"]
        if len(rest) == 1:
            return f"{block}{self.padded(rest[0])}"
        return f"{block}{':'.join(map(str, rest))}"

    def padded(self, offset: int) -> int:
        """Return an offset in memory, in elements, plus the padding before it."""
        return offset + sum(offset // interval * more for interval, more in self.padding)

    def offset(self, element: Element) -> int:
        """Return the offset of an element in shared memory, in elements from the start of its block."""
        place = dict(zip(self.inputs, self.holders(element)[0], strict=True))
        return self.padded(place["offset"])
