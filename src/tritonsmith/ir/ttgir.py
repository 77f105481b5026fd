"""Triton's GPU dialect, read line by line: operations, loops, layouts, and how addresses grow.

MLIR prints one operation a line. A name is visible from its definition on, and siblings may use it
again, so a name means its last definition above.
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
_UNDER = ("arith.remsi", "arith.remui")  # by what is the same in all elements: runs stay runs
_DEEPEST = 200  # definitions that are followed

# How far apart neighbours along a dimension are, in elements: a number, or the name of what it depends on.
Stride = int | str
Strides = tuple[Stride, ...]


@dataclass(frozen=True)
class MlirOperation:
    """One operation.

    Attributes:
        number: of its line, from 1.
        indent: blanks before it.
        results: their names.
        name: `tt.load`.
        rest: what follows the name.
        loop: line of the innermost `scf.for` around it; 0 outside.
    """

    number: int
    indent: int
    results: tuple[str, ...]
    name: str
    rest: str
    loop: int

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the values that it takes."""
        return tuple(_VALUE.findall(self.rest.split(" loc(")[0]))


@dataclass(frozen=True)
class Tensor:
    """A type.

    Attributes:
        shape: sizes.
        element: `f16`, `!tt.ptr<f16>`.
        layout: its alias, or its text.
    """

    shape: tuple[int, ...]
    element: str
    layout: str

    @property
    def bits(self) -> int:
        """Of an element, or of what it points to."""
        found = re.search(r"[a-z]+(\d+)", self.element.removeprefix("!tt.ptr<"))
        return int(found[1]) if found else 0

    @property
    def size(self) -> int:
        """Number of elements."""
        product = 1
        for one in self.shape:
            product *= one
        return product


class Ttgir:
    """A module.

    Attributes:
        operations: in their order.
        aliases: of layouts: name to text.
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
            while loops and indent <= loops[-1][1] and line.strip():
                loops.pop()
            if match := _OPERATION.match(line):
                self._add(match, number, indent, loops)

    def _add(self, match: re.Match[str], number: int, indent: int, loops: list[tuple[int, int]]) -> None:
        results = tuple(one.partition(":")[0] for one in (match["results"] or "").split(", ") if one)
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
            induction = operation.operands[0]
            self._defined.setdefault(induction, []).append((number, "induction"))
            head = operation.rest.partition("iter_args(")[2].partition(") -> ")[0]
            for place, (name, _) in enumerate(_ITERATION.findall(head)):
                self._defined.setdefault(name, []).append((number, f"iteration {number} {place}"))

    def named(self, *names: str) -> list[MlirOperation]:
        """Operations of these names; a dialect's prefix may be left out: `warp_group_dot`."""
        return [one for one in self.operations if one.name in names or one.name.partition(".")[2] in names]

    def tensor(self, operation: MlirOperation, which: int = -1) -> Tensor | None:
        """A tensor type of an operation: the last one, which is the result's where there is one."""
        found = _TENSOR.findall(operation.rest)
        if not found:
            return None
        shape, element, layout = found[which]
        return Tensor(tuple(map(int, shape.rstrip("x").split("x"))), element, layout)

    def definition(self, name: str, before: int) -> MlirOperation | str | None:
        """What defines a name that is used on a line: an operation, or words about an argument."""
        rows = self._defined.get(name.partition("#")[0], [])
        place = bisect_left(rows, before, key=lambda row: row[0])
        return rows[place - 1][1] if place else None

    def strides(self, name: str, before: int, deep: int = 0, given: str = "") -> Strides | None:
        """How far apart neighbours of a tensor of addresses or offsets are; None if that is not known.

        Args:
            name: of the value.
            before: the line that uses it.
            deep: definitions that were followed to it.
            given: a value carried by a loop whose step is just looked at: it counts as the same everywhere.
        """
        if name == given:
            return ()
        found = self.definition(name, before)
        if deep > _DEEPEST or found is None:
            return None
        if isinstance(found, str):
            kind, *words = found.split(" ", 2)
            if kind != "iteration":
                return None
            return self._carried(int(words[0]), int(words[1]), deep)
        if found.name == "scf.for" and "#" in name:
            return self._carried(found.number, int(name.partition("#")[2]), deep)
        return self._of_operation(found, deep + 1, given)

    def _of_operation(self, one: MlirOperation, deep: int, given: str) -> Strides | None:  # noqa: PLR0911 - a table
        values = one.operands
        kind = self.tensor(one)
        if one.name == "tt.make_range":
            return (1,)
        if one.name == "tt.splat" or (one.name == "arith.constant" and _SPLAT.search(one.rest)):
            return (0,) * len(kind.shape) if kind else None
        if one.name == "tt.expand_dims" and (axis := _AXIS.search(one.rest)):
            inner = self.strides(values[0], one.number, deep, given)
            return None if inner is None else (*inner[: int(axis[1])], 0, *inner[int(axis[1]) :])
        if one.name in _SAME or one.name.endswith(".convert_layout"):
            return self.strides(values[0], one.number, deep, given)
        if one.name in ("arith.addi", "tt.addptr", "arith.muli", *_UNDER):
            left = self.strides(values[0], one.number, deep, given)
            right = self.strides(values[1], one.number, deep, given)
            if left is None or right is None:
                return None
            if () in (left, right):
                adds = one.name in ("arith.addi", "tt.addptr")
                return () if adds and not any(left) and not any(right) else None
            if one.name in _UNDER:
                return left if not any(right) else None
            if one.name == "arith.muli":
                return self._product(one, left, right)
            return tuple(map(_sum, left, right)) if len(left) == len(right) else None
        return None

    def _product(self, one: MlirOperation, left: Strides, right: Strides) -> Strides | None:
        if any(left) and any(right):
            return None
        factor = self._uniform(one.operands[0 if any(right) else 1], one.number)
        return tuple(_times(stride, factor) for stride in (right if any(right) else left))

    def _uniform(self, name: str, before: int) -> Stride:
        """What all elements of a tensor are: a number, or the name of the scalar."""
        for _ in range(_DEEPEST):
            found = self.definition(name, before)
            if not isinstance(found, MlirOperation):
                return name
            if number := _NUMBER.search(f"{found.name}{found.rest}") or _SPLAT.search(found.rest):
                return int(number[1]) if number[1].lstrip("-").isdigit() else name
            if found.name not in ("tt.splat", *_SAME) and not found.name.endswith(".convert_layout"):
                return name
            name, before = found.operands[0], found.number
        return name

    def _carried(self, loop: int, place: int, deep: int) -> Strides | None:
        """Strides of what a loop carries: those of its first value, if each step is uniform."""
        head = next(one for one in self.operations if one.number == loop)
        pairs = _ITERATION.findall(head.rest.partition("iter_args(")[2].partition(") -> ")[0])
        last = next((one for one in self.operations if one.name == "scf.yield" and one.loop == loop
                     and one.indent == head.indent + 2), None)  # fmt: skip
        if last is None or place >= len(pairs) or place >= len(last.operands):
            return None
        inner, first = pairs[place]
        if last.operands[place] != inner and (
            self.strides(last.operands[place], last.number, deep + 1, inner) is None
        ):
            return None
        return self.strides(first, loop, deep + 1)

    def argument(self, name: str, before: int) -> str | None:
        """Attributes of a function's argument, as text; None if it is no argument."""
        found = self.definition(name, before)
        is_one = isinstance(found, str) and found.startswith("argument")
        return str(found).removeprefix("argument ") if is_one else None

    def layout(self, tensor: Tensor) -> str:
        """The text of a tensor's layout."""
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
    found = re.search(rf'"(?:ttg|triton_gpu)\.{name}" = (\d+)', text)
    return int(found[1]) if found else 0
