"""Which values, blocks and layouts of one normal form are those of another, though their names differ.

Names come from the neighbourhood of a value, so a change renames what is close to it. Here the two texts
are laid side by side: first lines that are equal as they are; between them lines that use the same,
whatever they call what they define; between those lines that are equal with names masked; then lines of the
same operation. What such lines define corresponds, and then what they use. Then the second text is written
with the names of the first, and what still differs is a real change: another operation, type, constant or
operand. A layout that both have is the same layout; others correspond as values do, so that 8 warps instead
of 4 show in the definitions of layouts, not in every line.
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
    """Names for the second form, such that what corresponds has the same name; those of the first stay."""
    found = _Found(first, second)
    found.the_same([number for number, scope in enumerate(first.scopes) if not scope])
    found.the_same(range(len(first.names)), alone=True)
    anchors = line_alignment.pairs(_uncounted(first), _uncounted(second))
    found.defined(anchors)
    found.used(anchors)
    ends = _undefined(first, first.names)
    for _ in range(_ROUNDS):
        more = _between(anchors, ends, _undefined(second, found.names()))
        if not more:
            break
        found.used(more)
        anchors = sorted(anchors + more)
    masked = _between(anchors, _masked(first), _masked(second))
    headed = _between(sorted(anchors + masked), _heads(first.masks), _heads(second.masks))
    found.defined(masked)
    found.the_same(range(len(first.names)))
    found.defined(headed)
    found.used(masked)
    return found.names()


class _Found:
    """What corresponds so far; who comes first holds."""

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
        """What is defined on lines that correspond."""
        for one, other in lines:
            self.all_of(zip(self._first.defines[one], self._second.defines[other], strict=False))

    def used(self, lines: Iterable[tuple[int, int]]) -> None:
        """What is named on lines that correspond and are equal but for names."""
        for one, other in lines:
            self.all_of(zip(self._first.uses[one], self._second.uses[other], strict=False))

    def all_of(self, couples: Iterable[tuple[int, int]]) -> None:
        for one, other in couples:
            free = one not in self._there and other not in self._back
            if free and self._sort(self._first, one) == self._sort(self._second, other):
                self._there[one], self._back[other] = other, one

    @staticmethod
    def _sort(form: NormalForm, number: int) -> str:
        """A value, a block; or a layout of which kind."""
        name = form.names[number]
        return name[:1] if form.scopes[number] else f"of the module: {kind(name)}"

    def the_same(self, numbers: Iterable[int], *, alone: bool = False) -> None:
        """Those of one name; with `alone` only if no other is alike."""
        for one in numbers:
            key = (self._first.scopes[one], self._first.names[one])
            several = alone and _COUNTER.sub("", key[1]) in self._alike
            if (other := self._named.get(key)) is not None and not several:
                self.all_of([(one, other)])

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
    """Names that several values would have but for the counter."""
    return {name.removesuffix(".2") for name in form.names if name.endswith(".2")}


def _uncounted(form: NormalForm) -> list[str]:
    """Lines in which values that are alike have one name: with an insertion all counters after it shift."""
    return form.lines([_COUNTER.sub("", name) for name in form.names])


def _undefined(form: NormalForm, names: Sequence[str]) -> list[str]:
    """Lines with the names of what they use, without those of what they define."""
    return [
        filled(mask, [MARK if use in defines else names[use] for use in uses])
        for mask, uses, defines in zip(form.masks, form.uses, form.defines, strict=True)
    ]


def _masked(form: NormalForm) -> list[str]:
    """Lines without names; of a layout the kind stays."""
    return form.lines(
        [MARK if scope else kind(name) for scope, name in zip(form.scopes, form.names, strict=True)]
    )


def _heads(masks: Sequence[str]) -> list[str]:
    """The operation of each line: its first word that is no name."""
    return [match[0] if (match := _WORD.search(mask)) else mask for mask in masks]


def _between(
    anchors: Sequence[tuple[int, int]], first: Sequence[str], second: Sequence[str]
) -> list[tuple[int, int]]:
    """More pairs between pairs."""
    found = []
    for one, other in line_alignment.gaps(anchors, len(first), len(second)):
        inside = line_alignment.pairs(first[one.start : one.stop], second[other.start : other.stop])
        found += [(one.start + a, other.start + b) for a, b in inside]
    return found
