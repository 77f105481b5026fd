"""The words of PTX, and the parts of a PTX module, as the parser returns them.

A register `%r21` is one word, so it is never taken for the beginning of `%r210`. Source of the lexical rules:
the PTX ISA manual, "Syntax" (identifiers, constants, comments, reserved words).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast


@dataclass(frozen=True)
class Param:
    """A parameter of an entry or a function.

    Attributes:
        name: as loads address it.
        type: `u64`, `f32`, `b8` ...
        length: of an array, in elements; None for a scalar.
        pointer: it is declared with `.ptr`.
        line: of its declaration.
    """

    name: str
    type: str
    length: int | None
    pointer: bool
    line: int

    @property
    def bits(self) -> int:
        """The width of one element, in bits."""
        return width(self.type)


@dataclass(frozen=True)
class Named:
    """One name in a declaration.

    Attributes:
        name: the name, or the prefix of a range.
        count: of a range, `%r<39>`: from `%r0` to `%r38`.
        array: the text between brackets, as in `[24]`; None if it is no array.
        init: the initial value, as written, or empty.
    """

    name: str
    count: int | None = None
    array: str | None = None
    init: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Statement:
    """A statement of a body.

    Attributes:
        line: on which it begins.
    """

    line: int


@dataclass(frozen=True)
class Label(Statement):
    """A label: `$L__BB0_2:`."""

    name: str


@dataclass(frozen=True)
class Open(Statement):
    """The `{` that begins a scope."""


@dataclass(frozen=True)
class Close(Statement):
    """The `}` that ends a scope."""


@dataclass(frozen=True)
class Declaration(Statement):
    """Variables of one type in one state space.

    Attributes:
        space: `reg`, `shared`, `local`, `param`, `global` or `const`.
        modifiers: between the space and the names, as in `.align 8 .b8`.
        type: the last modifier: `b8`.
        names: the declared names.
        external: `.extern`.
    """

    space: str
    modifiers: str
    type: str
    names: tuple[Named, ...]
    external: bool = False


@dataclass(frozen=True)
class Directive(Statement):
    """A directive: `.loc`, `.pragma`, `.branchtargets` ...

    Attributes:
        name: without its dot.
        words: the rest; a blank is one token of one space.
    """

    name: str
    words: tuple[Token, ...]


@dataclass(frozen=True)
class Instruction(Statement):
    """One instruction.

    Attributes:
        guard: register of its predicate, or None.
        negated: the guard is `@!`.
        opcode: with its modifiers: `ld.global.b32`.
        operands: up to the semicolon; a blank is one token of one space.
    """

    guard: str | None
    negated: bool
    opcode: str
    operands: tuple[Token, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The words of the opcode: `ld`, `global`, `b32`."""
        return tuple(self.opcode.split("."))

    def __str__(self) -> str:
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {''.join(word.text for word in self.operands)}".strip()


@dataclass(frozen=True)
class Function:
    """An entry (a kernel) or a function of its own.

    Attributes:
        name: of its symbol.
        entry: it is a kernel.
        results: results of a function.
        params: its parameters.
        directives: between its parameters and its body: `reqntid` to (128,).
        placed: directive to its line.
        body: None if it is only declared.
        line: of its name.
    """

    name: str
    entry: bool
    results: tuple[Param, ...]
    params: tuple[Param, ...]
    directives: dict[str, tuple[int, ...]]
    placed: dict[str, int]
    body: tuple[Statement, ...] | None
    line: int


@dataclass(frozen=True)
class Module:
    """A PTX file.

    Attributes:
        version: of PTX: `8.7`.
        target: `sm_90a`.
        variables: of the module: `.extern .shared`, `.global` ...
        functions: entries, functions and declarations of them, in order.
    """

    version: str
    target: str
    variables: tuple[Declaration, ...]
    functions: tuple[Function, ...]


def width(kind: str) -> int:
    """Return the bits of a fundamental type: 32 for `u32`, 1 for `pred`, 0 if it names none."""
    digits = "".join(filter(str.isdigit, kind.partition("x")[0]))
    return 1 if kind == "pred" else int(digits or 0)


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
