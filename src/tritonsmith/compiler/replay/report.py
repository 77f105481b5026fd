"""The answers of `passes.replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tritonsmith.compiler.replay.job import tells_options
from tritonsmith.compiler.replay.run import PreparedReplay, ReplayOutcome
from tritonsmith.compiler.replay.verdict import RAN, Verdict
from tritonsmith.core.command_line import command
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import duration

_LONGEST = 100

WORDS = {
    "exact": "the result equals the next dump byte by byte",
    "same": "the result equals the next dump except for locations and value names",
    "differs": "the result differs from the next dump",
    "alone": "the dump ends here: nothing to compare with",
}


def table(outcomes: Sequence[ReplayOutcome], prepared: PreparedReplay) -> Grid:
    """A line for each job."""
    rows = []
    for one in outcomes:
        took = "" if one.seconds is None else duration(one.seconds)
        name, why = one.job.links[0].dump.argument, tables.clipped(one.why, _LONGEST)
        rows.append([str(one.job.number), name, one.verdict, took, why])
    kernel, by = prepared.seen.kernel, prepared.tool.opt or prepared.tool.python
    title = f"{kernel.name} {kernel.target}, by {by}"
    return tables.plain(title, ["", "pass", "replay", "time", "why"], rows, right=["", "time"], keys=2)


def summary(outcomes: Sequence[ReplayOutcome]) -> str:
    """How many replay exactly, of how many that can be compared; and what the rest is."""
    count = Counter(one.verdict for one in outcomes)
    counted = [one for one in outcomes if one.verdict != "inside" and one.job.after]
    good = count["exact"] + count["same"]
    last = len(outcomes) - len(counted) - count["inside"]
    text = f"{good} of {len(counted)} passes replay exactly"
    text += f" ({count['same']} of them except for locations and value names)" if count["same"] else ""
    bad: tuple[Verdict, ...] = ("differs", "no binding", "failed", "crashed", "timeout")
    rest = [f"{count[name]} {name}" for name in bad if count[name]]
    rest += [f"{count['inside']} more run inside another pass"] if count["inside"] else []
    rest += [f"{last} more with no dump after it"] if last else []
    return "; ".join([text, *rest])


def sentence(outcome: ReplayOutcome) -> str:
    """The outcome of a single job, in words."""
    return f"{outcome.job.title}: {WORDS[outcome.verdict]}"


def suspects(prepared: PreparedReplay) -> list[str]:
    """Hints why a replay may differ."""
    hints = []
    if prepared.tool.source:
        edited = "the pass was perhaps edited since the dump was recorded: then this is what the edit changes"
        hints.append(f"{edited}; {command('passes.dump')} records a new one")
    if not tells_options(prepared.seen.links):
        hints.append(
            "this dump does not contain pass options: give those of its compile, --option num_stages=4"
        )
    if prepared.seen.index.triton:
        hints.append(f"use the Triton that wrote the dump: {prepared.seen.index.triton}")
    return hints


def as_json(outcomes: Sequence[ReplayOutcome], prepared: PreparedReplay) -> dict[str, Any]:
    """The outcomes as JSON data."""
    return {
        "schema": 1,
        "kernel": prepared.seen.kernel.name,
        "target": prepared.seen.kernel.target,
        "by": str(prepared.tool.opt or prepared.tool.python),
        "summary": summary(outcomes),
        "passes": [
            {
                "numbers": [link.dump.number for link in one.job.links],
                "passes": [link.dump.argument for link in one.job.links],
                "verdict": one.verdict,
                "why": one.why,
                "seconds": one.seconds,
                "input": str(one.job.input),
                "output": str(one.job.out) if one.verdict in RAN else None,
                "next": str(one.job.after) if one.job.after else None,
                "calls": [call.content() for call in one.job.calls],
                "command": list(one.job.argv),
                "notes": list(one.job.notes),
            }
            for one in outcomes
        ],
    }
