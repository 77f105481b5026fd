"""`--when "spills>0"`, `"registers>+10%"`, `"ptx contains ld.global.b8"`: limits of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab import terms
from tritonsmith.lab.bisect.predicate.kernel_compiles import CompilesOf, UntestableError
from tritonsmith.lab.bisect.predicate.protocol import Outcomes, one_by_one
from tritonsmith.lab.compare import kept_metrics, matching
from tritonsmith.lab.compare.diff import Compared
from tritonsmith.lab.compare.matching import Paired
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.terms import Term, TermReading


@dataclass(frozen=True)
class LimitPredicate:
    """Bad where any compile breaks any term.

    Attributes:
        compiles: of the kernels.
        terms: what makes a Triton bad.
        good: the Triton that signed terms are about; it may have to be built.
    """

    compiles: CompilesOf
    terms: tuple[Term, ...]
    good: Callable[[], Triton]

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile, measure, and look at each term."""
        try:
            mine = self.compiles.of(triton)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)
        signed = any(term.change for term in self.terms)
        base = self.compiles.of(self.good()) if signed else mine
        return judge(self.terms, base, mine)


def judge(limits: Sequence[Term], base: Sequence[Manifest], mine: Sequence[Manifest]) -> Observation:
    """Judge compiles by terms.

    Args:
        limits: the terms that make them bad.
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
    readings = [[terms.look(term, pair) for pair in compared] for term in limits]
    applied = [[reading for reading in row if reading.applies] for row in readings]
    return _outcome(applied, limits, seconds)


def _missing(paired: Paired) -> Iterator[str]:
    """Why there is nothing to measure."""
    for pair in paired.pairs:
        for member in (pair.b, pair.a):
            if member.point.status != "ok":
                point, by = member.point, member.manifest.triton
                yield f"{pair.kernel} {point.target} by {by} does not compile: {point.status}: {point.gist}"
    yield from (f"{one.kernel} {one.member.point.id}: {one.why}" for one in paired.unpaired)


def _outcome(
    readings: Sequence[Sequence[TermReading]], limits: Sequence[Term], seconds: float
) -> Observation:
    """Return bad if one reading is broken, even where others are unknown; good if none is."""
    shown = [next((reading for reading in row if reading.broken), row[0]) for row in readings if row]
    figures = ", ".join(dict.fromkeys(reading.figures for reading in shown if reading.figures))
    if any(reading.broken for row in readings for reading in row):
        return Observation(Verdict.BAD, figures, seconds=seconds)
    unknown = [
        f"{term.metric}: {terms.UNKNOWN}"
        for term, row in zip(limits, readings, strict=True)
        if any(reading.unknown for reading in row)
    ]
    unknown += [
        f"no compile has the metric of {term.text!r}"
        for term, row in zip(limits, readings, strict=True)
        if not row
    ]
    verdict = Verdict.SKIP if unknown else Verdict.GOOD
    return Observation(verdict, figures, unknown[0] if unknown else "", seconds)
