"""Results of tests, as a table and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from tritonsmith.build.suites.results import SUITES, SuiteTest, TestWord, counts_text
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
            count = counts_text(mine)
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
            suite: {word: counts_text(test for test in tests if test.suite == suite)[word] for word in _WORDS}
            for suite in SUITES
            if suite in selection.suites
        },
        "left_out": [{"what": what, "why": why} for what, why in selection.left_out],
        "tests": [test.as_json() for test in tests],
    }


# All results in one JUnit file, for CI.

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


def junit_xml(tests: Sequence[SuiteTest]) -> str:
    """Return the text of the file: one suite for each of ours; a known failure counts as skipped."""
    root = ET.Element("testsuites")
    for suite in SUITES:
        if mine := [test for test in tests if test.suite == suite]:
            _suite(root, suite, mine)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, suite: str, tests: Sequence[SuiteTest]) -> None:
    count = counts_text(tests)
    suite_element = ET.SubElement(
        root,
        "testsuite",
        name=suite,
        tests=str(len(tests)),
        failures=str(count["failed"]),
        skipped=str(count["skipped"] + count["known"]),
        time=f"{sum(test.seconds for test in tests):.3f}",
    )
    for test in tests:
        case = ET.SubElement(
            suite_element, "testcase", classname=suite, name=_clean(test.name), time=f"{test.seconds:.3f}"
        )
        if test.word == "failed":
            ET.SubElement(case, "failure", message=_clean(test.why)).text = _clean(test.text)
        elif test.word != "passed":
            known = "known failure: " if test.word == "known" else ""
            ET.SubElement(case, "skipped", message=_clean(known + test.why))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
