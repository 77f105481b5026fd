"""What lit, GoogleTest and pytest leave, read from what they really write."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tritonsmith.build.suites import command, results
from tritonsmith.build.suites.command import junit_xml
from tritonsmith.build.suites.results import SuiteTest
from tritonsmith.core import process
from tritonsmith.core.errors import FactError

pytestmark = pytest.mark.unit

PYTHON = """
import pytest

def test_good(): pass
class TestGroup:
    @pytest.mark.parametrize("n", [1, 2])
    def test_some(self, n): assert n == 1, "it is two"
def test_left(): pytest.skip("no GPU here")
@pytest.mark.xfail
def test_expected(): raise ValueError
@pytest.fixture
def broken(): raise KeyError("x")
def test_error(broken): pass
"""


def test_lit(tmp_path: Path) -> None:
    report = tmp_path / "tests.json"
    assert results.read_lit(report) == ()
    rows = [
        {"code": "FAIL", "elapsed": 0.5, "name": "TRITON :: b.mlir", "output": "no"},
        {"code": "UNSUPPORTED", "elapsed": None, "name": "TRITON :: c.mlir", "output": ""},
        {"code": "XFAIL", "elapsed": 1, "name": "TRITON :: a.mlir", "output": "as it should"},
        {"code": "TIMEOUT", "elapsed": 1, "name": "TRITON :: d.mlir", "output": ""},
    ]
    report.write_text(json.dumps({"tests": rows}))
    assert [results.of_lit(one) for one in results.read_lit(report)] == [
        SuiteTest("lit", "a.mlir", "passed", 1.0),
        SuiteTest("lit", "b.mlir", "failed", 0.5, "FAIL", "no"),
        SuiteTest("lit", "c.mlir", "skipped", 0.0, "UNSUPPORTED"),
        SuiteTest("lit", "d.mlir", "failed", 1.0, "TIMEOUT"),
    ]


def test_the_tables_come_before_what_failed_tests_printed() -> None:
    tests = [SuiteTest("lit", "b.mlir", "failed", 0.5, "FAIL", "a.mlir:3:11: error: CHECK: expected")]
    *tables, name, printed = command.screen(tests)
    assert [one for one in tables if isinstance(one, str)] == []
    assert (name, printed) == ("b.mlir:", "a.mlir:3:11: error: CHECK: expected")


def run(tmp_path: Path, text: str) -> tuple[results.PytestResult, ...]:
    file, report = tmp_path / "test_x.py", tmp_path / "tests.xml"
    file.write_text(text)
    argv = results.pytest_command(report, "--rootdir", str(tmp_path), str(file))
    process.query((sys.executable, *argv[1:]), cwd=tmp_path, change=results.PYTEST_ENVIRONMENT, timeout=120)
    return results.read_pytest(report)


@pytest.mark.slow
def test_pytest(tmp_path: Path) -> None:
    rows = run(tmp_path, PYTHON)
    found = {one.name: (one.file, one.word, one.why.partition("\n")[0]) for one in rows}
    assert found == {
        "test_good": ("test_x.py", "passed", ""),
        "TestGroup::test_some[1]": ("test_x.py", "passed", ""),
        "TestGroup::test_some[2]": ("test_x.py", "failed", "AssertionError: it is two"),
        "test_left": ("test_x.py", "skipped", "no GPU here"),
        "test_expected": ("test_x.py", "xfailed", ""),
        "test_error": ("test_x.py", "error", "failed on setup with \"KeyError: 'x'\""),
    }
    words = {one.name: results.of_pytest("gpu-less", one).word for one in rows}
    assert words["TestGroup::test_some[2]"] == words["test_error"] == "failed"
    assert words["test_expected"] == "passed"


@pytest.mark.slow
def test_a_file_that_pytest_cannot_read_is_a_failure(tmp_path: Path) -> None:
    (found,) = run(tmp_path, "def test_a(:\n")
    assert results.of_pytest("gpu-less", found).word == "failed"


def test_results_of_pytest_that_are_cut_off(tmp_path: Path) -> None:
    assert results.read_pytest(tmp_path / "none.xml") == ()
    (tmp_path / "tests.xml").write_text("<testsuites><testsuite")
    with pytest.raises(FactError, match="cannot read the results of pytest"):
        results.read_pytest(tmp_path / "tests.xml")


UNITS = """
add_triton_ut(
	NAME TestLayout
	SRCS LayoutTest.cpp more/Other.cpp
	LIBS TritonTools
)
add_triton_ut(NAME TestMore SRCS More.cpp LIBS a)
"""
GTEST = {
    "testsuites": [
        {
            "testsuite": [
                {"classname": "A", "name": "good", "result": "COMPLETED", "time": "0.25s"},
                {"classname": "A", "name": "off", "result": "SUPPRESSED", "time": "0s"},
                {
                    "classname": "B/P",
                    "name": "bad/1",
                    "value_param": "16",
                    "result": "COMPLETED",
                    "time": "1s",
                    "failures": [{"failure": "a.cpp:3\nExpected 1"}],
                },
            ]
        }
    ]
}


def test_unit_tests_of_the_backends_that_are_built(tmp_path: Path) -> None:
    root = plant(tmp_path)
    for folder, text in (
        ("unittest/Tools", UNITS),
        ("third_party/amd/unittest", UNITS.replace("Test", "Amd")),
    ):
        (root / folder).mkdir(parents=True)
        (root / folder / "CMakeLists.txt").write_text(text)
    assert [(one.name, one.sources) for one in results.unit_tests(root, ("nvidia",))] == [
        ("TestLayout", ("unittest/Tools/LayoutTest.cpp", "unittest/Tools/more/Other.cpp")),
        ("TestMore", ("unittest/Tools/More.cpp",)),
    ]
    assert len(results.unit_tests(root, ("nvidia", "amd"))) == 4


def test_gtest(tmp_path: Path) -> None:
    unit, report = results.UnitTest("TestLayout", "unittest", ()), tmp_path / "tests.json"
    (died,) = results.read_gtest(report, unit, -11, "Stack dump:")
    assert (died.word, died.why) == ("failed", "exit code -11: Stack dump:")
    report.write_text(json.dumps(GTEST))
    good, off, bad = results.read_gtest(report, unit, 1, "1 FAILED TEST")
    assert (good.name, good.word, good.seconds) == ("TestLayout: A.good", "passed", 0.25)
    assert off.word == "skipped"
    assert (bad.name, bad.word, bad.why) == ("TestLayout: B/P.bad/1 (16)", "failed", "a.cpp:3 Expected 1")


def test_a_known_failure_is_known_in_its_versions_and_by_its_text() -> None:
    name = "python/test/unit/language/test_subprocess.py::test_print[print-int32]"
    failure = SuiteTest("interpreter", name, "failed", text="RuntimeError: 0 active drivers ([])")

    def word(test: SuiteTest, version: str) -> str:
        return results.without_known([test], version)[0].word

    assert word(failure, "3.0.0") == word(failure, "3.1.0") == "known"
    assert word(failure, "3.6.0") == "failed"
    assert word(SuiteTest("interpreter", name, "failed", text="SyntaxError"), "3.0.0") == "failed"
    assert word(SuiteTest("gpu-less", name, "failed", text=failure.text), "3.0.0") == "failed"
    assert word(SuiteTest("interpreter", name, "passed"), "3.0.0") == "passed"


def test_junit_is_what_pytests_reader_takes(tmp_path: Path) -> None:
    tests = (
        SuiteTest("lit", "a.mlir", "passed", 0.5),
        SuiteTest("lit", "b.mlir", "failed", 0.5, "FAIL", "a < b & \x1b[31mred"),
        SuiteTest("interpreter", "c", "known", 0.5, "no GPU"),
    )
    (tmp_path / "tests.xml").write_text(junit_xml(tests))
    found = [(one.name, one.word, one.why, one.text) for one in results.read_pytest(tmp_path / "tests.xml")]
    assert found == [
        ("a.mlir", "passed", "", ""),
        ("b.mlir", "failed", "FAIL", "a < b & \N{REPLACEMENT CHARACTER}[31mred"),
        ("c", "skipped", "known failure: no GPU", ""),
    ]
