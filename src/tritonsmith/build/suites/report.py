"""Results of tests, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tritonsmith.build.suites.outcome import SUITES, SuiteTest, TestWord, counts
from tritonsmith.build.suites.selection import SuiteSelection
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid

_SHOWN = 20  # failures, by name
_WORDS: tuple[TestWord, ...] = ("passed", "failed", "known", "skipped")


def blocks(tests: Sequence[SuiteTest]) -> Iterator[Grid]:
    """Yield a table of the suites, and one of the failed tests."""
    rows = []
    for suite in SUITES:
        if mine := [test for test in tests if test.suite == suite]:
            count = counts(mine)
            seconds = f"{sum(test.seconds for test in mine):.1f}"
            rows.append([suite, str(len(mine)), *(str(count[word]) for word in _WORDS), seconds])
    heads = ["suite", "tests", *_WORDS, "seconds"]
    styles = ["red" if row[3] != "0" else "" for row in rows]
    yield tables.plain("tests", heads, rows, right=heads[1:], styles=styles)
    known = dict.fromkeys((test.suite, test.why) for test in tests if test.word == "known")
    if known:
        counted = [
            [suite, str(sum((test.suite, test.why) == (suite, why) for test in tests)), why]
            for suite, why in known
        ]
        yield tables.plain("known failures", ["suite", "tests", "why"], counted, right=["tests"])
    if bad := failed(tests):
        shown = [[test.name, test.suite, test.why] for test in bad[:_SHOWN]]
        more = f", the first {_SHOWN}" if len(bad) > _SHOWN else ""
        yield tables.plain(f"failed{more}", ["test", "suite", "why"], shown)


def screen(tests: Sequence[SuiteTest]) -> Iterator[Grid | str]:
    """Yield everything for the screen: the tables, then the output of failed tests, which may be long."""
    yield from blocks(tests)
    yield from output_of(tests)


def failed(tests: Iterable[SuiteTest]) -> list[SuiteTest]:
    """Return the failed tests, without known failures."""
    return [test for test in tests if test.word == "failed"]


def output_of(tests: Iterable[SuiteTest]) -> list[str]:
    """Return the output of the failed tests."""
    return [line for test in failed(tests)[:_SHOWN] for line in (f"{test.name}:", *test.text.splitlines())]


def as_json(tests: Sequence[SuiteTest], selection: SuiteSelection) -> dict[str, Any]:
    """Return the results as JSON data."""
    return {
        "schema": 1,
        "counts": {
            suite: {word: counts(test for test in tests if test.suite == suite)[word] for word in _WORDS}
            for suite in SUITES
            if suite in selection.suites
        },
        "left_out": [{"what": what, "why": why} for what, why in selection.left_out],
        "tests": [test.as_json() for test in tests],
    }
