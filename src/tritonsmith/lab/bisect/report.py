"""A bisect on the screen, as JSON, as a block to paste upstream, as a log of `git bisect`, and as a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import manifest
from tritonsmith.core import configs
from tritonsmith.core.command_line import flag_words
from tritonsmith.core.errors import SmithError
from tritonsmith.core.redact import hidden
from tritonsmith.core.text import counted, duration, version_key
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.ir.normalize import diff as normalize_diff
from tritonsmith.lab.bisect.session import FIX, BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import SHORT, BisectResult, BisectStep, CandidateCost, short
from tritonsmith.lab.isolate.first_pass_with import PartingPass
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.report import VERDICT_CLASSES, write_page

_TEMPLATE = Path(__file__).parent.with_name("bisect.html")
_UPSTREAM = "https://github.com/triton-lang/triton"
_PULL = f"{_UPSTREAM}/pull"
_DEFAULTS = {"confirm": 1, "env": "dev"}  # of flags that a command need not have
# Stand for folders and for an environment of the user's in what others read.
_CLONE, _LLVM_CLONE, _ENV = "CLONE", "LLVM_CLONE", "ENV"


def predicate(question: BisectQuestion) -> str:
    """Describe in words what makes a Triton bad."""
    if question.command:
        return f"`{shlex.join(question.command)}` fails"
    if question.test:
        return f"{question.test} fails"
    return " or ".join(question.when) or "the compile fails as at the bad end"


def repeat(question: BisectQuestion) -> str:
    """Return the command that repeats the bisect."""
    flags: dict[str, Any] = {"good": question.good, "bad": question.bad}
    flags |= {"kernel": question.kernel} if question.kernel else {}
    flags |= {name: value for name, value in question.flags.items() if value not in (None, "", ())}
    # `folder` and `content` are left out, as no flag sets them: they say where and on what it ran.
    own = ("when", "test", "source", "llvm_source", "confirm", "nightlies", "releases_only", "env", "timeout")
    flags |= {
        name: value for name in own if (value := getattr(question, name)) and value != _DEFAULTS.get(name)
    }
    words = [word for name, value in flags.items() for word in flag_words(name, value)]
    rest = ["--", *question.command] if question.command else []
    return shlex.join(["invoke", "bisect", *words, *rest])


def without_places(question: BisectQuestion) -> BisectQuestion:
    """Return the question as somebody else can ask it: paths from the folder of the call, or names alone."""
    # An issue is public: paths would tell the user's name, and help nobody else.
    here = f"{question.folder}/" if question.folder else ""

    def plain(text: str) -> str:
        if here and text.startswith(here):
            return text.removeprefix(here)
        file, colon, name = text.partition(":")
        return f"{Path(file).name}{colon}{name}" if Path(file).is_absolute() else text

    # Everybody has the environments of this project; the name and the settings of another are the user's own.
    shipped = (configs.data_dir("envs") / f"{question.env}.toml").is_file()
    return replace(
        question,
        kernel=plain(question.kernel),
        test=plain(question.test),
        source=_CLONE if question.source else "",
        llvm_source=_LLVM_CLONE if question.llvm_source else "",
        env=_ENV if question.env and not shipped else question.env,
        nightlies="URL" if question.nightlies.startswith("file:") else question.nightlies,
    )


def headline(result: BisectResult) -> str:
    """Return the result in one line."""
    step = result.step
    if not step.decided:
        names, last = ", ".join(short(name) for name in step.suspects), short(step.suspects[-1])
        fix = f"{FIX} is " if step.fix else ""
        return f"undecided: {fix}one of {names}; all but {last} were skipped"
    if step.fix and not result.commit:
        return f"{FIX} is in release {short(step.good)}; last bad: {short(step.bad)}"
    if step.fix:
        return f"{FIX} that only the good end has: {short(step.good)}; bad before it: {short(step.bad)}"
    what = "commit" if result.commit else "nightly" if step.bad in result.nightlies else "release"
    return f"first bad {what}: {short(step.bad)}; last good: {short(step.good)}"


def lines(session: BisectSession, result: BisectResult) -> Iterator[str]:
    """Yield the result, then its details."""
    yield headline(result)
    step, outcomes = result.step, session.outcomes
    for name, triton in (("good", step.good), ("bad", step.bad)):
        if triton in outcomes:
            yield f"  {name}: {short(triton)}: {outcomes[triton].evidence}"
    if result.culprit:
        yield from (f"  {text}" for text in _culprit(result))
    # The last one was tested, and is shown as the bad one above.
    for name in step.suspects[:-1]:
        yield f"  skipped: {short(name)}: {outcomes[name].evidence}"
    if step.later_good:
        later = ", ".join(short(name) for name in step.later_good)
        yield f"  good again: {later}: it changed more than once, or the test is flaky"
    yield from (f"  {note}" for note in result.notes)


def upstream(session: BisectSession, result: BisectResult, passes: str = "") -> str:
    """Return a block of Markdown for an issue.

    Args:
        session: with all outcomes.
        result: of the bisect.
        passes: the sentence about the pass where both sides diverge; empty if that was not searched for.
    """
    step, question, outcomes = result.step, without_places(session.question), session.outcomes
    # In a table of Markdown a bar would end the cell, and a line break the row.
    cells = {name: test.evidence.replace("|", r"\|").replace("\n", " ") for name, test in outcomes.items()}
    rows = [f"| {short(name)} | {outcomes[name].verdict} | {cell} |" for name, cell in cells.items()]
    about = [f"- {text}" for text in (*(_culprit(result) if result.culprit else ()), *result.notes)]
    return "\n".join(
        (
            f"**{headline(result)}**",
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


def as_json(session: BisectSession, result: BisectResult, passes: str = "") -> dict[str, Any]:
    """Return everything but the page; see `upstream`."""
    return {
        "schema": 1,
        "verdict": headline(result),
        "decided": result.step.decided,
        "release": _step(result.release),
        "nightly": _step(result.nightly),
        "commit": _step(result.commit),
        "culprit": None
        if result.culprit is None
        else {
            "commit": result.culprit.commit,
            "subject": result.culprit.subject,
            "date": result.culprit.date,
            "pull": result.culprit.pull,
            "bump": result.culprit.bump,
            "undoes": result.culprit.undoes,
        },
        "passes": passes or None,
        "notes": list(result.notes),
        "tested": tested_json(session),
        "session": session.folder.name,
        "when": list(session.question.when),
        "repeat": repeat(session.question),
    }


def tested_json(session: BisectSession) -> list[dict[str, Any]]:
    """Return the outcome of each Triton."""
    return [
        {
            "triton": name,
            "verdict": test.verdict,
            "figures": test.figures,
            "why": test.why,
            "seconds": test.seconds,
        }
        for name, test in session.outcomes.items()
    ]


def tested(session: BisectSession) -> Grid:
    """Return the table of all outcomes."""
    rows = [
        [short(name), test.verdict, test.figures, test.why, f"{test.seconds:.0f}"]
        for name, test in session.outcomes.items()
    ]
    return tables.plain("tested", ["Triton", "verdict", "figures", "why", "s"], rows, right=["s"])


def costs(rows: Sequence[CandidateCost]) -> Grid:
    """Return the table of candidates, with what each is expected to cost."""
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
    """Return what `costs` shows."""
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
    for name, test in session.outcomes.items():
        remark = f"{name}: {test.evidence}".replace("\n", " ")
        yield f"# {test.verdict}: {remark}"
        # A nightly and a release have no commit here, so git cannot be told of them.
        if "." not in name:
            yield f"git bisect {terms.get(test.verdict, test.verdict)} {name}"


def _culprit(result: BisectResult) -> Iterator[str]:
    """Yield subject, date and pull request of the first bad commit or the fix, and what it is besides."""
    if result.culprit is None:
        return
    commit = result.culprit
    yield f"{commit.commit[:SHORT]} {commit.subject}, {commit.date}"
    if commit.pull:
        yield f"{_PULL}/{commit.pull}"
    if commit.bump:
        yield f"it moves the LLVM pin to {commit.pin}"
    # From 2025 to August 2026, 92 of upstream's 3,623 commits were reverts or relands: the fault may be in
    # what they name.
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


PointKind = Literal["release", "nightly", "pin", "commit"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# `OTHER` has no colour: a session with that verdict is refused as damaged.
_COLOURS = {Verdict.GOOD: "var(--better)", Verdict.BAD: "var(--worse)", Verdict.SKIP: "var(--soft)"}
_HEIGHT, _EDGE, _STEP = 60, 8, 34  # of the timeline, in CSS pixels
_FOLDED, _LONGEST = 200, 3000  # lines of a diff: from where it is folded, and cut
_SHORT = 10  # digits of a commit
_ASSEMBLIES = ("ptx", "amdgcn")


@dataclass(frozen=True)
class BisectPoint:
    """A Triton that was tested.

    Attributes:
        name: a version, or a commit's 40 hex digits.
        kind: what the search chose it as.
        outcome: of its test.
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
class BisectPage:
    """Everything that the page of a bisect shows.

    Attributes:
        command: the command that repeats it.
        question: what makes a Triton bad: `spills>0`.
        points: the tests, in the order of history: the good end first.
        suspects: commits, or releases with them, of which one made the change. One alone is the culprit.
        fix: whether the change is a fix.
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

    @property
    def headline(self) -> str:
        """The result in one line."""
        if not self.suspects:
            return "nothing was found"
        one = _named(self.suspects[0]) if len(self.suspects) == 1 else f"one of {len(self.suspects)}"
        return f"{self.question}: {'before' if self.fix else 'since'} {one}"


def page_of(
    session: BisectSession,
    result: BisectResult,
    parted: PartingPass | None = None,
    compiles: tuple[Path, Path] | None = None,
) -> BisectPage:
    """Collect what the page shows.

    Args:
        session: with all outcomes.
        result: of the bisect.
        parted: the place where the compiles by both sides of the step diverge; None if it was not searched.
        compiles: folders of the kernel's compiles by both sides, whose assembly is shown; None for a command
            or a test.
    """
    step = result.step
    # A release has no commit of main, so it stays a name.
    by_commit = {commit.commit: commit for commit in result.commits}
    notes = list(result.notes)
    notes += [f"good again: {name}" for name in step.later_good]
    notes += [parted.sentence] if parted else []
    by_pass = None
    if parted and parted.name and parted.good and parted.bad:
        by_pass = BisectTexts(parted.name, parted.language, parted.good, parted.bad, parted.file)
    return BisectPage(
        command=repeat(session.question),
        question=predicate(session.question),
        points=points_of(session.outcomes, result.commits, result.nightlies),
        suspects=tuple(by_commit.get(name, name) for name in step.suspects),
        fix=step.fix,
        stage=_assembly(*compiles) if compiles else None,
        by_pass=by_pass,
        notes=tuple(notes),
    )


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
    wheels = [BisectPoint(name, "nightly", outcomes[name]) for name in nightlies if name in outcomes]
    apart = {point.name for point in wheels} | {commit.commit for commit in commits}
    others = [name for name in outcomes if name not in apart]
    releases = [
        BisectPoint(name, "release", outcomes[name])
        for name in sorted((name for name in others if not _COMMIT.fullmatch(name)), key=version_key)
    ]
    between = [BisectPoint(name, "commit", outcomes[name]) for name in others if _COMMIT.fullmatch(name)]
    for commit in commits:
        if outcome := outcomes.get(commit.commit):
            kind: PointKind = "pin" if commit.bump else "commit"
            between.append(BisectPoint(commit.commit, kind, outcome, commit.date, commit.subject))
    # Nightlies were searched between the last good release and the first bad one, and commits between the
    # last good nightly and the first bad one, so they are shown there.
    for outer in (wheels, releases):
        first = next((n for n, row in enumerate(outer) if row.outcome.verdict is Verdict.BAD), len(outer))
        between = [*outer[:first], *between, *outer[first:]]
    return tuple(between)


def _assembly(good: Path, bad: Path) -> BisectTexts | None:
    """Return the assembly of the first compile by both sides; None where one of them has none."""
    before, after = _assemblies(good), _assemblies(bad)
    name = next((name for name in _ASSEMBLIES if name in before and name in after), "")
    return BisectTexts(name, name, before[name], after[name]) if name else None


def _assemblies(folder: Path) -> dict[str, str]:
    """Return texts by stage; none where nothing was kept: a dropped outcome, or a compile that failed."""
    try:
        compiled = manifest.read(folder)
    except SmithError:
        return {}
    return {
        name: (folder / stage.path).read_text(encoding="utf-8", errors="replace")
        # The first compile, as the pass is searched for the first target, too.
        for name, stage in compiled.points[0].stages.items()
        if name in _ASSEMBLIES
    }


def write(page: BisectPage, path: Path) -> None:
    """Write the page.

    Raises:
        SmithError: the file cannot be written.
    """
    suspects = [_row(suspect) for suspect in page.suspects]
    write_page(
        _TEMPLATE,
        path,
        # Commands and compilers' messages may have tokens in them, and a page is attached to issues.
        hidden(f"Bisect: {page.question}"),
        answer=[hidden(page.headline), *map(hidden, page.notes)],
        state="findings" if len(suspects) == 1 else "unsure",
        command=hidden(page.command),
        upstream=configs.load("bisect")["upstream"]["page"],
        suspects=suspects,
        points=[_point(point) for point in page.points],
        timeline=_timeline(page.points),
        height=_HEIGHT,
        width=2 * _EDGE + _STEP * max(1, len(page.points) - 1),
        bottom=_HEIGHT - _EDGE,
        stage=_diff(page.stage) if page.stage else None,
        by_pass=_diff(page.by_pass) if page.by_pass else None,
    )


def _row(suspect: TritonCommit | str) -> dict[str, object]:
    """Return a suspect as the template shows it; a release has no commit."""
    if isinstance(suspect, str):
        return {"name": _named(suspect), "commit": "", "date": "", "subject": "", "pull": 0}
    return {
        "name": _named(suspect),
        "commit": suspect.commit,
        "date": suspect.date[:10],
        "subject": suspect.subject,
        "pull": suspect.pull,
    }


def _point(point: BisectPoint) -> dict[str, object]:
    outcome = point.outcome
    return {
        "name": _named(point.name),
        "commit": point.name if point.kind in ("pin", "commit") else "",
        "kind": point.kind,
        "date": point.date[:10],
        "verdict": outcome.verdict,
        "class": VERDICT_CLASSES[outcome.verdict],
        "figures": hidden(outcome.figures),
        "seconds": duration(outcome.seconds) if outcome.seconds else "",
        "remark": hidden(" ".join(filter(None, (point.subject, outcome.why and f"({outcome.why})")))),
    }


def _timeline(points: Sequence[BisectPoint]) -> Iterator[dict[str, object]]:
    """Yield a dot for each point: as high as its figure, where all figures that there are have one number."""
    # Heights compare one metric: figures of two terms, or an error's text with numbers in it, have no height.
    values = [_NUMBER.findall(point.outcome.figures) for point in points]
    tall = all(len(figures) == 1 for figures in values if figures)
    numbers = [float(figures[0]) if tall and figures else 0.0 for figures in values]
    most = max(numbers, default=0.0) or 1.0
    bottom = _HEIGHT - _EDGE
    for place, (point, number) in enumerate(zip(points, numbers, strict=True)):
        outcome, colour = point.outcome, _COLOURS[point.outcome.verdict]
        label = filter(None, (_named(point.name), outcome.verdict, outcome.figures or outcome.why))
        yield {
            "x": _EDGE + place * _STEP,
            "y": f"{bottom - (bottom - _EDGE) * number / most:.1f}",
            "colour": colour,
            "fill": "var(--page)" if outcome.verdict is Verdict.SKIP else colour,
            "label": hidden(": ".join(label)),
        }


def _diff(texts: BisectTexts) -> dict[str, object]:
    """Return the differences of two texts: the lines of a unified diff, and the same side by side."""
    changes = normalize_diff.of(texts.good, texts.bad, texts.stage)
    same = "equal, apart from names and locations"
    shown = changes.lines[:_LONGEST]
    return {
        "what": texts.what,
        "file": texts.file,
        "counts": same if changes.same else f"{counted(changes.removed, 'line')} gone, {changes.added} new",
        "lines": shown,
        "sides": list(_sides(shown)),
        "total": len(changes.lines),
        "folded": len(changes.lines) > _FOLDED,
        "cut": max(0, len(changes.lines) - _LONGEST),
    }


def _sides(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the good line and the bad one, with the signs of the diff, as they stand beside each other."""
    for changed, group in groupby(lines, key=lambda line: line.startswith(("+", "-"))):
        part = list(group)
        if changed:
            # A block that is replaced has its old lines first, then its new ones: side by side, the nth
            # stands by the nth.
            gone, added = ([line for line in part if line.startswith(sign)] for sign in "-+")
            yield from zip_longest(gone, added, fillvalue="")
        else:
            yield from zip(part, part, strict=True)


def _named(suspect: TritonCommit | str) -> str:
    name = suspect if isinstance(suspect, str) else suspect.commit
    return name[:_SHORT] if _COMMIT.fullmatch(name) else name
