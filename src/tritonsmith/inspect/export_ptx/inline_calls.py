"""Inline functions of the same module where they are called: a block of assembly has no functions.

A compiler writes a call as a scope that declares parameters, stores to them, calls, and loads the result. The
parameters become registers of that scope, and the body becomes a scope inside it. A call of any other form
stays a call, which `find_refusals` then reports with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from tritonsmith.ir.ptx import (
    Close,
    Declaration,
    Function,
    Instruction,
    Label,
    Module,
    Named,
    Open,
    Statement,
    Token,
    width,
)

# Statements that a kernel may grow to. Each level of calls may double the text, so a small file
# could otherwise fill the memory.
_MOST = 200_000


def expand(function: Function, module: Module) -> Function:
    """Return a function with the bodies of its callees inlined; a call that cannot be replaced is kept."""
    known = {
        candidate.name: candidate
        for candidate in module.functions
        if candidate.body is not None and not candidate.entry
    }
    body, numbers, tried = list(function.body or ()), count(), 0
    # Counted from the end, because everything before a place keeps growing while bodies are put in.
    above: list[tuple[int, str]] = []  # end of each inlined body, and its name
    while (at := next((at for at in range(tried, len(body)) if _is_call(body[at])), None)) is not None:
        tried = at + 1
        above = [(left, name) for left, name in above if left < len(body) - at]
        called = _called(body[at])
        callee = known.get(called[0]) if called else None
        # A function that is inlined around this place already is recursive: it stays a call.
        if called is None or callee is None or callee.name in {name for _, name in above}:
            continue
        first, last = _scope_of(body, at)
        put = _inside(body[first:last], callee, called[1], f"call{next(numbers)}")
        if put is None or len(body) + len(put) > _MOST:
            continue
        above.append((len(body) - last, callee.name))
        body[first:last] = put
        # The inlined body may have calls of its own: go on at its beginning.
        tried = first
    return replace(function, body=tuple(body))


def _scope_of(body: Sequence[Statement], at: int) -> tuple[int, int]:
    """Return the begin and the end of the innermost scope around a place, without its braces."""

    def until(edge: type[Statement], other: type[Statement], places: Iterable[int], end: int) -> int:
        depth = 0
        for place in places:
            if isinstance(body[place], edge) and not depth:
                return place
            depth += isinstance(body[place], other) - isinstance(body[place], edge)
        return end

    last = until(Close, Open, range(at, len(body)), len(body))
    return until(Open, Close, range(at, -1, -1), -1) + 1, last


def _is_call(statement: Statement) -> bool:
    return isinstance(statement, Instruction) and statement.parts[0] == "call"


def _called(statement: Statement) -> tuple[str, tuple[str, ...]] | None:
    """Return the function's name and its arguments, results first; None for a call of another form."""
    if not isinstance(statement, Instruction) or statement.guard:
        return None
    lists: list[list[str]] = []
    name, inside = "", False
    for word in statement.operands:
        if word.text == "(":
            inside = True
            lists.append([])
        elif word.text == ")":
            inside = False
        elif word.kind == "name" and inside:
            lists[-1].append(word.text)
        elif word.kind == "name" and name:
            return None  # a prototype: the function is known at run time only
        elif word.kind == "name":
            name = word.text
    return name, tuple(argument for words in lists for argument in words)


def _inside(
    body: Sequence[Statement], callee: Function, given: tuple[str, ...], prefix: str
) -> list[Statement] | None:
    """Return the inside of a call's scope without the call; None if it has another form."""
    declared = {
        variable.name: width(statement.type)
        for statement in body
        if isinstance(statement, Declaration) and statement.space == "param"
        for variable in statement.names
        if variable.array is None
    }
    taken = [*callee.results, *callee.params]
    if sum(map(_is_call, body)) != 1 or len(taken) != len(given):
        return None
    if any(param.length is not None for param in taken):
        return None
    if any(declared.get(name) != param.bits for name, param in zip(given, taken, strict=True)):
        return None
    outside = {name: (f"{prefix}_{name}", bits) for name, bits in declared.items()}
    inside = {param.name: outside[name] for name, param in zip(given, taken, strict=True)}
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Declaration) and statement.space == "param":
            names = tuple(Named(f"{prefix}_{variable.name}") for variable in statement.names)
            result.append(replace(statement, space="reg", modifiers=f".{statement.type}", names=names))
        elif _is_call(statement):
            put = _body(callee, inside, f"{prefix}_end", statement.line)
            if put is None:
                return None
            result += put
        elif (moved := _moved(statement, outside)) is None:
            return None
        else:
            result.append(moved)
    return result


def _body(
    callee: Function, inside: Mapping[str, tuple[str, int]], end: str, line: int
) -> list[Statement] | None:
    result: list[Statement] = [Open(line)]
    for statement in callee.body or ():
        # A return leaves the function's scope only. Its guard and so its condition are kept.
        if isinstance(statement, Instruction) and statement.parts[0] == "ret":
            result.append(replace(statement, opcode="bra", operands=(Token("name", end, statement.line),)))
        elif (moved := _moved(statement, inside)) is None:
            return None
        else:
            result.append(moved)
    return [*result, Close(line), Label(line, end)]


def _moved(statement: Statement, registers: Mapping[str, tuple[str, int]]) -> Statement | None:
    """Turn a load or store of one of these parameters into a move; None if it has another form."""
    # Only whole values at offset 0, as compilers pass scalars. A part of a parameter would need shifts
    # and masks: such a call stays, and is reported.
    if not isinstance(statement, Instruction):
        return statement
    if not any(word.text in registers for word in statement.operands):
        return statement
    words = [word for word in statement.operands if not word.blank]
    texts = [word.text for word in words]
    loads = statement.opcode.startswith("ld.param")
    if not loads and not statement.opcode.startswith("st.param"):
        return None
    address = texts[2:] if loads else texts[:-2]
    other = words[0] if loads else words[-1]
    name = address[1] if len(address) > 1 else ""
    plain = address in (["[", name, "]"], ["[", name, "+", "0", "]"])
    register, bits = registers.get(name, ("", 0))
    if not plain or bits != width(statement.parts[-1]) or "," not in (texts[1], texts[-2]):
        return None
    own = Token("name", register, statement.line)
    comma, blank = Token("mark", ",", statement.line), Token("space", " ", statement.line)
    operands = (other, comma, blank, own) if loads else (own, comma, blank, other)
    return replace(statement, opcode=f"mov.b{bits}", operands=operands)
