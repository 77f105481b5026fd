"""Two consoles: answers go to standard output, everything else to standard error.

Output to a terminal is always made `printable`; output to a file or a program is unchanged.

A console that hides secrets and control sequences in everything printed on it.

Human-readable numbers.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from tritonsmith.core import redact
from tritonsmith.core.redact import printable

BOOTSTRAP = "TRITONSMITH_BOOTSTRAP"  # how ./bootstrap was invoked
PIPE_WIDTH = 100  # columns of a file or a pipe, unless COLUMNS says otherwise


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
    return Screen(  # `cuda:100:32` holds an emoji's name
        stderr=stderr, highlight=False, emoji=False, soft_wrap=True, width=width
    )


def write(what: object, end: str = "\n") -> None:
    """Print a text unchanged; to a terminal, its printable form."""
    text, stream = str(what), sys.stdout
    print(printable(text) if stream and stream.isatty() else text, end=end)


def typed(text: str) -> str:
    """Rewrite commands as the user invoked this one: `./bootstrap TASK` works without an active venv.

    Sources always say `invoke TASK`.
    """
    name = Path(sys.argv[0]).name
    called = "tritonsmith" if name == "tritonsmith" else "invoke"
    if name == "__main__.py":  # python -m invoke
        called = os.environ.get(BOOTSTRAP) or called
    return re.sub(r"\binvoke (?=--|[a-z])", lambda _: f"{called} ", text)


def note(text: str) -> None:
    """Print a remark that is neither the answer nor an error."""
    err().print(f"note: {typed(text)}", style="dim", markup=False)


def warn(text: str) -> None:
    """Print a warning about something that may cause trouble later."""
    err().print(f"warning: {typed(text)}", style="yellow", markup=False)


# Makes untrusted text safe for a terminal.


_OF_OURS = "\r"  # a line that is written again and again ends with it


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
            shown = text if control or text == _OF_OURS else printable(text)
            yield Segment(shown, style, control)


def duration(seconds: float) -> str:
    """Return seconds as text: `0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def age(seconds: float) -> str:
    """Return an age in its largest unit: `12 s`, `5 min`, `3 h`, `40 d`."""
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def size(count: int) -> str:
    """Return bytes as text: `512 B`, `41.9 KiB`, `2.0 GiB`."""
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count / (1 << 10 * power):.1f} {' KMGT'[power]}iB" if power else f"{count} B"


def entries(count: int) -> str:
    """Return `1 entry`, `12 entries`."""
    return "1 entry" if count == 1 else f"{count} entries"


def counted(number: int, what: str) -> str:
    """Return `1 kernel`, `2 kernels`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
