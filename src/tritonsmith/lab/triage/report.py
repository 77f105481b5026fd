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


def table(found: TriageVerdict) -> Grid:
    """Return the table of changes and observations."""
    columns = ["changed", "symptom", "seen", "s"]
    return tables.plain("one change at a time", columns, rows(found), right=["s"])


def rows(found: TriageVerdict) -> list[list[str]]:
    """Give each test a line of text; a message that repeats the first row's is not shown again."""
    first = _text(found.baseline)
    shown = [_row("nothing changed", found.baseline)]
    shown += [_row(one.variant.name, one.observation, first) for one in found.tried]
    return shown


def lines(found: TriageVerdict) -> Iterator[str]:
    """The verdict, what it rests on, and what to do."""
    yield f"verdict: {found.text}"
    yield from (f"  {one}" for one in found.reasons)
    yield from (f"  next: {one}" for one in found.next)


def as_json(found: TriageVerdict, about: dict[str, Any]) -> dict[str, Any]:
    """Everything.

    Args:
        found: the verdict.
        about: what was tested, by what.
    """
    return {
        "schema": 1,
        **about,
        "answer": found.answer.name.lower(),
        "decided": found.decided,
        "verdict": found.text,
        "reasons": list(found.reasons),
        "next": list(found.next),
        "baseline": _seen(found.baseline),
        "tried": [
            {"variant": one.variant.name, "family": one.variant.meaning.family, **_seen(one.observation)}
            for one in found.tried
        ],
    }


def _seen(one: Observation) -> dict[str, Any]:
    return {
        "symptom": SYMPTOM[one.verdict],
        "figures": one.figures,
        "why": one.why,
        "notes": list(one.notes),
        "seconds": round(one.seconds, 3),
    }


def in_short(observation: Observation) -> str:
    """Say what was seen in one line; triage.json and the logs have all of it."""
    return tables.clipped(_text(observation), _LONGEST)


def _text(observation: Observation) -> str:
    """All that was seen, in one line."""
    return " ".join(", ".join(filter(None, (observation.figures, observation.why))).split())


def _row(name: str, one: Observation, first: str = "") -> list[str]:
    text = _SAME if first and _text(one) == first else in_short(one)
    return [name, SYMPTOM[one.verdict], text, f"{one.seconds:.1f}"]
