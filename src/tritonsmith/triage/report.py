"""The verdict on the screen, as JSON, and as a folder to attach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritonsmith.triage.observation import Observation
from tritonsmith.triage.verdict import TriageVerdict
from tritonsmith.ui import tables
from tritonsmith.ui.tables import Grid


def table(found: TriageVerdict) -> Grid:
    """What was changed, and what was seen."""
    rows = [_row("nothing changed", found.baseline)]
    rows += [_row(one.variant.name, one.observation) for one in found.tried]
    return tables.plain("one change at a time", ["changed", "symptom", "seen", "s"], rows, right=["s"])


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
            {"variant": one.variant.name, "family": one.variant.family, **_seen(one.observation)}
            for one in found.tried
        ],
    }


def _seen(one: Observation) -> dict[str, Any]:
    return {
        "symptom": str(one.seen),
        "figures": one.figures,
        "why": one.why,
        "notes": list(one.notes),
        "seconds": round(one.seconds, 3),
    }


def _row(name: str, one: Observation) -> list[str]:
    return [name, str(one.seen), ", ".join(filter(None, (one.figures, one.why))), f"{one.seconds:.1f}"]
