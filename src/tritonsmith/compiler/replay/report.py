"""Show the results of `passes.replay` as a table, in words and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tritonsmith.compiler.replay.job import tells_options
from tritonsmith.compiler.replay.run import PreparedReplay, ReplayOutcome
from tritonsmith.compiler.replay.verdict import RAN, ReplayStatus
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
    """Return a table with one row per job."""
    rows = []
    for outcome in outcomes:
        took = "" if outcome.seconds is None else duration(outcome.seconds)
        name, why = outcome.job.links[0].dump.argument, tables.clipped(outcome.why, _LONGEST)
        rows.append([str(outcome.job.number), name, outcome.verdict, took, why])
    kernel, by = prepared.seen.kernel, prepared.tool.opt or prepared.tool.python
    title = f"{kernel.name} {kernel.target}, by {by}"
    return tables.plain(title, ["", "pass", "replay", "time", "why"], rows, right=["", "time"], keys=2)


def summary(outcomes: Sequence[ReplayOutcome]) -> str:
    """Count the passes that replay exactly and those that can be compared, and list the rest."""
    count = Counter(outcome.verdict for outcome in outcomes)
    counted = [outcome for outcome in outcomes if outcome.verdict != "inside" and outcome.job.after]
    good = count["exact"] + count["same"]
    last = len(outcomes) - len(counted) - count["inside"]
    text = f"{good} of {len(counted)} passes replay exactly"
    text += f" ({count['same']} of them except for locations and value names)" if count["same"] else ""
    bad: tuple[ReplayStatus, ...] = ("differs", "no binding", "failed", "crashed", "timeout")
    rest = [f"{count[name]} {name}" for name in bad if count[name]]
    rest += [f"{count['inside']} more run inside another pass"] if count["inside"] else []
    rest += [f"{last} more with no dump after it"] if last else []
    return "; ".join([text, *rest])


def sentence(outcome: ReplayOutcome) -> str:
    """Describe the outcome of a single job in words."""
    return f"{outcome.job.title}: {WORDS[outcome.verdict]}"


def suspects(prepared: PreparedReplay) -> list[str]:
    """Return possible reasons why a replay differs, as hints."""
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
    """Return the outcomes as JSON data."""
    return {
        "schema": 1,
        "kernel": prepared.seen.kernel.name,
        "target": prepared.seen.kernel.target,
        "by": str(prepared.tool.opt or prepared.tool.python),
        "summary": summary(outcomes),
        "passes": [
            {
                "numbers": [link.dump.number for link in outcome.job.links],
                "passes": [link.dump.argument for link in outcome.job.links],
                "verdict": outcome.verdict,
                "why": outcome.why,
                "seconds": outcome.seconds,
                "input": str(outcome.job.input),
                "output": str(outcome.job.out) if outcome.verdict in RAN else None,
                "next": str(outcome.job.after) if outcome.job.after else None,
                "calls": [asdict(call) for call in outcome.job.calls],
                "command": list(outcome.job.argv),
                "notes": list(outcome.job.notes),
            }
            for outcome in outcomes
        ],
    }
