"""Values on the command line: numbers, words, dtypes, tuples; and lists of them, split at commas."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from tritonsmith.core import brackets

_LITERALS = {"none": None, "true": True, "false": False}
_DTYPES = re.compile(
    r"(?=.*tl\.)\((tl\.\w+|-?\d+)(,\s*(tl\.\w+|-?\d+))*,?\)"
)  # a tuple of dtypes and integers
DTYPE = "dtype"  # {"dtype": "float16"}: how JSON carries a value of tl.dtype


def split(text: str) -> list[str]:
    """Split a text at commas outside brackets and quotes, and strip the parts; empty for an empty text."""
    return brackets.split(text, ",", quotes="'\"") if text.strip() else []


def parse(text: str) -> Any:
    """Parse a word: a number, True, False, None, a tuple, `tl.float16`; any other word is a string."""
    if text.lower() in _LITERALS:
        return _LITERALS[text.lower()]
    if text.startswith("tl.") and text[3:].isidentifier():
        return {DTYPE: text[3:]}
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if _DTYPES.fullmatch(text):
            return tuple(map(parse, split(text[1:-1].rstrip(","))))
        return _number(text)
    return value if is_value(value) and not isinstance(value, dict) else text


def _number(text: str) -> Any:
    try:
        return float(text)  # inf, nan, 1e-5
    except ValueError:
        return text


def is_value(value: object) -> bool:
    """Report whether JSON and a command line can carry a value; the worker turns lists back into tuples."""
    if isinstance(value, dict):
        return [*value] == [DTYPE] and isinstance(value[DTYPE], str) and value[DTYPE].isidentifier()
    if isinstance(value, (list, tuple)):
        return all(map(is_value, value))
    return value is None or isinstance(value, (bool, int, float, str))


def spell(value: Any) -> str:
    """Return the text that `parse` turns into this value."""
    return "".join(_spelling(value))


def _spelling(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"tl.{value[DTYPE]}"
    elif isinstance(value, (list, tuple)):
        yield f"({','.join(spell(part) for part in value)}{',' if len(value) == 1 else ''})"
    elif isinstance(value, str) and parse(value) != value:
        yield repr(value)
    else:
        yield str(value)
