"""Parse Triton's GPU dialect line by line: operations, loops, layouts, and the strides of addresses.

MLIR prints one operation per line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

_OPERATION = re.compile(
    r"^ *(?:(?P<results>%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)*) = )?"
    r'"?(?P<name>[a-z_]\w*(?:\.\w+)+)"?(?P<rest>.*)$'
)
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_ALIAS = re.compile(r"^(#[A-Za-z_]\w*) = (.+)$")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)(!tt\.ptr<[^<>]*>|[a-z]\w*)(?:, (#[A-Za-z_]\w*|#[\w.]+<.*?>))?>")
_ITERATION = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_SPLAT = re.compile(r"dense<(-?\d+|true|false)>")
_NUMBER = re.compile(r"arith\.constant (-?\d+) :")
_ARGUMENT = re.compile(r"(%[\w$.-]+): (!tt\.ptr<|[if]\d+|!tt\.)(?:[^{}%]*\{([^{}]*)\})?")
_AXIS = re.compile(r"axis = (\d+)")
_SAME = ("tt.broadcast", "arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast", "arith.index_cast")
_UNDER = ("arith.remsi", "arith.remui")  # by a uniform value: contiguous runs stay contiguous
_DEEPEST = 200  # definitions that are followed

# The distance of neighbours along a dimension, in elements: a number, or the name of a value.
Stride = int | str
Strides = tuple[Stride, ...]


@dataclass(frozen=True)
class MlirOperation:
    """One operation.

    Attributes:
        number: the number of its line, from 1.
        indent: the number of blanks before it.
        results: the names of its results.
        name: its name: `tt.load`.
        rest: the text after the name.
        loop: the line of the innermost `scf.for` around it; 0 outside.
    """

    number: int
    indent: int
    results: tuple[str, ...]
    name: str
    rest: str
    loop: int

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands."""
        return tuple(_VALUE.findall(self.rest.split(" loc(")[0]))


@dataclass(frozen=True)
class Tensor:
    """A tensor type.

    Attributes:
        shape: its sizes.
        element: the type of an element: `f16`, `!tt.ptr<f16>`.
        layout: the alias of its layout, or the layout's text.
    """

    shape: tuple[int, ...]
    element: str
    layout: str

    @property
    def bits(self) -> int:
        """The bits of an element, or of the value that it points to."""
        # A load of pointers moves what they point to: its width decides about vector loads, not that of the
        # address.
        match = re.search(r"[a-z]+(\d+)", self.element.removeprefix("!tt.ptr<"))
        return int(match[1]) if match else 0

    @property
    def size(self) -> int:
        """The number of elements."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class Ttgir:
    """A module.

    Attributes:
        operations: its operations, in order.
        aliases: the text of each alias of a layout.
    """

    def __init__(self, text: str) -> None:
        self.aliases: dict[str, str] = {}
        self.alias_lines: dict[str, int] = {}
        self.operations: list[MlirOperation] = []
        self._defined: dict[str, list[tuple[int, MlirOperation | str]]] = {}
        self.threads = _attribute(text, "num-warps") * _attribute(text, "threads-per-warp")
        loops: list[tuple[int, int]] = []  # line, indent
        for number, line in enumerate(text.splitlines(), 1):
            if alias := _ALIAS.match(line):
                self.aliases[alias[1]] = alias[2]
                self.alias_lines[alias[1]] = number
                continue
            indent = len(line) - len(line.lstrip())
            # By indentation: `}` would have to be told from that of an `scf.if`, and of attributes.
            while loops and indent <= loops[-1][1] and line.strip():
                loops.pop()
            if match := _OPERATION.match(line):
                self._add(match, number, indent, loops)

    def _add(self, match: re.Match[str], number: int, indent: int, loops: list[tuple[int, int]]) -> None:
        results = tuple(result.partition(":")[0] for result in (match["results"] or "").split(", ") if result)
        loop = loops[-1][0] if loops else 0
        operation = MlirOperation(number, indent, results, match["name"], match["rest"], loop)
        self.operations.append(operation)
        for name in results:
            self._defined.setdefault(name, []).append((number, operation))
        if operation.name == "tt.func":
            for name, _, attributes in _ARGUMENT.findall(operation.rest):
                self._defined.setdefault(name, []).append((number, f"argument {attributes}"))
        if operation.name == "scf.for":
            loops.append((number, indent))
            # `scf.for %i = %lo to %hi step %s iter_args(%acc = %init)`: the induction variable comes first.
            induction = operation.operands[0]
            self._defined.setdefault(induction, []).append((number, "induction"))
            head = operation.rest.partition("iter_args(")[2].partition(") -> ")[0]
            for place, (name, _) in enumerate(_ITERATION.findall(head)):
                self._defined.setdefault(name, []).append((number, f"iteration {number} {place}"))

    def named(self, *names: str) -> list[MlirOperation]:
        """Return the operations of these names; a dialect's prefix may be omitted: `warp_group_dot`."""
        return [
            operation
            for operation in self.operations
            if operation.name in names or operation.name.partition(".")[2] in names
        ]

    def tensor(self, operation: MlirOperation, which: int = -1) -> Tensor | None:
        """Return a tensor type of an operation: by default the last one, the result's if there is one."""
        types = _TENSOR.findall(operation.rest)
        if not types:
            return None
        shape, element, layout = types[which]
        return Tensor(tuple(map(int, shape.rstrip("x").split("x"))), element, layout)

    def definition(self, name: str, before: int) -> MlirOperation | str | None:
        """Return the definition of a name as used on a line: an operation, or words about an argument."""
        # A name is visible from its definition on, and sibling regions may use it again: it means the last
        # definition above.
        rows = self._defined.get(name.partition("#")[0], [])
        place = bisect_left(rows, before, key=lambda row: row[0])
        return rows[place - 1][1] if place else None

    def strides(self, name: str, before: int, deep: int = 0, uniform: str = "") -> Strides | None:
        """Return the distances of neighbours in a tensor of addresses or offsets; None if unknown.

        Args:
            name: the name of the value.
            before: the line that uses it.
            deep: the number of definitions that were followed to it.
            uniform: the value carried by the loop whose step is examined: it counts as uniform.
        """
        # `()` stands for the value that the loop carries: uniform, of a shape that is not known here.
        if name == uniform:
            return ()
        definition = self.definition(name, before)
        if deep > _DEEPEST or definition is None:
            return None
        if isinstance(definition, str):
            kind, *words = definition.split(" ", 2)
            if kind != "iteration":
                return None
            return self._carried(int(words[0]), int(words[1]), deep)
        if definition.name == "scf.for" and "#" in name:
            return self._carried(definition.number, int(name.partition("#")[2]), deep)
        return self._of_operation(definition, deep + 1, uniform)

    def _of_operation(self, operation: MlirOperation, deep: int, uniform: str) -> Strides | None:  # noqa: PLR0911 - a table
        # What is not listed is unknown, not 0: a finding about coalescing has to be right.
        values = operation.operands
        kind = self.tensor(operation)
        if operation.name == "tt.make_range":
            return (1,)
        if operation.name == "tt.splat" or (
            operation.name == "arith.constant" and _SPLAT.search(operation.rest)
        ):
            return (0,) * len(kind.shape) if kind else None
        if operation.name == "tt.expand_dims" and (axis := _AXIS.search(operation.rest)):
            inner = self.strides(values[0], operation.number, deep, uniform)
            return None if inner is None else (*inner[: int(axis[1])], 0, *inner[int(axis[1]) :])
        if operation.name in _SAME or operation.name.endswith(".convert_layout"):
            return self.strides(values[0], operation.number, deep, uniform)
        if operation.name in ("arith.addi", "tt.addptr", "arith.muli", *_UNDER):
            left = self.strides(values[0], operation.number, deep, uniform)
            right = self.strides(values[1], operation.number, deep, uniform)
            if left is None or right is None:
                return None
            if () in (left, right):
                adds = operation.name in ("arith.addi", "tt.addptr")
                return () if adds and not any(left) and not any(right) else None
            if operation.name in _UNDER:
                return left if not any(right) else None
            if operation.name == "arith.muli":
                return self._product(operation, left, right)
            return tuple(map(_sum, left, right)) if len(left) == len(right) else None
        return None

    def _product(self, operation: MlirOperation, left: Strides, right: Strides) -> Strides | None:
        if any(left) and any(right):  # the distance then grows from element to element
            return None
        factor = self._uniform(operation.operands[0 if any(right) else 1], operation.number)
        return tuple(_times(stride, factor) for stride in (right if any(right) else left))

    def _uniform(self, name: str, before: int) -> Stride:
        """Return the value of all elements of a tensor: a number, or the name of the scalar."""
        for _ in range(_DEEPEST):
            definition = self.definition(name, before)
            if not isinstance(definition, MlirOperation):
                return name
            if number := _NUMBER.search(f"{definition.name}{definition.rest}") or _SPLAT.search(
                definition.rest
            ):
                return int(number[1]) if number[1].lstrip("-").isdigit() else name
            if definition.name not in ("tt.splat", *_SAME) and not definition.name.endswith(
                ".convert_layout"
            ):
                return name
            name, before = definition.operands[0], definition.number
        return name

    def _carried(self, loop: int, place: int, deep: int) -> Strides | None:
        """Return the strides of a value that a loop carries: the initial ones, if each step is uniform."""
        # By induction: a step that adds the same number to all elements keeps the distances between them. The
        # value itself counts as uniform (`()`) while its step is examined, which ends the recursion.
        head = next(operation for operation in self.operations if operation.number == loop)
        pairs = _ITERATION.findall(head.rest.partition("iter_args(")[2].partition(") -> ")[0])
        last = next((row for row in self.operations if row.name == "scf.yield" and row.loop == loop
                     and row.indent == head.indent + 2), None)  # fmt: skip
        if last is None or place >= len(pairs) or place >= len(last.operands):
            return None
        inner, first = pairs[place]
        if last.operands[place] != inner and (
            self.strides(last.operands[place], last.number, deep + 1, inner) is None
        ):
            return None
        return self.strides(first, loop, deep + 1)

    def argument(self, name: str, before: int) -> str | None:
        """Return the attributes of a function's argument, as text; None if it is no argument."""
        definition = self.definition(name, before)
        is_argument = isinstance(definition, str) and definition.startswith("argument")
        return str(definition).removeprefix("argument ") if is_argument else None

    def layout(self, tensor: Tensor) -> str:
        """Return the text of a tensor's layout."""
        return self.aliases.get(tensor.layout, tensor.layout)


def _sum(left: Stride, right: Stride) -> Stride:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return right if left == 0 else left if right == 0 else f"{left} + {right}"


def _times(left: Stride, right: Stride) -> Stride:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if 0 in (left, right):
        return 0
    return right if left == 1 else left if right == 1 else f"{left} * {right}"


def _attribute(text: str, name: str) -> int:
    match = re.search(rf'"(?:ttg|triton_gpu)\.{name}" = (\d+)', text)
    return int(match[1]) if match else 0
