"""What cannot be inlined, each with its line, its instruction and the reason (`configs/ptx.toml`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError
from tritonsmith.ir.ptx.syntax import Declaration, Directive, Function, Instruction, Statement

_SHOWN = 5
_DROPPED = ("loc", "file")  # where a line came from: of no use in another file
_KEPT = ("pragma", "branchtargets")
_IN_BODIES = ("reg", "local", "shared", "param")  # `param` goes with a call, which is refused by its own name


class UnsupportedPtxError(SmithError):
    """A kernel that cannot be expressed as inline assembly."""


@dataclass(frozen=True)
class Refusal:
    """One reason.

    Attributes:
        line: in the PTX.
        text: of the instruction, parameter or directive.
        what: group that it belongs to: `tensor maps`.
        why: it cannot be inlined.
        hints: things to try.
    """

    line: int
    text: str
    what: str
    why: str
    hints: tuple[str, ...] = ()


def error(name: str, where: object, found: list[Refusal]) -> UnsupportedPtxError:
    """The error about a kernel that names the first reason, of at least one, and the lines of the next."""
    first = found[0]
    groups = list(dict.fromkeys(one.what for one in found))
    lines = [f"line {one.line}: {one.text}" for one in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    return UnsupportedPtxError(
        f"{name} cannot be inlined: {', '.join(groups)}",
        where=f"{where}:{first.line}",
        why="\n".join([first.why, *lines]),
        hints=dict.fromkeys(hint for one in found for hint in one.hints),
    )


def find(function: Function) -> list[Refusal]:
    """All reasons against a function that can be seen before it is rewritten."""
    return [*_of_head(function), *(found for one in function.body or () for found in _of_statement(one))]


def _of_head(function: Function) -> Iterator[Refusal]:
    for group in _groups():
        for param in function.params:
            if param.length is not None and group.get("array_params"):
                yield _refusal(param.line, f".param .{param.type} {param.name}[{param.length}]", group)
        for name, values in function.directives.items():
            if name not in group.get("directives", ()):
                continue
            numbers = ", ".join(map(str, values))
            yield _refusal(function.placed[name], f".{name} {numbers}".strip(), group)


def _of_statement(statement: Statement) -> Iterator[Refusal]:
    if isinstance(statement, Instruction):
        for group in _groups():
            if _forbids(group, statement):
                yield _refusal(statement.line, str(statement), group)
                return
    elif isinstance(statement, Directive) and statement.name not in (*_DROPPED, *_KEPT):
        why = "this directive may have another meaning inside a function"
        yield Refusal(statement.line, f".{statement.name}", "directives of an entry", why)
    elif isinstance(statement, Declaration) and statement.space not in _IN_BODIES:
        why = "a variable of this state space belongs to a module"
        names = ", ".join(one.name for one in statement.names)
        yield Refusal(statement.line, f".{statement.space} {names}", "variables of a module", why)


def _forbids(group: dict[str, Any], instruction: Instruction) -> bool:
    opcode = f"{instruction.opcode}."
    if any(opcode.startswith(f"{first}.") for first in group["opcodes"]):
        return True
    if set(group.get("modifiers", ())) & set(instruction.parts[1:]):
        return True
    registers = group.get("registers", ())
    return any(word.kind == "name" and word.text[1:] in registers for word in instruction.operands)


def _refusal(line: int, text: str, group: dict[str, Any]) -> Refusal:
    return Refusal(line, text, group["what"], group["why"], tuple(group["hints"]))


def _groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = configs.load("ptx")["refused"]
    return found
