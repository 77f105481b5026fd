"""Edits that make the control flow of IR text simpler.

Branches go one way, a loop is replaced by its body, a choice by one side. Unreachable blocks are removed,
parameters of blocks, and the values that a loop carries, one by one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.core.text import split_outside_brackets
from tritonsmith.ir.ir_text import IrText, Op, Region, bracketed, parse, scope, uses
from tritonsmith.lab.reduce import ir_operations
from tritonsmith.lab.reduce.ir_operations import Edit, apply

_LABEL = re.compile(r"\s*(\^[\w$.\-]+)")
_TARGET = re.compile(r"\^[\w$.\-]+")
_DEFINED = r"%[\w$.\-]+"
_NAME = rf"{_DEFINED}(?:#\d+)?"
# `%r:2 = scf.for %i = %lb to %ub step %s iter_args(%a = %0, %b = %1) -> (f32, i32) : i32`
_FOR = re.compile(
    rf"(?P<results>\s*(?:{_DEFINED}(?::\d+)?\s*=\s*)?)scf\.for\s+(?:unsigned\s+)?(?P<iv>{_NAME})\s*=\s*(?P<lb>{_NAME})\s+to\s+{_NAME}\s+step\s+{_NAME}"
    r"(?P<carried>\s+iter_args\((?P<pairs>.*)\)\s*->\s*\((?P<types>.*)\))?(?P<rest>\s*(?::\s*\w+\s*)?)$",
    re.DOTALL,
)
# Names that earlier edits gave to values of a body; new ones count on.
_FRESH = re.compile(r"%in(\d+)\b")


@dataclass(frozen=True)
class BlockParameter:
    """A parameter of a block.

    Attributes:
        function: the function with the block.
        label: of the block.
        begin: offset of the block's line.
        number: its place among the parameters of the block.
        name: `%3`.
        type: its type.
    """

    function: Op
    label: str
    begin: int
    number: int
    name: str
    type: str


def straighter(source: IrText) -> Iterator[str]:
    """Yield the text in which a branch returns or goes one way, for each; without unreachable blocks."""
    for function in source.functions():
        for region in function.regions:
            for op in region.ops if region.labels else ():
                for text in _ways(op, region, function.name.partition(".")[0]):
                    line = f"{op.head[: len(op.head) - len(op.head.lstrip())]}{text}\n"
                    shorter = apply(source.text, [Edit(op.begin, op.end, line)])
                    # No other edit removes the terminator of a block, and so none removes the block.
                    yield reached(shorter)


def merged(source: IrText) -> Iterator[str]:
    """Yield the text in which a block and the only one that branches to it are one, for each such block."""
    for function in source.functions():
        for region in function.regions:
            for begin, end in region.labels:
                label = _LABEL.match(source.text[begin:end])
                # The block has to be right before it: from any other place, its text would have to move.
                before = next((op for op in region.ops if op.end == begin), None)
                # The operands of the branch would have to take the place of a block's parameters.
                if not label or before is None or "(" in source.text[begin:end].partition("//")[0]:
                    continue
                named = [op for op in region.ops if label[1] in _TARGET.findall(op.head)]
                if named == [before] and len(_TARGET.findall(before.head)) == 1:
                    yield apply(source.text, [Edit(before.begin, before.end), Edit(begin, end)])


def _ways(op: Op, region: Region, dialect: str) -> Iterator[str]:
    targets = list(_targets(op.head))
    if not op.terminator or not targets:
        return
    # A `return` without operands that is there already is spelled as its dialect wants it.
    returns = (op_before.head.strip() for op_before in region.ops if op_before.name.endswith("return"))
    yield next((text for text in returns if "%" not in text), f"{dialect}.return")
    if len(targets) > 1:
        name = op.name.replace("cond_br", "br")
        for begin, end in targets:
            yield f"{name} {op.head[begin:end]}"


def reached(text: str) -> str:
    """Return the text without unreachable blocks."""
    changed = []
    source = parse(text)
    for function in source.functions():
        for region in function.regions:
            blocks = _blocks(text, region)
            names_reached, left = {""}, [""]
            while left:
                begin, end = blocks[left.pop()]
                inside = [op for op in region.ops if begin <= op.begin < end]
                names = {name for op in inside for name in _TARGET.findall(op.head)}
                left += sorted(names & set(blocks) - names_reached)
                names_reached |= names
            changed += [Edit(*span) for name, span in blocks.items() if name not in names_reached]
    return apply(text, changed)


def _blocks(text: str, region: Region) -> dict[str, tuple[int, int]]:
    """Map the label of each block, which is empty for the first one, to its offsets."""
    starts = [("", region.begin)]
    for begin, end in region.labels:
        if match := _LABEL.match(text[begin:end]):
            starts.append((match[1], begin))
    ends = [*(begin for _, begin in starts[1:]), region.end]
    return {name: (begin, end) for (name, begin), end in zip(starts, ends, strict=True)}


def parameters(source: IrText) -> tuple[BlockParameter, ...]:
    """Return the parameters of all blocks of functions."""
    listed = []
    for function in source.functions():
        for region in function.regions:
            for begin, end in region.labels:
                line = source.text[begin:end]
                label = _LABEL.match(line)
                place = bracketed(line, label.end()) if label else None
                if not label or not place:
                    continue
                for number, parameter in enumerate(split_outside_brackets(line[place[0] : place[1]], ",")):
                    name, kind = (part.strip() for part in parameter.partition(":")[::2])
                    listed.append(BlockParameter(function, label[1], begin, number, name, kind))
    return tuple(listed)


def without_parameters(source: IrText, gone: Sequence[BlockParameter]) -> str | None:
    """Return the text without some parameters, whose users use new arguments of the function."""
    text, changed = source.text, []
    added: dict[Op, list[str]] = defaultdict(list)
    for number, parameter in enumerate(gone):
        fresh = f"%given{number}"
        while uses(fresh).search(text):  # an earlier edit has left one of this name
            fresh += "_"
        (region,) = parameter.function.regions
        # Behind the label's own line, which is written anew below.
        used = list(uses(parameter.name).finditer(text, text.index("\n", parameter.begin), region.end))
        changed += [Edit(match.start(), match.end(), fresh) for match in used]
        if used:
            added[parameter.function].append(f"{fresh}: {parameter.type}")
    every = parameters(source)
    blocks = dict.fromkeys((parameter.function, parameter.label, parameter.begin) for parameter in gone)
    for function, label, begin in blocks:
        numbers = {parameter.number for parameter in gone if parameter.begin == begin}
        mine = [parameter for parameter in every if parameter.begin == begin]
        kept = [
            f"{parameter.name}: {parameter.type}" for parameter in mine if parameter.number not in numbers
        ]
        line = text[begin : text.index("\n", begin)]
        head = f"{label}({', '.join(kept)}):" if kept else f"{label}:"
        changed.append(Edit(begin, begin + len(line), head))
        changed = [*_in_branches(function, label, numbers, changed)]
    for function, texts in added.items():
        edit = ir_operations.argument(text, function, texts)
        if edit is None:
            return None
        changed.append(edit)
    return apply(text, changed)


def _in_branches(function: Op, label: str, numbers: set[int], changed: list[Edit]) -> Iterator[Edit]:
    """Yield the edits, those in branches to a block applied to the operands that are left of it."""
    # A branch is replaced as a whole, and `apply` would drop the edits inside it.
    left = list(changed)
    for op in function.regions[0].ops:
        for first, last in _targets(op.head):
            if not re.match(re.escape(label) + r"(?![\w$.\-])", op.head[first:last]):
                continue
            begin, end = op.begin + first, op.begin + last
            mine = [edit for edit in left if begin <= edit.begin < end]
            left = [edit for edit in left if edit not in mine]
            moved = [Edit(edit.begin - begin, edit.end - begin, edit.text) for edit in mine]
            yield Edit(begin, end, _fewer(apply(op.head[first:last], moved), numbers))
    yield from left


def _fewer(target: str, numbers: set[int]) -> str:
    """Return `^bb1(%0, %1 : i32, i64)` without some of its operands."""
    place = bracketed(target, target.find("("))
    if not place:
        return target
    values, _, kinds = target[place[0] : place[1]].partition(" : ")
    left = [
        [operand for number, operand in enumerate(split_outside_brackets(part, ",")) if number not in numbers]
        for part in (values, kinds)
    ]
    head = target[: place[0] - 1]
    return f"{head}({', '.join(left[0])} : {', '.join(left[1])})" if left[0] else head


def _targets(head: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the successors in a branch, operands included."""
    for match in _TARGET.finditer(head):
        place = bracketed(head, match.end())
        yield match.start(), place[1] + 1 if place else match.end()


@dataclass(frozen=True)
class Loop:
    """An `scf.for`.

    Attributes:
        op: the operation.
        match: its head, by `_FOR`.
        pairs: the values that it carries: name in the body, and value at the start.
        types: their types.
    """

    op: Op
    match: re.Match[str]
    pairs: tuple[tuple[str, str], ...]
    types: tuple[str, ...]


def loop(op: Op) -> Loop | None:
    """Read an operation as a loop; None if it is none, or spelled in another way."""
    # A body of several blocks cannot stand in the place of an operation.
    if op.name != "scf.for" or len(op.regions) != 1 or op.regions[0].labels:
        return None
    match = _FOR.fullmatch(op.head.rstrip())
    if match is None:
        return None
    pairs = (
        [pair.partition("=") for pair in split_outside_brackets(match["pairs"], ",")]
        if match["carried"]
        else []
    )
    kinds = split_outside_brackets(match["types"], ",") if match["carried"] else []
    if len(pairs) != len(kinds):
        return None
    carried = tuple((name.strip(), start.strip()) for name, _, start in pairs)
    return Loop(op, match, carried, tuple(kinds))


def unwrapped(source: IrText) -> Iterator[str]:
    """Yield the text with the body in the place of the operation, for each loop and each side of a choice."""
    for op in source.ops():
        if for_loop := loop(op):
            # This is the first iteration: the induction value is the lower bound, and what is carried has its
            # start.
            values = {for_loop.match["iv"]: for_loop.match["lb"], **dict(for_loop.pairs)}
            if text := _inlined(source, op, op.regions[0], values):
                yield text
        elif op.name == "scf.if":
            for region in op.regions:
                if text := _inlined(source, op, region, {}):
                    yield text


def _inlined(source: IrText, op: Op, region: Region, values: dict[str, str]) -> str | None:
    """Return the text with the body in the place of the operation."""
    if region.labels:
        return None
    text = source.text
    last = region.ops[-1] if region.ops and region.ops[-1].name == "scf.yield" else None
    # `scf.yield` is not printed where it yields nothing.
    yielded = _operands(last) if last else []
    if len(yielded) != sum(count for _, count in op.results):
        return None
    body = text[region.begin : last.begin if last else region.end]
    around = text[: op.begin] + text[op.end :]
    # New names count on from those of earlier edits: one that is still there must not be bound twice.
    number = max((int(digits) for digits in _FRESH.findall(text)), default=-1) + 1
    # A name of the body is free outside, so the text around it may have the same one for another value.
    names = dict(values)
    for inner in region.ops:
        for name, _ in inner.results:
            if uses(name).search(around):
                names[name] = f"%in{number}"
                number += 1
    body, yielded = _renamed(body, names), [_renamed(value, names) for value in yielded]
    begin, end = scope(op)
    changed = [Edit(op.begin, op.end, body)]
    first = 0
    for name, count in op.results:
        changed += [
            Edit(match.start(), match.end(), yielded[first + int(match[1] or 0)])
            for match in uses(name).finditer(text, begin, end)
            if not op.begin <= match.start() < op.end
        ]
        first += count
    return apply(text, changed)


def lighter(source: IrText) -> Iterator[str]:
    """Yield the text in which a value that a loop carries keeps its start, for each such value."""
    for op in source.ops():
        if for_loop := loop(op):
            for number in reversed(range(len(for_loop.pairs))):
                if text := _without(source, for_loop, number):
                    yield text


def _without(source: IrText, for_loop: Loop, number: int) -> str | None:
    op, text = for_loop.op, source.text
    region = op.regions[0]
    last = region.ops[-1] if region.ops else None
    if last is None or last.name != "scf.yield" or len(op.results) != 1:
        return None
    yielded = _operands(last)
    (result, count), (name, start) = op.results[0], for_loop.pairs[number]
    if not len(yielded) == count == len(for_loop.pairs):
        return None
    rest = [pair for at, pair in enumerate(for_loop.pairs) if at != number]
    kinds = [kind for at, kind in enumerate(for_loop.types) if at != number]
    kept = [value for at, value in enumerate(yielded) if at != number]
    left = f"{result}{f':{count - 1}' if count > 2 else ''} = " if rest else ""  # noqa: PLR2004 - two: one is left
    match = for_loop.match
    core = op.head[match.end("results") : match.start("carried")]
    pairs = ", ".join(f"{name_inside} = {other}" for name_inside, other in rest)
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
    return apply(text, changed)


def _indent(head: str) -> str:
    return head[: len(head) - len(head.lstrip())]


def _operands(op: Op) -> list[str]:
    """Return the operands of an `scf.yield`."""
    text = op.head.strip().removeprefix("scf.yield").strip()
    text = split_outside_brackets(text, " : ")[0]
    return [operand for operand in split_outside_brackets(text, ",") if operand]


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return a text with other names for values."""
    if not names:
        return text
    # All at once, as a new name may be one that is replaced itself; the longest first, as `%1` begins `%1#0`.
    listing = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"({listing})(?![\w$\-]|\.\w)", lambda match: names[match[1]], text)
