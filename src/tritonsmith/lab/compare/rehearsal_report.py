"""A rehearsal on the screen, as JSON, as Markdown, and as an HTML page without a script (rehearsal.html)."""

from __future__ import annotations

import html
import statistics
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler.resources.measure import Value
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs, redact
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.text import byte_size, code_span, counted, fenced
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import failure, metrics
from tritonsmith.lab import report as pages
from tritonsmith.lab.compare.matching import Compared, MetricChange
from tritonsmith.lab.compare.rehearsal import (
    Assessment,
    RehearsalResult,
    UpgradeRehearsal,
    culprit_command,
    differences_command,
)
from tritonsmith.lab.compare.thresholds import FindingGroup, Threshold, Violation, explain, spelled

_TEMPLATE = Path(__file__).with_name("rehearsal.html")
_SUFFIX, _MARKDOWN = ".html", ".md"
_UNTOLD = ("bin", "venv", ".venv")
_MORE = ("occupancy", "tensor core", "matrix core")  # columns after those of the summary

_WIDTH = 80  # characters of a line that is folded
_OF_MESSAGE = 160  # characters of a compiler's message
_FEW = 12  # findings whose commands are shown


def overview(result: RehearsalResult, assessment: Assessment) -> str:
    """Return in a line what was compiled."""
    return (
        f"{result.comparison.a} -> {result.comparison.b}: {counted(assessment.kernels, 'kernel')} by both, "
        f"{counted(assessment.points, 'compile')} each; of the results by kernel and Triton, "
        f"{result.compiled} compiled now{_cost(result)}, {result.kept} kept{_size(result)}"
        + (f"; {counted(len(result.skipped), 'kernel')} not for both" if result.skipped else "")
    )


def _cost(result: RehearsalResult) -> str:
    """Return the median of Triton's own CPU time, where something was compiled."""
    points = [member.point for row in result.comparison.compared for member in (row.pair.a, row.pair.b)]
    seconds = [sum(point.cpu_seconds.values()) for point in points if point.cpu_seconds]
    if not (result.compiled and seconds):
        return ""
    shared = f", {result.shared} of {result.stages} stages shared" if result.shared else ""
    return f" ({statistics.median(seconds):.2g} CPU s a compile{shared})"


def _size(result: RehearsalResult) -> str:
    return f" ({byte_size(result.bytes_each)} a result)" if result.kept and result.bytes_each else ""


def blocks(result: RehearsalResult, assessment: Assessment) -> Iterator[Text | Grid]:
    """Yield what was compiled, the findings, and what remains unknown."""
    yield Text(overview(result, assessment))
    if assessment.findings:
        rows = [[row.kernel, row.target, row.finding, _short(explain(row))] for row in assessment.findings]
        yield tables.plain("findings, the worst first", ["kernel", "target", "finding", "what"], rows)
    if assessment.regressions:
        rows = [[row.kernel, row.point, row.change] for row in assessment.regressions]
        yield tables.plain("worse, but within the limits", ["kernel", "point", "change"], rows)
    if assessment.neither:
        rows = [[kernel, point, _short(message)] for kernel, point, message in assessment.neither]
        yield tables.plain("compile by neither", ["kernel", "point", "message"], rows)
    # These are names only, and may be hundreds: as tables they would push the findings off the screen.
    for lead, names in (
        ("unknown values", [f"{kernel} {point}: {metric}" for kernel, point, metric in assessment.unknown]),
        ("newly compile", [f"{kernel} {point}" for kernel, point in assessment.fixed]),
        ("excluded by the list for one of the Tritons", list(result.skipped)),
        ("whose code depends on stand-ins for missing modules (see the notes)", list(result.assumed)),
    ):
        if names:
            yield _folded(f"{lead}: {', '.join(names)}")
    yield from (_folded(group.line) for group in result.issues)


def commands(rehearsal: UpgradeRehearsal, assessment: Assessment) -> Iterator[str]:
    """Yield, for each kind of finding, the command that searches for the culprit with the smallest kernel."""
    # One kernel may be the smallest of several kinds: its worst, which comes first, is the one to begin with.
    witnesses: dict[tuple[str, str], Violation] = {}
    for witness in (group.witness for group in assessment.groups):
        witnesses.setdefault((witness.kernel, witness.target), witness)
    for finding in list(witnesses.values())[:_FEW]:
        command = culprit_command(finding, rehearsal.file, rehearsal.a, rehearsal.b)
        yield f"{finding.kernel}: {command}"
    if (more := len(witnesses) - _FEW) > 0:
        yield f"and {counted(more, 'more kernel')}: --json has the command of each finding"


def as_json(
    rehearsal: UpgradeRehearsal,
    result: RehearsalResult,
    limits: Sequence[Threshold],
    assessment: Assessment,
) -> dict[str, Any]:
    """Return everything except the texts of the stages."""
    return {
        "schema": 1,
        "from": result.comparison.a,
        "to": result.comparison.b,
        "verdict": assessment.words,
        "sure": not assessment.doubts,
        "limits": [{"term": row.term.text, "finding": row.finding} for row in limits],
        "summary": list(assessment.summary),
        "same_binary": {"kernels": assessment.same_binary, "of": assessment.kernels},
        "groups": [_group_json(rehearsal, group) for group in assessment.groups],
        "findings": [
            {
                "finding": row.finding,
                "kernel": row.kernel,
                "point": row.point,
                "target": row.target,
                "why": explain(row),
                "limit": row.limit or None,
                "from": row.a,
                "to": row.b,
                "search": culprit_command(row, rehearsal.file, rehearsal.a, rehearsal.b),
                "differences": differences_command(row),
            }
            for row in assessment.findings
        ],
        "regressions": [
            {"kernel": row.kernel, "point": row.point, "change": row.change} for row in assessment.regressions
        ],
        "neither": [{"kernel": k, "point": p, "why": why} for k, p, why in assessment.neither],
        "unknown": [{"kernel": k, "point": p, "metric": metric} for k, p, metric in assessment.unknown],
        "fixed": [{"kernel": k, "point": p} for k, p in assessment.fixed],
        "issues": [
            {"issue": group.issue.about_kernel, "kernels": list(group.kernels), "before": list(group.before)}
            for group in result.issues
        ],
        "skipped": list(result.skipped),
        "assumed": list(result.assumed),
        "compiled": result.compiled,
        "stages": {"all": result.stages, "shared": result.shared},
        "bytes_each": result.bytes_each,
        "kept": result.kept,
        "kernels": [_pair_json(pair) for pair in result.comparison.compared],
        "notes": list(result.comparison.notes),
    }


def _group_json(rehearsal: UpgradeRehearsal, group: FindingGroup) -> dict[str, Any]:
    witness = group.witness
    return {
        "finding": group.kind,
        "target": group.target,
        "cause": group.cause,
        "kernels": group.kernels,
        "witness": {"kernel": witness.kernel, "point": witness.point, "why": group.numbers(witness)},
        "search": culprit_command(witness, rehearsal.file, rehearsal.a, rehearsal.b),
        "differences": differences_command(witness),
        "compiles": [
            {"kernel": row.kernel, "point": row.point, "why": group.numbers(row)} for row in group.findings
        ],
    }


def _pair_json(compared: Compared) -> dict[str, Any]:
    pair = compared.pair
    sides = {
        name: {
            "triton": member.manifest.triton,
            "folder": str(member.manifest.folder),
            "status": member.point.status,
            "error": member.point.error,
            "metrics": dict(values),
        }
        for name, member, values in (("from", pair.a, compared.a), ("to", pair.b, compared.b))
    }
    # Where one side did not compile, every metric would count as changed: a number here, and none there.
    short = {name: compared.in_short(name) for name in metrics.summary()} if compared.measured else {}
    changed = {name: [change.a, change.b] for name, change in short.items() if change.a != change.b}
    return {
        "kernel": pair.kernel,
        "point": pair.point,
        "target": pair.b.point.target,
        **sides,
        "changed": changed,
    }


def _short(text: str) -> str:
    return tables.clipped(" ".join(text.split()), _OF_MESSAGE)


def _folded(text: str) -> Text:
    return Text(textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False))


@dataclass(frozen=True)
class NumberCell:
    """A metric of a pair.

    Attributes:
        text: the value, or both of them.
        changed: whether there are two.
        verdict: `better`, `worse`, or empty.
    """

    text: str
    changed: bool = False
    verdict: str = ""


def check_page(path: Path) -> None:
    """Check that a page may have this name, before anything is compiled.

    Raises:
        UsageError: it is a folder, or not the name of a page.
    """
    # Without a suffix of its own, `--out kernels.toml` would overwrite the user's list.
    if path.suffix.lower() != _SUFFIX or path.is_dir():
        raise UsageError("the page needs the suffix .html", where=path, hints=["--out rehearsal.html"])


def write_page(
    rehearsal: UpgradeRehearsal,
    result: RehearsalResult,
    limits: Sequence[Threshold],
    assessment: Assessment,
    path: Path,
) -> None:
    """Write the page.

    Raises:
        SmithError: the file cannot be written.
    """
    names = [*metrics.summary(), *_MORE]
    rows = [
        (pair.pair.kernel, pair.pair.point, [_number(pair, name) for name in names])
        for pair in result.comparison.compared
        # A pair without both compiles has no numbers; the page names it among the findings or the failures.
        if pair.measured
    ]
    changed = [row for row in rows if any(cell and cell.changed for cell in row[2])]
    pages.write_page(
        _TEMPLATE,
        path,
        f"Triton {result.comparison.a} to {result.comparison.b}",
        counted=counted,
        # A change for the worse within the limits is no finding, but "all clear" would hide it.
        state="findings"
        if assessment.findings
        else "unsure"
        if assessment.doubts or assessment.regressions
        else "clear",
        assessment=assessment,
        file=rehearsal.file,
        findings=list(_findings(rehearsal, assessment)),
        names=names,
        changed=changed,
        unchanged=[row for row in rows if row not in changed],
        limits=limits,
        result=result,
    )


def _findings(rehearsal: UpgradeRehearsal, assessment: Assessment) -> Iterator[dict[str, str]]:
    for finding in assessment.findings:
        yield {
            "kernel": finding.kernel,
            "target": finding.target,
            "finding": finding.finding,
            "why": explain(finding),
            "culprit": culprit_command(finding, rehearsal.file, rehearsal.a, rehearsal.b),
            "differences": differences_command(finding),
            "error": finding.compared.pair.b.point.error,
        }


def _number(pair: Compared, name: str) -> NumberCell | None:
    """Return a metric of a pair; None if the second side's vendor has none."""
    # By the names of the second side: the page is about the upgrade.
    backend = pair.backends[1]
    known, b = metrics.value_of(name, pair.b, backend)
    if not known:
        return None
    _, a = metrics.value_of(name, pair.a, backend)
    if a == b:
        return NumberCell(_spelled(a))
    change = MetricChange(metrics.metric(metrics.keys_of(name, backend)[0]), a, b, counterpart=True)
    return NumberCell(f"{_spelled(a)} → {_spelled(b)}", changed=True, verdict=change.verdict)


def _spelled(value: Value) -> str:
    return "?" if value is None else spelled(value)


def check_comment(path: Path) -> None:
    """Check that the Markdown can be written to this file, before anything is compiled.

    Raises:
        UsageError: it is a folder, is in none, or is not the name of a Markdown file.
    """
    # As for the page: without a suffix of its own, `--comment kernels.toml` would overwrite the user's list.
    if path.suffix.lower() != _MARKDOWN or path.is_dir():
        raise UsageError("--comment needs the suffix .md", where=path, hints=["--comment verdict.md"])
    if not path.parent.is_dir():
        raise UsageError("--comment: the folder does not exist", where=path.parent)


def comment_plan(rehearsal: UpgradeRehearsal, assessment: Assessment, page: Path, path: Path) -> Plan:
    """Return the step that writes the verdict as Markdown.

    Raises:
        FactError: a stage cannot be read.
    """
    step = Write(path, comment(rehearsal, assessment, page), phase="comment")
    return Plan("write the verdict", (step,))


def words_plan(base: Triton, head: Triton, words: str, path: Path) -> Plan:
    """Return the step that writes a verdict without findings: a few words."""
    step = Write(path, f"{_title(base, head)}{words}\n", phase="comment")
    return Plan("write the verdict", (step,))


def _title(base: Triton, head: Triton) -> str:
    return f"### Triton {_code(public(base).label)} to {_code(public(head).label)}: "


def comment(rehearsal: UpgradeRehearsal, assessment: Assessment, page: Path) -> str:
    """Return the verdict for a pull request: a few lines, and all groups of findings folded below them.

    Names and messages are the text of strangers: they stand in code only, in which neither Markdown nor HTML,
    mentions or numbers of issues mean anything.

    Args:
        rehearsal: the rehearsal.
        assessment: of its result.
        page: the page that has everything.

    Raises:
        FactError: a stage cannot be read.
    """
    most, groups = configs.load("rehearse")["comment"]["most"], assessment.groups
    lines = [_title(rehearsal.a, rehearsal.b) + assessment.headline, ""]
    for group in groups[: configs.load("rehearse")["summary"]["lines"]]:
        values = "" if group.witness.threshold is None else f" {_code(explain(group.witness))}"
        witness = f"smallest {_code(group.witness.kernel)}{values}"
        where = f"{_kind(group, _code)}, {_code(group.target)}: {counted(group.kernels, 'kernel')}"
        lines.append(f"- {where}, {_code(group.cause)}; {witness}")
    text = "\n".join([*lines, *([""] if groups else []), f"{_verdict_ending(rehearsal, assessment)}\n"])
    where = f"kinds of findings are left out here; the page {_code(page.name)} has all.\n"
    for number, group in enumerate(groups):
        block = _folded_group(rehearsal, group)
        left = f"\n{len(groups) - number} of {len(groups)} {where}"
        # A whole group or nothing: half a `<details>` would fold what follows it.
        if len(text) + len(block) + len(left) > most:
            return text + left
        text += block
    return text


def _verdict_ending(rehearsal: UpgradeRehearsal, assessment: Assessment) -> str:
    # The doubts have names of metrics only, which are our own: see `terms.parse`.
    doubts = f" Not sure: {assessment.doubts}." if assessment.findings and assessment.doubts else ""
    # Most of a list may be left out by its versions, and "no finding" would hide that.
    left = len(rehearsal.skipped)
    left_out = (
        f" {counted(left, 'kernel')} of the list {'is' if left == 1 else 'are'} not for both." if left else ""
    )
    return f"{assessment.binaries}.{left_out}{doubts} No kernel was run."


def _folded_group(rehearsal: UpgradeRehearsal, group: FindingGroup) -> str:
    most, witness = configs.load("rehearse")["comment"]["group"], group.witness
    # The list is named without its folder, and a Triton without its path: both are of one machine.
    search = culprit_command(witness, Path(rehearsal.file.name), public(rehearsal.a), public(rehearsal.b))
    title = f"{_kind(group, _html)}, {_html(group.target)}"
    lines = [
        f"\n<details><summary>{title}: {counted(group.kernels, 'kernel')}</summary>\n",
        f"{_code(group.cause)}. The smallest kernel: {_code(witness.kernel)}",
        "",
        *_fenced(console.typed(search)),
        "",
    ]
    size = sum(len(line) + 1 for line in lines)
    rows = sorted(group.findings, key=lambda row: row is not witness)
    for number, row in enumerate(rows):
        line = f"- {_code(row.kernel)} {_code(row.point)}: {_code(group.numbers(row))}"
        size += len(line) + 1
        if number and size > most:
            lines.append(f"- and {counted(len(rows) - number, 'compile')} more")
            break
        lines.append(line)
    return "\n".join([*lines, "", "</details>", ""])


def public(triton: Triton) -> Triton:
    """Return a Triton whose label tells no path of this machine."""
    if triton.source:  # the label is a branch's, and may have a slash of its own
        source = replace(triton.source, clone=Path("CLONE"), env=Path(triton.source.env).stem)
        return replace(triton, python=triton.label, source=source)
    if "/" not in triton.label:
        return triton
    path = Path(triton.label)
    # Every interpreter is called `python`, and many environments `venv`: the folder above tells which.
    folders = (folder.name for folder in path.parents if folder.name not in _UNTOLD)
    name = next(folders, "") if path.parent.name == "bin" else path.stem
    return replace(triton, label=name or path.name)


def _plain(text: str) -> str:
    """Return a foreign text in one short line, without secrets, folders and control characters."""
    shown = redact.printable(redact.hidden(failure.anonymous(text)))
    return tables.clipped(" ".join(shown.split()), configs.load("rehearse")["comment"]["text"])


def _code(text: str) -> str:
    """Return a foreign text as a code span of Markdown."""
    return code_span(_plain(text))


def _html(text: str) -> str:
    """Return a foreign text as code for a line of HTML; until the next blank line, there is no Markdown."""
    return f"<code>{html.escape(_plain(text))}</code>"


def _kind(group: FindingGroup, code: Callable[[str], str]) -> str:
    """Return the class, as code if it is a term of the user's, which may have any text: `ptx contains @@`."""
    return group.kind if group.kind == group.witness.finding else code(group.kind)


def _fenced(text: str) -> list[str]:
    """Return the lines of a fenced block with a command, which is whole or not there at all."""
    shown = redact.printable(redact.hidden(text))
    if len(shown) > configs.load("rehearse")["comment"]["group"]:
        return []
    return fenced(shown, "sh").splitlines()
