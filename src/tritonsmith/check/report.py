"""Show the answer of `passes.check` as a table, as sentences and as JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tritonsmith.atlas import td_text
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.check.answer import CheckAnswer, CheckedPass, Culprit, InterpretedRuns, ResultChange
from tritonsmith.check.evaluate import known_operations
from tritonsmith.check.memory import Contents
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, UndecidedError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid

_GAPS = 3  # of them are named
_LEFT_OUT = "it does not end, or assumes what does not hold"
_SAME = "same text"
_WORDS = {
    "reference": "the reference",
    "equal": "equal",
    "close": "close",
    "differs": "DIFFERS",
    "unknown": "not checked",
    "lowered": "LLVM's dialect",
}
_CHANGES = {
    ResultChange.RESULT: "changes the result",
    ResultChange.COPIES: "makes a race: the result depends on when copies land",
    ResultChange.READS: "makes a race: the result depends on when dots and stores read shared memory",
    ResultChange.OUTSIDE: "makes the kernel read memory that it did not reach before",
    ResultChange.BEYOND: "makes the kernel access shared memory outside of its allocation",
    ResultChange.ENDLESS: "makes the kernel run without an end",
    ResultChange.ASSUMED: "makes the kernel assume what does not hold",
}

_CONTENTS = {
    Contents.EDGES: "with zeros, infinities and NaN in memory",
    Contents.LARGE: "with large numbers in memory",
    Contents.PRECISE: "with fractions in memory",
    Contents.INTEGERS: "with integers of all sizes in memory",
    Contents.ABOVE: "with nothing but positive numbers in memory",
    Contents.BELOW: "with nothing but negative numbers in memory",
    Contents.INTEGERS_ABOVE: "with nothing but positive integers in memory",
    Contents.INTEGERS_BELOW: "with nothing but negative integers in memory",
}


def table(answer: CheckAnswer) -> Grid:
    """Return a table with one line per pass that changed the text."""
    rows = [
        (str(row.number), ", ".join((row.name or "-", *row.others)), _WORDS[row.status], _detail(row))
        for row in answer.passes
        if row.status != _SAME
    ]
    return tables.plain(answer.kernel, ["dump", "pass before it", "result", ""], rows, right=["dump"])


def coverage(rows: Sequence[DialectCoverage]) -> Grid:
    """Return a table with one line per dialect: the unknown operations of a checkout, else the known ones."""
    every = any(row.unknown for row in rows)
    cells = [
        (
            row.dialect,
            f"{len(row.known)} of {len(row.known) + len(row.unknown)}" if every else str(len(row.known)),
            " ".join(row.unknown if every else row.known),
        )
        for row in rows
    ]
    title = "operations that passes.check knows"
    return tables.plain(
        title, ["dialect", "known", "not known" if every else "operations"], cells, right=["known"]
    )


def _detail(row: CheckedPass) -> str:
    waits = f"waits not checked: {row.waits}" if row.waits else ""
    return row.why or "; ".join(filter(None, (f"to {row.apart:.0e}" if row.apart else "", waits)))


def lines(answer: CheckAnswer) -> Iterator[str]:
    """Yield the verdict, and the evidence for it."""
    yield verdict(answer)
    if culprit := answer.culprit:
        yield from _first(culprit)
        arguments = ", ".join(f"{name}={value}" for name, value in culprit.arguments.items())
        yield from ([f"  with {arguments}"] if arguments else [])
        if culprit.operation:
            words = "by" if culprit.change is ResultChange.BEYOND else "first new value:"
            yield f"  {words} {culprit.operation}" + (f", {culprit.line}" if culprit.line else "")
    if answer.interpreted:
        yield from _interpreted(answer.kernel, answer.interpreted)
    about = f"{answer.target}, " if answer.target else ""
    if answer.runs:  # unknown where the check came to a limit: its process counts them at its end
        yield f"  {about}{answer.runs} runs, {answer.elements} elements written" + (
            f"; {answer.left_out} inputs left out: {_LEFT_OUT}" if answer.left_out else ""
        )
    if answer.gaps:
        more = f", and {len(answer.gaps) - _GAPS} more" if len(answer.gaps) > _GAPS else ""
        yield f"  not tried by these inputs: {'; '.join(answer.gaps[:_GAPS])}{more}"
    if any(row.status == "lowered" for row in answer.passes):
        yield "  what follows in LLVM's dialect was not run: --through-llvm runs it"
    if answer.racing:
        yield f"  {answer.racing} elements were written twice by one operation; the last one counts"


def _interpreted(kernel: str, runs: InterpretedRuns) -> Iterator[str]:
    """Yield what the interpreter computes, compared with the first text."""
    if runs.status != "differs":
        agreement = {"equal": "the same", "close": f"the same, up to {runs.apart:.1e} apart"}.get(runs.status)
        yield f"  TRITON_INTERPRET=1: {agreement or f'not compared: {runs.why}'}"
        return
    yield interpreter_verdict(kernel)
    run = _inputs(runs)
    if (at := runs.difference) is None:
        yield f"  it reads memory that the first text does not; {run}"
        return
    values = f"{_shown(at.before)} by the first text, {_shown(at.after)} by the interpreter"
    yield f"  first: {runs.store or 'memory'}[{at.offset}]: {values}"
    yield f"  {at.count} of {at.written} elements differ; {run}"


def interpreter_verdict(kernel: str) -> str:
    """Return the verdict in one sentence; which of the two is wrong stays open."""
    return f"{kernel}: the front end and TRITON_INTERPRET=1 disagree: one of them is wrong"


def _inputs(findings: Culprit | InterpretedRuns) -> str:
    more = "" if findings.contents is Contents.PLAIN else f" ({_CONTENTS[findings.contents]})"
    return f"program {findings.program}, inputs {findings.seed}{more}"


def _first(culprit: Culprit) -> Iterator[str]:
    """Yield the first element that differs."""
    run = _inputs(culprit)
    if (at := culprit.difference) is None:
        yield from ([f"  {culprit.place}"] if culprit.place else [])
        yield f"  {run}"
        return
    where = f"{culprit.store or 'memory'}[{at.offset}]"
    if culprit.change is ResultChange.OUTSIDE:
        yield f"  first: {where}"
        yield f"  {at.count} of {at.written} elements that are read; {run}"
    else:
        yield f"  first: {where}: {_shown(at.before)} before, {_shown(at.after)} after"
        yield f"  {at.count} of {at.written} elements differ; {run}"


def verdict(answer: CheckAnswer) -> str:
    """Return the verdict in one sentence."""
    if culprit := answer.culprit:
        names = ", ".join(culprit.suspects)
        one_of = "one of " if len(culprit.suspects) > 1 else ""
        return f"{answer.kernel}: {one_of}{names} {_CHANGES[culprit.change]}"
    sentence = f"{answer.kernel}: none of {answer.checked - 1} passes changes the result"
    if not answer.open:
        return sentence
    first = answer.open[0].number < next(row.number for row in answer.passes if row.status == "reference")
    return f"{sentence}; {len(answer.open)} at {'either end' if first else 'the end'} could not be checked"


def as_json(answer: CheckAnswer) -> dict[str, Any]:
    """Return the whole answer; numbers that JSON lacks are words: `NaN`, `inf`, `-inf`."""
    beside, sentence, outcome = answer.interpreted, verdict(answer), "unchanged"
    if answer.culprit:
        outcome = "changed"
    elif beside and beside.status == "differs":
        sentence, outcome = interpreter_verdict(answer.kernel), "disagrees"
    elif answer.open or (beside and beside.status == "unknown"):
        outcome = "undecided"
    about = {"schema": 1, "verdict": sentence, "outcome": outcome, "reasons": answer.reasons}
    content: dict[str, Any] = _plain({**about, **asdict(answer), "checked": answer.checked})
    return content


def _plain(value: Any) -> Any:
    """Return a value with every number that JSON lacks as a word."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


def open_end(answer: CheckAnswer) -> UndecidedError:
    """Return the error for an answer with texts that could not be checked."""
    why, hints = "\n".join(answer.reasons), ["docs/passes-check.md says what is not known"]
    if "cannot print it" in why:
        hints.append(f"what is wrong in a text: {command('passes.replay', 'DUMP', 'NUMBER')}")
    return UndecidedError(verdict(answer), why=why, hints=hints)


def undecided(error: UndecidedError) -> dict[str, Any]:
    """Return the same as JSON where nothing could be run."""
    why = error.why.splitlines() if error.why else []
    return {"schema": 1, "verdict": error.what, "outcome": "undecided", "reasons": why}


def _shown(value: float | None) -> str:
    return "not written" if value is None else f"{value:.9g}"


# List the operations that `passes.check` knows: all, or those that a checkout's TableGen files define.


@dataclass(frozen=True)
class DialectCoverage:
    """The operations of one dialect, without its prefix, sorted.

    Attributes:
        dialect: `ttg`.
        known: operations that the check can run.
        unknown: operations that stop a check.
    """

    dialect: str
    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def coverage_of_all() -> list[DialectCoverage]:
    """Return every known operation, of any release."""
    return _by_dialect(known_operations())


def coverage_of_checkout(root: Path) -> list[DialectCoverage]:
    """Return the operations that a checkout of Triton defines, without those of LLVM's dialects.

    Raises:
        FactError: the checkout defines none.
    """
    defined = {definition.name for definition in td_text.read(SourceFiles(root)) if definition.kind == "op"}
    if not defined:
        raise FactError("no TableGen file here defines an operation", where=root, hints=["--source CHECKOUT"])
    return _by_dialect(defined)


def _by_dialect(names: Iterable[str]) -> list[DialectCoverage]:
    known, by_prefix = known_operations(), defaultdict[str, list[str]](list)
    for name in sorted(names):
        dialect, dot, rest = name.partition(".")
        if dot:
            by_prefix[dialect].append(rest)
    return [
        DialectCoverage(
            dialect,
            tuple(operation for operation in members if f"{dialect}.{operation}" in known),
            tuple(operation for operation in members if f"{dialect}.{operation}" not in known),
        )
        for dialect, members in sorted(by_prefix.items())
    ]
