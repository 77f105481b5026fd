"""Find statements that cannot be inlined, with their lines and reasons (`configs/ptx.toml`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError
from tritonsmith.ir.ptx.syntax import Declaration, Directive, Function, Instruction, Statement

_SHOWN = 5
_DROPPED = ("loc", "file")  # source locations: useless in another file
_KEPT = ("pragma", "branchtargets")
_IN_BODIES = ("reg", "local", "shared", "param")  # `param` belongs to a call, which is refused itself


class UnsupportedPtxError(SmithError):
    """A kernel that cannot be expressed as inline assembly."""


@dataclass(frozen=True)
class Refusal:
    """A reason why a function cannot be inlined.

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


def error(name: str, where: object, refusals: list[Refusal]) -> UnsupportedPtxError:
    """Return the error about a kernel, with the first of its reasons and the lines of the next ones.

    Args:
        name: of the kernel.
        where: the PTX file.
        refusals: the reasons; at least one.
    """
    first = refusals[0]
    groups = list(dict.fromkeys(refusal.what for refusal in refusals))
    lines = [f"line {refusal.line}: {refusal.text}" for refusal in refusals[:_SHOWN]]
    if len(refusals) > _SHOWN:
        lines.append(f"and {len(refusals) - _SHOWN} more")
    return UnsupportedPtxError(
        f"{name} cannot be inlined: {', '.join(groups)}",
        where=f"{where}:{first.line}",
        why="\n".join([first.why, *lines]),
        hints=dict.fromkeys(hint for refusal in refusals for hint in refusal.hints),
    )


def find(function: Function) -> list[Refusal]:
    """Return all reasons against a function that can be known before it is rewritten."""
    return [
        *_of_head(function),
        *(refusal for statement in function.body or () for refusal in _of_statement(statement)),
    ]


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
        names = ", ".join(variable.name for variable in statement.names)
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
    groups: list[dict[str, Any]] = configs.load("ptx")["refused"]
    return groups
