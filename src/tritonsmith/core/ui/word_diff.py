"""The difference of two lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

NOTHING = "nothing"


def parts(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Removed words and their replacements, in order; either may be empty."""
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (" ".join(before[first:last]), " ".join(after[start:end]))
        for kind, first, last, start, end in changes
        if kind != "equal"
    ]


def in_words(before: Sequence[str], after: Sequence[str]) -> str:
    """`-g -> -gsplit-dwarf`, `+ -DNDEBUG`, `without -Wall`; `nothing` if both are equal."""
    words = []
    for old, new in parts(before, after):
        words.append(f"{old} -> {new}" if old and new else f"+ {new}" if new else f"without {old}")
    return "; ".join(words) or NOTHING
