"""Semantic mutations of MLIR's generic form: one operation does something else, and types stay right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_OTHER = {  # an operation to one that computes something else from the same operands
    "arith.addf": "arith.subf",
    "arith.subf": "arith.addf",
    "arith.mulf": "arith.addf",
    "arith.divf": "arith.mulf",
    "arith.maxnumf": "arith.minnumf",
    "arith.addi": "arith.subi",
    "arith.subi": "arith.addi",
    "arith.muli": "arith.addi",
    "arith.andi": "arith.ori",
    "arith.divsi": "arith.remsi",
    "arith.remsi": "arith.divsi",
    "arith.minsi": "arith.maxsi",
    "math.exp2": "math.sqrt",
    "math.exp": "math.sqrt",
}
_SWAPPED = (
    "arith.subf",
    "arith.divf",
    "arith.subi",
    "arith.divsi",
    "arith.remsi",
    "arith.cmpi",
    "arith.cmpf",
)
_NAME = re.compile(r'"(?P<name>[a-z_]+\.\w+)"\((?P<operands>[^()]*)\)')
_INTEGER = re.compile(r"value = (?P<dense>dense<)?(?P<value>-?\d+)>? : (?:tensor<[^:]*xi(?:32|64)|i32|i64)")
_RANGE = re.compile(r"<\{end = (\d+) : i32, start = (\d+) : i32\}>")
_PREDICATE = re.compile(r"predicate = (\d+) : i64")
_SYMMETRIC = (0, 1)  # eq and ne of integers
_AXIS = re.compile(r"(?<=get_program_id\"\(\) <\{axis = )0(?= : i32)")
_YIELD = re.compile(r'"scf\.yield"\((?P<operands>[^()]+)\) : \((?P<types>.*)\) -> \(\)')
_TYPED = re.compile(r"[^,<(]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?")

Mutator = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class IrMutant:
    """A text that was changed.

    Attributes:
        kind: of the change.
        line: number of the line, from 1.
        before: that line.
        after: the line as it is now.
        text: all of it.
    """

    kind: str
    line: int
    before: str
    after: str
    text: str


def mutants(text: str, chance: random.Random) -> Iterator[IrMutant]:
    """All mutations of a text in a random order; each changes one line."""
    lines = text.splitlines()
    places = [(number, kind) for number in range(len(lines)) for kind in _KINDS]
    chance.shuffle(places)
    for number, kind in places:
        changed = _KINDS[kind](lines[number], chance)
        if changed and changed != lines[number]:
            whole = "\n".join((*lines[:number], changed, *lines[number + 1 :])) + "\n"
            yield IrMutant(kind, number + 1, lines[number].strip(), changed.strip(), whole)


def _other_operation(line: str, _: random.Random) -> str:
    match = _NAME.search(line)
    other = _OTHER.get(match["name"], "") if match else ""
    if not match or not other:
        return ""
    changed = line.replace(f'"{match["name"]}"', f'"{other}"', 1)
    if other.startswith("math.") or other in ("arith.ori", "arith.remsi", "arith.divsi"):
        changed = re.sub(r" <\{overflowFlags[^}]*\}>", "", changed)
    return changed


def _operands_swapped(line: str, _: random.Random) -> str:
    match = _NAME.search(line)
    equality = _PREDICATE.search(line) if match and "cmp" in match["name"] else None
    if not match or match["name"] not in _SWAPPED or (equality and int(equality[1]) in _SYMMETRIC):
        return ""
    one, other = match["operands"].split(", ")
    return line.replace(f"({match['operands']})", f"({other}, {one})", 1)


def _constant_off_by_one(line: str, chance: random.Random) -> str:
    match = _INTEGER.search(line)
    if not match:
        return ""
    start, end = match.span("value")
    return f"{line[:start]}{int(match['value']) + chance.choice((-1, 1))}{line[end:]}"


def _range_off_by_one(line: str, _: random.Random) -> str:
    return _RANGE.sub(
        lambda match: f"<{{end = {int(match[1]) + 1} : i32, start = {int(match[2]) + 1} : i32}}>", line
    )


def _other_predicate(line: str, chance: random.Random) -> str:
    """Of `cmpi`: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge; of `cmpf` the ordered ones."""
    many = 10 if "arith.cmpi" in line else 7 if "arith.cmpf" in line else 0
    match = _PREDICATE.search(line)
    if not match or not many:
        return ""
    others = [one for one in range(many) if one != int(match[1]) and not (many == 7 and one == 0)]  # noqa: PLR2004
    return line.replace(match[0], f"predicate = {chance.choice(others)} : i64")


def _other_axis(line: str, _: random.Random) -> str:
    return _AXIS.sub("1", line)


def _mask_dropped(line: str, _: random.Random) -> str:
    """A store without its mask, or a load without it and without what stands for the masked elements.

    A load without such a value may give anything there: nothing that is computed depends on it.
    """
    match = _NAME.search(line)
    if not match or match["name"] not in ("tt.load", "tt.store"):
        return ""
    store, names = match["name"] == "tt.store", match["operands"].split(", ")
    kept = 2 if store else 1
    if len(names) != 3:  # noqa: PLR2004 - the pointers, the mask, and what is stored or stands for the rest
        return ""
    types = re.search(r" : \((.*?)\) -> ", line)
    if not types:
        return ""
    spelled = _split(types[1])
    changed = line.replace(f"({match['operands']})", f"({', '.join(names[:kept])})", 1)
    changed = changed.replace(f"({types[1]})", f"({', '.join(spelled[:kept])})", 1)
    return re.sub(
        r"operandSegmentSizes = array<i32: [^>]*>", "operandSegmentSizes = array<i32: 1, 0, 0>", changed
    )


def _carried_swapped(line: str, chance: random.Random) -> str:
    """Two values of one type that a loop carries: one takes the place of the other, which is lost."""
    match = _YIELD.search(line)
    if not match:
        return ""
    names, types = match["operands"].split(", "), _split(match["types"])
    pairs = [
        (one, other)
        for one in range(len(names))
        for other in range(len(names))
        if names[one] != names[other] and types[one] == types[other]
    ]
    if len(names) != len(types) or not pairs:
        return ""
    one, other = chance.choice(pairs)
    names[one] = names[other]
    return line.replace(f"({match['operands']})", f"({', '.join(names)})", 1)


def _split(text: str) -> list[str]:
    """Types between commas that are in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "<({[") - (letter in ">)}]")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [one.strip() for one in found if one.strip()]


_KINDS: dict[str, Mutator] = {
    "another operation": _other_operation,
    "operands swapped": _operands_swapped,
    "constant off by one": _constant_off_by_one,
    "range off by one": _range_off_by_one,
    "another predicate": _other_predicate,
    "another axis": _other_axis,
    "mask dropped": _mask_dropped,
    "carried value lost": _carried_swapped,
}
