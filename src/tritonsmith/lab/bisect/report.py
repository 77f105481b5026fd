"""The answer on the screen, as JSON, as a block to paste upstream, and as a log of `git bisect`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tritonsmith.core.command_line import flag_words
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
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
