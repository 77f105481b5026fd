"""Show an answer on the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from tritonsmith.atlas.answer import AtlasAnswer
from tritonsmith.atlas.source_files import Place
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import counted

_MOST = 6  # places of a section, rows of a table; --json has all
_LINES = 12  # of a description
_WIDTH = 96
# A section, and what an empty one says.
_EMPTY = {
    "implemented": "no C++ file was found that implements it",
    "bound": "no binding to Python",
    "called": "no backend calls it from Python",
    "tests": "no test names it",
    "read": "no source reads it under this name",
    "language": "no function of the language builds it",
    "used": "no other file names it",
    "built": "no function of the builder makes it",
}
_ORDER = (
    "defined", "implemented", "bound", "called", "called in C++", "built", "language", "read", "declared",
    "printed", "patterns", "binds", "calls", "made by", "in the pipeline", "option of CMake", "used", "tests",
)  # fmt: skip


def blocks(answer: AtlasAnswer, *, everything: bool = False) -> Iterator[Text | Grid]:
    """Yield the page: summary, places, users."""
    most = 10_000 if everything or answer.kind == "map" else _MOST
    title = Text(f"{answer.kind} ", "dim") + Text(answer.name, "bold")
    yield title + Text(f": {answer.summary}" if answer.summary else "")
    if answer.description:
        yield Text("\n".join(_description(answer.description, everything=everything)))
    if answer.facts:
        yield Text("\n".join(line for name, text in answer.facts.items() for line in _fact(name, text)))
    for name in (*_ORDER, *(item for item in answer.places if item not in _ORDER)):
        if name in answer.places and (lines := [*_section(name, answer.places[name], most)]):
            yield Text("\n".join(lines))
    for name, rows in answer.tables.items():
        if rows:
            heads = {"arguments": "constraint", "results": "constraint", "folders": "size"}.get(name, "type")
            shown = [
                [item, type_, _one_line(about)]
                for item, type_, about in (rows if answer.kind == "map" else rows[: most * 3])
            ]
            used = [at for at in range(3) if any(row[at] for row in shown)]
            columns = ["name", heads, "what"]
            yield tables.plain(
                name, [columns[at] for at in used], [[row[at] for at in used] for row in shown]
            )
            if (more := len(rows) - len(shown)) > 0:
                yield Text(f"  and {more} more: --json")
    for change in answer.changes:
        yield Text(
            "\n".join(
                _fact(
                    "changed",
                    f"{change.date} {change.commit} {change.author}: {change.subject}",
                    str(change.place),
                )
            )
        )
    if answer.others:
        yield Text("\n".join(_fact("elsewhere", "; ".join(answer.others))))


def table(rows: Sequence[AtlasAnswer], what: str, root: object) -> Grid:
    """Return a table of all passes, ops, DEBUG_TYPEs or variables."""
    lines = [[row.name, row.summary, str(row.first or "")] for row in rows]
    return tables.plain(f"{len(rows)} {what} of {root}", ["name", "what", "where"], lines)


def _description(text: str, *, everything: bool) -> Iterator[str]:
    paragraphs = text.strip().split("\n\n")
    lines = [
        line
        for one in paragraphs
        for line in ([*one.splitlines(), ""] if _verbatim(one) else [*textwrap.wrap(one, _WIDTH), ""])
    ][:-1]
    shown = lines if everything else lines[:_LINES]
    yield from (f"  {line}".rstrip() for line in shown)
    if len(shown) < len(lines):
        yield f"  ... {len(lines) - len(shown)} more lines: --all"


def _verbatim(paragraph: str) -> bool:
    shaped = ("  ", "* ", "- ", "[", "|")
    return "```" in paragraph or any(line.startswith(shaped) for line in paragraph.splitlines())


def _fact(name: str, text: str, place: str = "") -> Iterator[str]:
    lines = textwrap.wrap(text, _WIDTH - 14, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {name:<13} {lines[0]}"
    yield from (f"  {'':<13} {line}" for line in (*lines[1:], *filter(None, [place])))


def _section(name: str, places: Iterable[Place], most: int) -> Iterator[str]:
    listed = [*places]
    if not listed:
        if name in _EMPTY:
            yield f"  {name:<13} {_EMPTY[name]}"
        return
    head = name
    if len(name) > 13:  # noqa: PLR2004 - the column: a step of a launch
        yield f"  {name}"
        head = ""
    for one in listed[:most]:
        yield f"  {head:<13} {one}  {_one_line(one.what)}".rstrip()
        head = ""
        yield from (f"  {'':<15} if {_one_line(test)}" for test in one.when)
    if (more := len(listed) - most) > 0:
        yield f"  {'':<13} and {counted(more, 'more place')}: --all"


def _one_line(text: str) -> str:
    return textwrap.shorten(" ".join(text.split()), 160, placeholder=" ...")
