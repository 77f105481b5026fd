"""The answer on the screen, as JSON, as a block to paste upstream, and as a log of `git bisect`.

The result of a bisect as one HTML file, without a script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import manifest
from tritonsmith.core import configs, redact
from tritonsmith.core.command_line import flag_words, version_key
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.console import counted, duration
from tritonsmith.core.ui.html_page import document, folded, table, tag, text
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.ir.normalize import diff as normalize_diff
from tritonsmith.lab.bisect.diverging_pass import PartingPass
from tritonsmith.lab.bisect.session import FIX, BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import SHORT, BisectAnswer, BisectStep, CandidateCost, short
from tritonsmith.lab.model import Observation, Verdict

_UPSTREAM = "https://github.com/triton-lang/triton"
_PULL = f"{_UPSTREAM}/pull"
_CLONE, _LLVM_CLONE = "CLONE", "LLVM_CLONE"  # stand for folders of the user's in what others read


def predicate(question: BisectQuestion) -> str:
    """Describe in words what makes a Triton bad."""
    if question.command:
        return f"`{shlex.join(question.command)}` fails"
    if question.test:
        return f"{question.test} fails"
    return " or ".join(question.when) or "the compile fails as at the bad end"


def repeat(question: BisectQuestion) -> str:
    """The command that repeats the bisect."""
    flags: dict[str, Any] = {"good": question.good, "bad": question.bad}
    flags |= {"kernel": question.kernel} if question.kernel else {}
    flags |= {name: value for name, value in question.flags.items() if value not in (None, "", ())}
    flags |= {"when": question.when} if question.when else {}
    flags |= {"test": question.test} if question.test else {}
    flags |= {"source": question.source} if question.source else {}
    flags |= {"llvm_source": question.llvm_source} if question.llvm_source else {}
    flags |= {"confirm": question.confirm} if question.confirm > 1 else {}
    flags |= {"nightlies": question.nightlies} if question.nightlies else {}
    flags |= {"releases_only": True} if question.releases_only else {}
    words = [word for name, value in flags.items() for word in flag_words(name, value)]
    rest = ["--", *question.command] if question.command else []
    return shlex.join(["invoke", "bisect", *words, *rest])


def without_places(question: BisectQuestion) -> BisectQuestion:
    """The question as somebody else can ask it: paths from the folder of the call, or names alone."""
    here = f"{question.folder}/" if question.folder else ""

    def plain(text: str) -> str:
        if here and text.startswith(here):
            return text.removeprefix(here)
        file, colon, name = text.partition(":")
        return f"{Path(file).name}{colon}{name}" if Path(file).is_absolute() else text

    return replace(
        question,
        kernel=plain(question.kernel),
        test=plain(question.test),
        source=_CLONE if question.source else "",
        llvm_source=_LLVM_CLONE if question.llvm_source else "",
        nightlies="URL" if question.nightlies.startswith("file:") else question.nightlies,
    )


def verdict(answer: BisectAnswer) -> str:
    """The answer in one line."""
    step = answer.step
    if not step.decided:
        names, last = ", ".join(short(name) for name in step.suspects), short(step.suspects[-1])
        fix = f"{FIX} is " if step.fix else ""
        return f"undecided: {fix}one of {names}; all but {last} were skipped"
    if step.fix and not answer.commit:
        return f"{FIX} is in release {short(step.good)}; last bad: {short(step.bad)}"
    if step.fix:
        return f"{FIX} that only the good end has: {short(step.good)}; bad before it: {short(step.bad)}"
    what = "commit" if answer.commit else "nightly" if step.bad in answer.nightlies else "release"
    return f"first bad {what}: {short(step.bad)}; last good: {short(step.good)}"


def lines(session: BisectSession, answer: BisectAnswer) -> Iterator[str]:
    """The answer and everything about it."""
    yield verdict(answer)
    step, outcomes = answer.step, session.outcomes
    for name, triton in (("good", step.good), ("bad", step.bad)):
        if triton in outcomes:
            yield f"  {name}: {short(triton)}: {_seen(outcomes[triton])}"
    if answer.culprit:
        yield from (f"  {text}" for text in _culprit(answer))
    for name in step.suspects[:-1]:
        yield f"  skipped: {short(name)}: {_seen(outcomes[name])}"
    if step.later_good:
        later = ", ".join(short(name) for name in step.later_good)
        yield f"  good again: {later}: it changed more than once, or the test is flaky"
    yield from (f"  {note}" for note in answer.notes)


def upstream(session: BisectSession, answer: BisectAnswer, passes: str = "") -> str:
    """A block of Markdown for an issue.

    Args:
        session: with all outcomes.
        answer: the result.
        passes: what the passes of both sides say; empty if nobody asked.
    """
    step, question = answer.step, without_places(session.question)
    rows = [
        f"| {short(row.triton)} | {row.outcome.verdict} | {_cell(row.outcome)} |" for row in session.tested
    ]
    about = [f"- {text}" for text in (*(_culprit(answer) if answer.culprit else ()), *answer.notes)]
    return "\n".join(
        (
            f"**{verdict(answer)}**",
            "",
            f"Bad where: {predicate(question)}. Range: {question.good}..{question.bad}.",
            *about,
            *([f"- {passes}"] if passes else []),
            *(
                []
                if step.decided
                else ["- cannot be distinguished, because they were skipped: see the table"]
            ),
            "",
            "| Triton | verdict | figures |",
            "|---|---|---|",
            *rows,
            "",
            f"To repeat: `{repeat(question)}`"
            + (f", where {_CLONE} is a clone of {_UPSTREAM}" if question.source else ""),
        )
    )


def as_json(session: BisectSession, answer: BisectAnswer, passes: str = "") -> dict[str, Any]:
    """Everything."""
    return {
        "schema": 1,
        "verdict": verdict(answer),
        "decided": answer.step.decided,
        "release": _step(answer.release),
        "nightly": _step(answer.nightly),
        "commit": _step(answer.commit),
        "culprit": None
        if answer.culprit is None
        else {
            "commit": answer.culprit.commit,
            "subject": answer.culprit.subject,
            "date": answer.culprit.date,
            "pull": answer.culprit.pull,
            "bump": answer.culprit.bump,
            "undoes": answer.culprit.undoes,
        },
        "passes": passes or None,
        "notes": list(answer.notes),
        "tested": [row.row() for row in session.tested],
        "session": session.folder.name,
        "repeat": repeat(session.question),
    }


def tested(session: BisectSession) -> Grid:
    """All outcomes."""
    rows = [
        [
            short(row.triton),
            row.outcome.verdict,
            row.outcome.figures,
            row.outcome.why,
            f"{row.outcome.seconds:.0f}",
        ]
        for row in session.tested
    ]
    return tables.plain("tested", ["Triton", "verdict", "figures", "why", "s"], rows, right=["s"])


def costs(rows: Sequence[CandidateCost]) -> Grid:
    """Candidates, and what each is expected to cost."""
    cells = [
        [
            short(row.triton),
            row.subject,
            row.outcome.verdict if row.outcome else "",
            f"{row.cost.seconds:.0f}",
            "; ".join(row.cost.reasons),
        ]
        for row in rows
    ]
    heads = ["Triton", "subject", "verdict", "expected s", "because"]
    return tables.plain("candidates", heads, cells, right=["expected s"])


def costs_json(rows: Sequence[CandidateCost]) -> dict[str, Any]:
    """All of these."""
    return {
        "schema": 1,
        "candidates": [
            {
                "triton": row.triton,
                "subject": row.subject or None,
                "verdict": row.outcome.verdict if row.outcome else None,
                "seconds": row.cost.seconds,
                "reasons": list(row.cost.reasons),
            }
            for row in rows
        ],
    }


def git_log(session: BisectSession) -> Iterator[str]:
    """Yield the lines for `git bisect replay`; releases, which have no commit of main, are comments."""
    yield f"# {predicate(session.question)}".replace("\n", " ")
    # For a fix the good commits are the newer ones. Git takes that for a mistake, unless `start` has other
    # words for the two states than good and bad.
    fix = session.answer.startswith(FIX)
    terms = {Verdict.BAD: "broken", Verdict.GOOD: "fixed"} if fix else {}
    yield "git bisect start" + (" '--term-old=broken' '--term-new=fixed'" if fix else "")
    for row in session.tested:
        remark = f"{row.triton}: {_seen(row.outcome)}".replace("\n", " ")
        yield f"# {row.outcome.verdict}: {remark}"
        if "." not in row.triton:
            yield f"git bisect {terms.get(row.outcome.verdict, row.outcome.verdict)} {row.triton}"


def _culprit(answer: BisectAnswer) -> Iterator[str]:
    """Subject, date and pull request of the first bad commit or the fix, and what it is besides."""
    if answer.culprit is None:
        return
    commit = answer.culprit
    yield f"{commit.commit[:SHORT]} {commit.subject}, {commit.date}"
    if commit.pull:
        yield f"{_PULL}/{commit.pull}"
    if commit.bump:
        yield f"it moves the LLVM pin to {commit.pin}"
    if commit.undoes or commit.named:
        named = ", ".join(f"#{number}" for number in commit.named)
        yield f"it is a revert or a reland{f': {named}' if named else ''}"


def _step(step: BisectStep | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "good": step.good,
        "bad": step.bad,
        "suspects": list(step.suspects),
        "later_good": list(step.later_good),
        "fix": step.fix,
    }


def _seen(outcome: Observation) -> str:
    return ", ".join(filter(None, (outcome.figures, outcome.why)))


def _cell(outcome: Observation) -> str:
    return _seen(outcome).replace("|", "\\|").replace("\n", " ")


PointKind = Literal["release", "nightly", "pin", "commit"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COLOURS = {Verdict.GOOD: "var(--better)", Verdict.BAD: "var(--worse)", Verdict.SKIP: "var(--soft)"}
_CLASSES = {Verdict.GOOD: "better", Verdict.BAD: "worse", Verdict.SKIP: "soft"}
_LINES = {"+": "added", "-": "gone", "@": "soft"}  # of a diff, by their first character
_HEIGHT, _EDGE, _STEP, _RADIUS = 60, 8, 34, 4  # of the timeline, in CSS pixels
_FOLDED, _LONGEST = 200, 3000  # lines of a diff: from where it is folded, and cut
_SHORT = 10  # digits of a commit
_ASSEMBLIES = ("ptx", "amdgcn")


@dataclass(frozen=True)
class BisectPoint:
    """A Triton that was tested.

    Attributes:
        name: a version, or a commit's 40 hex digits.
        kind: what the search chose it as.
        outcome: what the test gave.
        date: ISO 8601; empty if unknown.
        subject: of a commit.
    """

    name: str
    kind: PointKind
    outcome: Observation
    date: str = ""
    subject: str = ""


@dataclass(frozen=True)
class BisectTexts:
    """A text of the last good Triton and of the first bad one.

    Attributes:
        what: a stage (`ptx`, `llir`), or a pass.
        stage: what language both are in, as `compare` calls it; `mlir` for a pass. Its normal form is
            shown: names of values, and places in sources, are no difference.
        good: the text of the good one.
        bad: the text of the bad one.
        file: of the checkout, in which the pass is; empty for a stage.
    """

    what: str
    stage: str
    good: str
    bad: str
    file: str = ""


@dataclass(frozen=True)
class BisectFindings:
    """The findings of a bisect.

    Attributes:
        command: which repeats it.
        question: what makes a Triton bad: `spills>0`.
        points: what was tested, in order of history: the good end first.
        suspects: one of these made the change: commits, or releases in which it came. One is the culprit.
        fix: whether it fixes what is bad before it.
        stage: a stage that differs, if texts of it were kept.
        by_pass: the first pass whose results differ, if the pass was searched for.
        notes: what else must be known: skips, contradictions, a revert.
    """

    command: str
    question: str
    points: tuple[BisectPoint, ...]
    suspects: tuple[TritonCommit | str, ...] = ()
    fix: bool = False
    stage: BisectTexts | None = None
    by_pass: BisectTexts | None = None
    notes: tuple[str, ...] = ()


def points_of(
    outcomes: Mapping[str, Observation],
    commits: Sequence[TritonCommit] = (),
    nightlies: Sequence[str] = (),
) -> tuple[BisectPoint, ...]:
    """Return the tests in order of history: commits are searched where a bad release follows a good one.

    Args:
        outcomes: by release or commit, as `BisectSession.outcomes` has them.
        commits: the range that was searched, oldest first; a commit of no range stands before these.
        nightlies: those between two releases, oldest first; commits stand where they change.
    """
    tested = [name for name in nightlies if name in outcomes]
    releases = sorted(
        (name for name in outcomes if not _COMMIT.fullmatch(name) and name not in tested), key=version_key
    )
    bad = (n for n, name in enumerate(releases) if outcomes[name].verdict is Verdict.BAD)
    before = next(bad, len(releases))
    points = [BisectPoint(name, "release", outcomes[name]) for name in releases]
    placed = {commit.commit for commit in commits}
    aside = (name for name in outcomes if _COMMIT.fullmatch(name) and name not in placed)
    between = [BisectPoint(name, "commit", outcomes[name]) for name in aside]
    between += (
        BisectPoint(
            commit.commit,
            "pin" if commit.bump else "commit",
            outcomes[commit.commit],
            commit.date,
            commit.subject,
        )
        for commit in commits
        if commit.commit in outcomes
    )
    wheels = [BisectPoint(name, "nightly", outcomes[name]) for name in tested]
    # Commits were searched between the last good nightly and the first bad one, so they are shown there.
    after = next((n for n, row in enumerate(wheels) if row.outcome.verdict is Verdict.BAD), len(wheels))
    return (*points[:before], *wheels[:after], *between, *wheels[after:], *points[before:])


def findings(
    session: BisectSession,
    answer: BisectAnswer,
    parted: PartingPass | None = None,
    compiles: tuple[Path, Path] | None = None,
) -> BisectFindings:
    """Everything that the page shows.

    Args:
        session: with all outcomes.
        answer: the result.
        parted: where the compiles by both sides of the step part; None if nobody asked.
        compiles: folders of the kernel's compiles by both sides, whose assembly is shown; None for a command
            or a test.
    """
    step = answer.step
    by_commit = {commit.commit: commit for commit in answer.commits}
    suspects: tuple[TritonCommit | str, ...] = tuple(by_commit.get(name, name) for name in step.suspects)
    notes = list(answer.notes)
    notes += [f"good again: {name}" for name in step.later_good]
    notes += [parted.sentence] if parted else []
    by_pass = None
    if parted and parted.name and parted.good and parted.bad:
        by_pass = BisectTexts(parted.name, parted.language, parted.good, parted.bad, parted.file)
    return BisectFindings(
        command=repeat(session.question),
        question=predicate(session.question),
        points=points_of(session.outcomes, answer.commits, answer.nightlies),
        suspects=suspects,
        fix=step.fix,
        stage=_stage(*compiles) if compiles else None,
        by_pass=by_pass,
        notes=tuple(notes),
    )


def _stage(good: Path, bad: Path) -> BisectTexts | None:
    """The assembly of the first compile by both sides; None where one of them has none."""
    before, after = _assemblies(good), _assemblies(bad)
    name = next((name for name in _ASSEMBLIES if name in before and name in after), "")
    return BisectTexts(name, name, before[name], after[name]) if name else None


def _assemblies(folder: Path) -> dict[str, str]:
    """Texts by stage; none where nothing was kept: a dropped outcome, or a compile that failed."""
    try:
        compiled = manifest.read(folder)
    except SmithError:
        return {}
    return {
        name: (folder / stage.path).read_text(encoding="utf-8", errors="replace")
        for name, stage in compiled.points[0].stages.items()
        if name in _ASSEMBLIES
    }


def write(found: BisectFindings, path: Path) -> None:
    """Write the page; `rehearse.page.check` says first whether it may have this name.

    Raises:
        SmithError: the file cannot be written.
    """
    workspace.default().claim()
    title = f"Bisect: {_shown(found.question)}"
    content = document(title, [tag("h1", text(title)), *_body(found)])
    try:
        files.write_atomically(path, content)
    except OSError as error:
        raise SmithError("cannot write the page", where=path, why=error.strerror) from error


def _body(found: BisectFindings) -> Iterator[str]:
    state = "findings" if len(found.suspects) == 1 else "unsure"
    yield tag("div", text(_verdict(found)), of=f"verdict {state}")
    if len(found.suspects) == 1:
        yield from _culprit_html(found.suspects[0])
    yield tag("pre", text(_shown(found.command)))
    yield from (tag("p", text(_shown(note))) for note in found.notes)
    yield tag("h2", "Tested, in order of history")
    yield _timeline(found.points)
    heads = ["Triton", "kind", "date", "verdict", "figures", "time", ""]
    yield table(heads, map(_tested, found.points), numbers=["time"])
    if len(found.suspects) > 1:
        yield tag("h2", "Suspects: one of these")
        yield table(["Triton", "date", "subject", "pull request"], map(_suspect, found.suspects))
    if found.stage:
        changes = normalize_diff.of(found.stage.good, found.stage.bad, found.stage.stage)
        yield tag("h2", text(f"The stage {found.stage.what}, good to bad"))
        yield _counts(changes)
        yield from _unified(changes.lines)
    if found.by_pass:
        changes = normalize_diff.of(found.by_pass.good, found.by_pass.bad, found.by_pass.stage)
        yield tag("h2", text(f"The pass {found.by_pass.what}"))
        if found.by_pass.file:
            yield tag("p", tag("code", text(found.by_pass.file)))
        yield _counts(changes)
        yield from _side_by_side(changes.lines)


def _verdict(found: BisectFindings) -> str:
    if not found.suspects:
        return "nothing was found"
    when = "before" if found.fix else "since"
    if len(found.suspects) == 1:
        return f"{found.question}: {when} {_name(found.suspects[0])}"
    return f"{found.question}: {when} one of {len(found.suspects)}"


def _culprit_html(suspect: TritonCommit | str) -> Iterator[str]:
    if isinstance(suspect, TritonCommit):
        yield tag("p", tag("strong", text(suspect.subject)))
        yield tag(
            "p", " · ".join(filter(None, (_commit(suspect.commit), text(suspect.date[:10]), *_pull(suspect))))
        )


def _suspect(suspect: TritonCommit | str) -> list[str]:
    if isinstance(suspect, str):
        return [text(suspect), "", "", ""]
    return [_commit(suspect.commit), text(suspect.date[:10]), text(suspect.subject), *_pull(suspect)]


def _tested(point: BisectPoint) -> list[str]:
    outcome = point.outcome
    remark = " ".join(filter(None, (point.subject, outcome.why and f"({outcome.why})")))
    return [
        _commit(point.name) if point.kind in ("pin", "commit") else text(point.name),
        text(point.kind),
        text(point.date[:10]),
        tag("span", text(outcome.verdict), of=_CLASSES[outcome.verdict]),
        text(_shown(outcome.figures)),
        text(duration(outcome.seconds)) if outcome.seconds else "",
        text(_shown(remark)),
    ]


def _timeline(points: Sequence[BisectPoint]) -> str:
    """A dot for each point: as high as its figure, where all figures that there are have one number."""
    # Heights compare one metric: figures of two terms, or an error's text with numbers in it, have no height.
    values = [_NUMBER.findall(point.outcome.figures) for point in points]
    tall = all(len(figures) == 1 for figures in values if figures) and any(values)
    numbers = [float(figures[0]) if tall and figures else None for figures in values]
    most = max((number for number in numbers if number is not None), default=0.0) or 1.0
    bottom, width = _HEIGHT - _EDGE, 2 * _EDGE + _STEP * max(1, len(points) - 1)
    dots = []
    for place, (point, number) in enumerate(zip(points, numbers, strict=True)):
        colour, outcome = _COLOURS[point.outcome.verdict], point.outcome
        label = ": ".join(filter(None, (_name(point.name), outcome.verdict, outcome.figures or outcome.why)))
        dots.append(
            tag(
                "circle",
                tag("title", text(_shown(label))),
                cx=_EDGE + place * _STEP,
                cy=f"{bottom - (bottom - _EDGE) * (number or 0.0) / most:.1f}",
                r=_RADIUS,
                fill="var(--page)" if outcome.verdict is Verdict.SKIP else colour,
                stroke=colour,
            )
        )
    axis = tag("line", x1=0, x2=width, y1=bottom, y2=bottom, stroke="var(--line)")
    drawn = tag("svg", axis, *dots, width=width, height=_HEIGHT, role="img")
    return tag("div", drawn, of="scroll")


def _counts(changes: normalize_diff.Diff) -> str:
    same = "equal, apart from names and locations"
    return tag(
        "p",
        text(same if changes.same else f"{counted(changes.removed, 'line')} gone, {changes.added} new"),
        of="soft",
    )


def _unified(lines: Sequence[str]) -> Iterator[str]:
    """A diff in colours."""
    shown = (tag("span", text(line), of=_LINES.get(line[:1], "")) for line in lines[:_LONGEST])
    yield from _long(lines, tag("pre", "\n".join(shown)) if lines else "")


def _side_by_side(lines: Sequence[str]) -> Iterator[str]:
    """A diff in two columns: the good text on the left, the bad one on the right."""
    rows: list[list[str]] = []
    for changed, group in groupby(lines[:_LONGEST], key=lambda line: line.startswith(("+", "-"))):
        part = list(group)
        rows += _changed(part) if changed else map(_same, part)
    yield from _long(lines, table(["good", "bad"], rows) if rows else "")


def _changed(part: Iterable[str]) -> Iterator[list[str]]:
    both: dict[str, list[str]] = {"-": [], "+": []}
    for line in part:
        both[line[0]].append(line)
    for gone, added in zip_longest(both["-"], both["+"], fillvalue=""):
        yield [_code(gone), _code(added)]


def _same(line: str) -> list[str]:
    return [_code(line), _code(line)]


def _code(line: str) -> str:
    """A line of a diff, without its sign."""
    if not line:
        return ""
    return tag("code", text(line if line.startswith("@") else line[1:]), of=_LINES.get(line[0], ""))


def _long(lines: Sequence[str], shown: str) -> Iterator[str]:
    if shown:
        yield folded(f"{len(lines)} lines", shown) if len(lines) > _FOLDED else shown
    if len(lines) > _LONGEST:
        yield tag("p", text(f"{len(lines) - _LONGEST} more lines are left out"), of="soft")


def _commit(commit: str) -> str:
    return tag("a", tag("code", text(_name(commit))), href=f"{_upstream()}/commit/{commit}")


def _pull(commit: TritonCommit) -> list[str]:
    number = commit.pull
    return [tag("a", text(f"#{number}"), href=f"{_upstream()}/pull/{number}")] if number else [""]


def _upstream() -> str:
    return str(configs.load("bisect")["upstream"]["page"])


def _name(suspect: TritonCommit | str) -> str:
    name = suspect if isinstance(suspect, str) else suspect.commit
    return name[:_SHORT] if _COMMIT.fullmatch(name) else name


def _shown(words: str) -> str:
    return redact.hidden(words)
