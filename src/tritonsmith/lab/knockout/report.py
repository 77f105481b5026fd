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


def tables_of(found: Sequence[Knockout]) -> Iterator[Grid]:
    """A line for each run of a pass; numbers stand where they differ from those with all passes."""
    for one in found:
        metrics = METRICS[one.row.backend]
        whole = [_number(one, keys) for keys in (metric.keys for metric in metrics)]
        heads = ["pass", "stage", "without it", *(metric.title for metric in metrics), "time", "error"]
        lines = [["all passes", "", "", *map(_spelled, whole), f"{one.seconds:.2f} s", ""]]
        for knocked in one.passes:
            values = [_sum(knocked.row.values, metric.keys) for metric in metrics]
            cells = [
                "" if value == base else _spelled(value) for value, base in zip(values, whole, strict=True)
            ]
            said = tables.clipped(knocked.row.error.rpartition("error: ")[2], _LONGEST)
            line = [knocked.named, knocked.stage, knocked.verdict, *cells, f"{knocked.seconds:.2f} s", said]
            lines.append(line)
        title = f"{one.kernel} for {one.target} by Triton {one.triton}, without each pass"
        right = [*(metric.title for metric in metrics), "time"]
        yield tables.plain(title, heads, lines, right=right, spare=["time", "stage"], keys=1)


def summary(found: Sequence[Knockout]) -> Grid:
    """A line for each pass and target: for how many kernels it is needed, or does anything."""
    lines = []
    for (target, name), kernels in removable(found).items():
        needed = sum("needed" in verdicts for verdicts in kernels.values())
        idle = sum(set(verdicts) == {"no effect"} for verdicts in kernels.values())
        untested = sum(set(verdicts) <= {"no effect", "not tested"} for verdicts in kernels.values()) - idle
        changed = len(kernels) - needed - idle - untested
        lines.append([target, name, str(len(kernels)), str(needed), str(changed), str(idle)])
    heads = ["target", "pass", "kernels", "needed by", "changes the code of", "no effect on"]
    return tables.plain("each pass over all kernels", heads, lines, right=heads[2:], keys=2)


def tables_of_llvm(found: Sequence[LlvmKnockout]) -> Iterator[Grid]:
    """A line for each run that changes the code; numbers stand where they differ from those before it."""
    for one in found:
        metrics = METRICS[one.row.backend]
        heads = ["", "pass", "on", *(metric.title for metric in metrics), "error"]
        lines, last = [], [""] * len(metrics)
        for run in one.runs:
            if run.number and run.effect == "no effect":
                continue
            figures = [_spelled(_sum(run.row.values, metric.keys)) for metric in metrics]
            cells = ["" if figure == before else figure for figure, before in zip(figures, last, strict=True)]
            said = tables.clipped(run.row.error.rpartition("error: ")[2], _LONGEST)
            lines.append([str(run.number or ""), run.name, run.unit, *cells, said])
            last = figures
        whole = [_spelled(_sum(one.row.values, metric.keys)) for metric in metrics]
        lines.append(["", "all passes", "", *whole, ""])
        title = f"{one.kernel} for {one.target} by Triton {one.triton}: LLVM's {len(one.runs) - 1} passes"
        yield tables.plain(title, heads, lines, right=["", *heads[3:-1]], keys=2)


def llvm_as_json(found: Sequence[LlvmKnockout]) -> dict[str, Any]:
    """All runs, those without effect, too."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": one.kernel,
                "target": one.target,
                "triton": one.triton,
                "values": dict(one.row.values),
                "folder": str(one.folder),
                "llvm_passes": [
                    {
                        **{name: value for name, value in asdict(run).items() if name != "row"},
                        "error": run.row.error,
                        "values": dict(run.row.values),
                    }
                    for run in one.runs
                ],
            }
            for one in found
        ],
    }


def as_json(found: Sequence[Knockout]) -> dict[str, Any]:
    """All of it as JSON data."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": one.kernel,
                "target": one.target,
                "triton": one.triton,
                "seconds": one.seconds,
                "values": dict(one.row.values),
                "folder": str(one.folder),
                "passes": [
                    {
                        **{name: value for name, value in asdict(knocked).items() if name != "row"},
                        "compiles": knocked.verdict in ("no effect", "changes the code"),
                        "error": knocked.row.error,
                        "values": dict(knocked.row.values),
                    }
                    for knocked in one.passes
                ],
            }
            for one in found
        ],
    }


def _number(one: Knockout, keys: Sequence[str]) -> int | None:
    return _sum(one.row.values, keys)


def _sum(values: Any, keys: Sequence[str]) -> int | None:
    known = [value for value in map(values.get, keys) if isinstance(value, int)]
    return sum(known) if known else None


def _spelled(value: int | None) -> str:
    return "" if value is None else str(value)
