"""Parse the text of a module into a tree: the extent of operations, their results and their regions.

It knows no dialect, only MLIR's format: an operation begins a line, and a `{` at the end of a line begins a
region. A piece that is cut out of such a text wrongly does not parse, which costs one try and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|\{-#.*?#-\}|->|[<>]=|[()\[\]{}<>\n]', re.DOTALL)
_REGION = re.compile(r"[ \t]*(?://[^\n]*)?\n")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
_RESULTS = re.compile(r"\s*((?:%[\w$.\-]+(?::\d+)?(?:\s*,\s*)?)+)\s*=\s*")
_RESULT = re.compile(r"(%[\w$.\-]+)(?::(\d+))?")
_NAME = re.compile(r'\s*(?:"([\w.$\-]+)"|([A-Za-z_][\w.$\-]*))')
_FUNCTIONS = ("tt.func", "func.func", "llvm.func", "gpu.func")
MODULE = ("module", "builtin.module")
_TERMINATORS = re.compile(r"(?:.*[._])?(?:return|yield|br|switch|unreachable|condition|terminator)")


@dataclass(eq=False)
class Region:
    """A region between `{` and `}`.

    Attributes:
        begin: offset after the line of `{`.
        end: offset of the line of `}`.
        ops: operations of all its blocks, in order.
        labels: begin and end of each line with a block label.
    """

    begin: int
    end: int = -1
    ops: list[Op] = field(default_factory=list)
    labels: list[tuple[int, int]] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """An operation.

    Attributes:
        begin: offset of its first line.
        end: offset after its last line.
        parent: the region that contains it; None at the top.
        results: names, each with its number of values.
        name: `arith.addi`.
        head: text up to its first region, or all of it.
        regions: in order.
    """

    begin: int
    parent: Region | None
    end: int = -1
    results: tuple[tuple[str, int], ...] = ()
    name: str = ""
    head: str = ""
    regions: list[Region] = field(default_factory=list)

    @property
    def function(self) -> bool:
        """True for a function."""
        return self.name in _FUNCTIONS

    @property
    def terminator(self) -> bool:
        """True for an operation that ends a block."""
        return bool(_TERMINATORS.fullmatch(self.name))

    def walk(self) -> Iterator[Op]:
        """Yield the operation and all operations in it, in the order of the text."""
        yield self
        for region in self.regions:
            for op in region.ops:
                yield from op.walk()


@dataclass(frozen=True)
class IrText:
    """A text and its operations.

    Attributes:
        text: all of it.
        top: operations that are in no other.
    """

    text: str
    top: tuple[Op, ...]

    def ops(self) -> tuple[Op, ...]:
        """Return all operations, in the order of the text."""
        return tuple(op for root in self.top for op in root.walk())

    def functions(self) -> tuple[Op, ...]:
        """Return all functions."""
        return tuple(op for op in self.ops() if op.function)

    def count(self) -> int:
        """Count the operations, modules and functions aside."""
        return sum(not op.function and op.name not in MODULE for op in self.ops())


def uses(name: str) -> re.Pattern[str]:
    """Return a pattern of the uses of a value; group 1 is the number of one of several results."""
    return re.compile(re.escape(name) + r"(?![\w$\-]|\.\w)(?:#(\d+))?")


def scope(op: Op) -> tuple[int, int]:
    """Return the offsets between which an operation's results can be used."""
    # In a region of several blocks that is all of the region: the order of blocks says little.
    region = op.parent
    if region is None:
        return op.end, op.end
    return (region.begin if region.labels else op.end), region.end


def bracketed(text: str, at: int, end: int | None = None) -> tuple[int, int] | None:
    """Return the offsets of the text in the brackets that open at `at` and close before `end`, or None."""
    closing = {"(": ")", "{": "}"}.get(text[at : at + 1])
    depth = 0
    for position in range(at, len(text) if end is None else end) if closing else ():
        depth += (text[position] == text[at]) - (text[position] == closing)
        if depth == 0:
            return at + 1, position
    return None


def parse(text: str) -> IrText:
    """Find the operations: at most one begins on a line; one that is cut off ends with the text."""
    return _IrParser(text if text.endswith("\n") else f"{text}\n").run()


class _IrParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._top: list[Op] = []
        self._open: list[tuple[Op, list[str]]] = []  # operations whose region is open, with their brackets
        self._region: Region | None = None
        self._begin = 0  # of the statement
        self._op: Op | None = None  # whose region was closed in this statement
        self._brackets: list[str] = []

    def run(self) -> IrText:
        for match in _TOKEN.finditer(self._text):
            word, at = match[0], match.start()
            if word == "\n":
                if not self._brackets:
                    self._end(at + 1)
            elif word == "{" and (line := _REGION.match(self._text, at + 1)):
                self._enter(at, line.end())
            elif word in "([{<":
                self._brackets.append(word)
            elif word == "}" and not self._brackets and self._open:
                self._leave(at)
            elif word in _CLOSING and self._brackets and self._brackets[-1] == _CLOSING[word]:
                self._brackets.pop()
        size = len(self._text)
        while self._open:
            self._leave(size)
            self._end(size)
        return IrText(self._text, tuple(self._top))

    def _enter(self, at: int, after: int) -> None:
        op = self._op or self._start(at)
        self._open.append((op, self._brackets))
        region = Region(after)
        op.regions.append(region)
        self._region, self._brackets, self._op, self._begin = region, [], None, after

    def _leave(self, at: int) -> None:
        op, self._brackets = self._open.pop()
        line = self._text.rfind("\n", 0, at) + 1
        region = op.regions[-1]
        region.end = max(line, region.begin)
        self._region, self._op, self._begin = op.parent, op, op.begin

    def _start(self, stop: int) -> Op:
        op = Op(self._begin, self._region, head=self._text[self._begin : stop])
        rest = op.head
        if match := _RESULTS.match(rest):
            op.results = tuple((name, int(count or 1)) for name, count in _RESULT.findall(match[1]))
            rest = rest[match.end() :]
        if match := _NAME.match(rest):
            op.name = match[1] or match[2]
        (self._region.ops if self._region else self._top).append(op)
        return op

    def _end(self, stop: int) -> None:
        begin, self._begin = self._begin, stop
        if self._op:
            self._op.end, self._op = stop, None
            return
        line = self._text[begin:stop].strip()
        if not line or line.startswith(("//", "{-#", "}", "#", "!")):
            return
        if line.startswith("^"):
            if self._region:
                self._region.labels.append((begin, stop))
        else:
            self._begin = begin
            self._start(stop).end = stop
            self._begin = stop
