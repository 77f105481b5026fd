"""The types of an operation's results, as far as its text tells: a guess that a parser will check."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonsmith.core import brackets
from tritonsmith.ir.ir_text import Op

_ELEMENT = re.compile(r"((?:tensor|vector)<(?:[\d?]+x)*)(!tt\.ptr<[^<>]*>|[^,<>]+)(.*>)", re.DOTALL)
_POINTER = re.compile(r"!tt\.ptr<([^<>,]+)(?:, \d+)?>")
_COMPARES = ("cmpi", "cmpf", "icmp", "fcmp")
_TOKENS = ("async_copy_global_to_local", "async_commit_group", "async_wait")


def results(op: Op, text: str) -> tuple[str, ...] | None:
    """Types of all results of an operation, in order; None if the text of the source does not tell."""
    count = sum(number for _, number in op.results)
    found = list(_results(op, text))
    return tuple(found) if len(found) == count and all(found) else None


def _results(op: Op, text: str) -> Iterator[str]:
    count = sum(number for _, number in op.results)
    kind = op.name.rpartition(".")[2]
    if kind in _TOKENS:
        yield f"!{op.name.partition('.')[0]}.async.token"
        return
    tail = text[op.regions[-1].end : op.end].lstrip(" })") if op.regions else op.head
    said = _said(tail) or (_said(op.head.rstrip().removesuffix("(")) if op.regions else "")
    if not said:
        if op.name == "arith.constant":  # true, false
            yield "i1"
        return
    *_, last = brackets.split(said, "->")
    *_, last = brackets.split(last, " to ")
    if last.startswith("(") and last.endswith(")"):
        last = last[1:-1]
    types = [_spelled(one, op) for one in brackets.split(last, ",")]
    if "->" in said and brackets.split(said, "->")[-1] != said:
        yield from types[:count]
    elif kind in _COMPARES:
        yield _boolean(types[0])
    elif kind == "load" and op.name.startswith("tt."):
        yield _pointee(types[0])
    elif kind == "select":
        yield types[-1]
    else:
        yield from types[:count]


def _said(text: str) -> str:
    """Return the types that an operation states: after the last `:`, or after `->` if there is none."""
    line = text.strip().removesuffix("{").strip()
    parts = brackets.split(line, " : ")
    if len(parts) > 1 and not ("->" in parts[-2] and brackets.split(parts[-2], "->")[-1] != parts[-2]):
        return parts[-1]
    arrow = brackets.split(parts[-2] if len(parts) > 1 else line, "->")  # scf.for ... -> (f32) : i32
    return f"-> {arrow[-1]}" if len(arrow) > 1 else ""


def _spelled(text: str, op: Op) -> str:
    """A type without what its operation leaves out: `<128xf16, #shared>` of a memdesc."""
    return f"!{op.name.partition('.')[0]}.memdesc{text}" if text.startswith("<") else text


def _boolean(text: str) -> str:
    match = _ELEMENT.fullmatch(text)
    return f"{match[1]}i1{match[3]}" if match else "i1"


def _pointee(text: str) -> str:
    if match := _POINTER.fullmatch(text):
        return match[1]
    if (match := _ELEMENT.fullmatch(text)) and (inner := _POINTER.fullmatch(match[2])):
        return f"{match[1]}{inner[1]}{match[3]}"
    return ""
