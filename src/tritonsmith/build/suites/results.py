"""The programs that run tests, lit, pytest and GoogleTest: their calls, and their results in one form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import locks
from tritonsmith.core.text import version_key
from tritonsmith.facts import build_folder
from tritonsmith.wheels import venv

PASSED = ("PASS", "FLAKYPASS", "XFAIL")
FAILED = ("FAIL", "XPASS", "TIMEOUT", "UNRESOLVED")
LIT_ENVIRONMENT = {"LIT_OPTS": None, "LIT_FILTER": None}  # the user's own would choose other tests
PytestWord = Literal["passed", "failed", "error", "skipped", "xfailed"]
# A wide screen, so that pytest truncates nothing, and none of the user's own options.
PYTEST_ENVIRONMENT: dict[str, str | None] = {"COLUMNS": "1000", "PYTEST_ADDOPTS": None}
NO_TESTS = 5  # pytest's exit code
_ENV = "bisect-pytest"  # the environment with pytest for Tritons without it
SuiteName = Literal["lit", "cpp", "gpu-less", "interpreter"]
SUITES: tuple[SuiteName, ...] = ("lit", "cpp", "gpu-less", "interpreter")
CONFIG = "test-suites"
TestWord = Literal["passed", "failed", "skipped", "known"]
_UNIT = re.compile(r"add_triton_ut\(\s*NAME\s+(?P<name>\w+)(?P<rest>[^)]*)\)")
_SOURCE = re.compile(r"[\w./-]+\.(?:cpp|cc)\b")
_GOOGLETEST = (Path("/usr/src/googletest"),)  # from Debian's package googletest
_OPTION, _FOLDER = "TRITON_BUILD_UT", "GOOGLETEST_DIR"


@dataclass(frozen=True)
class LitResult:
    """The result of one test.

    Attributes:
        name: names of the suite and the test: `TRITON :: Triton/ops.mlir`.
        code: lit's result code: `PASS`, `FAIL`, `UNSUPPORTED`.
        seconds: duration.
        output: its output, if it failed or lit was verbose.
    """

    name: str
    code: str
    seconds: float = 0.0
    output: str = ""


def lit_command(lit: str, report: Path, *tests: Path, pattern: str = "", jobs: int = 0) -> tuple[str, ...]:
    """Return the call of lit.

    Args:
        lit: path of lit.
        report: the file for the results.
        tests: files or folders, in the build folder.
        pattern: regular expression for names.
        jobs: number of parallel tests; 0 for lit's choice.
    """
    more = (("--filter", pattern) if pattern else ()) + ((f"-j{jobs}",) if jobs else ())
    # By paths in the build folder, which has lit's site configuration, though the files are in the sources:
    # upstream's targets for a single folder do not work in every release (triton#7965).
    return (lit, "-v", "--output", str(report), *more, *map(str, tests))


def read_lit(report: Path) -> tuple[LitResult, ...]:
    """Read the results, sorted by name; none if lit did not write any."""
    records: list[dict[str, Any]] = untrusted.read_json(report)["tests"] if report.is_file() else []
    results = (
        LitResult(
            str(record["name"]),
            str(record["code"]),
            float(record.get("elapsed") or 0),
            str(record.get("output") or ""),
        )
        for record in records
    )
    return tuple(sorted(results, key=lambda result: result.name))


@dataclass(frozen=True)
class PytestResult:
    """The result of one test.

    Attributes:
        file: file of the test, as pytest names it; empty if it could not be read.
        name: class, function and parameters.
        word: the result.
        seconds: duration.
        why: the exception of a failure, or the reason for a skip.
        text: the traceback.
    """

    file: str
    name: str
    word: PytestWord
    seconds: float = 0.0
    why: str = ""
    text: str = ""

    @property
    def failed(self) -> bool:
        """Report whether the test, or its fixtures, failed."""
        return self.word in ("failed", "error")


def pytest_command(report: Path, *names: str) -> tuple[str, ...]:
    """Return the call of pytest, which changes nothing in the sources.

    Args:
        report: the file for the results, in JUnit's format.
        names: files, tests and more options.
    """
    # The cache provider would write `.pytest_cache` into the user's checkout.
    quiet = ("-q", "-rf", "--color=no", "-p", "no:cacheprovider")
    # xunit1 is the one format that has the file of each test.
    return ("python", "-m", "pytest", *quiet, "-o", "junit_family=xunit1", f"--junitxml={report}", *names)


def read_pytest(report: Path) -> tuple[PytestResult, ...]:
    """Read the results, in order; none if pytest wrote none.

    Raises:
        FactError: the file has another format.
    """
    if not report.is_file():
        return ()
    try:
        root = ET.fromstring(untrusted.read_bytes(report))  # noqa: S314 - written by pytest, just now
    except ET.ParseError as error:
        raise FactError("cannot read the results of pytest", where=report, why=str(error)) from error
    return tuple(_results(root))


def _results(root: ET.Element) -> Iterator[PytestResult]:
    for case in root.iter("testcase"):
        file, name = case.get("file") or "", case.get("name") or ""
        module = file.removesuffix(".py").replace("/", ".")
        # xunit1 writes the dotted module and the classes as one word.
        classes = (case.get("classname") or "").removeprefix(module).strip(".") if file else ""
        name = "::".join(filter(None, (*classes.split("."), name)))
        outcomes = [child for child in case if child.tag in ("failure", "error", "skipped")]
        # A test that fails, and whose fixture fails afterwards, has two outcomes.
        worst = min(
            outcomes, key=lambda child: ("failure", "error", "skipped").index(child.tag), default=None
        )
        seconds = float(case.get("time") or 0)
        if worst is None:
            yield PytestResult(file, name, "passed", seconds)
            continue
        why = (worst.get("message") or "").strip()
        word: PytestWord = "failed" if worst.tag == "failure" else "error"
        if worst.tag == "skipped":
            word = "xfailed" if worst.get("type") == "pytest.xfail" else "skipped"
        yield PytestResult(file, name, word, seconds, why, (worst.text or "").strip())


def needed_packages() -> Path:
    """Return the packages of an environment with pytest, created on demand.

    Raises:
        SmithError: the environment could not be created.
    """
    return installed_packages(_ENV, "bisect", ("pytest",))


def installed_packages(name: str, task: str, *requirements: tuple[str, ...]) -> Path:
    """Return the packages of an environment of the tool's own, created on demand.

    Args:
        name: name of the environment.
        task: task that needs it.
        requirements: requirements for pip, one call each.

    Raises:
        SmithError: the environment could not be created.
    """
    space = workspace.default()
    env, base = space.env(name), venv.base_interpreter(settings.load("wheel").python.interpreter)
    try:
        space.claim()
        install_plan = venv.plan(env, base, *requirements)
        if not all(step.stamp and step.stamp.holds() for step in install_plan.steps):
            # Two runs that need the packages at once must not both install them.
            with locks.hold(env.lock, purpose=task):
                space.run(install_plan, task)
    except SmithError as error:
        hints = ["check that pip can reach its index", "or install pytest beside each Triton"]
        raise SmithError(
            "pytest could not be installed", where=env.path, why=error.why, hints=hints
        ) from error
    return venv.site_packages(env, base)


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
        # By its output, too: a known test that fails in another way is a new failure.
        if row["suite"] == test.suite and fnmatchcase(test.name, row["test"]) and row["says"] in test.text:
            return replace(test, word="known", why=row["why"])
    return test


def count_by_word(tests: Iterable[SuiteTest]) -> Counter[TestWord]:
    """Count the tests by their result."""
    return Counter(test.word for test in tests)


@dataclass(frozen=True)
class UnitTest:
    """A program with unit tests.

    Attributes:
        name: name of the program and of Ninja's target.
        folder: folder of its CMakeLists.txt, relative to the checkout.
        sources: paths relative to the checkout.
    """

    name: str
    folder: str
    sources: tuple[str, ...]

    def program(self, build: Path) -> Path:
        """Return the path of the program in a build folder."""
        return build / self.folder / self.name


def unit_tests(root: Path, backends: Sequence[str]) -> tuple[UnitTest, ...]:
    """Return the programs that a checkout builds for these backends."""
    tops = [root / "unittest", *(root / "third_party" / backend / "unittest" for backend in backends)]
    files = (file for top in tops for file in sorted(top.rglob("CMakeLists.txt")))
    return tuple(unit for file in files for unit in _of_file(file, root))


def _of_file(file: Path, root: Path) -> Iterator[UnitTest]:
    folder = file.parent.relative_to(root).as_posix()
    for match in _UNIT.finditer(untrusted.read_text(file)):
        names = _SOURCE.findall(match["rest"])
        yield UnitTest(match["name"], folder, tuple(f"{folder}/{name}" for name in names))


def googletest(folder: Path | None) -> Path | None:
    """Return the sources of GoogleTest: those in a folder, by default the distribution's."""
    places = (folder,) if folder else _GOOGLETEST
    return next((place for place in places if (place / "CMakeLists.txt").is_file()), None)


def cmake_arguments(sources: Path) -> tuple[str, ...]:
    """Return the CMake arguments that configure the unit tests without a download."""
    # With a folder of its own, Triton's CMake does not fetch GoogleTest from GitHub (triton#4461).
    return f"-D{_OPTION}=ON", f"-D{_FOLDER}={sources}"


def unit_tests_configured(build: Path) -> Path | None:
    """Return the sources of GoogleTest that a build folder is configured with; None without unit tests."""
    cache = build_folder.read_cmake_cache(build) if (build / "CMakeCache.txt").is_file() else None
    if cache is None or cache.get(_OPTION) != "ON" or not cache.get(_FOLDER):
        return None
    return Path(cache.get(_FOLDER))


def gtest_command(program: Path, report: Path) -> tuple[str, ...]:
    """Return the call of a program."""
    return (str(program), "--gtest_color=no", f"--gtest_output=json:{report}")


def read_gtest(report: Path, unit: UnitTest, code: int, last: str) -> tuple[SuiteTest, ...]:
    """Read the results; a program that died without results counts as one failure.

    Args:
        report: file that the program wrote.
        unit: the program.
        code: its exit code.
        last: last line of its output.
    """
    document = untrusted.read_json(report) if report.is_file() else {"testsuites": []}
    results = [_test(unit, case) for suite in document["testsuites"] for case in suite["testsuite"]]
    # A program that crashes in its first test writes no results at all.
    if code and not any(result.word == "failed" for result in results):
        why = f"exit code {code}: {last}"
        results.append(SuiteTest("cpp", unit.name, "failed", why=why))
    return tuple(results)


def _test(unit: UnitTest, case: dict[str, Any]) -> SuiteTest:
    parameter = f" ({case['value_param']})" if case.get("value_param") else ""
    name = f"{unit.name}: {case['classname']}.{case['name']}{parameter}"
    texts = [str(failure.get("failure", "")) for failure in case.get("failures", ())]
    word: TestWord = "failed" if texts else "passed" if case.get("result") == "COMPLETED" else "skipped"
    # GoogleTest writes a unit, as in `0.004s`.
    seconds = float(str(case.get("time", "0")).removesuffix("s") or 0)
    why = " ".join(texts[0].split()) if texts else ""
    return SuiteTest("cpp", name, word, seconds, why, "\n".join(texts))
