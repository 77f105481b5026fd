"""What goes besides operations: arguments that nobody uses, attributes, aliases that nobody names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tritonsmith.core import brackets
from tritonsmith.ir.ir_text import IrText, Op, bracketed, uses
from tritonsmith.lab.reduce import text_edits
from tritonsmith.lab.reduce.reductions.operations import arguments
from tritonsmith.lab.reduce.text_edits import Edit

_ALIAS = re.compile(r"([#!][\w$.\-]+)\s*=")
_LIST = re.compile(r"(?:\battributes\s*)?(?<![<\w])\{(?=[^\n{}]*[^\s{}][^\n]*\})")


@dataclass(frozen=True)
class Piece:
    """A part of a list that can go.

    Attributes:
        group: offsets of the list that it is in.
        begin: offset.
        end: offset after it.
        outer: offsets of what goes when the list becomes empty: its brackets; None if an empty list may stay.
    """

    group: tuple[int, int]
    begin: int
    end: int
    outer: tuple[int, int] | None = None


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
    """Parts of a list between commas."""
    at = begin
    for part in brackets.split(text[begin:end], ","):
        if part:
            at = text.index(part, at)
            yield Piece((begin, end), at, at + len(part))
            at += len(part)


def without(source: IrText, gone: Sequence[Piece]) -> str:
    """The text without some pieces."""
    changed, cut = [], {one.begin for one in gone}
    for group, outer in dict.fromkeys((one.group, one.outer) for one in gone):
        every = list(_pieces(source.text, *group))
        kept = [source.text[one.begin : one.end] for one in every if one.begin not in cut]
        if outer and not kept:
            changed.append(Edit(outer[0] - (source.text[outer[0] - 1] == " "), outer[1]))
        else:
            changed.append(Edit(every[0].begin, every[-1].end, ", ".join(kept)))
    return text_edits.apply(source.text, changed)
