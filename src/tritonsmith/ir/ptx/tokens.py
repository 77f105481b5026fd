"""Split PTX into words: a register `%r21` is one word, so it is never taken for the beginning of `%r210`.

Source of the lexical rules: the PTX ISA manual, "Syntax" (identifiers, constants, comments, reserved words).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["space", "comment", "string", "number", "dot", "name", "mark"]

# Each text begins with exactly one of these; none of them goes back over what it has read ("possessive").
_TOKEN = re.compile(
    r"""
      (?P<space>   \s++ )
    | (?P<comment> //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)? )
    | (?P<string>  "(?:[^"\\\n]|\\.)*+"? )
    | (?P<number>  0[fF][0-9a-fA-F]++ | 0[dD][0-9a-fA-F]++      # the bits of a float, of a double
                 | 0[xX][0-9a-fA-F]++U? | 0[bB][01]++U?
                 | [0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+U? )
    | (?P<dot>     \.[A-Za-z0-9_$]++(?:::[A-Za-z0-9_]++)*+ )    # .reg, .global, .shared::cta, .2d
    | (?P<name>    [A-Za-z_$][A-Za-z0-9_$]*+ | %[A-Za-z0-9_$]++ )
    | (?P<mark>    . )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word.

    Attributes:
        kind: `dot` is a directive or a modifier (`.reg`, `.b32`), `mark` a single other character.
        text: as written; the texts of all tokens make the input.
        line: on which it begins, from 1.
    """

    kind: Kind
    text: str
    line: int

    @property
    def blank(self) -> bool:
        """True for white space or a comment."""
        return self.kind in ("space", "comment")


def tokenize(text: str) -> Iterator[Token]:
    """Yield the words of a text, valid PTX or not: each character belongs to one of them."""
    line = 1
    for match in _TOKEN.finditer(text):
        word = match[0]
        yield Token(cast("Kind", match.lastgroup), word, line)
        line += word.count("\n")
