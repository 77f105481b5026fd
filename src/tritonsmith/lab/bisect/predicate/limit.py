"""`--when "spills>0"`, `"registers>+10%"`, `"ptx contains ld.global.b8"`: limits of compiled kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.spec import CompilerSpec
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.inspect.show import stage as show_stage
from tritonsmith.lab.bisect.predicate.kernel_compiles import CompilesOf, UntestableError
from tritonsmith.lab.bisect.predicate.protocol import Outcomes, one_by_one
from tritonsmith.lab.compare import kept_metrics, matching, metrics, thresholds
from tritonsmith.lab.compare.diff import TEXTS, Compared
from tritonsmith.lab.compare.matching import Paired
from tritonsmith.lab.compare.thresholds import Limit
from tritonsmith.lab.model import Observation, Verdict

_CONTAINS = re.compile(r"(?P<stage>\w+)\s+(?P<lacks>(does\s+)?not\s+)?contains?\s+(?P<text>.+)", re.DOTALL)


@dataclass(frozen=True)
class TextTerm:
    """`ptx contains TEXT` or `ptx not contains TEXT`: what makes a Triton bad.

    Attributes:
        text: as it was written.
        stage: whose text is searched.
        needle: what for.
        lacks: bad where it is not there.
    """

    text: str
    stage: str
    needle: str
    lacks: bool


@dataclass(frozen=True)
class _Finding:
    """What one term says about one compile: bad or not, the value, and why there is no answer."""

    bad: bool
    figures: str
    why: str = ""


@dataclass(frozen=True)
class LimitPredicate:
    """Bad where any compile breaks any term.

    Attributes:
        compiles: of the kernels.
        terms: what makes a Triton bad.
        good: the Triton that signed terms are about; it may have to be built.
    """

    compiles: CompilesOf
    terms: tuple[Limit | TextTerm, ...]
    good: Callable[[], CompilerSpec]

    def outcomes(self, tritons: Sequence[CompilerSpec]) -> Outcomes:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: CompilerSpec) -> Observation:
        """Compile, measure, and look at each term."""
        try:
            mine = self.compiles.of(triton)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)
        signed = any(isinstance(term, Limit) and term.change for term in self.terms)
        base = self.compiles.of(self.good()) if signed else mine
        return judge(self.terms, base, mine)


def judge(
    terms: Sequence[Limit | TextTerm], base: Sequence[Manifest], mine: Sequence[Manifest]
) -> Observation:
    """What terms say of compiles.

    Args:
        terms: what makes them bad.
        base: compiles that signed terms are about; the same ones where there are none.
        mine: the compiles.
    """
    seconds = sum(point.seconds for manifest in mine for point in manifest.points)
    paired = matching.pair(base, mine)
    if why := next(_missing(paired), ""):
        return Observation(Verdict.SKIP, why=why, seconds=seconds)
    measured = {one.folder: kept_metrics.of(one).points for one in (*base, *mine)}
    compared = [
        Compared(
            pair,
            measured[pair.a.manifest.folder].get(pair.a.point.id, {}),
            measured[pair.b.manifest.folder].get(pair.b.point.id, {}),
        )
        for pair in paired.pairs
    ]
    return _outcome([list(_findings(term, compared)) for term in terms], terms, seconds)


def parse(texts: Iterable[str]) -> tuple[Limit | TextTerm, ...]:
    """The terms of all `--when`.

    Raises:
        UsageError: one of them makes no sense.
    """
    return tuple(dict.fromkeys(term for text in texts for term in _parse(text.strip())))


def _parse(text: str) -> tuple[Limit | TextTerm, ...]:
    match = _CONTAINS.fullmatch(text)
    if match is None:
        return thresholds.parse(text, "--when")
    if match["stage"] not in TEXTS:
        raise UsageError(
            f"--when: unknown stage {match['stage']!r}", hints=did_you_mean(match["stage"], TEXTS)
        )
    return (TextTerm(text, match["stage"], match["text"].strip("'\""), bool(match["lacks"])),)


def _missing(paired: Paired) -> Iterator[str]:
    """Why there is nothing to measure."""
    for pair in paired.pairs:
        for member in (pair.b, pair.a):
            if member.point.status != "ok":
                point, by = member.point, member.manifest.triton
                yield f"{pair.kernel} {point.target} by {by} does not compile: {point.status}: {point.gist}"
    yield from (f"{one.kernel} {one.member.point.id}: {one.why}" for one in paired.unpaired)


def _findings(term: Limit | TextTerm, compared: Iterable[Compared]) -> Iterator[_Finding]:
    """What a term says about every compile that it is about."""
    for one in compared:
        if isinstance(term, TextTerm):
            point = one.pair.b.point
            if term.stage in point.stages:
                there = term.needle in show_stage.text(one.pair.b.manifest, point, term.stage)
                has = "contains" if there else "does not contain"
                yield _Finding(there != term.lacks, f"{term.stage} {has} {term.needle}")
            continue
        applies, violation = thresholds.look(term, one)
        if applies:
            _, value = metrics.value_of(term.metric, one.b, one.backends[1])
            figures = f"{term.metric} {value:g}" if isinstance(value, (int, float)) else ""
            why = violation.why if violation else ""
            yield _Finding(violation is not None and not why, figures, why and f"{term.metric}: {why}")


def _outcome(
    found: Sequence[Sequence[_Finding]], terms: Sequence[Limit | TextTerm], seconds: float
) -> Observation:
    """Bad if one finding is, even where others are unknown; good if all are."""
    every = [finding for row in found for finding in row]
    shown = [next((one for one in row if one.bad), row[0]) for row in found if row]
    figures = ", ".join(dict.fromkeys(one.figures for one in shown if one.figures))
    if any(one.bad for one in every):
        return Observation(Verdict.BAD, figures, seconds=seconds)
    unknown = [one.why for one in every if one.why]
    unknown += [
        f"no compile has the metric of {term.text!r}"
        for term, row in zip(terms, found, strict=True)
        if not row
    ]
    verdict = Verdict.SKIP if unknown else Verdict.GOOD
    return Observation(verdict, figures, unknown[0] if unknown else "", seconds)
