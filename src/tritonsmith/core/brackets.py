"""Splits texts at separators outside brackets and quotes: signatures, pass pipelines, MLIR types."""

from __future__ import annotations

_STEPS = dict.fromkeys("([{<", 1) | dict.fromkeys(")]}>", -1)


def split(text: str, separator: str, quotes: str = '"') -> list[str]:
    """Return the stripped parts between separators outside brackets and quotes.

    Args:
        text: `tensordesc<fp16[128,64]>,(i32,1)` has two between commas. `->` closes no bracket.
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
        elif text.startswith("->", at):
            at += 1
        else:
            depth = max(0, depth + _STEPS.get(char, 0))
        at += 1
    return [*parts, text[begin:].strip()]
