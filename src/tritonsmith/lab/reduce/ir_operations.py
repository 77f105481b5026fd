"""Edits that make IR text smaller: they remove operations, unused arguments, attributes and aliases.

The users of a removed operation use a new argument of the function instead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tritonsmith.core.text import split_outside_brackets
from tritonsmith.ir.ir_text import MODULE, IrText, Op, bracketed, scope, uses

# The edits work on the text, as a dump of any release has to be read: its dialects are in no parser but the
# one of that Triton. A wrong edit costs one test, which that parser refuses.
_VALUE = re.compile(r"(%[\w$\-]+(?:\.\w+)*)(?:#(\d+))?")
_Use = tuple[int, int, int]  # begin, end, which of the results
_ELEMENT = re.compile(r"((?:tensor|vector)<(?:[\d?]+x)*)(!tt\.ptr<[^<>]*>|[^,<>]+)(.*>)", re.DOTALL)
_POINTER = re.compile(r"!tt\.ptr<([^<>,]+)(?:, \d+)?>")
# Operations whose text has the type of the operands, from which that of the result follows.
_COMPARES = ("cmpi", "cmpf", "icmp", "fcmp")
# Operations that print no type of their result, as it is always a token.
_TOKENS = ("async_copy_global_to_local", "async_commit_group", "async_wait")
# An attribute list, and not the brace of a region: that ends its line, and a list is closed there.
_LIST = re.compile(r"(?:\battributes\s*)?(?<![<\w])\{(?=[^\n{}]*[^\s{}][^\n]*\})")
_ALIAS = re.compile(r"([#!][\w$.\-]+)\s*=")


class Cutter:
    """Cuts operations out of one source."""

    def __init__(self, source: IrText) -> None:
        self._source = source
        self._ops = source.ops()
        self._begins = [op.begin for op in self._ops]
        self._parents = {inner: op for op in self._ops for region in op.regions for inner in region.ops}
        self._types: dict[Op, tuple[str, ...] | None] = {}
        self._named: dict[str, list[_Use]] = defaultdict(list)
        for match in _VALUE.finditer(source.text):
            self._named[match[1]].append((match.start(), match.end(), int(match[2] or 0)))

    @property
    def items(self) -> tuple[Op, ...]:
        """Return the operations that can be cut out: no module, and no terminator of a block."""
        return tuple(op for op in self._ops if op.name not in MODULE and not op.terminator)

    def left(self, ops: Sequence[Op], gone: Iterable[Op]) -> list[Op]:
        """Return those operations that are neither gone nor inside one that is."""
        cut = set(gone)
        return [op for op in ops if op not in cut and not self._covered(op, cut)]

    def cut(self, ops: Iterable[Op]) -> str | None:
        """Return the text without these operations; None if there is none."""
        gone = set(ops)
        while True:
            more, arguments, renamed = self._patch(gone)
            if more is None:
                return None
            if not more:
                break
            gone |= more  # whose own results may have users
        spans = [Edit(op.begin, op.end) for op in gone]
        added = [argument(self._source.text, function, texts) for function, texts in arguments.items()]
        if None in added:
            return None
        return apply(self._source.text, [*spans, *renamed, *(edit for edit in added if edit)])

    def _patch(self, gone: set[Op]) -> tuple[set[Op] | None, dict[Op, list[str]], list[Edit]]:
        """Return the operations that have to go too, or None; new arguments by function; changed uses."""
        arguments: dict[Op, list[str]] = defaultdict(list)
        renamed: list[Edit] = []
        more: set[Op] = set()
        # An operation inside another one goes with it, and its text must not be cut twice.
        outer = sorted((op for op in gone if not self._covered(op, gone)), key=lambda op: op.begin)
        spans = [(op.begin, op.end) for op in outer]
        begins = [begin for begin, _ in spans]
        fresh = 0
        for op in outer:
            left = [use for use in self._uses(op) if not _within(use[1][0], begins, spans)]
            if not left:
                continue
            function = self._function(op)
            known = self._known(op)
            # An argument needs a type. Without one its users have to go, but a block keeps its terminator.
            if known is None or function is None:
                users = {self._at(use[0]) for _, use in left}
                if any(user is None or user.terminator for user in users):
                    return None, {}, []
                more |= {user for user in users if user}
                continue
            names: dict[int, str] = {}
            for number, (begin, end, _) in left:
                if number >= len(known):
                    return None, {}, []
                if number not in names:
                    while f"%cut{fresh}" in self._named:
                        fresh += 1
                    names[number] = f"%cut{fresh}"
                    fresh += 1
                    arguments[function].append(f"{names[number]}: {known[number]}")
                renamed.append(Edit(begin, end, names[number]))
        return more, arguments, renamed

    def _covered(self, op: Op, gone: set[Op]) -> bool:
        """Report whether an operation is inside one of these."""
        around = self._parents.get(op)
        while around is not None and around not in gone:
            around = self._parents.get(around)
        return around is not None

    def _uses(self, op: Op) -> Iterable[tuple[int, _Use]]:
        """Yield the uses of an operation's results: the number of the result, and the place."""
        first = 0
        # Each function numbers its values anew, so the same name elsewhere is another value.
        begin, end = scope(op)
        for name, count in op.results:
            for use in self._named[name]:
                # Its own text has the place where it is bound, which is no use.
                if begin <= use[0] < end and not op.begin <= use[0] < op.end:
                    yield first + use[2], use
            first += count

    def _known(self, op: Op) -> tuple[str, ...] | None:
        if op not in self._types:
            self._types[op] = result_types(op, self._source.text)
        return self._types[op]

    def _function(self, op: Op) -> Op | None:
        around: Op | None = op
        while around is not None and not around.function:
            around = self._parents.get(around)
        return around

    def _at(self, offset: int) -> Op | None:
        """Return the innermost operation that has this place in its own text."""
        at = bisect_right(self._begins, offset) - 1
        around: Op | None = self._ops[at] if at >= 0 else None
        while around is not None and offset >= around.end:
            around = self._parents.get(around)
        return around


def arguments(text: str, function: Op) -> tuple[int, int] | None:
    """Return the offsets of a function's arguments, between the brackets; None if it has none of its own."""
    # After the name: `tt.func public @k(...)`, and attributes before it may have brackets, too.
    at = function.head.find("(", max(function.head.find("@"), 0))
    return bracketed(text, function.begin + at, function.end) if at >= 0 else None


def argument(text: str, function: Op, added: Sequence[str]) -> Edit | None:
    """Return the edit that gives a function more arguments; None if it has no list of them."""
    place = arguments(text, function)
    if place is None:
        return None
    comma = ", " if text[place[0] : place[1]].strip() else ""
    return Edit(place[1], place[1], comma + ", ".join(added))


def _within(offset: int, begins: Sequence[int], spans: Sequence[tuple[int, int]]) -> bool:
    at = bisect_right(begins, offset) - 1
    return at >= 0 and offset < spans[at][1]


@dataclass(frozen=True, order=True)
class Edit:
    """The replacement of the text between two offsets."""

    begin: int
    end: int
    text: str = ""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; an edit inside another one is dropped."""
    parts, at = [], 0
    # Of two that begin at one place the longer one comes first, so that the other lies in it.
    for edit in sorted(set(edits), key=lambda edit: (edit.begin, -edit.end)):
        if edit.begin < at:
            continue
        parts += [text[at : edit.begin], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def result_types(op: Op, text: str) -> tuple[str, ...] | None:
    """Return the types of all results of an operation, in order; None if its text does not name them."""
    count = sum(number for _, number in op.results)
    types = list(_results(op, text))
    return tuple(types) if len(types) == count and all(types) else None


def _results(op: Op, text: str) -> Iterator[str]:
    count = sum(number for _, number in op.results)
    kind = op.name.rpartition(".")[2]
    if kind in _TOKENS:
        yield f"!{op.name.partition('.')[0]}.async.token"
        return
    tail = text[op.regions[-1].end : op.end].lstrip(" })") if op.regions else op.head
    # `scf.if ... -> (f32) {` names them before its regions, `tt.reduce ... : (...) -> f32` behind them.
    stated = _stated_types(tail) or (_stated_types(op.head.rstrip().removesuffix("(")) if op.regions else "")
    if not stated:
        if op.name == "arith.constant":  # `arith.constant true` is printed without its type
            yield "i1"
        return
    # `: (i32) -> f32` and `: i32 to f32` name the result last; without either, the one type is that of all.
    *_, last = split_outside_brackets(stated, "->")
    *_, last = split_outside_brackets(last, " to ")
    if last.startswith("(") and last.endswith(")"):
        last = last[1:-1]
    types = [_spelled(spelling, op) for spelling in split_outside_brackets(last, ",")]
    if "->" in stated and split_outside_brackets(stated, "->")[-1] != stated:
        yield from types[:count]
    elif kind in _COMPARES:
        yield _boolean(types[0])
    elif kind == "load" and op.name.startswith("tt."):
        yield _pointee(types[0])
    elif kind == "select":
        yield types[-1]
    else:
        yield from types[:count]


def _stated_types(text: str) -> str:
    """Return the types that an operation names: after the last `:`, or after `->` if there is none."""
    line = text.strip().removesuffix("{").strip()
    parts = split_outside_brackets(line, " : ")
    if len(parts) > 1 and not (
        "->" in parts[-2] and split_outside_brackets(parts[-2], "->")[-1] != parts[-2]
    ):
        return parts[-1]
    arrow = split_outside_brackets(parts[-2] if len(parts) > 1 else line, "->")  # scf.for ... -> (f32) : i32
    return f"-> {arrow[-1]}" if len(arrow) > 1 else ""


def _spelled(text: str, op: Op) -> str:
    """Complete a type that its operation abbreviates: `<128xf16, #shared>` of a memdesc."""
    return f"!{op.name.partition('.')[0]}.memdesc{text}" if text.startswith("<") else text


def _boolean(text: str) -> str:
    match = _ELEMENT.fullmatch(text)
    return f"{match[1]}i1{match[3]}" if match else "i1"


def _pointee(text: str) -> str:
    if match := _POINTER.fullmatch(text):
        return match[1]
    if (match := _ELEMENT.fullmatch(text)) and (inner := _POINTER.fullmatch(match[2])):
        return f"{match[1]}{inner[1]}{match[3]}"
    return ""


@dataclass(frozen=True)
class Piece:
    """An item of a list that can be removed.

    Attributes:
        group: offsets of the list.
        begin: offset of the item.
        end: offset after it.
        outer: offsets of the list with its brackets, which go when it becomes empty; None if they stay.
    """

    group: tuple[int, int]
    begin: int
    end: int
    outer: tuple[int, int] | None = None


def without_aliases(source: IrText) -> str:
    """Return the text without unused aliases."""
    text = source.text
    while True:  # an alias may be used by another one that is unused itself
        aliases = parse_aliases(text)
        unused = [
            Edit(begin, end)
            for begin, end, name in aliases
            if not re.search(re.escape(name) + r"(?![\w$.\-])", text[:begin] + text[end:])
        ]
        if not unused:
            return text
        text = apply(text, unused)


def parse_aliases(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and name of each `#name = ...`."""
    for match in re.finditer(r"^[#!][^\n]*(?:\n|\Z)", text, re.MULTILINE):
        if name := _ALIAS.match(match[0]):
            yield match.start(), match.end(), name[1]


def unused_arguments(source: IrText) -> tuple[Piece, ...]:
    """Return the arguments of functions that nothing in them uses."""
    unused = []
    for function in source.functions():
        place = arguments(source.text, function)
        if place is None or not function.regions:
            continue
        body = source.text[place[1] : function.end]
        for piece in _pieces(source.text, *place):
            name = re.match(r"\s*(%[\w$.\-]+)", source.text[piece.begin : piece.end])
            if name and not uses(name[1]).search(body):
                unused.append(piece)
    return tuple(unused)


def attributes(source: IrText) -> tuple[Piece, ...]:
    """Return the entries of all attribute lists: of modules, functions, arguments and operations."""
    return tuple(piece for op in source.ops() for piece in _attributes(source.text, op))


def _attributes(text: str, op: Op) -> Iterator[Piece]:
    parts = [(op.begin, op.begin + len(op.head))]
    if op.regions:
        parts.append((op.regions[-1].end, op.end))
    for begin, end in parts:
        at = begin
        while match := _LIST.search(text, at, end):
            at = match.end()
            if place := bracketed(text, at - 1, end):
                at = place[1] + 1
                for piece in _pieces(text, *place):
                    yield replace(piece, outer=(match.start(), at))


def _pieces(text: str, begin: int, end: int) -> Iterator[Piece]:
    """Yield the items of a list."""
    at = begin
    for part in split_outside_brackets(text[begin:end], ","):
        if part:
            at = text.index(part, at)
            yield Piece((begin, end), at, at + len(part))
            at += len(part)


def without_pieces(source: IrText, gone: Sequence[Piece]) -> str:
    """Return the text without some pieces."""
    changed, cut = [], {piece.begin for piece in gone}
    for group, outer in dict.fromkeys((piece.group, piece.outer) for piece in gone):
        every = list(_pieces(source.text, *group))
        kept = [source.text[piece.begin : piece.end] for piece in every if piece.begin not in cut]
        if outer and not kept:
            # The blank before it goes along, or it would be left at the end of a line.
            changed.append(Edit(outer[0] - (source.text[outer[0] - 1] == " "), outer[1]))
        else:
            changed.append(Edit(every[0].begin, every[-1].end, ", ".join(kept)))
    return apply(source.text, changed)
