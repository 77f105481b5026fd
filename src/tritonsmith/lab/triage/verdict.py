"""From what was seen under each variant to a verdict, which says when it is not sure.

The verdict on the screen, as JSON, and as a folder to attach.

A subject that changes are tried on, and the words for what becomes of its symptom.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from tritonsmith.core.errors import SmithError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import experiment
from tritonsmith.lab.experiment import BASELINE, Search
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage.variant import Meaning, TriageChange, TriageVariant

SYMPTOM = {  # in tables, triage.json and configs/triage.toml
    Verdict.BAD: "shows",
    Verdict.GOOD: "gone",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}


def not_tested(error: SmithError) -> Observation:
    """Return a skip that says why something was not tested, and what to do."""
    why = ": ".join(filter(None, (error.what, (error.why or "").partition("\n")[0])))
    return Observation(Verdict.SKIP, why="; ".join((why, *error.hints)))


class Subject(Protocol):
    """A kernel or a command."""

    @property
    def triton(self) -> str:
        """The version of its Triton; empty if nobody knows."""

    @property
    def backends(self) -> frozenset[str]:
        """`cuda`, `hip`, or both where nobody knows."""

    @property
    def is_command(self) -> bool:
        """Report whether it is a command, which runs; a kernel is only compiled."""

    @property
    def has_check(self) -> bool:
        """Report whether the symptom is a wrong value of a script."""

    @property
    def key(self) -> object:
        """Everything that a test depends on, but for the change; to digest."""

    def baseline(self, name: str = BASELINE) -> Observation:
        """Test it as it is, with caches of its own; BAD or GOOD.

        The test of the name `BASELINE` decides what the symptom is.
        """

    def resume(self, known: Iterable[Observation]) -> None:
        """Take up the observations of a run that was stopped; the baseline was tested once more before."""

    def test(self, change: TriageChange) -> Observation:
        """Test it with a change."""

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """Return FILE:LINE of the operations that a change is about, in what the baseline compiled."""

    def bisect(self, other: str, /) -> str:
        """Return the command that bisects between this Triton and another release; empty if there is none."""

    @property
    def kind(self) -> str:
        """The kind of the symptom: `failure`, `hang`, `limit` or `slow`; known after the baseline."""


AGAIN = "nothing changed, again"
UNCHANGED = TriageVariant(TriageChange(BASELINE), Meaning("baseline"))
UNCHANGED_AGAIN = TriageVariant(TriageChange(AGAIN), Meaning("baseline"))


class Conclusion(StrEnum):
    """The ways in which a triage ends."""

    NOTHING = "nothing found"
    FLAKY = "not decided: it is flaky"
    DECIDED = "decided"
    SEVERAL = "not decided: several changes make it disappear"
    NONE = "not decided: no change makes it disappear"


@dataclass(frozen=True)
class Tried:
    """A variant, and what was seen under it."""

    variant: TriageVariant
    observation: Observation

    @property
    def verdict(self) -> Verdict:
        """The verdict: whether the symptom remains with the change."""
        return self.observation.verdict


@dataclass(frozen=True)
class TriageResult:
    """The result.

    Attributes:
        conclusion: how it ends.
        text: the verdict in one line.
        reasons: what it rests on, each a sentence.
        next: what to do, each a sentence or a command.
        baseline: what was seen with nothing changed.
        tried: the variants, in the order of the tests.
    """

    conclusion: Conclusion
    text: str
    reasons: tuple[str, ...]
    next: tuple[str, ...]
    baseline: Observation
    tried: tuple[Tried, ...] = ()

    @property
    def decided(self) -> bool:
        """Report whether the answer is sure: nothing found, or one cause."""
        return self.conclusion in (Conclusion.NOTHING, Conclusion.DECIDED)


def run(subject: Subject, journal: Journal, tell: Callable[[str, Observation], None]) -> TriageResult:
    """Test the subject as it is, then under each variant that fits, and judge.

    Args:
        subject: a kernel or a command.
        journal: of this triage; a run that was stopped goes on from it.
        tell: gets each new observation, as it comes.
    """
    subject.resume(itertools.chain.from_iterable(journal.seen.values()))
    return experiment.run(search(subject), partial(observed, subject), journal, tell)


def observed(subject: Subject, rows: Sequence[TriageVariant]) -> Iterator[Observation]:
    """Test the subject under variants, one after the other."""
    for row in rows:
        yield subject.baseline(row.name) if row.meaning.role == "baseline" else subject.test(row.change)


def search(subject: Subject) -> Search[TriageVariant, TriageResult]:
    """Ask for the baseline, then for each variant that fits, one at a time.

    A variant below another is tried only where the symptom is gone under that one.
    """
    (first,) = yield [UNCHANGED]
    if first.verdict is Verdict.SKIP:
        return (yield from _untested(subject, first))
    unsteady = subject.is_command or (subject.kind == "slow" and first.verdict is Verdict.BAD)
    again = (yield [UNCHANGED_AGAIN] * (variants.baselines() - 1)) if unsteady else []
    if {test.verdict for test in again} - {first.verdict} or {test.failure for test in again} - {
        first.failure
    }:
        figures = "; ".join(dict.fromkeys(test.figures for test in (first, *again)))
        reasons = (f"with nothing changed, the tests disagree: {figures}",)
        return TriageResult(Conclusion.FLAKY, str(Conclusion.FLAKY), reasons, (), first)
    if first.verdict is Verdict.GOOD:
        text = f"nothing found: {first.figures}"
        return TriageResult(Conclusion.NOTHING, text, (), (), first)
    tried: list[Tried] = []
    for row in variants.ordered(first.failed_in):
        fits = row.fits(subject.triton, subject.backends, command=subject.is_command, symptom=subject.kind)
        gone = {row.variant.name for row in tried if row.verdict is Verdict.GOOD}
        causes = any(
            row.variant.meaning.role == "cause" and not row.variant.meaning.last and row.variant.name in gone
            for row in tried
        )
        # The interpreter compiles nothing: what it shows is not the work of a pass.
        stays = any(row.variant.meaning.stays and row.verdict is Verdict.BAD for row in tried)
        if (
            fits
            and (not row.meaning.after or row.meaning.after in gone)
            and not (row.meaning.last and (causes or stays))
        ):
            (observation,) = yield [row]
            tried.append(Tried(row, observation))
    return judge(subject, first, tried)


def _untested(subject: Subject, baseline: Observation) -> Search[TriageVariant, TriageResult]:
    """Say why it cannot be tested, and what the interpreter says of a check, which needs no GPU."""
    text = f"not decided: it cannot be tested: {baseline.why}"
    tried: list[Tried] = []
    for row in variants.every() if subject.has_check else ():
        if row.meaning.alone and row.fits(
            subject.triton, subject.backends, command=True, symptom=subject.kind
        ):
            (observation,) = yield [row]
            tried.append(Tried(row, observation))
    reasons = []
    for entry in tried:
        observation = entry.observation
        meaning = (
            entry.variant.meaning.alone.get(SYMPTOM[observation.verdict])
            or f"{observation.why}, {observation.figures}"
        )
        reasons.append(f"{entry.variant.name}: {meaning}")
    hints = ["run it on a machine that has its GPU"] if tried else []
    return TriageResult(Conclusion.NONE, text, tuple(reasons), tuple(hints), baseline, tuple(tried))


def judge(subject: Subject, baseline: Observation, tried: Sequence[Tried]) -> TriageResult:
    """Judge what was seen.

    One cause: if the variants that make the symptom go are of one family. A variant that changes no machine
    code and yet makes it go shows that the symptom comes and goes by itself.
    """
    gone = [row for row in tried if row.verdict is Verdict.GOOD and row.variant.meaning.role != "witness"]
    names = {row.variant.name for row in gone}
    causes = [row for row in gone if row.variant.meaning.role == "cause"]
    narrow = [
        row for row in causes if not any(other.variant.meaning.after == row.variant.name for other in causes)
    ]
    sides = [row for row in gone if row.variant.meaning.role == "side"]
    stays = [
        row.variant.meaning.stays for row in tried if row.variant.meaning.stays and row.verdict is Verdict.BAD
    ]
    heard = [row for row in tried if row.variant.meaning.role == "witness" and row.verdict is Verdict.OTHER]
    families = list(dict.fromkeys(row.variant.meaning.family for row in narrow))
    if families:  # a race goes with the timing, and so under many a change
        families += [row.variant.meaning.family for row in heard if row.variant.meaning.family]
    reasons = [*baseline.notes, *(_reason(row) for row in (*narrow, *sides))]
    hints = [subject_hint for row in (*narrow, *sides) if (subject_hint := _next(subject, row))]
    reasons += [
        f"{row.variant.name} says: {row.observation.figures}"
        for row in tried
        if (row.variant.change.release == "newest" or row.variant.meaning.role == "witness")
        and row.verdict is Verdict.OTHER
    ]
    untested = [row.variant.name for row in tried if row.verdict is Verdict.SKIP]
    notes = [f"not tested: {', '.join(untested)}"] if untested else []
    # The same machine code cannot be the cause of another result: so the symptom comes and goes by itself.
    same = [row for row in narrow if baseline.code and row.observation.code == baseline.code]
    if same:
        reasons = [f"{same[0].variant.name}: the machine code is the same as with nothing changed"]
        return TriageResult(
            Conclusion.FLAKY, str(Conclusion.FLAKY), (*reasons, *notes), (), baseline, tuple(tried)
        )
    if baseline.cause or (stays and not causes):
        text = baseline.cause or f"decided: {stays[0]}"
        known = (*reasons, *notes) if baseline.cause else tuple(notes)
        return TriageResult(Conclusion.DECIDED, text, known, tuple(hints), baseline, tuple(tried))
    if stays and causes:  # the interpreter shows it, and a change of the compiler makes it go
        text = f"{Conclusion.SEVERAL}: {'; '.join((stays[0], *families))}"
        return TriageResult(
            Conclusion.SEVERAL, text, (*reasons, *notes), tuple(hints), baseline, tuple(tried)
        )
    if len(families) == 1:
        places = dict.fromkeys(
            place
            for row in narrow
            if row.variant.meaning.line
            for place in subject.lines(row.variant.meaning.line)
        )
        details = [*places, *(swap for row in narrow if (swap := _swap(row)))]
        text = ", ".join((families[0], *details))
        return TriageResult(
            Conclusion.DECIDED, text, (*reasons, *notes), tuple(hints), baseline, tuple(tried)
        )
    if families:
        text = f"{Conclusion.SEVERAL}: {'; '.join(families)}"
        return TriageResult(
            Conclusion.SEVERAL, text, (*reasons, *notes), tuple(hints), baseline, tuple(tried)
        )
    lead = f"{Conclusion.NONE} of this Triton" if names else str(Conclusion.NONE)
    return TriageResult(Conclusion.NONE, lead, (*reasons, *notes), tuple(hints), baseline, tuple(tried))


def _reason(tried: Tried) -> str:
    """Explain what it means that the symptom is gone."""
    return ": ".join(filter(None, (tried.variant.name, _swap(tried), tried.variant.meaning.gone)))


def _swap(tried: Tried) -> str:
    """Name both ptxas of an exchange; empty where its own was used."""
    return " instead of ".join(reversed(tried.observation.swapped))


def _next(subject: Subject, tried: Tried) -> str:
    """Return the next thing to do; with a command where the row has a place for one."""
    variant = tried.variant
    other = variant.change.version(subject.triton) if variant.change.release else ""
    text = variant.meaning.next.replace("{ptxas}", (tried.observation.swapped or ("",))[-1])
    if "{bisect}" not in text:
        return text
    command = subject.bisect(other)
    return text.replace("{bisect}", command) if command else ""


_LONGEST = 72  # characters of what was seen
_SAME = "the same"  # as in the first row


def table(answer: TriageResult) -> Grid:
    """Return the table of changes and observations."""
    columns = ["changed", "symptom", "seen", "s"]
    return tables.plain("one change at a time", columns, rows(answer), right=["s"])


def rows(answer: TriageResult) -> list[list[str]]:
    """Give each test a line of text; a message that repeats the first row's is not shown again."""
    first = _text(answer.baseline)
    shown = [_row("nothing changed", answer.baseline)]
    shown += [_row(row.variant.name, row.observation, first) for row in answer.tried]
    return shown


def lines(answer: TriageResult) -> Iterator[str]:
    """The verdict, what it rests on, and what to do."""
    yield f"verdict: {answer.text}"
    yield from (f"  {line}" for line in answer.reasons)
    yield from (f"  next: {line}" for line in answer.next)


def as_json(answer: TriageResult, about: dict[str, Any]) -> dict[str, Any]:
    """Everything.

    Args:
        answer: the verdict.
        about: what was tested, by what.
    """
    return {
        "schema": 1,
        **about,
        "answer": answer.conclusion.name.lower(),
        "decided": answer.decided,
        "verdict": answer.text,
        "reasons": list(answer.reasons),
        "next": list(answer.next),
        "baseline": _seen(answer.baseline),
        "tried": [
            {"variant": row.variant.name, "family": row.variant.meaning.family, **_seen(row.observation)}
            for row in answer.tried
        ],
    }


def _seen(observation: Observation) -> dict[str, Any]:
    return {
        "symptom": SYMPTOM[observation.verdict],
        "figures": observation.figures,
        "why": observation.why,
        "notes": list(observation.notes),
        "seconds": round(observation.seconds, 3),
    }


def in_short(observation: Observation) -> str:
    """Say what was seen in one line; triage.json and the logs have all of it."""
    return tables.clipped(_text(observation), _LONGEST)


def _text(observation: Observation) -> str:
    """All that was seen, in one line."""
    return " ".join(", ".join(filter(None, (observation.figures, observation.why))).split())


def _row(name: str, observation: Observation, first: str = "") -> list[str]:
    text = _SAME if first and _text(observation) == first else in_short(observation)
    return [name, SYMPTOM[observation.verdict], text, f"{observation.seconds:.1f}"]
