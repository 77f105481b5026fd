"""Find the lines of machine code that are in loops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_LABEL = re.compile(r"^(\.L\w*):")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)(.*)$")
_TARGET = re.compile(r"`\((\.L\w*)\)")
_LISTED = re.compile(r"BRANCH_TARGETS ([^\"]*)")
_INDIRECT = ("BRX", "JMX", "BRXU", "JMXU")
_JUMPS = ("BRA", "JMP", "BRX", "JMX", "BRXU", "JMXU", "BSYNC", "CALL")
_ENDS = ("EXIT", "RET", "KILL", "BPT")
_AMD_LABEL = re.compile(r"^(?:\.LBB\d+_\d+:|; %bb\.\d+:)")
_AMD_MORE = re.compile(r"^\s+;")
_AMD_LOOP = re.compile(r"\bLoop\b")


@dataclass
class _Block:
    """A block of instructions that run one after the other.

    Attributes:
        lines: their indexes.
        labels: of its beginning.
        targets: labels that it jumps to.
        falls: the next block may follow.
    """

    lines: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    falls: bool = True


def of_sass(lines: Sequence[str]) -> set[int] | None:
    """Return the indexes of the lines in loops: natural loops of the flow graph.

    Returns:
        None if a branch has a target that the text does not name.
    """
    # ptxas moves rare code behind the end and jumps back from there, so a branch to a lower address is not
    # yet a loop: the target must dominate the branch.
    blocks = _blocks(lines)
    if blocks is None:
        return None
    edges = _edges(blocks)
    dominators = _dominators(edges)
    in_loops: set[int] = set()
    before: dict[int, set[int]] = {}
    for source, targets in edges.items():
        for target in targets:
            before.setdefault(target, set()).add(source)
    for source, heads in dominators.items():
        for head in edges[source] & heads:
            inside, todo = {head}, [source]
            while todo:
                block = todo.pop()
                if block not in inside:
                    inside.add(block)
                    todo += [source_ for source_ in before.get(block, ()) if source_ in dominators]
            in_loops.update(index for block in inside for index in blocks[block].lines)
    return in_loops


def of_amd(lines: Sequence[str]) -> set[int]:
    """Return the indexes of the lines in loops, which LLVM marks at the label of each block."""
    in_loops, inside, label = set(), False, False
    for index, line in enumerate(lines):
        if _AMD_LABEL.match(line):
            inside, label = bool(_AMD_LOOP.search(line)), True
        elif label and _AMD_MORE.match(line):
            inside = inside or bool(_AMD_LOOP.search(line))
        else:
            label = False
            if inside:
                in_loops.add(index)
    return in_loops


def _blocks(lines: Sequence[str]) -> list[_Block] | None:
    blocks = [_Block()]
    waits: dict[str, str] = {}  # barrier of a BSSY, to the label that its BSYNC goes to
    for index, line in enumerate(lines):
        if label := _LABEL.match(line):
            if blocks[-1].lines:
                blocks.append(_Block())
            blocks[-1].labels.append(label[1])
        elif match := _INSTRUCTION.match(line):
            guarded, name, rest = match[1], match[2].partition(".")[0], match[3]
            blocks[-1].lines.append(index)
            if name == "BSSY" and (target := _TARGET.search(rest)):
                waits[rest.split(",")[0].strip()] = target[1]
            if name in (*_JUMPS, *_ENDS):
                targets = _targets(name, rest, waits)
                if targets is None:
                    return None
                blocks[-1].targets = targets
                blocks[-1].falls = bool(guarded) or name in ("BSYNC", "CALL")
                blocks.append(_Block())
    return blocks


def _targets(name: str, rest: str, waits: Mapping[str, str]) -> list[str] | None:
    """Return the targets of a branch; None if the text does not name them."""
    if name in _ENDS:
        return []
    if name == "BSYNC":
        barrier = rest.strip(" ;").split(" ")[0]
        return [waits[barrier]] if barrier in waits else []
    if name in _INDIRECT:
        named = _LISTED.search(rest)
        return re.findall(r"\.L\w*", named[1]) if named else None
    target = _TARGET.search(rest)
    return [target[1]] if target else [] if name == "CALL" else None


def _edges(blocks: Sequence[_Block]) -> Mapping[int, set[int]]:
    places = {label: number for number, block in enumerate(blocks) for label in block.labels}
    return {
        number: {places[target] for target in block.targets if target in places}
        | ({number + 1} if block.falls and number + 1 < len(blocks) else set())
        for number, block in enumerate(blocks)
    }


def _dominators(edges: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """Return the dominators of each reachable block: the blocks on every path from the entry to it."""
    order, reached = [], {0}
    todo = [0]
    while todo:
        block = todo.pop()
        order.append(block)
        todo += sorted(edges[block] - reached)
        reached |= edges[block]
    before: dict[int, list[int]] = {block: [] for block in order}
    for source in order:
        for target in edges[source]:
            before[target].append(source)
    dominators = {block: set(order) for block in order}
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set.intersection(*(dominators[source_] for source_ in before[block])) | {block}
            if new != dominators[block]:
                dominators[block], changed = new, True
    return dominators
