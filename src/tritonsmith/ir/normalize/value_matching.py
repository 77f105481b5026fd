"""Match values, blocks and layouts of two normal forms, although their names differ.

Names come from the neighbourhood of a value, so a change renames values close to it. Here the two texts are
compared: first equal lines; between them lines with equal uses, whatever the names of their definitions;
between those, lines that are equal with names masked; then lines of the same operation. The definitions of
such lines correspond, and then their uses. Then the second text is written with the names of the first, and
each remaining difference is a real change: another operation, type, constant or operand. A layout in both
texts is the same layout; others correspond as values do, so that 8 warps instead of 4 show in the definitions
of layouts, not in every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tritonsmith.ir.normalize import line_alignment
from tritonsmith.ir.normalize.renaming import MARK, NormalForm, filled, kind

_ROUNDS = 4  # a value is found by its operands, those by theirs ...
_COUNTER = re.compile(r"\.\d+$")
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def names(first: NormalForm, second: NormalForm) -> list[str]:
    """Return names for the second form: corresponding values get the first form's name."""
    matches = _Found(first, second)
    matches.the_same([number for number, scope in enumerate(first.scopes) if not scope])
    matches.the_same(range(len(first.names)), alone=True)
    anchors = line_alignment.pairs(_uncounted(first), _uncounted(second))
    matches.defined(anchors)
    matches.used(anchors)
    ends = _undefined(first, first.names)
    for _ in range(_ROUNDS):
        more = _between(anchors, ends, _undefined(second, matches.names()))
        if not more:
            break
        matches.used(more)
        anchors = sorted(anchors + more)
    masked = _between(anchors, _masked(first), _masked(second))
    headed = _between(sorted(anchors + masked), _heads(first.masks), _heads(second.masks))
    matches.defined(masked)
    matches.the_same(range(len(first.names)))
    matches.defined(headed)
    matches.used(masked)
    return matches.names()


class _Found:
    """The correspondences so far; the first one of a value counts."""

    def __init__(self, first: NormalForm, second: NormalForm) -> None:
        self._first, self._second = first, second
        self._there: dict[int, int] = {}  # first's number to second's
        self._back: dict[int, int] = {}
        self._named = {
            (scope, name): number
            for number, (scope, name) in enumerate(zip(second.scopes, second.names, strict=True))
        }
        self._alike = _alike(first) | _alike(second)

    def defined(self, lines: Iterable[tuple[int, int]]) -> None:
        """Match the definitions of corresponding lines."""
        for first_line, other in lines:
            self.all_of(zip(self._first.defines[first_line], self._second.defines[other], strict=False))

    def used(self, lines: Iterable[tuple[int, int]]) -> None:
        """Match the uses of corresponding lines that differ in names only."""
        for first_line, other in lines:
            self.all_of(zip(self._first.uses[first_line], self._second.uses[other], strict=False))

    def all_of(self, couples: Iterable[tuple[int, int]]) -> None:
        for number, other in couples:
            free = number not in self._there and other not in self._back
            if free and self._sort(self._first, number) == self._sort(self._second, other):
                self._there[number], self._back[other] = other, number

    @staticmethod
    def _sort(form: NormalForm, number: int) -> str:
        """Return the sort of a thing: a value, a block, or a layout of some kind."""
        name = form.names[number]
        return name[:1] if form.scopes[number] else f"of the module: {kind(name)}"

    def the_same(self, numbers: Iterable[int], *, alone: bool = False) -> None:
        """Match things of equal names; with `alone`, only if no other thing would have the same name."""
        for number in numbers:
            key = (self._first.scopes[number], self._first.names[number])
            several = alone and _COUNTER.sub("", key[1]) in self._alike
            if (other := self._named.get(key)) is not None and not several:
                self.all_of([(number, other)])

    def names(self) -> list[str]:
        taken = set(self._first.names)
        return [
            self._first.names[self._back[number]]
            if number in self._back
            else f"{name}'"
            if name in taken
            else name
            for number, name in enumerate(self._second.names)
        ]


def _alike(form: NormalForm) -> set[str]:
    """Return the names that several values would have without the counter."""
    return {name.removesuffix(".2") for name in form.names if name.endswith(".2")}


def _uncounted(form: NormalForm) -> list[str]:
    """Return the lines without counters: an insertion shifts all counters after it."""
    return form.lines([_COUNTER.sub("", name) for name in form.names])


def _undefined(form: NormalForm, names: Sequence[str]) -> list[str]:
    """Return the lines with the names of their uses, without those of their definitions."""
    return [
        filled(mask, [MARK if use in defines else names[use] for use in uses])
        for mask, uses, defines in zip(form.masks, form.uses, form.defines, strict=True)
    ]


def _masked(form: NormalForm) -> list[str]:
    """Return the lines without names; a layout keeps its kind."""
    return form.lines(
        [MARK if scope else kind(name) for scope, name in zip(form.scopes, form.names, strict=True)]
    )


def _heads(masks: Sequence[str]) -> list[str]:
    """Return the operation of each line: its first word that is not a name."""
    return [match[0] if (match := _WORD.search(mask)) else mask for mask in masks]


def _between(
    anchors: Sequence[tuple[int, int]], first: Sequence[str], second: Sequence[str]
) -> list[tuple[int, int]]:
    """Return more pairs between pairs."""
    result = []
    for left, other in line_alignment.gaps(anchors, len(first), len(second)):
        inside = line_alignment.pairs(first[left.start : left.stop], second[other.start : other.stop])
        result += [(left.start + a, other.start + b) for a, b in inside]
    return result
