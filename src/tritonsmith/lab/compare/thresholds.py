"""`--fail-on "registers>+5%,spills>0"`: when a comparison is a failure.

term = METRIC COMPARISON VALUE, and terms are separated by commas. A sign before the value means the change
from A to B (`>+5%`, `>=+1024`, `<-10`); without a sign it is B's own value. A percentage needs a sign.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tritonsmith.compiler.resources.table import LAUNCH, WORDS, Value
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.lab.compare import metrics
from tritonsmith.lab.compare.diff import Compared, Comparison

_TERM = re.compile(
    r"(?P<metric>[^<>=!]+?)\s*(?P<comparison><=|>=|==|!=|<|>)\s*(?P<sign>[+-]?)(?P<number>\d+(\.\d+)?)\s*(?P<percent>%?)",
    re.ASCII,
)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
UNKNOWN = "the value is unknown"
_EXAMPLES = (
    "write METRIC, a comparison and a value: spills>0, registers>+5%, code>=+1024",
    "a signed value limits the change from A to B, an unsigned value limits B",
)


@dataclass(frozen=True)
class Limit:
    """One term.

    Attributes:
        text: as it was written.
        metric: one of `metrics.known_names`.
        comparison: `>`, `>=`, `<`, `<=`, `==` or `!=`.
        value: with its sign; in percent where `percent` says so.
        change: compared with the change from A to B, not with B's value.
        percent: of A's value.
    """

    text: str
    metric: str
    comparison: str
    value: float
    change: bool
    percent: bool

    def broken(self, a: float, b: float) -> bool:
        """Whether these values of A and B are what the term forbids; A's does not matter without `change`."""
        seen = metrics.growth(a, b) if self.percent else b - a if self.change else b
        return _COMPARISONS[self.comparison](seen, self.value)


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


def parse(text: str, flag: str = "--fail-on") -> tuple[Limit, ...]:
    """The terms of `--fail-on`, or of another flag; one that comes twice counts once.

    Raises:
        UsageError: one of them makes no sense.
    """
    return tuple(dict.fromkeys(_term(part.strip(), flag) for part in text.split(",")))


def check(limits: Sequence[Limit], comparison: Comparison) -> tuple[Violation, ...]:
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
        answers = [(one, *look(limit, one)) for one in measured]
        if not any(applies for _, applies, _ in answers):
            raise _nothing_to_check(limit, comparison)
        found += [violation for _, _, violation in answers if violation]
    order = {(one.pair.kernel, one.pair.point): place for place, one in enumerate(comparison.compared)}
    return tuple(sorted(found, key=lambda one: order[one.kernel, one.point]))


def _term(text: str, flag: str) -> Limit:
    match = _TERM.fullmatch(text)
    if match is None:
        more = ["or wrong: a pass changes the result"] if flag == "--when" else []
        raise UsageError(f"{flag} cannot be {text!r}", hints=[*_EXAMPLES, *more])
    name, sign, percent = match["metric"].strip(), match["sign"], bool(match["percent"])
    if name not in metrics.known_names():
        raise _unknown(name, flag)
    if percent and not sign:
        plus = f"{name}{match['comparison']}+{match['number']}%"
        raise UsageError(
            f"{flag} cannot be {text!r}: a percentage is a change and needs a sign",
            hints=[f"from A to B: {plus}", *_EXAMPLES[1:]],
        )
    value = float(f"{sign}{match['number']}")
    return Limit(text, name, match["comparison"], value, bool(sign), percent)


def _unknown(name: str, flag: str) -> UsageError:
    if name in WORDS:
        hint = (
            "a kernel that A can launch and B cannot is always a failure"
            if name == LAUNCH
            else "occupancy<-10%"
        )
        return UsageError(f"{flag} compares numbers, and {name} is not a number", hints=[hint])
    hint, *_ = did_you_mean(name, metrics.known_names())
    short = f"short names: {', '.join(metrics.short_names())}"
    more = "columns of --json and instruction classes are names too"
    near = [hint] if hint.startswith("did you mean") else []
    return UsageError(f"{flag} has no metric {name!r}", hints=[*near, short, more])


def look(limit: Limit, one: Compared) -> tuple[bool, Violation | None]:
    """Whether a term applies to a pair that compiles on both sides, and the violation, if any."""
    first, second = one.pair.a.point.backend, one.pair.b.point.backend
    here, a = metrics.value_of(limit.metric, one.a, first)
    there, b = metrics.value_of(limit.metric, one.b, second)
    if not there:
        return False, None
    if limit.change:
        same = metrics.keys_of(limit.metric, first) == metrics.keys_of(limit.metric, second)
        if not here or not same:
            return False, None
    needed = (a, b) if limit.change else (b,)
    numbers = [value for value in needed if isinstance(value, (int, float))]
    if len(numbers) < len(needed):
        return any(value is not None for value in needed), _violation(limit, one, a, b, UNKNOWN)
    if limit.broken(numbers[0], numbers[-1]):
        return True, _violation(limit, one, a, b, "")
    return True, None


def _violation(limit: Limit, one: Compared, a: Value, b: Value, why: str) -> Violation:
    return Violation(one.pair.kernel, one.pair.point, limit.metric, a, b, limit.text, why)


def _lost(one: Compared) -> Violation:
    point = one.pair.b.point
    why = f"compiles in A but not in B: {': '.join(filter(None, (point.status, point.gist)))}"
    if one.stuck:
        why = f"A can be launched, but B cannot: {one.stuck.removeprefix('no: ')}"
    return Violation(one.pair.kernel, one.pair.point, "", None, None, "", why)


def _nothing_to_check(limit: Limit, comparison: Comparison) -> FactError:
    vendors = sorted({backend for one in comparison.compared for backend in one.backends})
    crossed = limit.change and all(not one.pair.one_vendor for one in comparison.compared)
    if crossed:
        why = f"A and B are for GPUs of different vendors, whose {limit.metric} are not comparable"
        hints: Iterable[str] = ["use an unsigned value to limit B: registers>128"]
    else:
        why = f"no compile for {' or '.join(vendors)} has a value for it"
        hints = ["--json shows the available metrics"]
    return FactError(f"--fail-on {limit.text}: no pair has {limit.metric}", why=why, hints=hints)
