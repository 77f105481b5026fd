"""Show one dump on the screen: `passes.show`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.core.errors import UsageError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.show import stage
from tritonsmith.ir import normalize, strip_locations

_LANGUAGES = {"mlir": "ttgir", "ll": "llir", "ptx": "ptx", "amdgcn": "amdgcn"}  # as kernel.show calls them


def text(index: DumpIndex, dump: Dump, *, plain: bool = False) -> str:
    """Return the IR of a dump; `plain` renumbers values and removes locations."""
    content = index.text(dump)
    return normalize.text(content, dump.language) if plain else content


def highlighted(index: DumpIndex, dump: Dump, *, plain: bool = False) -> Text:
    """Return the same text with colours."""
    content = text(index, dump, plain=plain)
    language = _LANGUAGES.get(dump.kind)
    return stage.highlighted(content, language) if language else Text(content)


# Find the passes that add, duplicate or remove a text: `passes.show --find`.

_NAME = 28  # characters of a pass's name, at least


@dataclass(frozen=True)
class Event:
    """A pass that changed the number of occurrences of the text.

    Attributes:
        dump: of that pass.
        before: occurrences before it.
        after: occurrences after it.
    """

    dump: Dump
    before: int
    after: int

    @property
    def what(self) -> str:
        """The kind of change: `born`, `multiplied`, `fewer`, `died`."""
        if not self.before:
            return "born"
        if not self.after:
            return "died"
        return "multiplied" if self.after > self.before else "fewer"


@dataclass(frozen=True)
class TextHistory:
    """The occurrences of a text.

    Attributes:
        first: occurrences in the first dump.
        last: occurrences at the end: after the last event, or in the last dump if there is none.
        dumps: number of dumps with the text.
        of: number of all dumps.
        events: in the order of the passes.
    """

    first: int
    last: int
    dumps: int
    of: int
    events: tuple[Event, ...]


def find_text(index: DumpIndex, kernel: str, text: str, *, regex: bool = False) -> TextHistory:
    """Follow a text through the passes of a kernel; locations are not searched.

    `^` and `$` of a regular expression match at lines.

    Raises:
        UsageError: the text is empty, or the regular expression is not valid.
    """
    if not text:
        raise UsageError("the text is empty", hints=["give a text to search for: convert_layout"])
    try:
        pattern = re.compile(text if regex else re.escape(text), re.MULTILINE)
        sought = re.compile(pattern.pattern.encode(), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{text!r} is not a valid regular expression", why=str(error)) from error
    mine = index.of(kernel)
    counts: dict[str, int] = {}
    for dump in mine:
        if dump.sha256 not in counts:
            raw = strip_locations.without(dump.kind, index.content(dump))
            counts[dump.sha256] = len(sought.findall(raw)) if regex else raw.count(text.encode())
    events = tuple(_events(index, mine, counts))
    here = [counts[dump.sha256] for dump in mine]
    ends = events[-1].after if events else here[-1]
    return TextHistory(here[0], ends, sum(map(bool, here)), pass_runs.totals(index, kernel).dumps, events)


def _events(index: DumpIndex, dumps: tuple[Dump, ...], counts: dict[str, int]) -> Iterator[Event]:
    last: Dump | None = None
    for dump in dumps:
        before = after = counts[dump.sha256]
        if dump.against is not None:
            there = counts[index.dumps[dump.against].sha256]
            before, after = (before, there) if dump.when == "before" else (there, before)
        elif dump.when != "before" and last is not None and last.kind != dump.kind:
            before = counts[last.sha256]  # another language: the translation to it counts as a pass
        if before != after:
            yield Event(dump, before, after)
        last = dump


def events_table(history: TextHistory, text: str) -> Grid:
    """Return a table with one row per event."""
    lines = []
    for event in history.events:
        dump, counts = event.dump, (str(event.before), str(event.after))
        lines.append([str(dump.number), dump.stage, dump.label, *counts, event.what])
    title = f"{text}: {history.first} in the first dump, present in {history.dumps} of {history.of} dumps"
    heads = ["pass", "stage", "name", "before", "after", ""]
    return tables.plain(title, heads, lines, right=["pass", "before", "after"], cut={"name": _NAME})


def events_as_json(history: TextHistory) -> dict[str, Any]:
    """Return the history as JSON data."""
    events = [
        {
            "number": event.dump.number,
            "stage": event.dump.stage,
            "name": event.dump.name,
            "argument": event.dump.argument,
            "before": event.before,
            "after": event.after,
            "what": event.what,
        }
        for event in history.events
    ]
    return {"schema": 1, **vars(history), "events": events}
