"""Two consoles: answers go to standard output, everything else to standard error.

Output to a terminal is always made `printable`; output to a file or a program is unchanged.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tritonsmith.core.redact import printable

if TYPE_CHECKING:
    from tritonsmith.core.ui.screen import Screen


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
    from tritonsmith.core.ui.screen import Screen  # noqa: PLC0415 - `invoke --list` does without Rich

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
