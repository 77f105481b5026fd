"""Draw tables that always fit the screen.

A row stays a row. If a table is too wide, texts wrap between words and columns that can be spared are
omitted by name; if that does not help, long words break at their hyphens and dots; if there are still too
many columns, the rest follows below, beside the same keys. Only where all rows fit side by side is a table
turned instead: a line for each metric. Numbers are never broken, and cut texts are marked. Files and pipes
get a fixed width (`console.PIPE_WIDTH`) unless COLUMNS sets another; `--wide` shows tables in full width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.text import Text

from tritonsmith.core import redact
from tritonsmith.core.redact import printable
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console

STATUS_STYLES = {
    "ok": "green",
    "not applicable": "dim",
    "note": "cyan",
    "warning": "yellow",
    "error": "bold red",
    "crashed": "bold magenta",
}
_GAP = "  "
_TEXT = 16  # characters that a column of text has at least, if it wants so many
_ACROSS = 16  # characters of a text that stands beside others in a table that is turned
_SHORTEST = 12  # characters that are left of a name, at least; a shorter word is never broken
_BREAKS = re.compile(r"\s+|(?<=[,;/])(?=[^\s\d])|(?<=[^\d][,;/])(?=\S)")  # `1,024` is one word
_HYPHENS = "-_.:=|)]}>"  # a word that is too long breaks behind these

Cell = str | Text


class _Screen:
    """The state of the screen: whether tables are shown in full width."""

    wide = False


def widen(*, wide: bool) -> None:
    """Show tables in full width (`--wide`)."""
    _Screen.wide = wide


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        head: the heading.
        right: aligned right: numbers.
        cut: shortened with a mark instead of wrapped, to at least this many characters; 0: never.
        spare: omitted on narrow screens, smallest number first; 0: never.
    """

    head: Text
    right: bool = False
    cut: int = 0
    spare: int = 0


@dataclass(frozen=True)
class Grid:
    """A table that fits itself to the screen when printed.

    Attributes:
        title: the title; may be empty.
        columns: from left to right.
        rows: the cells.
        keys: number of columns at the left that identify a row.
        styles: of the rows; empty if no row has one.
        across: always a line for each metric, with the rows side by side.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    keys: int = 1
    styles: tuple[str, ...] = ()
    across: bool = False

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        # Another process draws: the width of its screen is not known here.
        if console.writes_records():
            yield Text(console.record("table", self.as_json()), no_wrap=True, overflow="ignore")
            return
        yield from map(unwrapped, self.lines(width_of(options)))

    def as_json(self) -> dict[str, Any]:
        """Return the table for `of_json`, in another process."""
        return {
            "title": self.title,
            "columns": [
                (_as_json(column.head), column.right, column.cut, column.spare) for column in self.columns
            ],
            "rows": [[_as_json(cell) for cell in row] for row in self.rows],
            "keys": self.keys,
            "styles": self.styles,
            "across": self.across,
        }

    @staticmethod
    def of_json(content: Mapping[str, Any]) -> Grid:
        """Return the table of `as_json`."""
        columns = tuple(Column(Text(*head), *rest) for head, *rest in content["columns"])
        rows = tuple(tuple(Text(*cell) for cell in row) for row in content["rows"])
        styles = tuple(content["styles"])
        return Grid(content["title"], columns, rows, content["keys"], styles, content["across"])

    def lines(self, width: int | None) -> Iterator[Text]:
        """Yield the table, line by line.

        Args:
            width: of the screen; None for full width.
        """
        body, left_out = (self._turned(width), ()) if self.across else self._upright(width)
        yield from _folded(Text(self.title, "table.title"), width) if self.title else ()
        if left_out:
            yield from _folded(Text(f"not shown: {', '.join(left_out)}; --wide", "dim"), width)
        yield from body
        yield Text("")

    def _upright(self, width: int | None) -> tuple[Iterable[Text], tuple[str, ...]]:
        """Return the rows as rows, and the heads of the columns that are omitted."""
        chosen = list(range(len(self.columns)))
        if width is None:
            return self._drawn(chosen, self._extents(chosen, _TEXT)[1]), ()
        # The gentlest way first: nothing is lost with empty columns, so they are not even named.
        if not self._fits(chosen, self._extents(chosen, _TEXT)[0], width):
            chosen = [
                index
                for index in chosen
                if index < self.keys or any(row[index].plain.strip() for row in self.rows)
            ]
        spare = sorted(
            (index for index in chosen if self.columns[index].spare),
            key=lambda index: self.columns[index].spare,
        )
        gone: list[str] = []
        while spare and not self._fits(chosen, self._extents(chosen, _TEXT)[0], width):
            gone.append(_one_line(self.columns[spare[0]].head).plain)
            chosen.remove(spare.pop(0))
        if widths := self._widths(chosen, width):
            return self._drawn(chosen, widths), tuple(gone)
        bands = self._bands(chosen, width)
        # A table that fits into one block when it is turned is easier to read so than cut into bands.
        if not bands or len(self._side_by_side_blocks(width)[2]) == 1:
            return self._turned(width), ()
        return self._banded(bands, width), tuple(gone)

    @staticmethod
    def _fits(chosen: Sequence[int], widths: Sequence[int], width: int) -> bool:
        return sum(widths) + len(_GAP) * (len(chosen) - 1) <= width

    def _widths(self, chosen: Sequence[int], width: int) -> list[int]:
        """Return the widths of these columns on this screen; empty if they do not fit."""
        room = width - len(_GAP) * (len(chosen) - 1)
        least, most = self._extents(chosen, _TEXT)
        if sum(least) > room:
            # From the gentlest way to the harshest: shorten what may be cut, then break words; only then
            # are columns split into bands.
            least = self._squeezed(chosen, self._extents(chosen, 0)[0], room)
        if sum(least) > room:
            least = self._broken_words(chosen, self._extents(chosen, _TEXT)[0], room)
        return _shared(least, most, room) if sum(least) <= room else []

    def _broken_words(self, chosen: Sequence[int], least: Sequence[int], room: int) -> list[int]:
        """Narrow the widest columns of text, whose long words will be broken; the keys last."""
        narrowed = list(least)
        floors = [
            least[place] if column.right else max(_SHORTEST, _longest_head(column))
            for place, column in enumerate(self.columns[number] for number in chosen)
        ]
        while sum(narrowed) > room:
            places = [place for place, floor in enumerate(floors) if narrowed[place] > floor]
            if not places:
                break
            # A broken name is worse than a broken sentence: columns of keys are the last to be narrowed.
            others = [place for place in places if chosen[place] >= self.keys and narrowed[place] > _TEXT]
            narrowed[max(others or places, key=lambda place: narrowed[place])] -= 1
        return narrowed

    def _bands(self, chosen: Sequence[int], width: int) -> list[list[int]]:
        """Return the columns in bands, each beginning with the keys; empty if one does not fit the screen."""
        keys = [number for number in chosen if number < self.keys]
        bands: list[list[int]] = []
        for number in chosen[len(keys) :]:
            if bands and self._widths([*bands[-1], number], width):
                bands[-1].append(number)
            elif self._widths([*keys, number], width):
                bands.append([*keys, number])
            else:
                return []
        return bands

    def _banded(self, bands: Sequence[Sequence[int]], width: int) -> Iterator[Text]:
        for band in bands:
            if band is not bands[0]:
                yield Text("")
            yield from self._drawn(band, self._widths(band, width))

    def _extents(self, chosen: Sequence[int], text: int) -> tuple[list[int], list[int]]:
        """Return least and natural width of each column; one of text has at least `text`, if it needs it."""
        least, most = [], []
        for number in chosen:
            column, cells = self.columns[number], [row[number] for row in self.rows]
            head = _longest_head(column)
            natural = max(_natural([column.head]), _natural(cells))
            # A number is never broken or wrapped: half of one reads as another number.
            if column.right:
                floor = max(head, _natural(cells))
            elif column.cut:
                floor = max(head, min(column.cut, natural))
            else:
                floor = max(head, _longest_word(cells), min(text, natural))
            least.append(floor)
            most.append(natural)
        return least, most

    def _squeezed(self, chosen: Sequence[int], least: Sequence[int], room: int) -> list[int]:
        """Shorten the columns that may be cut."""
        widths, over = list(least), sum(least) - room
        for place, number in enumerate(chosen):
            if self.columns[number].cut:
                less = min(max(0, over), max(0, widths[place] - _SHORTEST))
                widths[place] -= less
                over -= less
        return widths

    def _drawn(self, chosen: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
        columns = [self.columns[number] for number in chosen]
        heads = [list(_folded(column.head, width)) for column, width in zip(columns, widths, strict=True)]
        yield from _side_by_side(heads, columns, widths, "table.header", bottom=True)
        yield _rule(widths)
        for number, row in enumerate(self.rows):
            cells = []
            for column, place, width in zip(columns, chosen, widths, strict=True):
                cells.append([_cut(row[place], width)] if column.cut else list(_folded(row[place], width)))
            yield from _side_by_side(cells, columns, widths, self.styles[number] if self.styles else "")

    def _side_by_side_blocks(self, width: int | None) -> tuple[int, list[int], list[list[int]]]:
        """Return a turned table's width of the labels, that of each row, and the rows of each block."""
        labels, corner = self._labels()
        first = max(_natural(labels.values()), _natural([corner]))
        if width is not None:
            # Labels take half of the screen at most, or no value would fit beside them.
            first = min(first, max(_longest_word([*labels.values(), corner]), width // 2))
        room = None if width is None else max(_SHORTEST, width - first - len(_GAP))
        widths = [
            _across([_key(row[: self.keys]), *(row[number] for number in labels)], room) for row in self.rows
        ]
        return first, widths, list(_blocks(widths, room))

    def _labels(self) -> tuple[dict[int, Text], Text]:
        """Return a turned table's label of each column that has values, and the corner above the labels."""
        labels = {
            number: _one_line(self.columns[number].head)
            for number in range(self.keys, len(self.columns))
            if any(row[number].plain.strip() for row in self.rows)
        }
        return labels, Text("\n").join(column.head for column in self.columns[: self.keys])

    def _turned(self, width: int | None) -> Iterator[Text]:
        """Yield a line for each metric; rows side by side, in as many blocks as needed."""
        labels, corner = self._labels()
        first, widths, blocks = self._side_by_side_blocks(width)
        label = Column(Text(""))
        for block in blocks:
            taken = [first, *(widths[number] for number in block)]
            columns = [label, *(Column(Text(""), right=True) for _ in block)]
            heads = [list(_folded(_key(self.rows[number][: self.keys]), widths[number])) for number in block]
            yield from _side_by_side(
                [list(_folded(corner, first)), *heads], columns, taken, "table.header", bottom=True
            )
            yield _rule(taken)
            for metric, name in labels.items():
                cells = [list(_folded(self.rows[number][metric], widths[number])) for number in block]
                yield from _side_by_side([list(_folded(name, first)), *cells], columns, taken, "")
            if block is not blocks[-1]:
                yield Text("")


def plain(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    right: Sequence[str] = (),
    cut: Mapping[str, int] | None = None,
    spare: Sequence[str] = (),
    keys: int = 1,
    styles: Sequence[str] = (),
    across: bool = False,
) -> Grid:
    """Return a table.

    Args:
        title: the heading.
        columns: their heads.
        rows: cells as text.
        right: heads of right-aligned columns: numbers, which are never broken.
        cut: heads of columns that are shortened with a mark, with the minimum number of characters.
        spare: heads of columns that are omitted on narrow screens, in this order.
        keys: number of columns that identify a row.
        styles: of the rows.
        across: a line for each metric, with the rows side by side.
    """
    order = {head: number for number, head in enumerate(spare, 1)}
    heads = [
        Column(Text(printable(head)), head in right, (cut or {}).get(head, 0), order.get(head, 0))
        for head in columns
    ]
    cells = tuple(tuple(map(_clean, row)) for row in rows)
    return Grid(printable(redact.hidden(title)), tuple(heads), cells, keys, tuple(styles), across)


def width_of(options: ConsoleOptions) -> int | None:
    """Return the columns of the screen; None with `--wide`."""
    return None if _Screen.wide else options.max_width


def unwrapped(line: Text) -> Text:
    """Return a line that neither Rich nor we break any further."""
    line.no_wrap, line.overflow = True, "ignore"
    return line


def wrapped(line: Text, width: int | None, indent: int) -> list[Text]:
    """Wrap between words; a word that is wider than the screen, a path for example, stays whole.

    Args:
        line: one line.
        width: of the screen; None: any.
        indent: of all lines after the first.
    """
    if width is None or line.cell_len <= width:
        return [line]
    lines: list[Text] = []
    begin = end = 0
    for word in re.finditer(r"\s*\S+", line.plain):
        hanging = indent if lines else 0
        if (
            end > begin
            and hanging + line[begin : word.end()].cell_len > width
            and line.plain[begin:end].strip()
        ):
            lines.append(Text(" " * hanging) + line[begin:end])
            begin = word.end() - len(word[0].lstrip())
        end = word.end()
    lines.append(Text(" " * (indent if lines else 0)) + line[begin:])
    return lines


def clipped(text: str, most: int) -> str:
    """Return the text, cut with a mark if it is too long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _as_json(cell: Text) -> tuple[str, str]:
    return cell.plain, str(cell.style)


def _clean(cell: Cell) -> Text:
    """Return the text without secrets and control characters; `[toolchain]` is not markup."""
    if isinstance(cell, Text):
        return Text(printable(redact.hidden(cell.plain)), cell.style)
    return Text(printable(redact.hidden(cell)))


def _natural(cells: Iterable[Text]) -> int:
    return max((line.cell_len for cell in cells for line in cell.split("\n", allow_blank=True)), default=0)


def _longest_word(cells: Iterable[Text]) -> int:
    words = (Text(word) for cell in cells for word in _BREAKS.split(cell.plain) if word)
    return max((word.cell_len for word in words), default=0)


def _longest_head(column: Column) -> int:
    """Return the width of the longest word of a heading; a unit such as `B/thread` is one."""
    return max((Text(word).cell_len for word in column.head.plain.split()), default=0)


def _one_line(head: Text) -> Text:
    return Text(" ".join(head.plain.split()), head.style)


def _key(cells: Sequence[Text]) -> Text:
    return Text("\n").join(cell for cell in cells if cell.plain) if len(cells) > 1 else cells[0]


def _across(cells: Sequence[Text], room: int | None) -> int:
    """Return the width of a row of a turned table."""
    natural = _natural(cells)
    if room is None:
        return natural
    return min(room, max(_longest_word(cells), min(natural, _ACROSS)))


def _blocks(widths: Sequence[int], room: int | None) -> Iterator[list[int]]:
    """Indices of the rows in each block."""
    block: list[int] = []
    taken = 0
    for number, width in enumerate(widths):
        more = width + (len(_GAP) if block else 0)
        if block and room is not None and taken + more > room:
            yield block
            block, taken, more = [], 0, width
        block.append(number)
        taken += more
    if block:
        yield block


def _shared(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Return widths of columns; remaining space goes to the narrowest columns that need more."""
    # One cell at a time, so that two long columns end equally wide, not the first one whole.
    widths = list(least)
    left = room - sum(widths)
    while left > 0 and (wanting := [index for index in range(len(widths)) if widths[index] < most[index]]):
        widths[min(wanting, key=lambda index: widths[index])] += 1
        left -= 1
    return widths


def _cut(cell: Text, width: int) -> Text:
    """Shorten to one line, with a mark."""
    # By Rich, which counts the cells of wide characters, not by a slice.
    line = _one_line(cell)
    line.truncate(width, overflow="ellipsis")
    return line


def _folded(cell: Text, width: int | None) -> Iterator[Text]:
    """Yield the lines of a cell, wrapped between words, and within a word only if the screen is narrower."""
    for line in cell.split("\n", allow_blank=True):
        if width is None or line.cell_len <= width:
            yield line
        else:
            yield from _broken(line, width)


def _broken(line: Text, width: int) -> Iterator[Text]:
    indent = len(line.plain) - len(line.plain.lstrip())  # what hangs below a name hangs in all its lines
    indent = indent if indent < width // 2 else 0
    begin, end = indent, indent
    places = sorted({*(match.end() for match in _BREAKS.finditer(line.plain, indent)), len(line.plain)})

    def piece(stop: int) -> Text:
        part = line[begin:stop]
        part.rstrip()
        return Text(" " * indent, line.style) + part

    for place in places:
        if end > begin and piece(place).cell_len > width:
            yield piece(end)
            begin = end
        while piece(place).cell_len > width:  # one word
            stop = begin + 1
            while piece(stop + 1).cell_len <= width:
                stop += 1
            # A hyphen in the first half would leave most of the line empty: then the word breaks at the edge.
            half = begin + (stop - begin) // 2
            stop = next((at for at in range(stop, half, -1) if line.plain[at - 1] in _HYPHENS), stop)
            yield piece(stop)
            begin = stop
        end = place
    if begin < end:
        yield piece(end)


def _rule(widths: Sequence[int]) -> Text:
    return Text("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), "table.header")


def _side_by_side(
    cells: Sequence[Sequence[Text]],
    columns: Sequence[Column],
    widths: Sequence[int],
    style: str,
    *,
    bottom: bool = False,
) -> Iterator[Text]:
    """Yield the lines of a row with multi-line cells side by side."""
    height = max(map(len, cells), default=0)
    for number in range(height):
        line = Text(style=style)
        for lines, column, width in zip(cells, columns, widths, strict=True):
            at = number - (height - len(lines)) if bottom else number
            part = lines[at] if 0 <= at < len(lines) else Text("")
            blank = " " * max(0, width - part.cell_len)
            line.append(blank if column.right else "").append_text(part)
            line.append(("" if column.right else blank) + _GAP)
        line.rstrip()
        yield line


def stages(answer: Mapping[str, Any]) -> Grid:
    """Return the worker's answer: one row per target, one column per stage, with sizes."""
    names = list(dict.fromkeys(name for result in answer["results"] for name in result["stages"]))
    rows = []
    for result in answer["results"]:
        sizes = {name: f"{stage['bytes'] / 1024:.1f}" for name, stage in result["stages"].items()}
        cells = [sizes.get(name, "") for name in names]
        rows.append([result["target"], *cells, duration(result["seconds"])])
    title = f"vector_add by Triton {answer['triton']} on Python {answer['python']}, no GPU; sizes in KiB"
    return plain(title, ["target", *names, "time"], rows, right=[*names, "time"])


def phases(seconds: Mapping[str, float]) -> Grid:
    """Return the duration of each phase, and its share."""
    whole = sum(seconds.values()) or 1.0
    rows = [[phase, duration(took), f"{100 * took / whole:.0f} %"] for phase, took in seconds.items()]
    rows.append(["all", duration(whole), ""])
    return plain("phases", ["phase", "time", "share"], rows, right=["time", "share"])
