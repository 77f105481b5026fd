"""`passes.isolate --pattern` and `--when`: the first pass, or later step, after which something holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.resources.table import Value
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.ir import strip_locations
from tritonsmith.lab import terms
from tritonsmith.lab.compare import matching
from tritonsmith.lab.questions import compiles as questions

# What makes a stage of a kernel out of the one before it, after the last pass that printed something.
STEPS = {
    "ttir": "the front end",
    "ttgir": "the passes of ttgir",
    "llir": "the translation to LLVM IR, or LLVM's passes on it",
    "ptx": "LLVM's backend, from llir to ptx",
    "amdgcn": "LLVM's backend, from llir to amdgcn",
    "sass": "ptxas, from ptx to machine code",
    "gcnasm": "LLVM's assembler, from amdgcn to machine code",
}
_AFTER = ("llir", "ptx", "sass", "amdgcn", "gcnasm")  # stages that come after the dumps of passes


@dataclass(frozen=True)
class FirstOccurrence:
    """The first place where a condition holds.

    Attributes:
        dump: of the pass after which it does; None if a step after the passes did it, or nothing.
        step: what that step is called; empty if it was a pass.
        before: how often before it, or the value then.
        after: how often after it.
        first: it holds before the first pass already.
    """

    dump: Dump | None
    step: str
    before: int
    after: Value
    first: bool = False


def texts(
    index: DumpIndex, kernel: str, pattern: re.Pattern[str], stages: Sequence[tuple[str, str]]
) -> FirstOccurrence | None:
    """The first pass after which a text occurs; None if it never does. Locations are not searched.

    Stages are names and texts of what was compiled after the passes, in order.
    """
    dumps = index.of(kernel)
    counts: dict[str, int] = {}
    previous: Dump | None = None
    for dump in dumps:
        if dump.sha256 not in counts:
            raw = strip_locations.without(dump.kind, index.content(dump))
            counts[dump.sha256] = _count(pattern, raw.decode("utf-8", errors="replace"))
        if counts[dump.sha256]:
            return _found(index, dump, previous, counts)
        previous = dump
    for name, text in stages:
        if count := _count(pattern, text):
            return FirstOccurrence(None, STEPS.get(name, name), 0, count)
    return None


def _found(index: DumpIndex, dump: Dump, previous: Dump | None, counts: dict[str, int]) -> FirstOccurrence:
    after = counts[dump.sha256]
    if dump.stage in ("ptx", "amdgcn"):
        return FirstOccurrence(None, STEPS[dump.stage], 0, after)
    if dump.when != "before":
        before = counts.get(index.dumps[dump.against].sha256, 0) if dump.against is not None else 0
        return FirstOccurrence(dump, "", before, after)
    if previous is None:
        return FirstOccurrence(dump, "", after, after, first=True)
    place = index.dumps.index(dump)
    makers = (one for one in index.of(dump.kernel) if one.against == place and one.when == "before")
    maker = next(makers, previous)
    return FirstOccurrence(maker, "", counts.get(maker.sha256, 0), after)


def compiled_pattern(text: str, *, regex: bool) -> re.Pattern[str]:
    """Compile the pattern to search for.

    Raises:
        UsageError: it is empty or not a valid regular expression.
    """
    if not text:
        raise UsageError("--pattern is empty")
    try:
        return re.compile(text if regex else re.escape(text), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{text!r} is not a valid regular expression", why=str(error)) from error


def stages_of(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """Name and text of the stages after the passes of the only compile.

    Raises:
        SmithError: it failed.
    """
    point = _point(manifest)
    paths = ((name, manifest.path(point, name)) for name in _AFTER)
    return tuple((name, path.read_text(encoding="utf-8", errors="replace")) for name, path in paths if path)


def limit(text: str, manifest: Manifest) -> tuple[tuple[str, Value, bool], ...]:
    """Terms such as `spills>0` of the kernel's binary: each with the value and whether it holds.

    They are those of compare's --fail-on, without a change.

    Raises:
        UsageError: a term makes no sense, or is about a change.
        FactError: the kernel has no such metric.
    """
    _point(manifest)
    limits = terms.parse([text], "--when")
    for term in limits:
        if isinstance(term, terms.TextTerm):
            hints = ["give the text as --pattern: the first pass after which it occurs is searched for"]
            raise UsageError(f"--when {term.text}: a text is no value of the binary", hints=hints)
        if term.change:
            hints = ["use unsigned values: spills>0, registers>128"]
            raise UsageError(f"--when {term.text}: a signed value needs a second compile", hints=hints)
    answers = []
    readings = questions.readings(limits, matching.pair([manifest], [manifest]))
    for term, (reading, *_) in zip(limits, readings, strict=True):
        if not reading.applies or reading.unknown:
            what = f"--when {term.text}: {term.metric} of this kernel is unknown"
            raise FactError(what, where=manifest.folder)
        answers.append((term.text, reading.b, reading.broken))
    return tuple(answers)


def binary_step(manifest: Manifest) -> str:
    """The step that determines the registers and spills of a kernel."""
    return STEPS["sass"] if _point(manifest).backend == "cuda" else STEPS["amdgcn"]


def _point(manifest: Manifest) -> Point:
    point = manifest.points[0]
    if point.status != "ok":
        raise SmithError("the kernel does not compile", where=manifest.folder, why=point.error)
    return point


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def sentence(held: FirstOccurrence | None, pattern: str) -> str:
    """The answer in words."""
    if held is None:
        return f"{pattern} does not occur in any dump, nor in any stage after the passes"
    if held.first:
        return f"{pattern} occurs before the first pass: {held.after} times"
    if held.dump is None:
        return f"{pattern}: {held.step}: 0 before, {held.after} after"
    dump = held.dump
    return (
        f"{pattern}: pass {dump.number} {dump.label} of {dump.stage}: "
        f"{held.before} before, {held.after} after"
    )


def as_json(held: FirstOccurrence | None, pattern: str) -> dict[str, Any]:
    """The same for programs."""
    if held is None:
        return {"schema": 1, "pattern": pattern, "found": False}
    dump = held.dump
    return {
        "schema": 1,
        "pattern": pattern,
        "found": True,
        "first": held.first,
        "step": held.step,
        "number": dump.number if dump else None,
        "pass": dump.label if dump else None,
        "stage": dump.stage if dump else None,
        "before": held.before,
        "after": held.after,
    }
