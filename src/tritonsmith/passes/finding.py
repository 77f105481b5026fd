"""`passes.find`: in which pass a text was born, multiplied, and died."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tritonsmith.errors import UsageError
from tritonsmith.passes import locations
from tritonsmith.passes.index import Dump, Index
from tritonsmith.ui import tables


@dataclass(frozen=True)
class Event:
    """A pass that changed how often the text comes.

    Attributes:
        dump: of that pass.
        before: how often it came.
        after: how often it comes then.
    """

    dump: Dump
    before: int
    after: int

    @property
    def what(self) -> str:
        """`born`, `multiplied`, `fewer`, `died`."""
        if not self.before:
            return "born"
        if not self.after:
            return "died"
        return "multiplied" if self.after > self.before else "fewer"


@dataclass(frozen=True)
class Found:
    """Where a text comes.

    Attributes:
        first: how often in the first dump.
        last: how often in the last one that shows it, or would.
        dumps: how many have it.
        events: in the order of the passes.
    """

    first: int
    last: int
    dumps: int
    events: tuple[Event, ...]


def find(index: Index, kernel: str, text: str, *, regex: bool = False) -> Found:
    """Follow a text through the passes of a kernel; locations are not searched.

    Args:
        index: of the folder.
        kernel: one of it.
        text: what to look for.
        regex: it is a regular expression; `^` and `$` match at lines.

    Raises:
        UsageError: the expression is none.
    """
    try:
        pattern = re.compile(text if regex else re.escape(text), re.MULTILINE)
        sought = re.compile(pattern.pattern.encode(), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{text!r} is no regular expression", why=str(error)) from error
    mine = index.of(kernel)
    counts: dict[str, int] = {}
    for dump in mine:
        if dump.sha256 not in counts:
            raw = locations.without(dump.path.rpartition(".")[2], index.path(dump).read_bytes())
            plain = raw.count(text.encode()) if text and not regex else sum(1 for _ in sought.finditer(raw))
            counts[dump.sha256] = plain
    events = tuple(_events(index, mine, counts))
    here = [counts[dump.sha256] for dump in mine]
    ends = events[-1].after if events else here[-1]
    return Found(here[0], ends, sum(map(bool, here)), events)


def _events(index: Index, dumps: tuple[Dump, ...], counts: dict[str, int]) -> Iterator[Event]:
    for dump in dumps:
        if dump.against is not None:
            here, there = counts[dump.sha256], counts[index.dumps[dump.against].sha256]
            before, after = (here, there) if dump.when == "before" else (there, here)
            if before != after:
                yield Event(dump, before, after)


def table(found: Found, text: str) -> Table:
    """The events, one a line."""
    lines = [
        [
            str(event.dump.number),
            event.dump.stage,
            event.dump.argument or event.dump.name,
            str(event.before),
            str(event.after),
            event.what,
        ]
        for event in found.events
    ]
    title = f"{text}: {found.first} at first, in {found.dumps} dumps"
    return tables.plain(
        title, ["pass", "stage", "name", "before", "after", ""], lines, right=["pass", "before", "after"]
    )


def as_json(found: Found) -> dict[str, Any]:
    """The same for programs."""
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
        for event in found.events
    ]
    return {"schema": 1, "first": found.first, "last": found.last, "dumps": found.dumps, "events": events}
