"""Linear layouts: places (registers of lanes of warps, offsets) to elements, by bases joined by XOR.

Source: include/triton/Tools/LinearLayout.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
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
            elements that its bits are.
        padding: intervals and what is added after each, in elements; of shared memory.
    """

    shape: tuple[int, ...]
    bases: Mapping[str, Sequence[Element]]
    padding: tuple[tuple[int, int], ...] = ()

    @property
    def distributed(self) -> bool:
        """Whether threads hold the elements, and not memory."""
        return "lane" in self.bases

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, the slowest first."""
        order = THREADS if self.distributed else ("block", *(name for name in self.bases if name != "block"))
        return tuple(name for name in order if name in self.bases)

    def size(self, name: str) -> int:
        """How many values an input has."""
        return 1 << len(self.bases.get(name, ()))

    @property
    def copies(self) -> int:
        """In how many places each element is."""
        return prod(map(self.size, self.inputs)) // prod(self.shape)

    def element(self, place: Place) -> Element:
        """The element at a place: values of `inputs`."""
        found = [0] * len(self.shape)
        for name, value in zip(self.inputs, place, strict=True):
            for bit, basis in enumerate(self.bases[name]):
                if value >> bit & 1:
                    found = [one ^ other for one, other in zip(found, basis, strict=True)]
        return tuple(found)

    def places(self) -> Iterator[Place]:
        """Every place, in order."""
        yield from product(*(range(self.size(name)) for name in self.inputs))

    @cached_property
    def holders(self) -> Mapping[Element, tuple[Place, ...]]:
        """Every element's places, in order."""
        found: dict[Element, list[Place]] = {}
        for place in self.places():
            found.setdefault(self.element(place), []).append(place)
        return {element: tuple(places) for element, places in found.items()}

    def spelled(self, element: Element) -> str:
        """The places of an element as `triton-tensor-layout` has them: `T4:1|T5:1`, `B1:T4:1`; offsets."""
        return "|".join(map(self._spelled, self.holders.get(element, ())))

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
        """An offset in memory, in elements, with the padding before it."""
        return offset + sum(offset // interval * more for interval, more in self.padding)

    def offset(self, element: Element) -> int:
        """Where shared memory has an element, in elements from the start of its block."""
        place = dict(zip(self.inputs, self.holders[element][0], strict=True))
        return self.padded(place["offset"])
