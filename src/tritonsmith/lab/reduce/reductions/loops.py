"""Regions taken away from around operations: a loop becomes its body, a choice one of its sides.

What a loop carries along is given up, value by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonsmith.core import brackets
from tritonsmith.ir.ir_text import IrText, Op, Region, scope, uses
from tritonsmith.lab.reduce import text_edits
from tritonsmith.lab.reduce.text_edits import Edit

_DEFINED = r"%[\w$.\-]+"
_NAME = rf"{_DEFINED}(?:#\d+)?"
_FOR = re.compile(
    rf"(?P<results>\s*(?:{_DEFINED}(?::\d+)?\s*=\s*)?)scf\.for\s+(?:unsigned\s+)?(?P<iv>{_NAME})\s*=\s*(?P<lb>{_NAME})\s+to\s+{_NAME}\s+step\s+{_NAME}"
    r"(?P<carried>\s+iter_args\((?P<pairs>.*)\)\s*->\s*\((?P<types>.*)\))?(?P<rest>\s*(?::\s*\w+\s*)?)$",
    re.DOTALL,
)
_FRESH = re.compile(r"%in(\d+)\b")


@dataclass(frozen=True)
class Loop:
    """An `scf.for`.

    Attributes:
        op: it.
        match: its head, by `_FOR`.
        pairs: what is carried along: name in the body, and what it begins with.
        types: of these.
    """

    op: Op
    match: re.Match[str]
    pairs: tuple[tuple[str, str], ...]
    types: tuple[str, ...]


def loop(op: Op) -> Loop | None:
    """The loop that an operation is; None if it is none, or spelled in another way."""
    if op.name != "scf.for" or len(op.regions) != 1 or op.regions[0].labels:
        return None
    match = _FOR.fullmatch(op.head.rstrip())
    if match is None:
        return None
    pairs = [one.partition("=") for one in brackets.split(match["pairs"], ",")] if match["carried"] else []
    kinds = brackets.split(match["types"], ",") if match["carried"] else []
    if len(pairs) != len(kinds):
        return None
    carried = tuple((name.strip(), start.strip()) for name, _, start in pairs)
    return Loop(op, match, carried, tuple(kinds))


def unwrapped(source: IrText) -> Iterator[str]:
    """For each loop and each side of a choice: the text with the body alone, run once."""
    for op in source.ops():
        if found := loop(op):
            values = {found.match["iv"]: found.match["lb"], **dict(found.pairs)}
            if made := _inlined(source, op, op.regions[0], values):
                yield made
        elif op.name == "scf.if":
            for region in op.regions:
                if made := _inlined(source, op, region, {}):
                    yield made


def _inlined(source: IrText, op: Op, region: Region, values: dict[str, str]) -> str | None:
    """The body in the place of the operation."""
    if region.labels:
        return None
    text = source.text
    last = region.ops[-1] if region.ops and region.ops[-1].name == "scf.yield" else None
    given = _operands(last) if last else []
    if len(given) != sum(count for _, count in op.results):
        return None
    body = text[region.begin : last.begin if last else region.end]
    around = text[: op.begin] + text[op.end :]
    number = max((int(one) for one in _FRESH.findall(text)), default=-1) + 1
    names = dict(values)
    for inner in region.ops:
        for name, _ in inner.results:
            if uses(name).search(around):
                names[name] = f"%in{number}"
                number += 1
    body, given = _renamed(body, names), [_renamed(one, names) for one in given]
    begin, end = scope(op)
    changed = [Edit(op.begin, op.end, body)]
    first = 0
    for name, count in op.results:
        changed += [
            Edit(match.start(), match.end(), given[first + int(match[1] or 0)])
            for match in uses(name).finditer(text, begin, end)
            if not op.begin <= match.start() < op.end
        ]
        first += count
    return text_edits.apply(text, changed)


def lighter(source: IrText) -> Iterator[str]:
    """For each value that a loop carries along: the text in which it keeps what it begins with."""
    for op in source.ops():
        if found := loop(op):
            for number in reversed(range(len(found.pairs))):
                if made := _without(source, found, number):
                    yield made


def _without(source: IrText, found: Loop, number: int) -> str | None:
    op, text = found.op, source.text
    region = op.regions[0]
    last = region.ops[-1] if region.ops else None
    if last is None or last.name != "scf.yield" or len(op.results) != 1:
        return None
    given = _operands(last)
    (result, count), (name, start) = op.results[0], found.pairs[number]
    if not len(given) == count == len(found.pairs):
        return None
    rest = [one for at, one in enumerate(found.pairs) if at != number]
    kinds = [one for at, one in enumerate(found.types) if at != number]
    kept = [one for at, one in enumerate(given) if at != number]
    left = f"{result}{f':{count - 1}' if count > 2 else ''} = " if rest else ""  # noqa: PLR2004 - two: one is left
    match = found.match
    core = op.head[match.end("results") : match.start("carried")]
    pairs = ", ".join(f"{one} = {other}" for one, other in rest)
    carried = f" iter_args({pairs}) -> ({', '.join(kinds)})" if rest else ""
    head = f"{_indent(op.head)}{left}{core}{carried}{match['rest']} "
    body = text[region.begin : last.begin]
    if kept:
        body += f"{_indent(last.head)}scf.yield {', '.join(kept)} : {', '.join(kinds)}\n"
    body = _renamed(body, {name: start})
    changed = [Edit(op.begin, op.end, head + "{\n" + body + text[region.end : op.end])]
    for use in uses(result).finditer(text, *scope(op)):
        which = int(use[1] or 0)
        if not op.begin <= use.start() < op.end:
            other = f"{result}#{which - (which > number)}" if len(rest) > 1 else result
            changed.append(Edit(use.start(), use.end(), start if which == number else other))
    return text_edits.apply(text, changed)


def _indent(head: str) -> str:
    return head[: len(head) - len(head.lstrip())]


def _operands(op: Op) -> list[str]:
    """Return the operands of an `scf.yield`."""
    text = op.head.strip().removeprefix("scf.yield").strip()
    text = brackets.split(text, " : ")[0]
    return [one for one in brackets.split(text, ",") if one]


def _renamed(text: str, names: dict[str, str]) -> str:
    """A text with values replaced, all at once."""
    if not names:
        return text
    listing = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"({listing})(?![\w$\-]|\.\w)", lambda match: names[match[1]], text)
