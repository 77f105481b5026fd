"""The C++ unit tests: their programs and results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.suites.outcome import SuiteTest, TestWord
from tritonsmith.core import untrusted
from tritonsmith.facts import cmake_cache

_UNIT = re.compile(r"add_triton_ut\(\s*NAME\s+(?P<name>\w+)(?P<rest>[^)]*)\)")
_SOURCE = re.compile(r"[\w./-]+\.(?:cpp|cc)\b")
_GOOGLETEST = (Path("/usr/src/googletest"),)  # from Debian's package googletest
_OPTION, _FOLDER = "TRITON_BUILD_UT", "GOOGLETEST_DIR"


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


def units(root: Path, backends: Sequence[str]) -> tuple[UnitTest, ...]:
    """Return the programs that a checkout builds for these backends."""
    tops = [root / "unittest", *(root / "third_party" / backend / "unittest" for backend in backends)]
    files = (file for top in tops for file in sorted(top.rglob("CMakeLists.txt")))
    return tuple(unit for file in files for unit in _of_file(file, root))


def _of_file(file: Path, root: Path) -> Iterator[UnitTest]:
    folder = file.parent.relative_to(root).as_posix()
    for match in _UNIT.finditer(untrusted.read_text(file)):
        names = _SOURCE.findall(match["rest"])
        yield UnitTest(match["name"], folder, tuple(f"{folder}/{name}" for name in names))


def googletest(given: Path | None) -> Path | None:
    """Return the sources of GoogleTest: those given, or the distribution's."""
    places = (given,) if given else _GOOGLETEST
    return next((place for place in places if (place / "CMakeLists.txt").is_file()), None)


def cmake_arguments(sources: Path) -> tuple[str, ...]:
    """Return the CMake arguments that configure the unit tests without a download."""
    return f"-D{_OPTION}=ON", f"-D{_FOLDER}={sources}"


def configured(build: Path) -> Path | None:
    """Return the sources of GoogleTest that a build folder is configured with; None without unit tests."""
    cache = cmake_cache.read(build) if (build / "CMakeCache.txt").is_file() else None
    if cache is None or cache.get(_OPTION) != "ON" or not cache.get(_FOLDER):
        return None
    return Path(cache.get(_FOLDER))


def command(program: Path, report: Path) -> tuple[str, ...]:
    """Return the call of a program."""
    return (str(program), "--gtest_color=no", f"--gtest_output=json:{report}")


def read(report: Path, unit: UnitTest, code: int, last: str) -> tuple[SuiteTest, ...]:
    """Read the results; a program that died without results counts as one failure.

    Args:
        report: file that the program wrote.
        unit: the program.
        code: its exit code.
        last: last line of its output.
    """
    document = untrusted.read_json(report) if report.is_file() else {"testsuites": []}
    results = [_test(unit, case) for suite in document["testsuites"] for case in suite["testsuite"]]
    if code and not any(result.word == "failed" for result in results):
        why = f"exit code {code}: {last}"
        results.append(SuiteTest("cpp", unit.name, "failed", why=why))
    return tuple(results)


def _test(unit: UnitTest, case: dict[str, Any]) -> SuiteTest:
    parameter = f" ({case['value_param']})" if case.get("value_param") else ""
    name = f"{unit.name}: {case['classname']}.{case['name']}{parameter}"
    texts = [str(failure.get("failure", "")) for failure in case.get("failures", ())]
    word: TestWord = "failed" if texts else "passed" if case.get("result") == "COMPLETED" else "skipped"
    seconds = float(str(case.get("time", "0")).removesuffix("s") or 0)
    why = " ".join(texts[0].split()) if texts else ""
    return SuiteTest("cpp", name, word, seconds, why, "\n".join(texts))
