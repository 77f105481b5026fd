"""What a block of inline assembly gets from outside: parameters, the shared memory's address, constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.ir.ptx.syntax import (
    Declaration,
    Directive,
    Function,
    Instruction,
    Module,
    Named,
    Param,
    Statement,
    width,
)
from tritonsmith.ir.ptx.tokens import Token

SHARED_BITS = 32  # of an address in shared memory, as compilers use it

_ELEMENT_BYTES = 8  # bits


@dataclass(frozen=True)
class Operand:
    """One input or output of the block.

    Attributes:
        symbol: what the PTX calls it.
        kind: `param` by value, `result` of a function, `shared` and `global` by address.
        bits: of the register that stands for it.
        letter: of its constraint: r, l, h, f or d.
        param: of a `param` and a `result`.
        variable: of a `global`.
    """

    symbol: str
    kind: Literal["param", "result", "shared", "global"]
    bits: int
    letter: str
    param: Param | None = None
    variable: AsmVariable | None = None


@dataclass(frozen=True)
class AsmVariable:
    """A constant of the module, to be carried into another language.

    Attributes:
        name: in the PTX.
        bits: of one element.
        values: of its elements, as integers.
        length: in elements; those without a value are zero.
        align: in bytes.
    """

    name: str
    bits: int
    values: tuple[int, ...]
    length: int
    align: int


@dataclass(frozen=True)
class AsmSurroundings:
    """What a function needs of its module.

    Attributes:
        operands: in the order of their numbers; results first.
        shared: declarations of shared memory of a fixed size, which go into the block.
        dynamic: the `.extern .shared` symbol that it uses, or None.
        labels: names that instructions mention, by which it is seen whether a label is of use.
    """

    operands: tuple[Operand, ...]
    shared: tuple[Declaration, ...]
    dynamic: str | None
    mentioned: frozenset[str]


def of(function: Function, module: Module, where: object) -> AsmSurroundings:
    """What the block of this function of a module gets; errors name `where` the module is from.

    Raises:
        FactError: a parameter or a constant has a form that no operand can take.
    """
    named = frozenset(word.text for word in _words(function.body or ()) if word.kind == "name")
    found = [_value(param, "result", where) for param in function.results]
    found += [_value(param, "param", where) for param in function.params if param.name in named]
    fixed, dynamic = [], None
    for declaration in module.variables:
        used = [one for one in declaration.names if one.name in named]
        if not used:
            continue
        if declaration.space == "shared" and declaration.external:
            dynamic = used[0].name
            found += [Operand(one.name, "shared", SHARED_BITS, "r") for one in used]
        elif declaration.space == "shared":
            fixed.append(declaration)
        else:
            found += [_constant(one, declaration, where) for one in used]
    return AsmSurroundings(tuple(found), tuple(fixed), dynamic, named)


def constraint(kind: str) -> tuple[str, str]:
    """The letter of a PTX type, and its C type; KeyError if no operand has that type."""
    letter, c_type = configs.load("ptx")["constraints"][kind]
    return letter, c_type


def _words(body: Iterable[Statement]) -> Iterator[Token]:
    for statement in body:
        if isinstance(statement, Instruction):
            yield from statement.operands
        elif isinstance(statement, Directive) and statement.name == "branchtargets":
            yield from statement.words


def _value(param: Param, kind: Literal["param", "result"], where: object) -> Operand:
    try:
        if param.length is None:
            return Operand(param.name, kind, max(param.bits, 16), constraint(param.type)[0], param=param)
    except KeyError:
        pass
    size = "" if param.length is None else f"[{param.length}]"
    raise FactError(
        f"inline assembly cannot have an operand .{param.type} {param.name}{size}",
        where=f"{where}:{param.line}",
        hints=["pass its elements as separate parameters"],
    )


def _constant(one: Named, declaration: Declaration, where: object) -> Operand:
    bits = width(declaration.type)
    values = [_integer(word) for word in one.init if word.kind != "mark"]
    length = _length(one, len(values))
    if declaration.space != "global" or declaration.external or None in values or length is None:
        raise FactError(
            f"cannot carry over the module's variable {one.name}",
            where=f"{where}:{declaration.line}",
            why="only variables in global memory with numeric values can be carried over",
        )
    words = declaration.modifiers.split()
    align = int(words[words.index(".align") + 1]) if ".align" in words else bits // _ELEMENT_BYTES
    numbers = tuple(value for value in values if value is not None)
    return Operand(one.name, "global", 64, "l", variable=AsmVariable(one.name, bits, numbers, length, align))


def _integer(word: Token) -> int | None:
    text = word.text.lower().removesuffix("u")
    try:
        return int(f"0x{text[2:]}" if text.startswith(("0f", "0d")) else text, 0)
    except ValueError:
        return None


def _length(one: Named, values: int) -> int | None:
    """Elements; None for more than one dimension, or a negative number in the values."""
    if any(word.text == "-" for word in one.init):
        return None
    inside = "1" if one.array is None else one.array[1:-1]
    if not inside:
        return values or None
    return int(inside) if inside.isdecimal() else None
