"""Parse and word short texts: versions, lists in brackets, times, sizes, and words that changed.

It knows neither a screen nor a command line, so observers and plans can use it, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

NO_CHANGE = "nothing"
_DEPTH_CHANGES = dict.fromkeys("([{<", 1) | dict.fromkeys(")]}>", -1)


_TICKS = re.compile("`+")


def code_span(text: str) -> str:
    """Return one line of text as a code span of Markdown, in which nothing is a mention or a link."""
    # A span ends at as many backticks as it began with, and CommonMark has no escapes inside of it (6.1).
    ticks = "`" * (max(map(len, _TICKS.findall(text)), default=0) + 1)
    # A blank on both sides is no part of it, and keeps a backtick of the text apart from these.
    blank = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """Return lines of text as a code block of Markdown, whatever backticks they have."""
    fence = "`" * max(3, max(map(len, _TICKS.findall(text)), default=0) + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def version_key(text: str) -> tuple[int, ...]:
    """Return a version such as `3.4.30` as numbers that sort."""
    # A text of a stranger may have thousands of digits, which Python refuses to parse; no version has 18.
    return tuple(int(part[:18]) for part in re.findall(r"\d+", text))


def split_outside_brackets(text: str, separator: str, quotes: str = '"') -> list[str]:
    """Return the stripped parts between separators outside brackets and quotes.

    Args:
        text: a signature, a pass pipeline or an MLIR type: `tensordesc<fp16[128,64]>,(i32,1)` has two parts.
        separator: one or more characters.
        quotes: characters that begin and end a quoted part; a backslash escapes the next character.
    """
    parts, depth, quote, begin, at = [], 0, "", 0, 0
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in quotes:
            quote = char
        elif depth == 0 and text.startswith(separator, at):
            parts.append(text[begin:at].strip())
            begin = at = at + len(separator)
            continue
        # The `>` of MLIR's arrow closes no bracket.
        elif text.startswith("->", at):
            at += 1
        # Never below 0: a bracket too many must not hide the separators after it.
        else:
            depth = max(0, depth + _DEPTH_CHANGES.get(char, 0))
        at += 1
    return [*parts, text[begin:].strip()]


def duration(seconds: float) -> str:
    """Return seconds as text: `0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def short_age(seconds: float) -> str:
    """Return an age in its largest unit: `12 s`, `5 min`, `3 h`, `40 d`."""
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    # A file of another machine may be from the future, by a clock that is ahead.
    return f"{max(seconds, 0):.0f} s"


def byte_size(count: int) -> str:
    """Return bytes as text: `512 B`, `41.9 KiB`, `2.0 GiB`."""
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count / (1 << 10 * power):.1f} {' KMGT'[power]}iB" if power else f"{count} B"


def entry_count(count: int) -> str:
    """Return `1 entry`, `12 entries`."""
    return "1 entry" if count == 1 else f"{count} entries"


def counted(number: int, what: str) -> str:
    """Return `1 kernel`, `2 kernels`."""
    return f"{number} {noun_for(number, what)}"


def noun_for(number: int, noun: str) -> str:
    """Return a regular noun as it stands after a number: `entry`, `entries`."""
    # After a vowel the y stays: `keys`.
    return noun if number == 1 else f"{re.sub(r'(?<![aeiou])y$', 'ie', noun)}s"


def changed_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Return removed words and their replacements, in order; either may be empty."""
    # `autojunk` would pass over the words that are frequent in a command of 200 or more, such as `-I`.
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (" ".join(before[first:last]), " ".join(after[start:end]))
        for kind, first, last, start, end in changes
        if kind != "equal"
    ]


def describe_changed_words(before: Sequence[str], after: Sequence[str]) -> str:
    """Return `-g -> -gsplit-dwarf`, `+ -DNDEBUG`, `without -Wall`; `NO_CHANGE` if both are equal."""
    words = []
    for old, new in changed_words(before, after):
        words.append(f"{old} -> {new}" if old and new else f"+ {new}" if new else f"without {old}")
    return "; ".join(words) or NO_CHANGE
