"""`--fail-on "registers>+5%,spills>0"`: which pairs of a comparison are failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.resources.table import Value
from tritonsmith.core.errors import FactError
from tritonsmith.lab import terms
from tritonsmith.lab.compare.diff import Compared, Comparison
from tritonsmith.lab.terms import Term, TermReading


@dataclass(frozen=True)
class Violation:
    """A violation of a limit.

    Attributes:
        kernel: name of the function.
        point: name of the pair.
        metric: as it was written; empty where the compile itself failed.
        a: value of the first side.
        b: value of the second.
        limit: the term; empty where the compile itself failed.
        why: in words.
    """

    kernel: str
    point: str
    metric: str
    a: Value
    b: Value
    limit: str
    why: str


def check(limits: Sequence[Term], comparison: Comparison) -> tuple[Violation, ...]:
    """All violations of a comparison, in its order.

    Args:
        limits: the terms; compiles that succeed in A only are violations without any.
        comparison: what is checked.

    Raises:
        FactError: nothing compiles on both sides, or no pair has the metric of a term: so nothing is checked.
    """
    found = [_lost(one) for one in comparison.compared if one.lost or one.stuck]
    measured = [one for one in comparison.compared if one.measured]
    if not measured and not found:
        raise FactError(
            "nothing compiles on both sides", hints=["the compiler's messages are above and in --json"]
        )
    for limit in limits if measured else ():
        readings = [(pair, terms.look(limit, pair)) for pair in measured]
        if not any(reading.applies for _, reading in readings):
            raise _nothing_to_check(limit, comparison)
        found += [
            _violation(limit, pair, reading)
            for pair, reading in readings
            if reading.broken or reading.unknown
        ]
    order = {(one.pair.kernel, one.pair.point): place for place, one in enumerate(comparison.compared)}
    return tuple(sorted(found, key=lambda one: order[one.kernel, one.point]))


def _violation(term: Term, pair: Compared, reading: TermReading) -> Violation:
    why = terms.UNKNOWN if reading.unknown else "" if reading.b is not None else reading.figures
    kernel, point = pair.pair.kernel, pair.pair.point
    return Violation(kernel, point, term.metric, reading.a, reading.b, term.text, why)


def _lost(one: Compared) -> Violation:
    point = one.pair.b.point
    why = f"compiles in A but not in B: {': '.join(filter(None, (point.status, point.gist)))}"
    if one.stuck:
        why = f"A can be launched, but B cannot: {one.stuck.removeprefix('no: ')}"
    return Violation(one.pair.kernel, one.pair.point, "", None, None, "", why)


def _nothing_to_check(limit: Term, comparison: Comparison) -> FactError:
    vendors = sorted({backend for one in comparison.compared for backend in one.backends})
    crossed = limit.change and all(not one.pair.one_vendor for one in comparison.compared)
    if crossed:
        why = f"A and B are for GPUs of different vendors, whose {limit.metric} are not comparable"
        hints: Iterable[str] = ["use an unsigned value to limit B: registers>128"]
    else:
        why = f"no compile for {' or '.join(vendors)} has a value for it"
        hints = ["--json shows the available metrics"]
    return FactError(f"--fail-on {limit.text}: no pair has {limit.metric}", why=why, hints=hints)
