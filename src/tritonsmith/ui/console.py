"""Two consoles: answers go to standard output, everything else to standard error.

What a terminal gets is `printable`, whoever wrote it; what a file or a program gets is to the letter.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tritonsmith.ui.printable import printable

if TYPE_CHECKING:
    from tritonsmith.ui.screen import Screen


BOOTSTRAP = "TRITONSMITH_BOOTSTRAP"  # how ./bootstrap was called
UNBOUNDED = 10_000  # columns of a screen that nobody looks at


@cache
def out() -> Screen:
    """Where the answer goes: tables, plans, JSON."""
    return _screen(sys.stdout, stderr=False)


@cache
def err() -> Screen:
    """Where progress, notes and warnings go."""
    return _screen(sys.stderr, stderr=True)


def _screen(stream: TextIO | None, *, stderr: bool) -> Screen:
    from tritonsmith.ui.screen import Screen  # noqa: PLC0415 - `invoke --list` does without Rich

    watched = stream is not None and stream.isatty()
    width = None if watched or os.environ.get("COLUMNS", "").isdecimal() else UNBOUNDED
    return Screen(  # `cuda:100:32` holds an emoji's name
        stderr=stderr, highlight=False, emoji=False, soft_wrap=True, width=width
    )


def write(what: object, end: str = "\n") -> None:
    """Print a text to the letter; to a terminal, what it can show of it."""
    text, stream = str(what), sys.stdout
    print(printable(text) if stream and stream.isatty() else text, end=end)


def typed(text: str) -> str:
    """Commands as this one was typed: `./bootstrap TASK` works where the venv is not active.

    Sources say `invoke TASK`, everywhere.
    """
    name = Path(sys.argv[0]).name
    called = "tritonsmith" if name == "tritonsmith" else "invoke"
    if name == "__main__.py":  # python -m invoke
        called = os.environ.get(BOOTSTRAP) or called
    return re.sub(r"\binvoke (?=--|[a-z])", lambda _: f"{called} ", text)


def note(text: str) -> None:
    """A remark that is neither the answer nor an error."""
    err().print(f"note: {typed(text)}", style="dim", markup=False)


def warn(text: str) -> None:
    """Something that may hurt later."""
    err().print(f"warning: {typed(text)}", style="yellow", markup=False)
