"""A comparison as tables, as JSON and as files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core.errors import SmithError, UndecidedError
from tritonsmith.core.plan import Plan, Step, Write
from tritonsmith.core.text import duration
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Cell, Grid
from tritonsmith.inspect import show as show_stage
from tritonsmith.ir.normalize.diff import Diff
from tritonsmith.lab import metrics, terms
from tritonsmith.lab.compare.matching import TEXTS, Compared, Comparison, MetricChange, PairMember
from tritonsmith.lab.compare.thresholds import LAUNCHES, UNTESTED, Threshold, Violation

FILE = "compare.json"
_STYLES = {"better": "green", "worse": "red", "": ""}
_WIDTH = 80  # characters of a line that is folded
_OF_ERROR = 20  # lines of a compiler's message
_FEW = 60  # digits and letters of a value on the screen


def head(comparison: Comparison) -> Iterator[str]:
    """Yield the labels of A and B, and the Tritons that compiled for them."""
    for side, label in (("A", comparison.a), ("B", comparison.b)):
        members = (compared.pair.a if side == "A" else compared.pair.b for compared in comparison.compared)
        # A side may be a folder of output folders, each by another Triton.
        versions = dict.fromkeys(member.manifest.triton for member in members if member.manifest.triton)
        yield f"{side}: {label}" + (f", by Triton {', '.join(versions)}" if versions else "")


def blocks(comparison: Comparison) -> Iterator[Text | Grid]:
    """Yield the changes, pair by pair; then one line each for unchanged and unmatched compiles."""
    for compared in comparison.compared:
        if not compared.unchanged:
            yield from _block(compared)
    changed = [compared for compared in comparison.compared if compared.measured and not compared.unchanged]
    # The table of a single pair has just been shown.
    if len(changed) > 1:
        yield _summary(changed)
    yield from _ending(comparison)


def differences(
    comparison: Comparison, stages: Sequence[str] = ()
) -> Iterator[tuple[Compared, str, tuple[str, ...]]]:
    """Yield pair, stage and lines of each unified diff that is not empty.

    Args:
        comparison: two sides.
        stages: only these, a binary by its disassembly; all if empty.
    """
    # A binary is compared by its disassembly, so its diff goes by that name.
    shown = {show_stage.BINARY.get(stage, stage) for stage in stages}
    for compared in comparison.compared:
        for stage, diff in compared.diffs.items():
            if not diff.same and (not stages or stage in shown):
                yield compared, stage, _unified(compared, stage, diff)


def violation_lines(violations: Sequence[Violation]) -> Iterator[str]:
    """Yield each violation in a line: kernel, point, metric, A, B, limit."""
    for row in violations:
        where, why = f"{row.kernel} {row.point}", explain(row)
        if row.threshold is None:
            yield f"{where}: {why}"
        else:
            why = f"; {why}" if why else ""
            yield f"{where}: {row.metric}: A {_cell(row.a)}, B {_cell(row.b)}; limit {row.limit}{why}"


def explain(violation: Violation) -> str:
    """Return the reason of a violation in words; empty where the numbers say it."""
    # The violations without a term come first: their reading is empty, and would be taken for a text's.
    if violation.finding == LAUNCHES:
        return f"A can be launched, but B cannot: {violation.message}"
    if violation.finding == UNTESTED:
        return f"{UNTESTED}: {violation.message}"
    if violation.threshold is None:
        return f"compiles in A but not in B: {violation.message}"
    if violation.reading.unknown:
        return terms.UNKNOWN
    # Only a text has no value, and its figures are the reason.
    return "" if violation.b is not None else violation.reading.figures


def check_result(thresholds: Sequence[Threshold], violations: Sequence[Violation]) -> str:
    """Return the result of the check in one line."""
    # Without a term, nothing but a lost compile or launch is a violation.
    if violations and not thresholds:
        return "B fails to compile or launch something that A can"
    result = f"{len(violations)} violation{'s' * (len(violations) > 1)}" if violations else "passed"
    return f"--fail-on {','.join(row.term.text for row in thresholds)}: {result}"


def as_json(
    comparison: Comparison, thresholds: Sequence[Threshold], violations: Sequence[Violation]
) -> dict[str, Any]:
    """Return one object with everything but the texts of the diffs."""
    return {
        "schema": 1,
        "a": comparison.a,
        "b": comparison.b,
        "pairs": [_pair(compared) for compared in comparison.compared],
        "unpaired": [
            {"side": row.side, "kernel": row.kernel, "why": row.why, **_member(row.member)}
            for row in comparison.unpaired
        ],
        "fail_on": [row.term.text for row in thresholds],
        "violations": [
            {
                "kernel": row.kernel,
                "point": row.point,
                "metric": row.metric,
                "a": row.a,
                "b": row.b,
                "limit": row.limit,
                "why": explain(row),
            }
            for row in violations
        ],
        "notes": list(comparison.notes),
    }


def files(comparison: Comparison, content: str, out: Path) -> Plan:
    """Return the steps that write every diff, and `compare.json`, whose text is `content`."""
    phase = "write diffs"
    steps: list[Step] = [Write(out / FILE, content, phase=phase)]
    for compared in comparison.compared:
        for stage in TEXTS:
            diff, path = compared.diffs.get(stage), out / _place(compared, stage)
            lines = _unified(compared, stage, diff) if diff and not diff.same else ()
            if lines or path.exists():  # what an earlier run left there is no longer so
                steps.append(Write(path, "".join(f"{line}\n" for line in lines), phase=phase))
    return Plan("write the comparison", tuple(steps))


def _block(compared: Compared) -> Iterator[Text | Grid]:
    yield Text(f"\n{compared.pair.kernel} {compared.pair.point}", style="bold")
    # The point's name tells the target.
    if differs := [text for text in compared.pair.differs if not text.startswith("target ")]:
        yield _folded(", ".join(differs))
    if not compared.measured:
        for side, member in (("A", compared.pair.a), ("B", compared.pair.b)):
            yield from _failure(side, member, "red" if side == "B" and compared.lost else "")
        return
    if compared.changes:
        yield _table(compared)
    else:
        yield Text("  no metric changed")
    before, after = (duration(member.point.seconds) for member in (compared.pair.a, compared.pair.b))
    # A line, not a metric: the time of one run depends on what else the machine does.
    yield Text(f"  {compared.same} metrics are equal; compile time {before} -> {after}, one run each")
    yield from _of_stages(compared)


def _failure(side: str, member: PairMember, style: str) -> Iterator[Text]:
    point = member.point
    yield Text(f"  {side}: {point.status}", style=style)
    lines = point.error.strip().splitlines()
    # Most of a long message is the IR at which the compiler fails.
    for line in lines[:_OF_ERROR]:
        yield Text(f"     {line}")
    if len(lines) > _OF_ERROR:
        yield Text(f"     ... {len(lines) - _OF_ERROR} more lines with --json")


def _table(compared: Compared) -> Grid:
    columns = ["metric", "A", "B", "change"]
    rows: list[list[Cell]] = []
    for change in compared.changes:
        more = Text(_change(change), style=_STYLES[change.verdict])
        rows.append([change.metric.title, _cell(change.a), _cell(change.b), more])
    return tables.plain("", columns, rows, right=columns[1:])


def _summary(changed: Sequence[Compared]) -> Grid:
    names = metrics.summary()
    rows: list[list[Cell]] = []
    for compared in changed:
        cells: list[Cell] = [f"{compared.pair.kernel} {compared.pair.point}"]
        for change in map(compared.in_short, names):
            text = _cell(change.a) if change.a == change.b else f"{_cell(change.a)} -> {_cell(change.b)}"
            cells.append(Text(text, style=_STYLES[change.verdict]))
        rows.append(cells)
    return tables.plain("summary, A -> B", ["kernel", *names], rows, right=names)


def _change(change: MetricChange) -> str:
    delta, percent = change.delta, change.percent
    if delta is None or percent is None:
        return ""
    signed = f"{delta:+d}" if isinstance(delta, int) else f"{delta:+.4g}"
    return f"{signed}  {f'{percent:+.1f} %' if math.isfinite(percent) else 'from 0':>9}"


def _unified(compared: Compared, stage: str, diff: Diff) -> tuple[str, ...]:
    """Return a unified diff with the lines that name both texts."""
    heads = (
        f"{sign} {side}/{compared.pair.kernel}/{member.point.id}/{stage}"
        for sign, side, member in (("---", "a", compared.pair.a), ("+++", "b", compared.pair.b))
    )
    return (*heads, *diff.lines)


def _of_stages(compared: Compared) -> Iterator[Text]:
    changed = [
        f"{stage} +{diff.added} -{diff.removed}" for stage, diff in compared.diffs.items() if not diff.same
    ]
    same = [stage for stage, diff in compared.diffs.items() if diff.same]
    if changed:
        yield _folded(f"differing stages: {', '.join(changed)}")
    if same:
        yield _folded(f"equal stages: {', '.join(same)}")
    for stage, side in compared.alone.items():
        yield Text(f"  only {side} has {stage}")


def _folded(text: str) -> Text:
    return Text(
        textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    )


def _ending(comparison: Comparison) -> Iterator[Text]:
    same = [compared for compared in comparison.compared if compared.unchanged]
    if len(same) == len(comparison.compared):
        who = "one pair compiles" if len(same) == 1 else f"{len(same)} pairs compile"
        yield Text(f"no changes: {who} to the same")
    elif same:
        names = ", ".join(f"{compared.pair.kernel} {compared.pair.point}" for compared in same)
        yield Text(f"\nno changes: {names}")
    for row in comparison.unpaired:
        yield Text(f"only {row.side} has {row.kernel} {row.member.point.id}: {row.why}")


def _pair(compared: Compared) -> dict[str, Any]:
    changes = [
        {
            "metric": change.metric.key,
            "a": change.a,
            "b": change.b,
            "change": change.delta,
            "percent": None if change.percent == math.inf else change.percent,  # JSON has no infinity
            "verdict": change.verdict or None,
        }
        for change in compared.changes
    ]
    return {
        "kernel": compared.pair.kernel,
        "differs": list(compared.pair.differs),
        "a": _member(compared.pair.a) | {"metrics": dict(compared.a)},
        "b": _member(compared.pair.b) | {"metrics": dict(compared.b)},
        "changes": changes,
        "stages": {
            stage: {
                "added": diff.added,
                "removed": diff.removed,
                "diff": _place(compared, stage) if diff.lines else None,
            }
            for stage, diff in compared.diffs.items()
        },
        "only_in": dict(compared.alone),
    }


def _member(member: PairMember) -> dict[str, Any]:
    point = member.point
    return {
        "point": point.id,
        "target": point.target,
        "triton": member.manifest.triton,
        "folder": str(member.manifest.folder),
        "status": point.status,
        "error": point.error,
        "remarks": point.remarks,
    }


def _place(compared: Compared, stage: str) -> str:
    """Return the file of a diff in the folder of the comparison: `diffs/KERNEL/POINT/STAGE.diff`."""
    # The names of a pair are unique among the pairs; those of a kernel alone may be not.
    return "/".join(
        ("diffs", folder_name(compared.pair.kernel), folder_name(compared.pair.point), f"{stage}.diff")
    )


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return tables.clipped(text, _FEW)


def failure(
    comparison: Comparison, limits: Sequence[Threshold], violations: Sequence[Violation]
) -> SmithError | None:
    """Return the error that a comparison ends with; None if nothing violates its limits.

    Args:
        comparison: the comparison.
        limits: the limits of `--fail-on`.
        violations: the violations of these limits, and what only A can compile or launch.
    """
    # A value that cannot be read is a violation, however steady the compile is.
    sure = [
        row
        for row in violations
        if row.reading.unknown or (row.folders[1], row.target) not in comparison.flaky
    ]
    # Where a compile comes out otherwise each time, a pass would be chance, and a failure, too.
    if comparison.flaky and not sure and (limits or violations):
        hints = ["the notes above name them", "--confirm 5 compiles each five times"]
        what = "not sure: compiles of B come out otherwise when they are repeated"
        return UndecidedError(what, hints=hints)
    if violations:
        return SmithError(
            check_result(limits, violations),
            why="\n".join(violation_lines(violations)),
            hints=["--diff shows the differences of the stages", "--json has all values and messages"],
        )
    return None
