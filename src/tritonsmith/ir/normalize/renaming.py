"""Rename values after their definitions: `%addi_3f2a`, `%c64_i32`, `%arg0`.

Numbers in the order of appearance would rename everything below one more operation. A name depends on the
operation and what it computes with, never on the old name of the value. Each language has a reader that makes
`IrLine`s; this module names the values in them. Two texts whose names still differ are matched by `diff`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from zlib import crc32

MARK = "\0"  # stands for a name in a masked line

_ROUNDS = 8  # of attributes that refer to attributes
_BLANKS = re.compile(r'("(?:[^"\\\n]|\\.)*+"?)|[ \t]+')


@dataclass(frozen=True, slots=True)
class Define:
    """A name that a line defines.

    Attributes:
        place: its place among the line's names.
        stem: the beginning of its new name: `%addi`; the whole name if `exact`.
        exact: the stem is the whole name: `%arg0`, `%c64_i32`.
    """

    place: int
    stem: str
    exact: bool = False


@dataclass(slots=True)
class IrLine:
    """A line, as the reader of a language returns it.

    Attributes:
        mask: its text, with `MARK` for each name.
        names: as written, in order.
        defines: the names that it defines.
        label: whether it begins a block: the names that it defines depend on the following line.
        begins: whether a function begins: the scope of value names starts anew.
    """

    mask: str
    names: Sequence[str] = ()
    defines: Sequence[Define] = ()
    label: bool = False
    begins: bool = False


@dataclass(slots=True)
class NormalForm:
    """A text in normal form. Each named thing has a number, its place in `names`.

    Attributes:
        masks: lines without names.
        uses: for each line the numbers of the things that it names.
        defines: for each line the numbers of the things that it defines, or is the first to name.
        names: normal names.
        scopes: for each number, the function that it belongs to, counted from 1; 0 for the module itself.
    """

    masks: list[str] = field(default_factory=list)
    uses: list[Sequence[int]] = field(default_factory=list)
    defines: list[Sequence[int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    scopes: list[int] = field(default_factory=list)

    def lines(self, names: Sequence[str] | None = None) -> list[str]:
        """Return the lines, with other names if some are given."""
        chosen = self.names if names is None else names
        return [
            filled(mask, [chosen[use] for use in uses])
            for mask, uses in zip(self.masks, self.uses, strict=True)
        ]


def filled(mask: str, names: Sequence[str]) -> str:
    """Fill names into a masked line."""
    return "".join(chain.from_iterable(zip(mask.split(MARK), (*names, ""), strict=True))) if names else mask


def split(pattern: re.Pattern[str], text: str) -> tuple[list[str], list[str]]:
    """Split a line into names and the text between them, of which there is one more part.

    Args:
        pattern: one group: a name, or a string, which counts as text.
        text: the text of the line.
    """
    # Strings match as well, so that no name is found within one; they go back to the text between the names.
    parts = pattern.split(text)
    if '"' not in text:
        return parts[::2], parts[1::2]
    between, names = [parts[0]], []
    for name, after in zip(parts[1::2], parts[2::2], strict=True):
        if name.startswith('"'):
            between[-1] += name + after
        else:
            names.append(name)
            between.append(after)
    return between, names


def spaced(text: str) -> str:
    """Put one blank between the words of a line, and none around them; strings stay as they are."""
    # Printers vary: `ttg.async_wait  {num = 0 : i32}` is Triton 3.4's.
    text = text.strip()
    return _BLANKS.sub(lambda match: match[1] or " ", text) if "  " in text or "\t" in text else text


def indented(text: str, by: str | None = None) -> str:
    """Do the same as `spaced`, but keep the indentation, or replace it by `by`; a blank line is empty."""
    words = spaced(text)
    indent = text[: len(text) - len(text.lstrip())]
    return (indent if by is None else indent and by) + words if words else ""


def assembly(
    texts: Iterable[str],
    names: re.Pattern[str],
    label: re.Pattern[str],
    begins: re.Pattern[str] | None = None,
) -> Iterator[IrLine]:
    """Yield lines of assembly, in which only labels are defined.

    Args:
        texts: the text of each line.
        names: one group: a name, or a string.
        label: matches a label's line; its first group is the stem of the label's new name.
        begins: matches a line that begins a function.
    """
    for text in texts:
        between, line_names = split(names, text)
        match = label.match(text) if line_names else None
        defines = (Define(0, match[1]),) if match else ()
        starts = begins is not None and begins.match(text) is not None
        yield IrLine(MARK.join(between), line_names, defines, label=match is not None, begins=starts)


def named(lines: Iterable[IrLine], known: Mapping[str, str], stem: Callable[[str], str]) -> NormalForm:
    """Name the values in some lines.

    Args:
        lines: the lines of the text.
        known: names of the whole text (layouts, attributes) to their new ones.
        stem: returns the stem for a value that no line defines.
    """
    form, work = NormalForm(), _Work()
    for line in lines:
        if line.begins:
            work.begin()
        form.masks.append(line.mask)
        uses, defines = work.take(line, known, stem) if line.names else (work.plain(line.mask), ())
        form.uses.append(uses)
        form.defines.append(defines)
    form.names, form.scopes = work.names(), work.scopes
    return form


def by_meaning(
    bodies: Mapping[str, tuple[str, str]], pattern: re.Pattern[str]
) -> tuple[dict[str, str], dict[str, IrLine]]:
    """Return new names for named attributes, after their content, and their defining lines.

    Args:
        bodies: name to the stem of its new name, and to its definition, which may mention others.
        pattern: one group: a name in a definition, or a string.
    """
    parts = {name: split(pattern, body) for name, (_, body) in bodies.items()}
    masks = {name: MARK.join(between) for name, (between, _) in parts.items()}
    keys = {name: crc32(mask.encode("utf-8", "replace")) for name, mask in masks.items()}
    distinct = 0
    # Attributes refer to each other: each round mixes in the content of those that are referred to, until
    # no more of them can be told apart.
    for _ in range(_ROUNDS):
        if len(set(keys.values())) == distinct:
            break
        distinct = len(set(keys.values()))
        keys = {
            name: _mixed(keys[name], [keys.get(used, 0) if used != name else 1 for used in used_names])
            for name, (_, used_names) in parts.items()
        }
    counts: Counter[str] = Counter()
    known = {}
    for name, (stem, _) in bodies.items():
        known[name] = _counted(f"{stem}_{keys[name] & 0xFFFF:04x}", counts)
    lines = {}
    for name, (_, used_names) in parts.items():
        lines[name] = IrLine(f"{MARK} = {masks[name]}", (name, *used_names))
        for used in used_names:
            known.setdefault(used, used)  # not defined in this text
    return known, lines


def in_order(
    texts: Iterable[str],
    pattern: re.Pattern[str],
    attributes: Mapping[str, IrLine],
    known: dict[str, str],
    read: Callable[[str, dict[str, str]], IrLine],
) -> Iterator[IrLine]:
    """Yield all lines; order consecutive definitions of attributes by content, as numbers are arbitrary.

    Args:
        texts: the text of each line.
        pattern: matches a whole line that defines an attribute; its first group is the name.
        attributes: name to the line that defines it.
        known: names of the whole text to their new ones.
        read: makes the line of any other text.
    """

    def place(line: IrLine) -> tuple[str, str, str]:
        name = known[line.names[0]]
        return kind(name), line.mask, name

    waiting: dict[str, IrLine] = {}
    for text in texts:
        if (match := pattern.fullmatch(text)) and match[1] in attributes:
            waiting[match[1]] = attributes[match[1]]
            continue
        yield from sorted(waiting.values(), key=place)
        waiting = {}
        yield read(text, known)
    yield from sorted(waiting.values(), key=place)


class _Work:
    """The state of naming: the values so far."""

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self._scope = 0
        self._here: dict[str, int] = {}  # name, as written, to number
        self._global: dict[str, int] = {}
        self._stems: list[str] = []
        self._exact: list[bool] = []
        self._resolved: list[bool] = []
        # Checksums of the defining line with its names masked, with its operands' lines, and with those of
        # their operands; the last makes the name. It looks no farther, so a change renames at most two steps
        # below it. Layouts contribute their kind, not their content.
        self._near: list[int] = []
        self._far: list[int] = []
        self._keys: list[int] = []
        self._labels: list[int] = []  # labels that wait for the line after them

    def begin(self) -> None:
        self._scope += 1
        self._here = {}

    def plain(self, mask: str) -> Sequence[int]:
        if self._labels:
            self._label(crc32(mask.encode("utf-8", "replace")))
        return ()

    def take(
        self, line: IrLine, known: Mapping[str, str], stem: Callable[[str], str]
    ) -> tuple[Sequence[int], Sequence[int]]:
        mask = crc32(line.mask.encode("utf-8", "replace"))
        # A label has no operands to be named after, so the line below it gives it its name.
        if self._labels and not line.label:
            self._label(mask)
        defined = {define.place: define for define in line.defines}
        numbers: list[int] = [-1] * len(line.names)
        new: list[int] = []
        for place, name in enumerate(line.names):
            if place in defined:
                continue
            if name in known:
                numbers[place] = self._of_module(known[name])
                mask = crc32(kind(known[name]).encode("utf-8", "replace"), mask)
            elif (number := self._here.get(name)) is not None:
                numbers[place] = number
            else:
                new.append(place)
        operands = [number for number in numbers if number >= 0 and self.scopes[number]]
        near, far = (
            [self._near[operand] for operand in operands],
            [self._far[operand] for operand in operands],
        )
        # Names without a definition so far come second: their checksums take in those of all operands that
        # are known.
        for place in new:
            name = line.names[place]
            if name in self._here:  # twice in this line
                numbers[place] = self._here[name]
                continue
            # A part of a function has no line that begins one. Its values are those of function 1, as 0 is
            # the module.
            numbers[place] = self._here[name] = self._new(self._scope or 1)
            self._set(numbers[place], stem(name), f"{mask}.{place}", near, far)
        for define in line.defines:
            name = line.names[define.place]
            before = self._here.get(name)
            # The use of a value may come before the block that defines it: then the definition completes it.
            waits = before is not None and not self._resolved[before]
            number = before if before is not None and waits else self._new(self._scope or 1)
            numbers[define.place] = self._here[name] = number
            key = define.stem if define.exact else f"{mask}.{define.place}"
            self._set(number, define.stem, key, near, far)
            self._exact[number] = define.exact
            self._resolved[number] = True
            if line.label and not define.place:
                self._labels.append(number)
        return numbers, [numbers[place] for place in sorted({*defined, *new})]

    def names(self) -> list[str]:
        counts: dict[int, Counter[str]] = {}
        names = []
        for stem, exact, key, scope in zip(self._stems, self._exact, self._keys, self.scopes, strict=True):
            if not scope:
                names.append(stem)
                continue
            # Values that are equal as far as the checksum looks get a counter: `%addi_3f2a.2`.
            name = stem if exact else f"{stem}_{key & 0xFFFF:04x}"
            names.append(_counted(name, counts.setdefault(scope, Counter())))
        return names

    def _new(self, scope: int) -> int:
        self.scopes.append(scope)
        self._stems.append("")
        self._exact.append(False)
        self._resolved.append(False)
        for keys in (self._near, self._far, self._keys):
            keys.append(0)
        return len(self._stems) - 1

    def _of_module(self, name: str) -> int:
        number = self._global.get(name)
        if number is None:
            number = self._global[name] = self._new(0)
            self._stems[number] = name
        return number

    def _set(self, number: int, stem: str, key: str, near: Sequence[int], far: Sequence[int]) -> None:
        self._stems[number] = stem
        own = self._near[number] = crc32(key.encode("utf-8", "replace"))
        self._far[number] = _mixed(own, near)
        self._keys[number] = _mixed(own, far)

    def _label(self, mask: int) -> None:
        for number in self._labels:
            self._near[number] = self._far[number] = self._keys[number] = mask
        self._labels = []


def kind(name: str) -> str:
    """Return the kind of a name: `#blocked` of `#blocked_3f2a`; a name of another form is its own kind."""
    return name.rpartition("_")[0] or name


def _mixed(own: int, others: Collection[int]) -> int:
    # Not hash(): Python salts it for strings in each process (PYTHONHASHSEED), and the same kernel would get
    # other names in each run.
    return crc32(repr(others).encode(), own)


def _counted(name: str, counts: Counter[str]) -> str:
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}.{counts[name]}"
