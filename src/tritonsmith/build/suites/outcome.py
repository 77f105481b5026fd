"""Results of tests, independent of the program that ran them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from tritonsmith.build.suites.lit import FAILED, PASSED, LitResult
from tritonsmith.build.suites.python_tests import PytestResult
from tritonsmith.core import configs
from tritonsmith.core.versions import version_key

SuiteName = Literal["lit", "cpp", "gpu-less", "interpreter"]
SUITES: tuple[SuiteName, ...] = ("lit", "cpp", "gpu-less", "interpreter")
CONFIG = "test-suites"

TestWord = Literal["passed", "failed", "skipped", "known"]


@dataclass(frozen=True)
class SuiteTest:
    """One test and its result.

    Attributes:
        suite: its suite.
        name: name of the test, with its file.
        word: the result; `known` for a failure that this version of Triton is known to have.
        seconds: duration.
        why: one line: the failure, the reason for a skip, or why a failure is known.
        text: its output.
    """

    suite: SuiteName
    name: str
    word: TestWord
    seconds: float = 0.0
    why: str = ""
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return dict(vars(self))


def of_lit(result: LitResult) -> SuiteTest:
    """Convert the result of a lit test."""
    name = result.name.partition(" :: ")[2] or result.name
    failed = result.code in FAILED
    word: TestWord = "failed" if failed else "passed" if result.code in PASSED else "skipped"
    why = result.code if word != "passed" else ""
    return SuiteTest("lit", name, word, result.seconds, why, result.output if failed else "")


def of_pytest(suite: SuiteName, result: PytestResult) -> SuiteTest:
    """Convert the result of a pytest test."""
    name = "::".join(filter(None, (result.file, result.name)))
    word: TestWord = "failed" if result.failed else "skipped" if result.word == "skipped" else "passed"
    why = result.why.partition("\n")[0]
    return SuiteTest(suite, name, word, result.seconds, why, result.text if result.failed else "")


def without_known(tests: Iterable[SuiteTest], version: str) -> tuple[SuiteTest, ...]:
    """Mark failures that a version is known to have (`configs/test-suites.toml`)."""
    rows = [row for row in configs.load(CONFIG)["known"] if fits(row, version)]
    return tuple(_known(test, rows) for test in tests)


def fits(row: Mapping[str, Any], version: str) -> bool:
    """Report whether a row applies to this version of Triton; its `since` and `until` are inclusive."""
    mine = version_key(version)[:2]
    return version_key(row.get("since", "0")) <= mine <= version_key(row.get("until", "9999"))


def _known(test: SuiteTest, rows: Sequence[dict[str, str]]) -> SuiteTest:
    if test.word != "failed":
        return test
    for row in rows:
        if row["suite"] == test.suite and fnmatchcase(test.name, row["test"]) and row["says"] in test.text:
            return replace(test, word="known", why=row["why"])
    return test


def counts(tests: Iterable[SuiteTest]) -> Counter[TestWord]:
    """Count the tests by their result."""
    return Counter(test.word for test in tests)
