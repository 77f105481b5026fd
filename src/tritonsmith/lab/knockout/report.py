"""Knockouts as a table for each kernel and target, one over all kernels, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab.knockout.knockout import Knockout, removable
from tritonsmith.lab.knockout.llvm_passes import LlvmKnockout
from tritonsmith.lab.study.report import METRICS

_LONGEST = 60  # characters of an error


def tables_of(knockouts: Sequence[Knockout]) -> Iterator[Grid]:
    """A line for each run of a pass; numbers stand where they differ from those with all passes."""
    for knockout in knockouts:
        metrics = METRICS[knockout.row.backend]
        whole = [_number(knockout, keys) for keys in (metric.keys for metric in metrics)]
        heads = ["pass", "stage", "without it", *(metric.title for metric in metrics), "time", "error"]
        lines = [["all passes", "", "", *map(_spelled, whole), f"{knockout.seconds:.2f} s", ""]]
        for knocked in knockout.passes:
            values = [_sum(knocked.row.values, metric.keys) for metric in metrics]
            cells = [
                "" if value == base else _spelled(value) for value, base in zip(values, whole, strict=True)
            ]
            message = tables.clipped(knocked.row.error.rpartition("error: ")[2], _LONGEST)
            line = [
                knocked.named,
                knocked.stage,
                knocked.verdict,
                *cells,
                f"{knocked.seconds:.2f} s",
                message,
            ]
            lines.append(line)
        title = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}, without each pass"
        right = [*(metric.title for metric in metrics), "time"]
        yield tables.plain(title, heads, lines, right=right, spare=["time", "stage"], keys=1)


def summary(knockouts: Sequence[Knockout]) -> Grid:
    """A line for each pass and target: for how many kernels it is needed, or does anything."""
    lines = []
    for (target, name), kernels in removable(knockouts).items():
        needed = sum("needed" in verdicts for verdicts in kernels.values())
        idle = sum(set(verdicts) == {"no effect"} for verdicts in kernels.values())
        untested = sum(set(verdicts) <= {"no effect", "not tested"} for verdicts in kernels.values()) - idle
        changed = len(kernels) - needed - idle - untested
        lines.append([target, name, str(len(kernels)), str(needed), str(changed), str(idle)])
    heads = ["target", "pass", "kernels", "needed by", "changes the code of", "no effect on"]
    return tables.plain("each pass over all kernels", heads, lines, right=heads[2:], keys=2)


def tables_of_llvm(knockouts: Sequence[LlvmKnockout]) -> Iterator[Grid]:
    """A line for each run that changes the code; numbers stand where they differ from those before it."""
    for knockout in knockouts:
        metrics = METRICS[knockout.row.backend]
        heads = ["", "pass", "on", *(metric.title for metric in metrics), "error"]
        lines, last = [], [""] * len(metrics)
        for run in knockout.runs:
            if run.number and run.effect == "no effect":
                continue
            figures = [_spelled(_sum(run.row.values, metric.keys)) for metric in metrics]
            cells = ["" if figure == before else figure for figure, before in zip(figures, last, strict=True)]
            message = tables.clipped(run.row.error.rpartition("error: ")[2], _LONGEST)
            lines.append([str(run.number or ""), run.name, run.unit, *cells, message])
            last = figures
        whole = [_spelled(_sum(knockout.row.values, metric.keys)) for metric in metrics]
        lines.append(["", "all passes", "", *whole, ""])
        about = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}"
        title = f"{about}: LLVM's {len(knockout.runs) - 1} passes"
        yield tables.plain(title, heads, lines, right=["", *heads[3:-1]], keys=2)


def llvm_as_json(knockouts: Sequence[LlvmKnockout]) -> dict[str, Any]:
    """All runs, those without effect, too."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": knockout.kernel,
                "target": knockout.target,
                "triton": knockout.triton,
                "values": dict(knockout.row.values),
                "folder": str(knockout.folder),
                "llvm_passes": [
                    {
                        **{name: value for name, value in asdict(run).items() if name != "row"},
                        "error": run.row.error,
                        "values": dict(run.row.values),
                    }
                    for run in knockout.runs
                ],
            }
            for knockout in knockouts
        ],
    }


def as_json(knockouts: Sequence[Knockout]) -> dict[str, Any]:
    """All of it as JSON data."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": knockout.kernel,
                "target": knockout.target,
                "triton": knockout.triton,
                "seconds": knockout.seconds,
                "values": dict(knockout.row.values),
                "folder": str(knockout.folder),
                "passes": [
                    {
                        **{name: value for name, value in asdict(knocked).items() if name != "row"},
                        "compiles": knocked.verdict in ("no effect", "changes the code"),
                        "error": knocked.row.error,
                        "values": dict(knocked.row.values),
                    }
                    for knocked in knockout.passes
                ],
            }
            for knockout in knockouts
        ],
    }


def _number(knockout: Knockout, keys: Sequence[str]) -> int | None:
    return _sum(knockout.row.values, keys)


def _sum(values: Any, keys: Sequence[str]) -> int | None:
    known = [value for value in map(values.get, keys) if isinstance(value, int)]
    return sum(known) if known else None


def _spelled(value: int | None) -> str:
    return "" if value is None else str(value)
