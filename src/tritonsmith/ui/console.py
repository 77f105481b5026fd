"""Two consoles: answers go to standard output, everything else to standard error."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonsmith.ui.screen import Screen


@cache
def out() -> Screen:
    """Where the answer goes: tables, plans, JSON."""
    from tritonsmith.ui.screen import Screen  # noqa: PLC0415 - `invoke --list` does without Rich

    return Screen(highlight=False, emoji=False, soft_wrap=True)  # `cuda:100:32` holds an emoji's name


@cache
def err() -> Screen:
    """Where progress, notes and warnings go."""
    from tritonsmith.ui.screen import Screen  # noqa: PLC0415

    return Screen(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def typed(text: str) -> str:
    """Commands by the name that the program was called by: `invoke TASK` works beside tasks.py only."""
    if Path(sys.argv[0]).name != "tritonsmith":
        return text
    return re.sub(r"\binvoke (?=--|[a-z])", "tritonsmith ", text)


def note(text: str) -> None:
    """A remark that is neither the answer nor an error."""
    err().print(f"note: {typed(text)}", style="dim", markup=False)


def warn(text: str) -> None:
    """Something that may hurt later."""
    err().print(f"warning: {typed(text)}", style="yellow", markup=False)
