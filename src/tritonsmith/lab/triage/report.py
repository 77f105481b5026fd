"""The verdict on the screen, as JSON, and as a folder to attach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab.model import Observation
from tritonsmith.lab.triage.observation import SYMPTOM
from tritonsmith.lab.triage.verdict import TriageVerdict

_LONGEST = 72  # characters of what was seen
_SAME = "the same"  # as in the first row


def table(answer: TriageVerdict) -> Grid:
    """Return the table of changes and observations."""
    columns = ["changed", "symptom", "seen", "s"]
    return tables.plain("one change at a time", columns, rows(answer), right=["s"])


def rows(answer: TriageVerdict) -> list[list[str]]:
    """Give each test a line of text; a message that repeats the first row's is not shown again."""
    first = _text(answer.baseline)
    shown = [_row("nothing changed", answer.baseline)]
    shown += [_row(row.variant.name, row.observation, first) for row in answer.tried]
    return shown


def lines(answer: TriageVerdict) -> Iterator[str]:
    """The verdict, what it rests on, and what to do."""
    yield f"verdict: {answer.text}"
    yield from (f"  {line}" for line in answer.reasons)
    yield from (f"  next: {line}" for line in answer.next)


def as_json(answer: TriageVerdict, about: dict[str, Any]) -> dict[str, Any]:
    """Everything.

    Args:
        answer: the verdict.
        about: what was tested, by what.
    """
    return {
        "schema": 1,
        **about,
        "answer": answer.answer.name.lower(),
        "decided": answer.decided,
        "verdict": answer.text,
        "reasons": list(answer.reasons),
        "next": list(answer.next),
        "baseline": _seen(answer.baseline),
        "tried": [
            {"variant": row.variant.name, "family": row.variant.meaning.family, **_seen(row.observation)}
            for row in answer.tried
        ],
    }


def _seen(observation: Observation) -> dict[str, Any]:
    return {
        "symptom": SYMPTOM[observation.verdict],
        "figures": observation.figures,
        "why": observation.why,
        "notes": list(observation.notes),
        "seconds": round(observation.seconds, 3),
    }


def in_short(observation: Observation) -> str:
    """Say what was seen in one line; triage.json and the logs have all of it."""
    return tables.clipped(_text(observation), _LONGEST)


def _text(observation: Observation) -> str:
    """All that was seen, in one line."""
    return " ".join(", ".join(filter(None, (observation.figures, observation.why))).split())


def _row(name: str, observation: Observation, first: str = "") -> list[str]:
    text = _SAME if first and _text(observation) == first else in_short(observation)
    return [name, SYMPTOM[observation.verdict], text, f"{observation.seconds:.1f}"]
