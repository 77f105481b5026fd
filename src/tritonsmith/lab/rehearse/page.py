"""A rehearsal as one HTML file, without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tritonsmith.compiler.resources.table import Value
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui.html_page import document, folded, table, tag, text
from tritonsmith.core.ui.units import counted
from tritonsmith.lab import metrics
from tritonsmith.lab.compare.diff import Compared, MetricChange
from tritonsmith.lab.compare.thresholds import Threshold, Violation
from tritonsmith.lab.rehearse import assessment
from tritonsmith.lab.rehearse.assessment import Assessment
from tritonsmith.lab.rehearse.rehearsal import RehearsalResult, UpgradeRehearsal

_SUFFIX = ".html"
_MORE = ("occupancy", "tensor core", "matrix core")  # columns after those of the summary
_UNCHANGED = "unchanged kernels"


def check(path: Path) -> None:
    """Check that a page may have this name, before anything is compiled.

    Raises:
        UsageError: it is a folder, or not the name of a page, so that something else would be overwritten.
    """
    if path.suffix.lower() != _SUFFIX or path.is_dir():
        raise UsageError("the page needs the suffix .html", where=path, hints=["--out rehearsal.html"])


def write(
    wanted: UpgradeRehearsal,
    made: RehearsalResult,
    terms: Sequence[Threshold],
    verdict: Assessment,
    path: Path,
) -> None:
    """Write the page.

    Raises:
        SmithError: the file cannot be written.
    """
    workspace.default().claim()
    title = f"Triton {made.comparison.a} to {made.comparison.b}"
    content = document(title, [tag("h1", text(title)), *_body(wanted, made, terms, verdict)])
    try:
        files.write_atomically(path, content)
    except OSError as error:
        raise SmithError("cannot write the page", where=path, why=error.strerror) from error


def _body(
    wanted: UpgradeRehearsal,
    made: RehearsalResult,
    terms: Sequence[Threshold],
    verdict: Assessment,
) -> Iterator[str]:
    state = "findings" if verdict.findings else "unsure" if verdict.doubts or verdict.regressions else "clear"
    yield tag("div", text(verdict.words), of=f"verdict {state}")
    facts = (
        f"{counted(verdict.kernels, 'kernel')} of {wanted.file} by both, "
        f"{counted(verdict.points, 'compile')} each. No kernel was run: these are numbers of the code."
    )
    yield tag("p", text(facts), of="soft")
    if verdict.findings:
        yield tag("h2", "Findings, the worst first")
        by_pair = {(one.pair.kernel, one.pair.point): one for one in made.comparison.compared}
        yield table(
            ["kernel", "target", "finding", "what", ""],
            [_finding(one, by_pair[one.kernel, one.point], wanted) for one in verdict.findings],
        )
    yield from _unsure(verdict)
    if verdict.fixed:
        yield tag("h2", "Newly compile")
        yield tag("p", text(", ".join(f"{kernel} {point}" for kernel, point in verdict.fixed)))
    yield from _numbers(made.comparison.compared)
    yield tag("h2", "What counts as a finding")
    rows = [[text("(always)"), text("does not compile or cannot be launched any more")]]
    rows += [[tag("code", text(term.term.text)), text(term.finding)] for term in terms]
    yield table(["term", "finding"], rows)
    if made.skipped:
        yield tag("p", text(f"Excluded by the list for one of the Tritons: {', '.join(made.skipped)}"))
    if made.assumed:
        about = "The code of these depends on stand-ins for missing modules: see the notes"
        yield tag("p", text(f"{about}: {', '.join(made.assumed)}"))
    if made.comparison.notes:
        notes = (tag("li", text(note)) for note in made.comparison.notes)
        yield folded(counted(len(made.comparison.notes), "note"), tag("ul", *notes))


def _finding(one: Violation, compared: Compared, wanted: UpgradeRehearsal) -> list[str]:
    error = compared.pair.b.point.error
    more = [
        tag("div", "who did it"),
        tag("pre", text(assessment.culprit_command(one, wanted.file, wanted.a, wanted.b))),
        tag("div", "what differs in the stages"),
        tag("pre", text(assessment.differences_command(one))),
        *([tag("div", "the message"), tag("pre", text(error))] if error else []),
    ]
    cells = (one.kernel, one.target, one.finding)
    return [
        *(text(cell) for cell in cells),
        tag("span", text(assessment.explain(one)), of="worse"),
        folded("more", *more),
    ]


def _unsure(verdict: Assessment) -> Iterator[str]:
    if not verdict.doubts:
        return
    yield tag("h2", "Not sure")
    rows = [[text(k), text(p), text("compiles by neither"), text(said)] for k, p, said in verdict.neither]
    rows += [[text(k), text(p), text(f"{metric} is unknown"), ""] for k, p, metric in verdict.unknown]
    yield table(["kernel", "point", "why", "message"], rows)


def _numbers(compared: Sequence[Compared]) -> Iterator[str]:
    """All pairs that compile, those without a change folded."""
    names = [*metrics.summary(), *_MORE]
    rows: dict[bool, list[list[str]]] = {True: [], False: []}
    for one in compared:
        if one.measured:
            changes = [_change(one, name) for name in names]
            same = all(change is None or change.a == change.b for change in changes)
            point = [text(one.pair.kernel), text(one.pair.point)]
            rows[same].append(point + [_cell(change) for change in changes])
    heads = ["kernel", "point", *names]
    if rows[False]:
        yield tag("h2", "Changed numbers")
        yield table(heads, rows[False], numbers=names)
    if rows[True]:
        yield tag("h2", _UNCHANGED.capitalize())
        yield folded(f"{counted(len(rows[True]), 'compile')}", table(heads, rows[True], numbers=names))


def _change(one: Compared, name: str) -> MetricChange | None:
    """A metric of the second side's vendor; None if that has none."""
    backend = one.backends[1]
    there, b = metrics.value_of(name, one.b, backend)
    _, a = metrics.value_of(name, one.a, backend)
    keys = metrics.keys_of(name, backend)
    return MetricChange(metrics.metric(keys[0]), a, b, counterpart=True) if there else None


def _cell(change: MetricChange | None) -> str:
    if change is None:
        return ""
    if change.a == change.b:
        return text(_spelled(change.a))
    return tag("span", text(f"{_spelled(change.a)} → {_spelled(change.b)}"), of=change.verdict)


def _spelled(value: Value) -> str:
    return "?" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
