"""The language of `--when` and `--fail-on`: `spills>0`, `registers>+5%`, `ptx contains ld.global.b8`.

A limit is METRIC COMPARISON VALUE. A sign before the value means the change from A to B (`>+5%`, `>=+1024`,
`<-10`); without a sign it is B's own value. A percentage needs a sign. A text term is `STAGE contains TEXT`,
or `STAGE not contains TEXT`, about B alone. Commas separate terms; a text with a comma has a flag of its own.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tritonsmith.compiler.resources.measure import LAUNCH, WORDS, Value
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.inspect import show as show_stage
from tritonsmith.lab import metrics
from tritonsmith.lab.batch import kept_files
from tritonsmith.lab.compare.matching import TEXTS, Compared

# ASCII, as `\d` matches the digits of every script otherwise.
_LIMIT = re.compile(
    r"(?P<metric>[^<>=!]+?)\s*(?P<comparison><=|>=|==|!=|<|>)\s*(?P<sign>[+-]?)(?P<number>\d+(\.\d+)?)\s*(?P<percent>%?)",
    re.ASCII,
)
# `not contains` and `does not contain` are the same; the text may have several lines.
_CONTAINS = re.compile(r"(?P<stage>\w+)\s+(?P<lacks>(does\s+)?not\s+)?contains?\s+(?P<text>.+)", re.DOTALL)
_DIGITS = 6  # of a value that is compared: more of them are the rounding of floats
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
    "or a text: 'ptx contains ld.global.b8', 'ttgir not contains convert_layout'",
)


@dataclass(frozen=True)
class Limit:
    """A limit of a number.

    Attributes:
        text: without blanks, which decide nothing.
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
        """Report whether the values break the limit; the value of A counts only for a change."""
        limited = metrics.growth(a, b) if self.percent else b - a if self.change else b
        # 20 -> 15 of 48 warps are -24.999...%, and a quarter.
        return _COMPARISONS[self.comparison](round(limited, _DIGITS), self.value)


@dataclass(frozen=True)
class TextTerm:
    """A text that a stage contains, or lacks.

    Attributes:
        text: as it was written.
        stage: whose text is searched.
        needle: the text to search for.
        lacks: broken where the stage does not contain it.
    """

    text: str
    stage: str
    needle: str
    lacks: bool

    @property
    def metric(self) -> str:
        """The stage, which stands for the metric of a limit in tables and JSON."""
        return self.stage

    @property
    def change(self) -> bool:
        """False, as a text term is about B alone."""
        return False


Term = Limit | TextTerm


@dataclass(frozen=True)
class TermReading:
    """A term applied to a pair that compiles on both sides.

    Attributes:
        applies: the pair has the term's metric or stage.
        broken: the values break the term.
        unknown: the metric exists, and its value cannot be determined; the term is then not broken.
        a: value of the first side; None for a text.
        b: value of the second.
        figures: the second side in words: `spills 8`, `ptx contains ld.global.b8`.
    """

    applies: bool
    broken: bool = False
    unknown: bool = False
    a: Value = None
    b: Value = None
    figures: str = ""


def parse(texts: Iterable[str], flag: str) -> tuple[Term, ...]:
    """Parse the values of a flag; a term that comes twice counts once.

    Args:
        texts: of `--when`, which is repeatable, or the one of `--fail-on`.
        flag: for errors.

    Raises:
        UsageError: a term makes no sense.
    """
    return tuple(dict.fromkeys(term for text in texts for term in _parse(text.strip(), flag)))


def needs_code(term: Term) -> bool:
    """Report whether a term is about the disassembly of a binary, or about what is counted in it."""
    if isinstance(term, TextTerm):
        return term.stage in show_stage.BINARY.values()
    return metrics.needs_code(term.metric)


def is_timed(term: Term) -> bool:
    """Report whether a term is about the time that something takes, which depends on what else runs."""
    return isinstance(term, Limit) and metrics.is_timed(term.metric)


def look(term: Term, pair: Compared) -> TermReading:
    """Apply a term to a pair that compiles on both sides."""
    if isinstance(term, TextTerm):
        return _search(term, pair)
    first, second = pair.pair.a.point.backend, pair.pair.b.point.backend
    in_a, a = metrics.value_of(term.metric, pair.a, first)
    in_b, b = metrics.value_of(term.metric, pair.b, second)
    if not in_b:
        return TermReading(applies=False)
    if term.change:
        # `registers` of two vendors are two quantities: their difference says nothing.
        same = metrics.keys_of(term.metric, first) == metrics.keys_of(term.metric, second)
        if not in_a or not same:
            return TermReading(applies=False)
    needed = (a, b) if term.change else (b,)
    numbers = [value for value in needed if isinstance(value, (int, float))]
    # A value that exists and is not known neither keeps nor breaks the term: the caller says what that means.
    if len(numbers) < len(needed):
        return TermReading(any(value is not None for value in needed), unknown=True, a=a, b=b)
    figures = f"{term.metric} {numbers[-1]:g}"
    # Without a sign, `numbers` has B's value alone, and stands for A's, which `broken` then does not look at.
    return TermReading(applies=True, broken=term.broken(numbers[0], numbers[-1]), a=a, b=b, figures=figures)


def _search(term: TextTerm, pair: Compared) -> TermReading:
    point = pair.pair.b.point
    if term.stage not in point.stages:
        return TermReading(applies=False)
    there = term.needle in kept_files.stage_text(pair.pair.b.manifest, point, term.stage)
    has = "contains" if there else "does not contain"
    # A term is a symptom, like `spills>0`: `ttgir not contains X` is broken where X is gone.
    return TermReading(applies=True, broken=there != term.lacks, figures=f"{term.stage} {has} {term.needle}")


def _parse(text: str, flag: str) -> tuple[Term, ...]:
    # Before the commas: the text that is searched for may have some.
    if match := _CONTAINS.fullmatch(text):
        if match["stage"] not in TEXTS:
            hints = did_you_mean(match["stage"], TEXTS)
            raise UsageError(f"{flag}: unknown stage {match['stage']!r}", hints=hints)
        # Quotes around the text mark it, and are no part of it.
        return (TextTerm(text, match["stage"], match["text"].strip("'\""), bool(match["lacks"])),)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1:
        return tuple(term for part in parts for term in _parse(part, flag))
    return (_limit(text, flag),)


def _limit(text: str, flag: str) -> Limit:
    match = _LIMIT.fullmatch(text)
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
            hints=[f"from A to B: {plus}", _EXAMPLES[1]],
        )
    value = float(f"{sign}{match['number']}")
    # One spelling: `spills > 0` has to find the stopped run of `spills>0`.
    text = f"{name}{match['comparison']}{sign}{match['number']}{match['percent']}"
    return Limit(text, name, match["comparison"], value, bool(sign), percent)


def _unknown(name: str, flag: str) -> UsageError:
    if name in WORDS:  # columns with text, such as what limits the occupancy
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
