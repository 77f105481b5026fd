"""The answer of `passes.check` as a table, sentences and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tritonsmith.check.answer import Change, CheckAnswer, CheckedPass, Culprit, InterpretedRuns
from tritonsmith.check.coverage import DialectCoverage
from tritonsmith.check.memory import Contents
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UndecidedError
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
    Change.RESULT: "changes the result",
    Change.COPIES: "makes a race: the result depends on when copies land",
    Change.READS: "makes a race: the result depends on when dots and stores read shared memory",
    Change.OUTSIDE: "makes the kernel read memory that it did not reach before",
    Change.BEYOND: "makes the kernel access shared memory outside of its allocation",
    Change.ENDLESS: "makes the kernel run without an end",
    Change.ASSUMED: "makes the kernel assume what does not hold",
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
    """One line per pass that changed the text."""
    rows = [
        (str(one.number), ", ".join((one.name or "-", *one.others)), _WORDS[one.status], _detail(one))
        for one in answer.passes
        if one.status != _SAME
    ]
    return tables.plain(answer.kernel, ["dump", "pass before it", "result", ""], rows, right=["dump"])


def coverage(rows: Sequence[DialectCoverage]) -> Grid:
    """One line per dialect; of a checkout, what is not known of it, else what is."""
    every = any(one.unknown for one in rows)
    cells = [
        (
            one.dialect,
            f"{len(one.known)} of {len(one.known) + len(one.unknown)}" if every else str(len(one.known)),
            " ".join(one.unknown if every else one.known),
        )
        for one in rows
    ]
    title = "operations that passes.check knows"
    return tables.plain(
        title, ["dialect", "known", "not known" if every else "operations"], cells, right=["known"]
    )


def _detail(one: CheckedPass) -> str:
    waits = f"waits not checked: {one.waits}" if one.waits else ""
    return one.why or "; ".join(filter(None, (f"to {one.apart:.0e}" if one.apart else "", waits)))


def lines(answer: CheckAnswer) -> Iterator[str]:
    """The verdict, and what it stands on."""
    yield verdict(answer)
    if found := answer.culprit:
        yield from _first(found)
        given = ", ".join(f"{name}={value}" for name, value in found.arguments.items())
        yield from ([f"  with {given}"] if given else [])
        if found.operation:
            words = "by" if found.change is Change.BEYOND else "first new value:"
            yield f"  {words} {found.operation}" + (f", {found.line}" if found.line else "")
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
    if any(one.status == "lowered" for one in answer.passes):
        yield "  what follows in LLVM's dialect was not run: --through-llvm runs it"
    if answer.racing:
        yield f"  {answer.racing} elements were written twice by one operation; the last one counts"


def _interpreted(kernel: str, runs: InterpretedRuns) -> Iterator[str]:
    """What the interpreter computes, beside what the first pass is given."""
    if runs.status != "differs":
        said = {"equal": "the same", "close": f"the same, up to {runs.apart:.1e} apart"}.get(runs.status)
        yield f"  TRITON_INTERPRET=1: {said or f'not compared: {runs.why}'}"
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
    """One sentence: which of both is wrong is open."""
    return f"{kernel}: the front end and TRITON_INTERPRET=1 disagree: one of them is wrong"


def _inputs(of: Culprit | InterpretedRuns) -> str:
    more = "" if of.contents is Contents.PLAIN else f" ({_CONTENTS[of.contents]})"
    return f"program {of.program}, inputs {of.seed}{more}"


def _first(found: Culprit) -> Iterator[str]:
    """The first element."""
    run = _inputs(found)
    if (at := found.difference) is None:
        yield from ([f"  {found.place}"] if found.place else [])
        yield f"  {run}"
        return
    where = f"{found.store or 'memory'}[{at.offset}]"
    if found.change is Change.OUTSIDE:
        yield f"  first: {where}"
        yield f"  {at.count} of {at.written} elements that are read; {run}"
    else:
        yield f"  first: {where}: {_shown(at.before)} before, {_shown(at.after)} after"
        yield f"  {at.count} of {at.written} elements differ; {run}"


def verdict(answer: CheckAnswer) -> str:
    """One sentence."""
    if found := answer.culprit:
        names = ", ".join(found.suspects)
        one_of = "one of " if len(found.suspects) > 1 else ""
        return f"{answer.kernel}: {one_of}{names} {_CHANGES[found.change]}"
    said = f"{answer.kernel}: none of {answer.checked - 1} passes changes the result"
    if not answer.open:
        return said
    first = answer.open[0].number < next(one.number for one in answer.passes if one.status == "reference")
    return f"{said}; {len(answer.open)} at {'either end' if first else 'the end'} could not be checked"


def as_json(answer: CheckAnswer) -> dict[str, Any]:
    """Everything; numbers that JSON does not have are words: `NaN`, `inf`, `-inf`."""
    beside, said, outcome = answer.interpreted, verdict(answer), "unchanged"
    if answer.culprit:
        outcome = "changed"
    elif beside and beside.status == "differs":
        said, outcome = interpreter_verdict(answer.kernel), "disagrees"
    elif answer.open or (beside and beside.status == "unknown"):
        outcome = "undecided"
    about = {"schema": 1, "verdict": said, "outcome": outcome, "reasons": answer.reasons}
    found: dict[str, Any] = _plain({**about, **asdict(answer), "checked": answer.checked})
    return found


def _plain(value: Any) -> Any:
    """A value of which JSON has all numbers."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


def open_end(answer: CheckAnswer) -> UndecidedError:
    """What to say where texts could not be checked."""
    why, hints = "\n".join(answer.reasons), ["docs/passes-check.md says what is not known"]
    if "cannot print it" in why:
        hints.append(f"what is wrong in a text: {command('passes.replay', 'DUMP', 'NUMBER')}")
    return UndecidedError(verdict(answer), why=why, hints=hints)


def undecided(error: UndecidedError) -> dict[str, Any]:
    """The same, where nothing could be run."""
    why = error.why.splitlines() if error.why else []
    return {"schema": 1, "verdict": error.what, "outcome": "undecided", "reasons": why}


def _shown(value: float | None) -> str:
    return "not written" if value is None else f"{value:.9g}"
