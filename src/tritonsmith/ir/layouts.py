"""Layouts of tensors: linear layouts, and the types that name a layout in the text of a module.

A linear layout maps places (registers of lanes of warps, offsets) to elements, by XOR of bases: see
include/triton/Tools/LinearLayout.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import split_outside_brackets

Element = tuple[int, ...]
Place = tuple[int, ...]
THREADS = ("block", "warp", "lane", "register")


@dataclass(frozen=True)
class LinearLayout:
    """A layout of a tensor.

    Attributes:
        shape: the shape of the tensor.
        bases: for each input (`register`, `lane`, `warp`, `block`; `offset`; `row`, `column`), the element
            that each of its bits adds.
        padding: the intervals of shared memory, and the padding after each, in elements.
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
        # Places that hold element 0 can be added to any place without leaving its element, in each
        # combination.
        numbers = [number]
        for bits in copies:
            numbers += [place ^ bits for place in numbers]
        return tuple(map(self._place, sorted(numbers)))

    @cached_property
    def _solved(self) -> tuple[Mapping[int, tuple[int, int]], Sequence[int]]:
        """The bases by the highest bit of their element, with their place's bits; and places of element 0."""
        # Gaussian elimination over single bits, as XOR is addition there: afterwards the places of an element
        # take one step per bit, not a search through all places. A place or an element is one number, which
        # concatenates those of all inputs or dimensions.
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
        # Memory holds each element once; if a layout should have copies, the first is as good as any.
        place = dict(zip(self.inputs, self.holders(element)[0], strict=True))
        return self.padded(place["offset"])


_TYPE = re.compile(r"(?:\btensor|!ttg?\.memdesc|-> )<(?=\d+x)")
_SHAPED = re.compile(r"((?:\d+x)*\d+)x(!tt\.ptr<.+>|[a-z]\w*)")
_SHAPE = re.compile(r"(?:\d+x)*\d+")
_USE = re.compile(r"#[A-Za-z_][\w$]*(?![\w.<])")
_BITS = re.compile(r"(?:b?f|i)(\d+)")
# Addresses are that wide, and so is a type whose name has no width, such as `index`.
_POINTER = 64
_ELEMENTS = {"fp": "f", "int": "i", "uint": "i", "u": "i"}  # as signatures of kernels spell them
_ACCESS = re.compile(r"\b(?:local_load|local_store|local_alloc|async_copy_global_to_local)\b")
_CLOSING, _OPENING = ">)]}", "<([{"


@dataclass(frozen=True)
class LayoutType:
    """A layout, with the shape and the element type that it distributes.

    Attributes:
        layout: its text in the newest dialect's spelling, without aliases.
        shape: the shape of the tensor; for memory the allocated shape, the buffers of a pipeline first.
        element: an element type: `f16`; the distribution does not depend on it.
    """

    layout: str
    shape: tuple[int, ...]
    element: str

    @property
    def text(self) -> str:
        """The type in MLIR."""
        shape = "x".join(map(str, self.shape))
        return str(_place_row(self.layout)["type"]).format(
            shape=shape, element=self.element, layout=self.layout
        )

    @property
    def kind(self) -> str:
        """The place of the elements: `registers`, `shared memory`, `tensor memory`."""
        return str(_place_row(self.layout)["kind"])

    @property
    def bits(self) -> int:
        """The bits of an element; `f8E5M2` has 8."""
        match = _BITS.match(self.element)
        return int(match[1]) if match else _POINTER


@dataclass(frozen=True)
class WrittenType:
    """A type as a module spells it.

    Attributes:
        type: its meaning.
        name: the layout as written: `#mma`, `#ttg.slice<{dim = 0, parent = #blocked}>`.
        shape: the shape of the part that is read or written: memory may be larger.
        element: the type of an element: `f16`, `!tt.ptr<f16>`.
    """

    type: LayoutType
    name: str
    shape: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class MemoryAccess:
    """A load or store of shared memory.

    Attributes:
        line: the number of its line, from 1.
        operation: its name: `local_load`.
        memory: the type in memory.
        tensor: the type that threads hold.
    """

    line: int
    operation: str
    memory: WrittenType
    tensor: WrittenType


def layout_of(layout: str, shape: str, element: str) -> LayoutType:
    """Return the type of a layout, a shape such as `128x64` and an element such as `fp16` or `f16`.

    Raises:
        UsageError: one of them is invalid.
    """
    # Bases are bits, so no linear layout has another size; Triton's frontend refuses such tensors, too.
    if not _SHAPE.fullmatch(shape) or any(size.bit_count() != 1 for size in _sizes(shape)):
        raise UsageError(f"--shape {shape}: powers of two, joined by x", hints=["--shape 128x64"])
    spelled = re.sub(r"^(uint|int|fp|u)(?=\d)", lambda match: _ELEMENTS[match[1]], element)
    if not _BITS.match(spelled):
        raise UsageError(f"--dtype {element}: not an element type", hints=["--dtype fp16"])
    text = respelled(layout.strip())
    if not re.match(r"#(?:ttg|ttng)\.\w+", text):
        hints = ["as in the IR: '#ttg.blocked<{sizePerThread = [1, 4], ...}>'"]
        raise UsageError(f"no layout: {layout}", hints=hints)
    return LayoutType(text, _sizes(shape), spelled)


def types_in(ir: str, definitions: Mapping[str, str]) -> Iterator[WrittenType]:
    """Yield the types with layouts in a text, in order.

    Args:
        ir: a module, or a part of one.
        definitions: the definition of each alias of a layout, without aliases.
    """
    # Brackets are counted, as a layout nests: `#ttg.slice<{dim = 0, parent = #ttg.slice<...>}>`.
    for match in _TYPE.finditer(ir):
        inside = ir[match.end() : _closing_bracket(ir, match.end())]
        first, *more = split_outside_brackets(inside, ",")
        shaped = _SHAPED.fullmatch(first)
        if not shaped or not more or not more[0].startswith("#"):
            continue
        layout = respelled(_USE.sub(lambda use: definitions.get(use[0], use[0]), more[0]))
        whole = shaped[1]
        memory = _place_row(layout)["kind"] != "registers"
        # The last parameter of a memory descriptor is the allocated shape, of which the first is a part.
        if memory and _SHAPE.fullmatch(more[-1]):
            whole = more[-1]
        element = shaped[2] if memory else configs.load("layouts")["element"]
        yield WrittenType(LayoutType(layout, _sizes(whole), element), more[0], _sizes(shaped[1]), shaped[2])


def memory_accesses(ir: str, definitions: Mapping[str, str]) -> Iterator[MemoryAccess]:
    """Yield the loads and stores of shared memory in the text of a module."""
    for number, line in enumerate(ir.splitlines(), 1):
        if operation := _ACCESS.search(line):
            types = list(types_in(line, definitions))
            tensors = [written for written in types if written.type.kind == "registers"]
            memory = [written for written in types if written.type.kind == "shared memory"]
            # A line with more types than one of each kind does not say which of them is accessed.
            if len(tensors) == len(memory) == 1:
                yield MemoryAccess(number, operation[0], memory[0], tensors[0])


def respelled(text: str) -> str:
    """Rewrite a text in the newest dialect's spelling, as far as that is known."""
    # Dialects and layouts were renamed several times (`#triton_gpu` became `#ttg` in 3.3), and only the
    # newest spelling can be given to a Triton of today for conversion.
    for row in configs.load("layouts")["respell"]:
        text = re.sub(row["old"], row["new"], text)
    return text


def _place_row(layout: str) -> Mapping[str, str]:
    rows: list[dict[str, str]] = configs.load("layouts")["place"]
    return next(row for row in rows if re.match(row["of"], layout))


def _sizes(shape: str) -> tuple[int, ...]:
    return tuple(map(int, shape.split("x")))


def _closing_bracket(ir: str, begin: int) -> int:
    """Return the offset of the bracket that closes the one opened before `begin`."""
    depth = 1
    for at in range(begin, len(ir)):
        depth += (ir[at] in _OPENING) - (ir[at] in _CLOSING)
        if depth == 0:
            return at
    return len(ir)
