"""Find registers that are spilled inside a loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tritonsmith.compiler.resources import ptxas
from tritonsmith.inspect.lint import loops
from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, NotCheckedError, StageLine, rules
from tritonsmith.ir import instructions

_SASS = re.compile(r"^/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?((?:LDL|STL)\b[\w.]*)")
_AMD = re.compile(r"; (\d+)-byte Folded (Spill|Reload)")
_SHOWN = 4  # lines of evidence


def in_loop(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield spills to local memory (NVIDIA) or scratch (AMD) in a loop."""
    spills = list(_sass(one) if one.nvidia else _amd(one))
    if not spills:
        return
    kinds = Counter("store" if stores else "load" for _, _, stores in spills)
    total = sum(size for _, size, _ in spills)
    places = Counter(line.origin for line, _, _ in spills)
    most = max(places, key=lambda origin: (origin is not None, places[origin]))
    shown = sorted((line for line, _, _ in spills), key=lambda line: line.origin != most)[:_SHOWN]
    what = f"{kinds['store']} spill stores and {kinds['load']} reloads in a loop: {total} bytes per thread"
    yield LintFinding(rules()["spill-in-loop"], what, tuple(shown))


def _sass(one: CompiledPoint) -> Iterator[tuple[StageLine, int, bool]]:
    if not (one.row.values.get("stack_bytes") or 0):
        return
    if any(ptxas.has_arrays(line) for line in one.raw("ptx")):
        raise NotCheckedError("the PTX has arrays in local memory, which code cannot tell from spills")
    lines = one.raw("sass")
    inside = loops.of_sass(lines)
    if inside is None:
        raise NotCheckedError("the sass has branches to places that it does not name")
    for index, line in enumerate(one.lines("sass")):
        if index in inside and (match := _SASS.match(line.text)):
            bits = int(instructions.class_of(match[1], "sass").rpartition(" ")[2])
            yield line, bits // 8, match[1].startswith("STL")


def _amd(one: CompiledPoint) -> Iterator[tuple[StageLine, int, bool]]:
    inside = loops.of_amd(one.raw("amdgcn"))
    for index, line in enumerate(one.lines("amdgcn")):
        if index in inside and (match := _AMD.search(line.text)):
            yield line, int(match[1]), match[2] == "Spill"
