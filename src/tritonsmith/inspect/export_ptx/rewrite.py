"""Rewrite a body of PTX as inline assembly: names of its own, operands for outside values.

Operands are the parameters, the shared memory's address, and the module's constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Literal

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.inspect.export_ptx.compiled_kernel import Refusal
from tritonsmith.ir.ptx import (
    Close,
    Declaration,
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Named,
    Open,
    Param,
    Statement,
    Token,
    width,
)

SHARED_BITS = 32  # of an address in shared memory, as compilers use it

# Three things could go wrong silently, and all concern names. The compiler substitutes its own
# registers (%rd1) for operands: a register of that name, declared in the block, would capture them,
# and the kernel would fault. A block that is inlined twice would define its labels twice. And a
# percent sign introduces an operand.
_REGISTER, _PLAIN, _LABEL = "smith_", "smith_v_", "smith_l"  # prefixes, so two names stay two names
_HALF, _BYTE = 16, 8  # bits
_DIGITS = 9  # of the number of a register, at most


@dataclass(frozen=True)
class Dialect:
    """The syntax of inline assembly in a language.

    Attributes:
        percent: a literal percent sign.
        dollar: a literal dollar sign.
        operand: the N-th operand; `{}` is N.
        unique: a number that differs between the copies of a block.
    """

    percent: str
    dollar: str
    operand: str
    unique: str

    def text(self, text: str) -> str:
        """Escape a text without operands."""
        return text.replace("$", self.dollar).replace("%", self.percent)


CUDA = Dialect(percent="%%", dollar="$", operand="%{}", unique="%=")
LLVM = Dialect(percent="%", dollar="$$", operand="${}", unique="${:uid}")


@dataclass(frozen=True)
class Block:
    """The text of the assembly.

    Attributes:
        lines: the lines, without quotes.
        refused: the statements that could not be rewritten.
    """

    lines: tuple[str, ...]
    refused: tuple[Refusal, ...]


def rewrite(function: Function, surroundings: AsmSurroundings, dialect: Dialect) -> Block:
    """Rewrite the body of a function as one block of inline assembly."""
    writer = _Writer(function, surroundings, dialect)
    lines = list(writer.lines())
    return Block(("{", *lines, "}"), tuple(writer.refused))


@dataclass(frozen=True)
class Operand:
    """One input or output of the block.

    Attributes:
        symbol: its name in the PTX.
        kind: `param` by value, `result` of a function, `shared` and `global` by address.
        bits: the width of the register that represents it.
        letter: the letter of its constraint: r, l, h, f or d.
        param: the parameter behind a `param` or a `result`.
        variable: the constant behind a `global`.
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
        name: the name in the PTX.
        bits: the width of an element.
        values: the elements, as integers.
        length: the number of elements; those without a value are zero.
        align: the alignment in bytes.
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
        operands: the operands in the order of their numbers; results first.
        shared: the declarations of shared memory of a fixed size, which go into the block.
        dynamic: the `.extern .shared` symbol that it uses, or None.
        mentioned: the names that instructions mention; a label that is not among them is unused.
    """

    operands: tuple[Operand, ...]
    shared: tuple[Declaration, ...]
    dynamic: str | None
    mentioned: frozenset[str]


def surroundings_of(function: Function, module: Module, where: object) -> AsmSurroundings:
    """Collect the operands and declarations of a function's block; errors name the module's file, `where`.

    Raises:
        FactError: a parameter or a constant has a form that no operand can take.
    """
    named = frozenset(word.text for word in _mentioned_words(function.body or ()) if word.kind == "name")
    # Outputs come before inputs in both dialects, and their numbers go on from one to the other.
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


def _mentioned_words(body: Iterable[Statement]) -> Iterator[Token]:
    for statement in body:
        if isinstance(statement, Instruction):
            yield from statement.operands
        elif isinstance(statement, Directive) and statement.name == "branchtargets":
            yield from statement.words


def _value(param: Param, kind: Literal["param", "result"], where: object) -> Operand:
    try:
        if param.length is None:
            # Inline assembly has no 8-bit registers: the narrowest constraint, h, has 16 bits.
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
    align = int(words[words.index(".align") + 1]) if ".align" in words else bits // _BYTE
    numbers = tuple(value for value in values if value is not None)
    return Operand(
        variable.name, "global", 64, "l", variable=AsmVariable(variable.name, bits, numbers, length, align)
    )


def _integer(word: Token) -> int | None:
    text = word.text.lower().removesuffix("u")
    try:
        # PTX writes a float as its bits: 0f3F800000 is 1.0.
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


@dataclass
class _BlockScope:
    """The declarations between two braces.

    Attributes:
        labels: name to number.
        widths: the width of registers by name, in bits.
        ranges: register ranges (`%r<9>`) by the prefix of their names: count, and bits.
        variables: the names that are not registers.
    """

    labels: dict[str, int]
    widths: dict[str, int]
    ranges: dict[str, tuple[int, int]]
    variables: set[str]


@cache
def _special() -> frozenset[str]:
    return frozenset(configs.load("ptx")["special-registers"]["names"])


def _is_special(name: str) -> bool:
    # %pm0 to %pm7 and %envreg0 to %envreg31 are listed once, without their number.
    return name[1:] in _special() or name[1:].rstrip("0123456789") in _special()


class _Writer:
    def __init__(self, function: Function, surroundings: AsmSurroundings, dialect: Dialect) -> None:
        self.body = function.body or ()
        self.surroundings = surroundings
        self.dialect = dialect
        self.operands = {
            operand.symbol: (number, operand) for number, operand in enumerate(surroundings.operands)
        }
        self.refused: list[Refusal] = []
        self.numbers = count()
        self.end = f"{_LABEL}{next(self.numbers)}_{dialect.unique}"
        self.ends = False  # a jump goes to the end
        self.labels = list(self._labels())
        self.scopes: list[_BlockScope] = []
        # A `ret` at the very end needs no jump, which would only jump to the next line.
        executed = [at for at, statement in enumerate(self.body) if isinstance(statement, Instruction)]
        self.last = executed[-1] if executed else -1

    def lines(self) -> Iterator[str]:
        """Yield all lines; `refused` is complete after the last one."""
        scopes = iter(self.labels)
        self._enter(next(scopes))
        for declaration in self.surroundings.shared:
            yield self._declare(declaration)
        for number, statement in enumerate(self.body):
            if isinstance(statement, Open):
                self._enter(next(scopes))
                yield "{"
            elif isinstance(statement, Close):
                self.scopes.pop()
                yield "}"
            else:
                yield from self._statement(statement, last=number == self.last)
        if self.ends:
            yield f"{self.end}:"

    def _labels(self) -> Iterator[dict[str, int]]:
        """Return the labels of each scope, in the order in which scopes open."""
        # All are collected first, since jumps may go forward.
        scopes: list[dict[str, int]] = [{}]
        inside = [scopes[0]]
        for statement in self.body:
            if isinstance(statement, Open):
                scopes.append({})
                inside.append(scopes[-1])
            elif isinstance(statement, Close):
                inside.pop()
            elif isinstance(statement, Label) and statement.name in self.surroundings.mentioned:
                inside[-1][statement.name] = next(self.numbers)
        return iter(scopes)

    def _enter(self, labels: dict[str, int]) -> None:
        self.scopes.append(_BlockScope(labels, {}, {}, set()))

    def _statement(self, statement: Statement, *, last: bool) -> Iterator[str]:
        if isinstance(statement, Instruction):
            yield from self._instruction(statement, last=last)
        elif isinstance(statement, Declaration):
            yield self._declare(statement)
        elif isinstance(statement, Label):
            if (number := self.scopes[-1].labels.get(statement.name)) is not None:
                yield f"{_LABEL}{number}_{self.dialect.unique}:"
        elif isinstance(statement, Directive) and statement.name in ("pragma", "branchtargets"):
            yield f".{statement.name} {self._join(statement.words, statement)};"

    def _declare(self, declaration: Declaration) -> str:
        scope, bits = self.scopes[-1], width(declaration.type)
        parts = []
        for variable in declaration.names:
            if declaration.space != "reg":
                scope.variables.add(variable.name)
            elif variable.count is None:
                scope.widths[variable.name] = bits
            else:
                scope.ranges[variable.name] = (variable.count, bits)
            size = "" if variable.count is None else f"<{variable.count}>"
            parts.append(f"{self._own(variable.name)}{size}{variable.array or ''}")
        return f".{declaration.space} {declaration.modifiers} {', '.join(parts)};"

    def _instruction(self, instruction: Instruction, *, last: bool) -> Iterator[str]:
        guard = (
            f"@{'!' * instruction.negated}{self._name(instruction.guard, instruction)} "
            if instruction.guard
            else ""
        )
        # In a block, `ret` would return from the function around it and skip the rest of the user's
        # code.
        if instruction.parts[0] == "ret":
            if not last or guard:
                self.ends = True
                yield f"{guard}bra {self.end};"
            return
        # One guarded instruction may become several: each gets the guard, the braces around them none.
        for line in self._plain(instruction):
            yield line if line.startswith(("{", "}")) else guard + line

    def _plain(self, instruction: Instruction) -> list[str]:
        """Return the instruction, or instructions that do the same with operands of the block."""
        if instruction.opcode.startswith(("ld.param.", "ld.param::")):
            return self._load(instruction)
        if instruction.opcode.startswith(("st.param.", "st.param::")):
            return self._return(instruction)
        if (address := self._address(instruction)) is not None:
            return address
        words = self._join(instruction.operands, instruction)
        return [f"{instruction.opcode} {words};" if words else f"{instruction.opcode};"]

    def _load(self, instruction: Instruction) -> list[str]:
        """Rewrite `ld.param.b32 %r1, [NAME+4]` as a move from the operand."""
        words = [word.text for word in instruction.operands if not word.blank]
        place = _parse_address(words[2:])
        match = self.operands.get(place[0]) if place and words[1] == "," else None
        if place is None or match is None or match[1].kind != "param":
            return self._refuse(instruction, "only a single value from its own parameter can be an operand")
        offset = place[1]
        number, source = match
        kind, bits = instruction.parts[-1], width(instruction.parts[-1])
        held = source.param.bits if source.param else source.bits
        # The operand's register ends with the parameter; what is behind it would be another one's bits.
        if offset * _BYTE + bits > held:
            return self._refuse(instruction, f"it reads past the {held} bits of the parameter")
        operand, own = self.dialect.operand.format(number), self._name(words[0], instruction)
        into, signed = self._width(words[0]) or bits, kind.startswith("s")
        if offset == 0:
            return [_convert(into, source.bits, bits, own, operand, signed=signed)]
        # In braces, so that two such loads in one block do not declare the register twice.
        part = f"{self.dialect.percent}{_REGISTER}part"
        return [
            f"{{ .reg .b{source.bits} {part};",
            f"shr.u{source.bits} {part}, {operand}, {offset * _BYTE};",
            _convert(into, source.bits, bits, own, part, signed=signed),
            "}",
        ]

    def _return(self, instruction: Instruction) -> list[str]:
        """Rewrite `st.param.b32 [func_retval0], %r1` as a move to the operand."""
        words = [word.text for word in instruction.operands if not word.blank]
        value = words[-1] if words[-2:-1] == [","] else ""
        place = _parse_address(words[:-2]) if value else None
        match = self.operands.get(place[0]) if place and not place[1] else None
        if match is None or match[1].kind != "result":
            return self._refuse(instruction, "only a result of a single value can be an operand")
        number, result = match
        bits, held = width(instruction.parts[-1]), result.param.bits if result.param else result.bits
        own = self._name(value, instruction) if value.startswith("%") else value
        if bits != held:
            return self._refuse(instruction, f"it writes {bits} of the {held} bits of the result")
        operand = self.dialect.operand.format(number)
        # `mov` has no 8-bit form; an 8-bit value is held in a 16-bit register.
        if bits < _HALF:
            return [f"cvt.u16.u{bits} {operand}, {own};"]
        return [f"mov.b{bits} {operand}, {own};"]

    def _address(self, instruction: Instruction) -> list[str] | None:
        """Rewrite an instruction that takes the address of an outside symbol; None if it does not."""
        words = [word for word in instruction.operands if not word.blank]
        names = [word.text for word in words[2:] if word.kind == "name"]
        match = self.operands.get(names[0]) if names and not self._declared(names[0]) else None
        if match is None or words[2].text != names[0] or instruction.parts[0] not in ("mov", "cvta"):
            return None
        number, symbol = match
        operand, own = self.dialect.operand.format(number), self._name(words[0].text, instruction)
        bits = width(instruction.parts[-1])
        offset = "".join(word.text for word in words[3:]).removeprefix("+")
        if (
            symbol.kind in ("param", "result")
            or not (offset == "" or offset.isdecimal())
            or bits < symbol.bits
        ):
            return self._refuse(instruction, "it takes an address that an operand does not have")
        lines = [f"mov.b{bits} {own}, {operand};"]
        if bits > symbol.bits:
            lines = [f"cvt.u{bits}.u{symbol.bits} {own}, {operand};"]
        if offset:
            lines.append(f"add.u{bits} {own}, {own}, {offset};")
        if instruction.parts[0] == "cvta":
            lines.append(f"{instruction.opcode} {own}, {own};")
        return lines

    def _join(self, words: Sequence[Token], statement: Statement) -> str:
        return "".join(self._word(word, statement) for word in words)

    def _word(self, word: Token, statement: Statement) -> str:
        return self._name(word.text, statement) if word.kind == "name" else self.dialect.text(word.text)

    def _name(self, name: str, statement: Statement) -> str:
        # Declared names first: a register may have the name of a parameter.
        if self._declared(name):
            return self._own(name)
        for scope in reversed(self.scopes):
            if name in scope.labels:
                return f"{_LABEL}{scope.labels[name]}_{self.dialect.unique}"
        if name in self.operands:
            number, operand = self.operands[name]
            if operand.kind in ("shared", "global"):
                return self.dialect.operand.format(number)
            self._refuse(statement, f"it takes the address of the parameter {name}")
        elif name.startswith("%") and _is_special(name):
            return self.dialect.text(name)
        elif name not in configs.load("ptx")["words"]["names"]:
            self._refuse(statement, f"{name} is not declared in it")
        return self.dialect.text(name)

    def _own(self, name: str) -> str:
        if name.startswith("%"):
            return self.dialect.text(f"%{_REGISTER}{name[1:]}")
        return self.dialect.text(f"{_PLAIN}{name}")

    def _declared(self, name: str) -> bool:
        return self._width(name) is not None or any(name in scope.variables for scope in self.scopes)

    def _width(self, name: str) -> int | None:
        """Return the bits of a register; None if there is none of that name."""
        # `.reg .b32 %r<9>` declares %r0 to %r8, but %r1<5> declares %r10 to %r14: each split of the
        # name into prefix and number is tried. %r01 is no register of the first range.
        splits = [at for at in range(max(len(name) - _DIGITS, 1), len(name)) if name[at:].isdecimal()]
        for scope in reversed(self.scopes):
            if name in scope.widths:
                return scope.widths[name]
            for at in splits:
                many, bits = scope.ranges.get(name[:at], (0, 0))
                if name[at:] == str(int(name[at:])) and int(name[at:]) < many:
                    return bits
        return None

    def _refuse(self, statement: Statement, why: str) -> list[str]:
        refusal = Refusal(statement.line, str(statement), "a name declared outside", why)
        self.refused.append(
            refusal if isinstance(statement, Instruction) else replace(refusal, text="directive")
        )
        return []


def _parse_address(words: Sequence[str]) -> tuple[str, int] | None:
    """Parse `[NAME]` or `[NAME+4]` into symbol and offset in bytes; None for another form."""
    if len(words) == len("[N]") and words[0] == "[" and words[2] == "]":
        return words[1], 0
    marks = len(words) == len("[N+4]") and (words[0], words[2], words[4]) == ("[", "+", "]")
    return (words[1], int(words[3])) if marks and words[3].isdecimal() else None


def _convert(into: int, held: int, bits: int, target: str, source: str, *, signed: bool) -> str:
    """Return an instruction that moves the low bits of a register, extended as the load would.

    Args:
        into: width of the target.
        held: width of the source.
        bits: number of bits to move.
        target: name of the register to write.
        source: name of the register to read.
        signed: extend by the sign.
    """
    letter = "s" if signed else "u"
    if into == held == bits:
        return f"mov.b{bits} {target}, {source};"
    if into == bits:  # a conversion cuts off what is above
        return f"cvt.u{bits}.u{held} {target}, {source};"
    return f"cvt.{letter}{into}.{letter}{bits} {target}, {source};"
