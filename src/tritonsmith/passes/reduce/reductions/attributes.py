"""What goes besides operations: arguments that nobody uses, attributes, aliases that nobody names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tritonsmith import brackets
from tritonsmith.passes.reduce import text_edits
from tritonsmith.passes.reduce.ir_text import IrText, Op, uses
from tritonsmith.passes.reduce.reductions.operations import arguments
from tritonsmith.passes.reduce.text_edits import Edit

_ALIAS = re.compile(r"([#!][\w$.\-]+)\s*=")
_LIST = re.compile(r"(?:\battributes\s*)?(?<![<\w])\{(?=[^\n{}]*[^\s{}][^\n]*\})")


@dataclass(frozen=True)
class Piece:
    """A part of a list that can go.

    Attributes:
        group: which list it is in.
        begin: offset.
        end: offset after it.
    """

    group: tuple[int, int]
    begin: int
    end: int


def without_aliases(source: IrText) -> str:
    """The text without the aliases that nobody names."""
    text = source.text
    while True:
        found = parse_aliases(text)
        unused = [
            Edit(begin, end)
            for begin, end, name in found
            if not re.search(re.escape(name) + r"(?![\w$.\-])", text[:begin] + text[end:])
        ]
        if not unused:
            return text
        text = text_edits.apply(text, unused)


def parse_aliases(text: str) -> Iterator[tuple[int, int, str]]:
    """Begin, end and name of each `#name = ...`."""
    for match in re.finditer(r"^[#!][^\n]*(?:\n|\Z)", text, re.MULTILINE):
        if name := _ALIAS.match(match[0]):
            yield match.start(), match.end(), name[1]


def unused_arguments(source: IrText) -> tuple[Piece, ...]:
    """Arguments of functions that nothing in them uses."""
    found = []
    for function in source.functions():
        place = arguments(source.text, function)
        if place is None or not function.regions:
            continue
        body = source.text[place[1] : function.end]
        for piece in _pieces(source.text, *place):
            name = re.match(r"\s*(%[\w$.\-]+)", source.text[piece.begin : piece.end])
            if name and not uses(name[1]).search(body):
                found.append(piece)
    return tuple(found)


def attributes(source: IrText) -> tuple[Piece, ...]:
    """Entries of all `{...}` that are attributes: of modules, functions, arguments and operations."""
    found: list[Piece] = []
    for op in source.ops():
        found += _attributes(source.text, op)
    return tuple(found)


def _attributes(text: str, op: Op) -> Iterator[Piece]:
    parts = [(op.begin, op.begin + len(op.head))]
    if op.regions:
        parts.append((op.regions[-1].end, op.end))
    for begin, end in parts:
        at = begin
        while match := _LIST.search(text, at, end):
            close = _close(text, match.end(), end)
            if close is None:
                at = match.end()
                continue
            for piece in _pieces(text, match.end(), close):
                yield Piece((match.start(), close + 1), piece.begin, piece.end)
            at = close + 1


def _close(text: str, begin: int, end: int) -> int | None:
    depth = 0
    for position in range(begin, end):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth < 0:
            return position
    return None


def _pieces(text: str, begin: int, end: int) -> Iterator[Piece]:
    """Parts of a list between commas."""
    at = begin
    for part in brackets.split(text[begin:end], ","):
        if part:
            at = text.index(part, at)
            yield Piece((begin, end), at, at + len(part))
            at += len(part)


def without(source: IrText, gone: Iterable[Piece], every: Sequence[Piece], *, brackets: bool) -> str:
    """The text without some pieces; a list that becomes empty goes with its brackets, if they may.

    Args:
        source: the text.
        gone: what goes.
        every: all pieces.
        brackets: whether the group of a piece has its own.
    """
    left, groups = set(gone), dict.fromkeys(one.group for one in gone)
    changed = []
    for group in groups:
        mine = [one for one in every if one.group == group] or [one for one in left if one.group == group]
        kept = [source.text[one.begin : one.end] for one in mine if one not in left]
        if brackets and not kept:
            begin = group[0] - (source.text[group[0] - 1] == " ")
            changed.append(Edit(begin, group[1]))
        else:
            begin, end = mine[0].begin, mine[-1].end
            changed.append(Edit(begin, end, ", ".join(kept)))
    return text_edits.apply(source.text, changed)


def all_arguments(source: IrText) -> tuple[Piece, ...]:
    """Arguments of all functions, used or not."""
    return tuple(
        piece
        for function in source.functions()
        if (place := arguments(source.text, function))
        for piece in _pieces(source.text, *place)
    )
