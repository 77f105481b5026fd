"""The search of a triage: test a subject under each variant, conclude from the observations, and report.

A conclusion names one cause, or says that it is not sure.
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
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage.variant import Meaning, TriageChange, TriageVariant

SYMPTOM = {  # in tables, triage.json and configs/triage.toml
    Verdict.BAD: "shows",
    Verdict.GOOD: "gone",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}


def not_tested(error: SmithError) -> Observation:
    """Return a skip with the reason why something was not tested, and what to do."""
    return Observation(Verdict.SKIP, why="; ".join((error.line, *error.hints)))


class Subject(Protocol):
    """A kernel or a command."""

    @property
    def triton(self) -> str:
        """The version of its Triton; empty if it is unknown."""

    @property
    def backends(self) -> frozenset[str]:
        """`cuda`, `hip`, or both if that is unknown."""

    @property
    def is_command(self) -> bool:
        """Report whether it is a command, which runs; a kernel is only compiled."""

    @property
    def has_check(self) -> bool:
        """Report whether the symptom is a wrong value of a script."""

    @property
    def key(self) -> object:
        """Everything that a test depends on, except the change; it is digested for the journal."""

    def baseline(self, name: str = BASELINE) -> Observation:
        """Test the subject unchanged, with caches of its own; BAD or GOOD.

        The test of the name `BASELINE` decides what the symptom is.
        """

    def resume(self, known: Iterable[Observation]) -> None:
        """Take up the observations of a run that was stopped; the baseline was tested once more before."""

    def test(self, change: TriageChange) -> Observation:
        """Test the subject with a change."""

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """Return FILE:LINE of the operations that a change is about, in what the baseline compiled."""

    def bisect(self, other: str, /) -> str:
        """Return the command that bisects between this Triton and another release; empty if there is none."""

    @property
    def kind(self) -> str:
        """The kind of the symptom: `failure`, `hang`, `limit` or `slow`; known after the baseline."""


# Only the test of the name BASELINE decides what the symptom is; those of this name are compared with it.
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
    """A variant, and the observation under it."""

    variant: TriageVariant
    observation: Observation

    @property
    def verdict(self) -> Verdict:
        """The verdict: whether the symptom remains with the change."""
        return self.observation.verdict


@dataclass(frozen=True)
class TriageResult:
    """The result of a triage.

    Attributes:
        conclusion: the kind of result.
        text: the conclusion in one line, with its cause.
        reasons: sentences that it rests on.
        next: sentences or commands for the next step.
        baseline: the observation with nothing changed.
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
        """Report whether the conclusion is sure: nothing found, or one cause."""
        return self.conclusion in (Conclusion.NOTHING, Conclusion.DECIDED)


def run(subject: Subject, journal: Journal, tell: Callable[[str, Observation], None]) -> TriageResult:
    """Test the subject unchanged, then under each variant that fits, and conclude.

    Args:
        subject: a kernel or a command.
        journal: of this triage; a run that was stopped goes on from it.
        tell: gets each new observation, as it comes.
    """
    # Times of compiles to the same code: each of them says how much a time varies by itself.
    subject.resume(itertools.chain.from_iterable(journal.observations.values()))
    return experiment.run(search(subject), partial(observed, subject), journal, tell)


def observed(subject: Subject, rows: Sequence[TriageVariant]) -> Iterator[Observation]:
    """Test the subject under variants, one after the other."""
    for row in rows:
        yield subject.baseline(row.name) if row.meaning.role == "baseline" else subject.test(row.change)


def search(subject: Subject) -> Search[TriageVariant, TriageResult]:
    """Ask for the baseline, then for each variant that fits, one at a time."""
    (first,) = yield [UNCHANGED]
    if first.verdict is Verdict.SKIP:
        return (yield from _untested(subject, first))
    # Compilers are deterministic; programs with races and measured times are not.
    unsteady = subject.is_command or (subject.kind == "slow" and first.verdict is Verdict.BAD)
    again = (yield [UNCHANGED_AGAIN] * (variants.baselines() - 1)) if unsteady else []
    # A race may fail every time, and in another way each time: so the failures have to agree, too.
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
        # A narrower variant explains a wider one: it is tried only where the symptom is gone under that.
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
    """Report why the subject cannot be tested, and what the interpreter says of a check without a GPU."""
    text = f"not decided: it cannot be tested: {baseline.why}"
    tried: list[Tried] = []
    for row in variants.every() if subject.has_check else ():
        # A check belongs to a script, so the subject is a command.
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
    """Conclude from the observations: one cause if all variants without the symptom are of one family."""
    gone = [row for row in tried if row.verdict is Verdict.GOOD and row.variant.meaning.role != "witness"]
    names = {row.variant.name for row in gone}
    causes = [row for row in gone if row.variant.meaning.role == "cause"]
    # Of a variant and those below it, the narrowest says most.
    narrow = [
        row for row in causes if not any(other.variant.meaning.after == row.variant.name for other in causes)
    ]
    sides = [row for row in gone if row.variant.meaning.role == "side"]
    stays = [
        row.variant.meaning.stays for row in tried if row.variant.meaning.stays and row.verdict is Verdict.BAD
    ]
    heard = [row for row in tried if row.variant.meaning.role == "witness" and row.verdict is Verdict.OTHER]
    families = list(dict.fromkeys(row.variant.meaning.family for row in narrow))
    # A race is gone with the timing, and so under many a change: what a witness reports is a cause, too.
    if families:
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
    result = partial(TriageResult, baseline=baseline, tried=tuple(tried))
    because, then = (*reasons, *notes), tuple(hints)
    # The same machine code cannot be the cause of another result: so the symptom comes and goes by itself.
    same = [row for row in narrow if baseline.code and row.observation.code == baseline.code]
    if same:
        why = f"{same[0].variant.name}: the machine code is the same as with nothing changed"
        return result(Conclusion.FLAKY, str(Conclusion.FLAKY), (why, *notes), ())
    if baseline.cause:
        return result(Conclusion.DECIDED, baseline.cause, because, then)
    # The interpreter, say, compiles nothing: where the symptom stays with it, the compiler is not needed for
    # it. If a change of the compiler removes it all the same, the two contradict each other.
    if stays and not causes:
        return result(Conclusion.DECIDED, f"decided: {stays[0]}", tuple(notes), then)
    several = [*stays[:1], *families]
    if len(several) == 1:
        places = dict.fromkeys(
            place
            for row in narrow
            if row.variant.meaning.line
            for place in subject.lines(row.variant.meaning.line)
        )
        details = [*places, *(swap for row in narrow if (swap := _swap(row)))]
        return result(Conclusion.DECIDED, ", ".join((families[0], *details)), because, then)
    if several:
        return result(Conclusion.SEVERAL, f"{Conclusion.SEVERAL}: {'; '.join(several)}", because, then)
    # Without a cause, these names are sides: another release, say, which changes nothing in this one.
    lead = f"{Conclusion.NONE} in this Triton" if names else str(Conclusion.NONE)
    return result(Conclusion.NONE, lead, because, then)


def _reason(tried: Tried) -> str:
    """Explain the conclusion from a symptom that is gone."""
    return ": ".join(filter(None, (tried.variant.name, _swap(tried), tried.variant.meaning.gone)))


def _swap(tried: Tried) -> str:
    """Name both ptxas of an exchange; empty where Triton's own was used."""
    # Triton's own comes first in `swapped`.
    return " instead of ".join(reversed(tried.observation.swapped))


def _next(subject: Subject, tried: Tried) -> str:
    """Return the next thing to do, with a command where the row has a place for one."""
    variant = tried.variant
    other = variant.change.version(subject.triton) if variant.change.release else ""
    text = variant.meaning.next.replace("{ptxas}", (tried.observation.swapped or ("",))[-1])
    if "{bisect}" not in text:
        return text
    command = subject.bisect(other)
    return text.replace("{bisect}", command) if command else ""


_LONGEST = 72  # characters of an observation
_SAME = "the same"  # as in the first row


def table(result: TriageResult) -> Grid:
    """Return the table of changes and observations."""
    columns = ["changed", "symptom", "seen", "s"]
    return tables.plain("one change at a time", columns, rows(result), right=["s"])


def rows(result: TriageResult) -> list[list[str]]:
    """Return a row for each test; a message that repeats the first row's is shortened."""
    # Most variants leave a failure as it is, and a table of one long message, twenty times, hides the others.
    first = _text(result.baseline)
    shown = [_row("nothing changed", result.baseline)]
    shown += [_row(row.variant.name, row.observation, first) for row in result.tried]
    return shown


def lines(result: TriageResult) -> Iterator[str]:
    """Yield the conclusion, its reasons, and the next steps."""
    yield f"verdict: {result.text}"
    yield from (f"  {line}" for line in result.reasons)
    yield from (f"  next: {line}" for line in result.next)


def as_json(result: TriageResult, about: dict[str, Any]) -> dict[str, Any]:
    """Return the whole result as JSON data.

    Args:
        result: the result.
        about: the subject and its Triton.
    """
    return {
        "schema": 1,
        **about,
        "answer": result.conclusion.name.lower(),
        "decided": result.decided,
        "verdict": result.text,
        "reasons": list(result.reasons),
        "next": list(result.next),
        "baseline": _observation_as_json(result.baseline),
        "tried": [
            {
                "variant": row.variant.name,
                "family": row.variant.meaning.family,
                **_observation_as_json(row.observation),
            }
            for row in result.tried
        ],
    }


def _observation_as_json(observation: Observation) -> dict[str, Any]:
    return {
        "symptom": SYMPTOM[observation.verdict],
        "figures": observation.figures,
        "why": observation.why,
        "notes": list(observation.notes),
        "seconds": round(observation.seconds, 3),
    }


def in_short(observation: Observation) -> str:
    """Return an observation in one line; triage.json and the logs have all of it."""
    return tables.clipped(_text(observation), _LONGEST)


def _text(observation: Observation) -> str:
    """Return the whole observation in one line."""
    return " ".join(observation.evidence.split())


def _row(name: str, observation: Observation, first: str = "") -> list[str]:
    text = _SAME if first and _text(observation) == first else in_short(observation)
    return [name, SYMPTOM[observation.verdict], text, f"{observation.seconds:.1f}"]
