"""Differences for the screen: a unified diff in colours, and words that were replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a line's first character


def coloured(lines: Iterable[str]) -> Text:
    """Return the lines of a diff, each with a line end."""
    from rich.text import Text  # noqa: PLC0415 - plans are compared without Rich

    text = Text()
    for line in lines:
        text.append(f"{line}\n", style=_STYLES.get(line[:1], ""))
    return text


NOTHING = "nothing"


def changed_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Return removed words and their replacements, in order; either may be empty."""
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (" ".join(before[first:last]), " ".join(after[start:end]))
        for kind, first, last, start, end in changes
        if kind != "equal"
    ]


def in_words(before: Sequence[str], after: Sequence[str]) -> str:
    """Return `-g -> -gsplit-dwarf`, `+ -DNDEBUG`, `without -Wall`; `nothing` if both are equal."""
    words = []
    for old, new in changed_words(before, after):
        words.append(f"{old} -> {new}" if old and new else f"+ {new}" if new else f"without {old}")
    return "; ".join(words) or NOTHING
