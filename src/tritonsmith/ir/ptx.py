"""Parse PTX as compilers write it: modules, declarations, bodies with nested scopes.

The parser knows the form of statements, not the meaning of instructions: new instructions need no change
here. Source of the rules: the PTX ISA manual, "Syntax", "Directives" and "Performance-Tuning Directives".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError

Kind = Literal["space", "comment", "string", "number", "dot", "name", "mark"]

# Every text begins with exactly one of these, so no character is lost. `++` and `*+` are possessive: they
# never go back over what they have read, whatever the input. `%r21` is one word, and no beginning of `%r210`.
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
_SPACES = ("reg", "shared", "local", "param", "global", "const", "sreg", "tex")
_LINKING = (".extern", ".visible", ".weak", ".common")
# The only directives that end with their line; all others end with a semicolon.
_TO_LINE_END = (".file", ".loc")


def read(path: Path) -> Module:
    """Read a `.ptx` file.

    Raises:
        FactError: it cannot be read, or is not PTX.
    """
    try:
        text = untrusted.read_bytes(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FactError("cannot read this PTX", where=path, why=str(error)) from error
    return parse(text, path)


def parse(text: str, where: object = "PTX") -> Module:
    """Parse a module; errors name `where` it is from.

    Raises:
        FactError: it is not PTX; the error names the line.
    """
    return _PtxParser(text, where).module()


@dataclass(frozen=True)
class Param:
    """A parameter of an entry or a function.

    Attributes:
        name: its name, by which loads address it.
        type: its type: `u64`, `f32`, `b8` ...
        length: the number of elements of an array; None for a scalar.
        pointer: whether it is declared with `.ptr`.
        line: the line of its declaration.
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
        count: the number of names in a range: 39 for `%r<39>`, which is `%r0` to `%r38`.
        array: the text of the brackets, as in `[24]`; None if it is no array.
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
        line: the line on which it begins.
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
        modifiers: the text between the space and the names, as in `.align 8 .b8`.
        type: the last modifier: `b8`.
        names: the declared names.
        external: whether it is `.extern`.
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
        name: its name, without the dot.
        words: the rest; a blank is one token of one space.
    """

    name: str
    words: tuple[Token, ...]


@dataclass(frozen=True)
class Instruction(Statement):
    """One instruction.

    Attributes:
        guard: the register of its predicate, or None.
        negated: whether the guard is `@!`.
        opcode: the opcode with its modifiers: `ld.global.b32`.
        operands: the words up to the semicolon; a blank is one token of one space.
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
    """An entry, which is a kernel, or a function.

    Attributes:
        name: the name of its symbol.
        entry: whether it is a kernel.
        results: the results of a function.
        params: its parameters.
        directives: the numbers of each directive between its parameters and its body: (128,) for `reqntid`.
        placed: the line of each of these directives.
        body: its statements; None if it is only declared.
        line: the line of its name.
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
        version: the version of PTX: `8.7`.
        target: the GPU: `sm_90a`.
        variables: the variables of the module: `.extern .shared`, `.global` ...
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


@dataclass(frozen=True, slots=True)
class Token:
    """One word.

    Attributes:
        kind: `dot` is a directive or a modifier (`.reg`, `.b32`), `mark` a single other character.
        text: its text, as written; the texts of all tokens together are the input.
        line: the line on which it begins, from 1.
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


_BLANK = Token("space", " ", 0)


class _PtxParser:
    def __init__(self, text: str, where: object) -> None:
        self.where = where
        self.tokens = list(tokenize(text))
        self.at = 0
        self._skip()

    def _skip(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].blank:
            self.at += 1

    @property
    def now(self) -> Token:
        if self.at < len(self.tokens):
            return self.tokens[self.at]
        # A token without text stands for the end of the file, so that no rule asks for it: it equals no word,
        # and `next`, which every loop calls, raises.
        return Token("mark", "", self.tokens[-1].line if self.tokens else 1)

    def sees(self, kind: Kind) -> bool:
        """Report whether the next word is of this kind."""
        return self.now.kind == kind

    def next(self) -> Token:
        token = self.now
        if not token.text:
            raise self.error("unexpected end of file")
        self.at += 1
        self._skip()
        return token

    def take(self, text: str) -> bool:
        """Go past this word if it is the next one; return False otherwise."""
        if self.now.text != text:
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(f"expected {text!r}, found {self.now.text[:40]!r}")

    def name(self) -> str:
        if not self.sees("name"):
            raise self.error(f"expected a name, found {self.now.text[:40]!r}")
        return self.next().text

    def number(self) -> int:
        # Base 0 reads 0x and 0b as PTX writes them; `U` marks an unsigned constant.
        try:
            value = int(self.now.text.removesuffix("U"), 0)
        except ValueError:
            raise self.error(f"expected a number, found {self.now.text[:40]!r}") from None
        self.next()
        return value

    def error(self, why: str) -> FactError:
        where = f"{self.where}:{self.now.line}"
        hint = "a .ptx file by Triton, nvcc or LLVM is text that starts with .version and .target"
        return FactError("cannot read this PTX", where=where, why=why, hints=[hint])

    def until(self, *ends: str) -> tuple[Token, ...]:
        """Return the words up to one of these marks, which stays; blanks in between become one space."""
        # Compilers differ in their blanks, and a comment counts as one.
        words: list[Token] = []
        while self.now.text not in ends:
            if words and self.tokens[self.at - 1].blank:
                words.append(_BLANK)
            words.append(self.next())
        return tuple(words)

    def statement_rest(self) -> tuple[Token, ...]:
        """Return the words up to the semicolon, and go past it."""
        words = self.until(";")
        self.next()
        return words

    def line_rest(self) -> tuple[Token, ...]:
        line, words = self.now.line, []
        while self.now.text and self.now.line == line:
            words += [_BLANK, self.next()]
        return tuple(words[1:])

    def module(self) -> Module:
        header = {".version": "", ".target": "", ".address_size": ""}
        variables: list[Declaration] = []
        functions: list[Function] = []
        while self.now.text:
            word = self.now.text
            if word in header:
                self.next()
                header[word] = self.next().text
                # `.target sm_90a, debug`: the GPU comes first, and modes follow.
                if word == ".target":
                    while self.take(","):
                        self.next()
            elif word in _TO_LINE_END:
                self.line_rest()
            elif word == ".section":
                # Debug information. Its words are data, not statements.
                for end in "{}":
                    self.until(end)
                    self.next()
            else:
                self._declared(variables, functions)
        if not header[".version"] or not header[".target"]:
            raise self.error(".version and .target are missing")
        return Module(header[".version"], header[".target"], tuple(variables), tuple(functions))

    def _declared(self, variables: list[Declaration], functions: list[Function]) -> None:
        external = False
        while self.now.text in _LINKING:
            external |= self.next().text == ".extern"
        word = self.now.text
        if word in (".entry", ".func"):
            functions.append(self._function())
        elif word[1:] in _SPACES and word.startswith("."):
            variables.append(self._declaration(external=external))
        elif self.sees("dot"):  # .alias, .pragma and their like
            self.statement_rest()
        else:
            raise self.error(f"no statement of a module starts with {word[:40]!r}")

    def _function(self) -> Function:
        entry = self.next().text == ".entry"
        results = self._params() if self.now.text == "(" else ()
        line, name = self.now.line, self.name()
        params = self._params() if self.now.text == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        placed: dict[str, int] = {}
        while self.now.text not in ("{", ";"):
            if not self.sees("dot"):
                raise self.error(f"expected the body of {name}, found {self.now.text[:40]!r}")
            place, directive = self.now.line, self.next().text[1:]
            # The only directive here whose words are strings, and that ends with a semicolon.
            if directive == "pragma":
                self.statement_rest()
                continue
            numbers: list[int] = []
            while self.sees("number"):
                numbers.append(self.number())
                self.take(",")
            directives[directive] = tuple(numbers)
            placed[directive] = place
        body = None if self.take(";") else self._body()
        return Function(name, entry, results, params, directives, placed, body, line)

    def _params(self) -> tuple[Param, ...]:
        params = []
        self.expect("(")
        while not self.take(")"):
            kind, pointer, line = "", False, self.now.line
            if self.now.text not in (".param", ".reg"):
                raise self.error(f"expected a parameter, found {self.now.text[:40]!r}")
            self.next()
            while self.sees("dot"):
                word = self.next().text[1:]
                if word == "align":
                    self.number()
                elif word == "ptr":
                    pointer = True
                elif not (pointer and word in _SPACES):
                    # What follows `.ptr` may be the space that it points to: `.param .u64 .ptr .global .align
                    # 16 p`.
                    kind = word
            name, length = self.name(), None
            if self.take("["):
                # An array without a size is the last parameter of a variadic function: `.param .b8 args[]`.
                length = 0 if self.now.text == "]" else self.number()
                self.expect("]")
            params.append(Param(name, kind, length, pointer, line))
            if self.now.text != ")":
                self.expect(",")
        return tuple(params)

    def _body(self) -> tuple[Statement, ...]:
        self.expect("{")
        # Scopes stay flat: inlining and renaming look for what encloses a statement in either direction,
        # which is a count of braces here and a walk with parents in a tree.
        statements: list[Statement] = []
        depth = 1
        while depth:
            line, text = self.now.line, self.now.text
            if text == "{":
                self.next()
                statements.append(Open(line))
                depth += 1
            elif text == "}":
                self.next()
                depth -= 1
                if depth:
                    statements.append(Close(line))
            elif not self.take(";"):  # inline assembly may leave an empty statement
                statements.append(self._statement())
        return tuple(statements)

    def _statement(self) -> Statement:
        line, word = self.now.line, self.now
        if word.kind == "dot":
            if word.text in _TO_LINE_END:
                return Directive(line, word.text[1:], self.line_rest()[2:])
            if word.text[1:] in _SPACES or word.text == ".extern":
                return self._declaration(external=self.take(".extern"))
            self.next()
            return Directive(line, word.text[1:], self.statement_rest())
        guard, negated = None, False
        if self.take("@"):
            negated = self.take("!")
            guard = self.name()
        opcode = self.name()
        if guard is None and self.take(":"):
            return Label(line, opcode)
        while self.sees("dot"):
            opcode += self.next().text
        return Instruction(line, guard, negated, opcode, self.statement_rest())

    def _declaration(self, *, external: bool) -> Declaration:
        line, space, modifiers, kind = self.now.line, self.next().text[1:], [], ""
        while self.sees("dot"):
            kind = self.next().text[1:]
            modifiers.append(f".{kind}")
            # `.align 8` is two words, of which only the first begins with a dot.
            if kind in ("align", "attribute", "managed") and self.sees("number"):
                modifiers.append(self.next().text)
        names = [self._named()]
        while self.take(","):
            names.append(self._named())
        self.expect(";")
        return Declaration(line, space, " ".join(modifiers), kind, tuple(names), external)

    def _named(self) -> Named:
        name, count, array = self.name(), None, ""
        init: tuple[Token, ...] = ()
        if self.take("<"):
            count = self.number()
            self.expect(">")
        while self.take("["):
            array += f"[{''.join(word.text for word in self.until(']'))}]"
            self.next()
        if self.take("="):
            init = self._value()
        return Named(name, count, array or None, init)

    def _value(self) -> tuple[Token, ...]:
        """Return an initial value: a list in braces, or the words before the next name."""
        if self.now.text != "{":
            return self.until(",", ";")
        # Arrays of arrays have braces within braces, and the commas in them begin no other name.
        words, depth = [], 0
        while True:
            token = self.next()
            words.append(token)
            depth += (token.text == "{") - (token.text == "}")
            if not depth:
                return tuple(words)
