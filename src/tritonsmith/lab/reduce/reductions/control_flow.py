"""Control flow made plain: branches that go one way, no blocks that nobody reaches, fewer parameters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.core import brackets
from tritonsmith.ir.ir_text import IrText, Op, Region, bracketed, parse, uses
from tritonsmith.lab.reduce import text_edits
from tritonsmith.lab.reduce.reductions import operations
from tritonsmith.lab.reduce.text_edits import Edit

_LABEL = re.compile(r"\s*(\^[\w$.\-]+)")
_TARGET = re.compile(r"\^[\w$.\-]+")


@dataclass(frozen=True)
class BlockParameter:
    """A parameter of a block.

    Attributes:
        function: that the block is in.
        label: of the block.
        begin: offset of the block's line.
        number: which one.
        name: `%3`.
        type: of it.
    """

    function: Op
    label: str
    begin: int
    number: int
    name: str
    type: str


def straighter(source: IrText) -> Iterator[str]:
    """For each branch: the text in which it returns, or goes one way; without blocks that nobody reaches."""
    for function in source.functions():
        for region in function.regions:
            for op in region.ops if region.labels else ():
                for text in _ways(op, region, function.name.partition(".")[0]):
                    line = f"{op.head[: len(op.head) - len(op.head.lstrip())]}{text}\n"
                    made = text_edits.apply(source.text, [Edit(op.begin, op.end, line)])
                    yield reached(made)


def merged(source: IrText) -> Iterator[str]:
    """For each block that the one before it alone goes to: the text in which the two are one."""
    for function in source.functions():
        for region in function.regions:
            for begin, end in region.labels:
                label = _LABEL.match(source.text[begin:end])
                before = next((op for op in region.ops if op.end == begin), None)
                if not label or before is None or "(" in source.text[begin:end].partition("//")[0]:
                    continue
                named = [op for op in region.ops if label[1] in _TARGET.findall(op.head)]
                if named == [before] and len(_TARGET.findall(before.head)) == 1:
                    yield text_edits.apply(source.text, [Edit(before.begin, before.end), Edit(begin, end)])


def _ways(op: Op, region: Region, dialect: str) -> Iterator[str]:
    targets = list(_targets(op.head))
    if not op.terminator or not targets:
        return
    returns = (one.head.strip() for one in region.ops if one.name.endswith("return"))
    yield next((text for text in returns if "%" not in text), f"{dialect}.return")
    if len(targets) > 1:
        name = op.name.replace("cond_br", "br")
        for begin, end in targets:
            yield f"{name} {op.head[begin:end]}"


def reached(text: str) -> str:
    """The text without blocks that nobody reaches."""
    changed = []
    source = parse(text)
    for function in source.functions():
        for region in function.regions:
            blocks = _blocks(text, region)
            found, left = {""}, [""]
            while left:
                begin, end = blocks[left.pop()]
                inside = [op for op in region.ops if begin <= op.begin < end]
                names = {name for op in inside for name in _TARGET.findall(op.head)}
                left += sorted(names & set(blocks) - found)
                found |= names
            changed += [Edit(*span) for name, span in blocks.items() if name not in found]
    return text_edits.apply(text, changed)


def _blocks(text: str, region: Region) -> dict[str, tuple[int, int]]:
    """Label to offsets of the block; the first has none."""
    starts = [("", region.begin)]
    for begin, end in region.labels:
        if match := _LABEL.match(text[begin:end]):
            starts.append((match[1], begin))
    ends = [*(begin for _, begin in starts[1:]), region.end]
    return {name: (begin, end) for (name, begin), end in zip(starts, ends, strict=True)}


def parameters(source: IrText) -> tuple[BlockParameter, ...]:
    """Parameters of all blocks of functions."""
    found = []
    for function in source.functions():
        for region in function.regions:
            for begin, end in region.labels:
                line = source.text[begin:end]
                label = _LABEL.match(line)
                place = bracketed(line, label.end()) if label else None
                if not label or not place:
                    continue
                for number, one in enumerate(brackets.split(line[place[0] : place[1]], ",")):
                    name, kind = (part.strip() for part in one.partition(":")[::2])
                    found.append(BlockParameter(function, label[1], begin, number, name, kind))
    return tuple(found)


def without(source: IrText, gone: Sequence[BlockParameter]) -> str | None:
    """The text without some parameters: who used one uses a new argument of the function."""
    text, changed = source.text, []
    added: dict[Op, list[str]] = defaultdict(list)
    for number, one in enumerate(gone):
        fresh = f"%given{number}"
        while uses(fresh).search(text):
            fresh += "_"
        (region,) = one.function.regions
        used = list(uses(one.name).finditer(text, text.index("\n", one.begin), region.end))
        changed += [Edit(match.start(), match.end(), fresh) for match in used]
        if used:
            added[one.function].append(f"{fresh}: {one.type}")
    every = parameters(source)
    blocks = dict.fromkeys((one.function, one.label, one.begin) for one in gone)
    for function, label, begin in blocks:
        numbers = {one.number for one in gone if one.begin == begin}
        mine = [one for one in every if one.begin == begin]
        kept = [f"{one.name}: {one.type}" for one in mine if one.number not in numbers]
        line = text[begin : text.index("\n", begin)]
        head = f"{label}({', '.join(kept)}):" if kept else f"{label}:"
        changed.append(Edit(begin, begin + len(line), head))
        changed = [*_in_branches(function, label, numbers, changed)]
    for function, texts in added.items():
        edit = operations.argument(text, function, texts)
        if edit is None:
            return None
        changed.append(edit)
    return text_edits.apply(text, changed)


def _in_branches(function: Op, label: str, numbers: set[int], changed: list[Edit]) -> Iterator[Edit]:
    """The changes, with those in branches to a block made in what is left of their operands."""
    left = list(changed)
    for op in function.regions[0].ops:
        for first, last in _targets(op.head):
            if not re.match(re.escape(label) + r"(?![\w$.\-])", op.head[first:last]):
                continue
            begin, end = op.begin + first, op.begin + last
            mine = [one for one in left if begin <= one.begin < end]
            left = [one for one in left if one not in mine]
            moved = [Edit(one.begin - begin, one.end - begin, one.text) for one in mine]
            yield Edit(begin, end, _fewer(text_edits.apply(op.head[first:last], moved), numbers))
    yield from left


def _fewer(target: str, numbers: set[int]) -> str:
    """`^bb1(%0, %1 : i32, i64)` without some."""
    place = bracketed(target, target.find("("))
    if not place:
        return target
    values, _, kinds = target[place[0] : place[1]].partition(" : ")
    left = [
        [one for number, one in enumerate(brackets.split(part, ",")) if number not in numbers]
        for part in (values, kinds)
    ]
    head = target[: place[0] - 1]
    return f"{head}({', '.join(left[0])} : {', '.join(left[1])})" if left[0] else head


def _targets(head: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the successors in a branch, operands included."""
    for match in _TARGET.finditer(head):
        place = bracketed(head, match.end())
        yield match.start(), place[1] + 1 if place else match.end()
