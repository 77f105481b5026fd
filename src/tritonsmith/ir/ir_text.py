"""Parse the text of a module into a tree of operations and regions, and remove debug locations from IR.

The parser knows no dialect, only MLIR's format: an operation begins a line, and a `{` at the end of a line
begins a region.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Strings, comments and file metadata are skipped as a whole. `->`, `>=` and `<=` are tokens, so that their
# `>` and `<` are not taken for brackets.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|\{-#.*?#-\}|->|[<>]=|[()\[\]{}<>\n]', re.DOTALL)
_REGION = re.compile(r"[ \t]*(?://[^\n]*)?\n")
_CLOSING = {")": "(", "]": "[", "}": "{", ">": "<"}
_RESULTS = re.compile(r"\s*((?:%[\w$.\-]+(?::\d+)?(?:\s*,\s*)?)+)\s*=\s*")
_RESULT = re.compile(r"(%[\w$.\-]+)(?::(\d+))?")
_NAME = re.compile(r'\s*(?:"([\w.$\-]+)"|([A-Za-z_][\w.$\-]*))')
_FUNCTIONS = ("tt.func", "func.func", "llvm.func", "gpu.func")
MODULE = ("module", "builtin.module")
# By the last word, as dialects are not known: `tt.return`, `scf.yield`, `cf.cond_br`, `ttg.warp_return`.
_TERMINATORS = re.compile(r"(?:.*[._])?(?:return|yield|br|switch|unreachable|condition|terminator)")


@dataclass(eq=False)
class Region:
    """A region between `{` and `}`.

    Attributes:
        begin: the offset after the line of `{`.
        end: the offset of the line of `}`.
        ops: the operations of all its blocks, in order.
        labels: the offsets of begin and end of each line with a block label.
    """

    begin: int
    end: int = -1
    ops: list[Op] = field(default_factory=list)
    labels: list[tuple[int, int]] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """An operation.

    Attributes:
        begin: the offset of its first line.
        end: the offset after its last line.
        parent: the region that contains it; None at the top.
        results: the names of its results, each with its number of values.
        name: its name: `arith.addi`.
        head: its text up to its first region, or all of it.
        regions: its regions, in order.
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
        text: the whole text.
        top: the operations that are in no other.
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
    # Blocks may come in any order, so in a region of several blocks a use may stand above the definition.
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
    # It may be wrong about unusual texts: its caller cuts pieces out and tries whether they still parse, so a
    # mistake costs one try.
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
            # A statement ends with its line, unless a bracket is open: attributes may span lines.
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
        # A text that is cut off leaves regions open: they end with the text.
        size = len(self._text)
        while self._open:
            self._leave(size)
            self._end(size)
        return IrText(self._text, tuple(self._top))

    def _enter(self, at: int, after: int) -> None:
        # `} else {` opens another region of the operation whose region was closed on this line.
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
        # Comments, file metadata, and aliases of attributes and types are no operations.
        if not line or line.startswith(("//", "{-#", "}", "#", "!")):
            return
        if line.startswith("^"):
            if self._region:
                self._region.labels.append((begin, stop))
        else:
            self._begin = begin
            self._start(stop).end = stop
            self._begin = stop


_STRING = rb'"(?:[^"\\]|\\.)*+"'
_PLAIN = rb'[^()"\n]++'
_NESTED = rb"(?:" + _PLAIN + rb"|" + _STRING + rb")*+"
for _ in range(6):  # callsite(fused("file":1:2 ...) at ...), and so on
    _NESTED = rb"(?:" + _PLAIN + rb"|" + _STRING + rb"|\(" + _NESTED + rb"\))*+"
_MLIR = re.compile(rb" ?\bloc\(" + _NESTED + rb"\)|(?m:^)#loc[^\n]*\n")
_LLVM = re.compile(
    rb",? !dbg !\d+|(?m:^) *(?:#dbg_\w+\([^\n]*|![\w.]+ = [^\n]*)\n"
    rb"|,? *debug-location [^\n,]*|; [\w./-]+:\d+:\d+"
)
_CLOSE = re.compile(rb"\n}")  # twice as fast as `bytes.find`
_FEW = 64  # lines that may differ in their locations alone, before all locations are removed


def without_locations(kind: str, text: bytes) -> bytes:
    """Return the IR without locations.

    Args:
        kind: `mlir`, `ll` or `mir`; other texts are returned unchanged.
        text: one dump, or a line of one.
    """
    pattern = {"mlir": _MLIR, "ll": _LLVM, "mir": _LLVM}.get(kind)
    return pattern.sub(b"", text) if pattern else text


def same_without_locations(kind: str, first_text: bytes, second_text: bytes) -> bool:
    """Report whether two dumps are equal except for their locations."""
    # Removing all locations is slow, and most dumps that differ do so on an early line by more than a
    # location. Those lines are compared first.
    if first_text == second_text:
        return True
    left, right = (_body(first_text), _body(second_text)) if kind == "mlir" else (first_text, second_text)
    if _differ_soon(kind, left, right):
        return False
    return without_locations(kind, first_text).strip() == without_locations(kind, second_text).strip()


def _body(text: bytes) -> bytes:
    """Return the operation itself."""
    # Aliases of locations, which come before and after it, are renumbered by most passes.
    begin = 0 if text.startswith(b"module") else text.find(b"\nmodule") + 1
    close = _CLOSE.search(text, begin)
    return text[begin : close.start() if close else len(text)]


def _differ_soon(kind: str, first_text: bytes, second_text: bytes) -> bool:
    """Report whether one of the first differing lines differs in more than its locations."""
    left = right = 0
    for _ in range(_FEW):
        step = _common(first_text, second_text, left, right)
        left, right = left + step, right + step
        if left >= len(first_text) or right >= len(second_text):
            return False
        first, second = first_text.rfind(b"\n", 0, left) + 1, second_text.rfind(b"\n", 0, right) + 1
        last, end = first_text.find(b"\n", left), second_text.find(b"\n", right)
        last, end = len(first_text) if last < 0 else last, len(second_text) if end < 0 else end
        before, after = first_text[first:last], second_text[second:end]
        if before.startswith((b"#loc", b"!")) or after.startswith((b"#loc", b"!")):
            return False
        if without_locations(kind, before) != without_locations(kind, after):
            return True
        left, right = last, end
    return False


def _common(first_text: bytes, second_text: bytes, left: int, right: int) -> int:
    """Return the number of equal bytes from these offsets on."""
    # In growing steps, so that a difference nearby is found without reading the rest; the last step is
    # halved.
    size = min(len(first_text) - left, len(second_text) - right)
    low, step = 0, 256
    while low < size:
        step = min(step, size - low)
        if first_text[left + low : left + low + step] != second_text[right + low : right + low + step]:
            break
        low, step = low + step, step * 2
    else:
        return size
    while step > 1:
        half = step // 2
        if first_text[left + low : left + low + half] == second_text[right + low : right + low + half]:
            low, step = low + half, step - half
        else:
            step = half
    return low
