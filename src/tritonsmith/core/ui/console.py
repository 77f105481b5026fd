"""Two consoles: answers go to standard output, everything else to standard error.

Both hide secrets. Output to a terminal is made `printable` as well; a file or a program gets it unchanged.

Where the reader is another process of ours, it gets records besides text: `watch` a task's tables, and the
files that it makes; `mcp` how far a task is, also of one that prints JSON. A record is a line of output: RS
and JSON, as in RFC 7464.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from tritonsmith.core import command_line, redact
from tritonsmith.core.redact import printable

# Here as well: whoever prints a hint imports this module anyhow.
BOOTSTRAP, PIPE_WIDTH, typed = command_line.BOOTSTRAP, command_line.PIPE_WIDTH, command_line.typed

_REWRITTEN = "\r"  # ends a line of Rich's that is written again and again
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a line's first character
_RECORD_MARK = "\x1e"
_RECORD_KINDS = {"file", "progress", "table"}


@cache
def out() -> Screen:
    """Return the console for answers: tables, plans, JSON."""
    return _screen(sys.stdout, stderr=False)


@cache
def err() -> Screen:
    """Return the console for progress, notes and warnings."""
    return _screen(sys.stderr, stderr=True)


def _screen(stream: TextIO | None, *, stderr: bool) -> Screen:
    # A pipe has no width of its own; Rich would take 80 and break lines that a program reads.
    watched = stream is not None and stream.isatty()
    width = None if watched or os.environ.get("COLUMNS", "").isdecimal() else PIPE_WIDTH
    # Rich would replace a part of `cuda:100:32`, which is the name of an emoji.
    return Screen(stderr=stderr, highlight=False, emoji=False, soft_wrap=True, width=width)


def write(what: object, end: str = "\n") -> None:
    """Print a text unchanged; to a terminal, its printable form."""
    text, stream = str(what), sys.stdout
    print(printable(text) if stream and stream.isatty() else text, end=end)


def note(text: str) -> None:
    """Print a remark that is neither the answer nor an error."""
    err().print(f"note: {typed(text)}", style="dim", markup=False)


def warn(text: str) -> None:
    """Print a warning about something that may cause trouble later."""
    err().print(f"warning: {typed(text)}", style="yellow", markup=False)


def coloured_diff(lines: Iterable[str]) -> Text:
    """Return the lines of a unified diff in colours, each with a line end."""
    text = Text()
    for line in lines:
        text.append(f"{line}\n", style=_DIFF_STYLES.get(line[:1], ""))
    return text


class _Records:
    """The records that the reader of our output wants: of tables and files if `on`, of progress."""

    on = False
    progress = False


def begin_records() -> None:
    """Write records of tables and files from now on."""
    _Records.on = True


def begin_progress() -> None:
    """Write records of progress from now on."""
    _Records.progress = True


def writes_records() -> bool:
    """Return whether records are written."""
    return _Records.on


def record(kind: str, content: Any) -> str:
    """Return a record as a line of output."""
    return _RECORD_MARK + json.dumps({kind: content})


def record_file(path: Path) -> None:
    """Record that a file of text is a part of the answer."""
    if writes_records():
        print(record("file", str(path)), flush=True)


def record_progress(text: str) -> bool:
    """Record how far a task is, on standard error; return whether the reader wants such records."""
    if _Records.progress:
        print(record("progress", redact.hidden(text)), file=sys.stderr, flush=True)
    return _Records.progress


def parse_record(line: str) -> dict[str, Any]:
    """Return a record by its kind; empty for a line of text, even one that begins as a record does."""
    # A program may print any bytes, a mark among them, and JSON nested too deeply after it.
    try:
        content = json.loads(line[1:]) if line.startswith(_RECORD_MARK) else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and content.keys() <= _RECORD_KINDS else {}


class Screen(Console):
    """Rich's console, whose texts and JSON are without secrets; cells of tables are handled by `ui.tables`.

    A terminal gets no control characters except Rich's own.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.is_terminal:
            self.push_render_hook(_Cleaning())

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; see Rich."""
        # Tables have hidden the secrets of their cells before wrapping them: half a token is not recognized.
        shown = (redact.hidden(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def print_json(self, json: str | None = None, *, data: Any = None, **options: Any) -> None:
        """Print JSON; see Rich."""
        super().print_json(json, data=redact.data(data), **options)


class _Cleaning(RenderHook):
    """The last filter before the terminal."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clean what is printed."""
        return [_Clean(renderable) for renderable in renderables]


@dataclass(frozen=True)
class _Clean:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            shown = text if control or text == _REWRITTEN else printable(text)
            yield Segment(shown, style, control)
