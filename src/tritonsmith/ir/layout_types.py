"""Parse types with a layout: of one layout, or those in the text of a module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonsmith.core import brackets, configs
from tritonsmith.core.errors import UsageError

_TYPE = re.compile(r"(?:\btensor|!ttg?\.memdesc|-> )<(?=\d+x)")
_SHAPED = re.compile(r"((?:\d+x)*\d+)x(!tt\.ptr<.+>|[a-z]\w*)")
_SHAPE = re.compile(r"(?:\d+x)*\d+")
_USE = re.compile(r"#[A-Za-z_][\w$]*(?![\w.<])")
_BITS = re.compile(r"(?:b?f|i)(\d+)")
_POINTER = 64
_ELEMENTS = {"fp": "f", "int": "i", "uint": "i", "u": "i"}  # as signatures of kernels spell them
_ACCESS = re.compile(r"\b(?:local_load|local_store|local_alloc|async_copy_global_to_local)\b")
_CLOSING, _OPENING = ">)]}", "<([{"


@dataclass(frozen=True)
class LayoutType:
    """A layout of a shape.

    Attributes:
        layout: its text in the newest dialect's spelling, without aliases.
        shape: of the tensor; of memory the allocated one, buffers of a pipeline first.
        element: an element type: `f16`; the distribution does not depend on it.
    """

    layout: str
    shape: tuple[int, ...]
    element: str

    @property
    def text(self) -> str:
        """The type in MLIR."""
        shape = "x".join(map(str, self.shape))
        return str(_place(self.layout)["type"]).format(shape=shape, element=self.element, layout=self.layout)

    @property
    def kind(self) -> str:
        """The place of the elements: `registers`, `shared memory`, `tensor memory`."""
        return str(_place(self.layout)["kind"])

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
        shape: of the part that is read or written: memory may be larger.
        element: `f16`, `!tt.ptr<f16>`.
    """

    type: LayoutType
    name: str
    shape: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class MemoryAccess:
    """A load or store of shared memory.

    Attributes:
        line: its number, from 1.
        operation: `local_load`.
        memory: the type in memory.
        tensor: the type that threads hold.
    """

    line: int
    operation: str
    memory: WrittenType
    tensor: WrittenType


def of(layout: str, shape: str, element: str) -> LayoutType:
    """Return the type of a layout, a shape such as `128x64` and an element such as `fp16` or `f16`.

    Raises:
        UsageError: one of them is invalid.
    """
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


def within(ir: str, definitions: Mapping[str, str]) -> Iterator[WrittenType]:
    """Yield the types with layouts in a text, in order.

    Args:
        ir: a module, or a part of one.
        definitions: alias of a layout to its definition, without aliases.
    """
    for match in _TYPE.finditer(ir):
        inside = ir[match.end() : _end(ir, match.end())]
        first, *more = brackets.split(inside, ",")
        shaped = _SHAPED.fullmatch(first)
        if not shaped or not more or not more[0].startswith("#"):
            continue
        layout = respelled(_USE.sub(lambda use: definitions.get(use[0], use[0]), more[0]))
        whole = shaped[1]
        memory = _place(layout)["kind"] != "registers"
        if memory and _SHAPE.fullmatch(more[-1]):
            whole = more[-1]
        element = shaped[2] if memory else configs.load("layouts")["element"]
        yield WrittenType(LayoutType(layout, _sizes(whole), element), more[0], _sizes(shaped[1]), shaped[2])


def accesses(ir: str, definitions: Mapping[str, str]) -> Iterator[MemoryAccess]:
    """Yield the loads and stores of shared memory in the text of a module."""
    for number, line in enumerate(ir.splitlines(), 1):
        if operation := _ACCESS.search(line):
            types = list(within(line, definitions))
            tensors = [written for written in types if written.type.kind == "registers"]
            memory = [written for written in types if written.type.kind == "shared memory"]
            if len(tensors) == len(memory) == 1:
                yield MemoryAccess(number, operation[0], memory[0], tensors[0])


def respelled(text: str) -> str:
    """Rewrite a text in the newest dialect's spelling, as far as that is known."""
    for row in configs.load("layouts")["respell"]:
        text = re.sub(row["old"], row["new"], text)
    return text


def _place(layout: str) -> Mapping[str, str]:
    rows: list[dict[str, str]] = configs.load("layouts")["place"]
    return next(row for row in rows if re.match(row["of"], layout))


def _sizes(shape: str) -> tuple[int, ...]:
    return tuple(map(int, shape.split("x")))


def _end(ir: str, begin: int) -> int:
    """Return the offset of the bracket that closes the one opened before `begin`."""
    depth = 1
    for at in range(begin, len(ir)):
        depth += (ir[at] in _OPENING) - (ir[at] in _CLOSING)
        if depth == 0:
            return at
    return len(ir)
