"""Changes to a text, each at a place of its own: cut out, put in, rename."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """The replacement of the text between two offsets."""

    begin: int
    end: int
    text: str = ""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; one that lies in another goes with it."""
    parts, at = [], 0
    for edit in sorted(set(edits), key=lambda one: (one.begin, -one.end)):
        if edit.begin < at:
            continue
        parts += [text[at : edit.begin], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
