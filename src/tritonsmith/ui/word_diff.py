"""The difference of two lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

NOTHING = "nothing"


def parts(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Removed words and their replacements, in order; either may be empty.

    Args:
        before: such as the flags of a compile.
        after: the same, now.
    """
    found = []
    for kind, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            found.append((" ".join(before[first:last]), " ".join(after[start:end])))
    return found


def in_words(before: Sequence[str], after: Sequence[str]) -> str:
    """`-g -> -gsplit-dwarf`, `+ -DNDEBUG`, `without -Wall`; `nothing` if both are equal."""
    words = []
    for old, new in parts(before, after):
        words.append(f"{old} -> {new}" if old and new else f"+ {new}" if new else f"without {old}")
    return "; ".join(words) or NOTHING
