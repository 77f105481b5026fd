"""Collect the operands of inline assembly: parameters, the shared memory's address, constants."""

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
    Token,
    width,
)

SHARED_BITS = 32  # of an address in shared memory, as compilers use it

_ELEMENT_BYTES = 8  # bits


@dataclass(frozen=True)
class Operand:
    """One input or output of the block.

    Attributes:
        symbol: its name in the PTX.
        kind: `param` by value, `result` of a function, `shared` and `global` by address.
        bits: of the register that represents it.
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
    """A constant of the module, to be carried over into another language.

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
    """The parts of a module that a function needs.

    Attributes:
        operands: in the order of their numbers; results first.
        shared: declarations of shared memory of a fixed size, which go into the block.
        dynamic: the `.extern .shared` symbol that it uses, or None.
        mentioned: names that instructions mention; a label that is not among them is unused.
    """

    operands: tuple[Operand, ...]
    shared: tuple[Declaration, ...]
    dynamic: str | None
    mentioned: frozenset[str]


def of(function: Function, module: Module, where: object) -> AsmSurroundings:
    """Collect the operands and declarations of a function's block; errors name `where` the module is from.

    Raises:
        FactError: a parameter or a constant has a form that no operand can take.
    """
    named = frozenset(word.text for word in _words(function.body or ()) if word.kind == "name")
    result = [_value(param, "result", where) for param in function.results]
    result += [_value(param, "param", where) for param in function.params if param.name in named]
    fixed, dynamic = [], None
    for declaration in module.variables:
        used = [name for name in declaration.names if name.name in named]
        if not used:
            continue
        if declaration.space == "shared" and declaration.external:
            dynamic = used[0].name
            result += [Operand(name.name, "shared", SHARED_BITS, "r") for name in used]
        elif declaration.space == "shared":
            fixed.append(declaration)
        else:
            result += [_constant(name, declaration, where) for name in used]
    return AsmSurroundings(tuple(result), tuple(fixed), dynamic, named)


def constraint(kind: str) -> tuple[str, str]:
    """Return the constraint letter of a PTX type, and its C type; KeyError if no operand has that type."""
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


def _constant(variable: Named, declaration: Declaration, where: object) -> Operand:
    bits = width(declaration.type)
    values = [_integer(word) for word in variable.init if word.kind != "mark"]
    length = _length(variable, len(values))
    if declaration.space != "global" or declaration.external or None in values or length is None:
        raise FactError(
            f"cannot carry over the module's variable {variable.name}",
            where=f"{where}:{declaration.line}",
            why="only variables in global memory with numeric values can be carried over",
        )
    words = declaration.modifiers.split()
    align = int(words[words.index(".align") + 1]) if ".align" in words else bits // _ELEMENT_BYTES
    numbers = tuple(value for value in values if value is not None)
    return Operand(
        variable.name, "global", 64, "l", variable=AsmVariable(variable.name, bits, numbers, length, align)
    )


def _integer(word: Token) -> int | None:
    text = word.text.lower().removesuffix("u")
    try:
        return int(f"0x{text[2:]}" if text.startswith(("0f", "0d")) else text, 0)
    except ValueError:
        return None


def _length(variable: Named, values: int) -> int | None:
    """Return the number of elements; None for several dimensions, or a negative number in the values."""
    if any(word.text == "-" for word in variable.init):
        return None
    inside = "1" if variable.array is None else variable.array[1:-1]
    if not inside:
        return values or None
    return int(inside) if inside.isdecimal() else None
