"""All results in one JUnit file, for CI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from tritonsmith.build.suites.outcome import SUITES, SuiteTest, counts

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


def render(tests: Sequence[SuiteTest]) -> str:
    """Return the text of the file: one suite for each of ours; a known failure counts as skipped."""
    root = ET.Element("testsuites")
    for suite in SUITES:
        if mine := [test for test in tests if test.suite == suite]:
            _suite(root, suite, mine)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, suite: str, tests: Sequence[SuiteTest]) -> None:
    count = counts(tests)
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
