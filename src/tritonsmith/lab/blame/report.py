"""The answer of `blame` on the screen and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from rich.text import Text

from tritonsmith.compiler.resources.table import Value
from tritonsmith.core import configs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import metrics
from tritonsmith.lab.blame.blame import Blamed, BlameRequest
from tritonsmith.lab.blame.mixtures import AxisRow
from tritonsmith.lab.blame.verdict import BlameVerdict, Figures, Flip

NOTHING = "no change in registers, spills and code: nothing to blame"
_OF_MESSAGE = 160  # characters of a compiler's message


def blocks(request: BlameRequest, answer: Blamed) -> Iterator[Text | Grid]:
    """Yield the tables of one target, and a sentence for each metric."""
    names = metrics.summary()
    a, b = request.a.label, request.b.label
    yield Text(f"{request.kernel.name} {answer.point}: {a} -> {b}")
    rows = [[flip.group.title, *_cells(flip.in_a, names), *_cells(flip.in_b, names)] for flip in answer.flips]
    ends = ["(nothing)", *_cells(answer.replayed[0], names), *_cells(answer.replayed[1], names)]
    heads = ["changed alone", *(f"{name}\nin {a}" for name in names), *(f"{name}\nin {b}" for name in names)]
    yield tables.plain("each component alone, in both directions", heads, [ends, *rows])
    for axis in dict.fromkeys(row.axis for row in answer.rows):
        own = [row for row in answer.rows if row.axis == axis]
        yield tables.plain(
            f"axis {axis}",
            ["text", "by", *names],
            [[row.text, row.by, *_cells(row.figures, names)] for row in own],
        )
    if not answer.verdicts:
        yield Text(NOTHING)
    for verdict in answer.verdicts:
        yield Text(sentence(answer, verdict))


def sentence(answer: Blamed, verdict: BlameVerdict) -> str:
    """The answer for a metric: `spills 980 -> 4472: ptxas 12.9.86 -> 13.0.88`."""
    words = verdict.words
    if [group.names for group in verdict.culprits] == [("ptxas",)]:
        words = _step(answer.rows, verdict) or next(
            (note for note in answer.notes if note.startswith("ptxas ")), words
        )
    return f"{verdict.metric} {verdict.a} -> {verdict.b}: {words}"


def failures(answer: Blamed) -> Iterator[str]:
    """Yield a line for everything that could not be read or run."""
    for flip in answer.flips:
        yield from (_line(text) for text in (flip.in_a, flip.in_b) if isinstance(text, str))
    for row in answer.rows:
        if isinstance(row.figures, str):
            yield _line(row.figures)
        if row.note:
            yield f"{row.by}: {row.note}"


def as_json(request: BlameRequest, answers: Sequence[Blamed]) -> dict[str, Any]:
    """Everything but the texts."""
    return {
        "schema": 1,
        "kernel": request.kernel.name,
        "from": request.a.label,
        "to": request.b.label,
        "folder": str(request.out),
        "points": [_point(answer) for answer in answers],
    }


def _point(answer: Blamed) -> dict[str, Any]:
    return {
        "point": answer.point,
        "target": answer.target,
        "ends": [dict(figures) for figures in answer.ends],
        "replayed": [dict(figures) for figures in answer.replayed],
        "changed": [_flip(flip) for flip in answer.flips],
        "axes": [
            {"axis": row.axis, "text": row.text, "by": row.by, "note": row.note, **_told(row.figures)}
            for row in answer.rows
        ],
        "verdicts": [
            {
                "metric": verdict.metric,
                "a": verdict.a,
                "b": verdict.b,
                "decided": verdict.decided,
                "culprits": [list(group.names) for group in verdict.culprits],
                "words": sentence(answer, verdict),
                "shares": [
                    {"components": list(share.group.names), "from_a": share.from_a, "from_b": share.from_b}
                    for share in verdict.shares
                ],
            }
            for verdict in answer.verdicts
        ],
        "notes": list(answer.notes),
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {"components": list(flip.group.names), "in_a": _told(flip.in_a), "in_b": _told(flip.in_b)}


def _told(figures: Figures | str) -> dict[str, Any]:
    return {"error": figures} if isinstance(figures, str) else {"figures": dict(figures)}


def _line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _OF_MESSAGE else f"{line[:_OF_MESSAGE]}..."


def _cells(figures: Figures | str, names: Sequence[str]) -> list[str]:
    if isinstance(figures, str):
        return ["-" for _ in names]
    return [_spelled(figures.get(name)) for name in names]


def _spelled(value: Value) -> str:
    return "?" if value is None else str(value)


def _step(rows: Sequence[AxisRow], verdict: BlameVerdict) -> str:
    """The two neighbouring ptxas between which A's PTX changes its value; empty if there are none."""
    own = [
        row for row in rows if row.axis == "ptxas" and row.side == "A" and not isinstance(row.figures, str)
    ]
    values = [(row.by, row.figures.get(verdict.metric)) for row in own if not isinstance(row.figures, str)]
    known = [(by, value) for by, value in values if isinstance(value, (int, float))]
    if not isinstance(verdict.a, (int, float)) or not isinstance(verdict.b, (int, float)):
        return ""
    change = verdict.b - verdict.a
    low = configs.load("blame")["share"]["low"]
    for (first, before), (second, after) in pairwise(known):
        if abs(after - before) / abs(change) >= low and (after - before) * change > 0:
            return f"{first} -> {second.removeprefix('ptxas ')}"
    return ""
