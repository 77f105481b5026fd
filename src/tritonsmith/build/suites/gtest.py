"""The unit tests in C++: which programs there are, and the results that each leaves."""

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
_GOOGLETEST = (Path("/usr/src/googletest"),)  # of Debian's package googletest
_OPTION, _FOLDER = "TRITON_BUILD_UT", "GOOGLETEST_DIR"


@dataclass(frozen=True)
class UnitTest:
    """A program with unit tests.

    Attributes:
        name: of the program, and of Ninja's target.
        folder: of its CMakeLists.txt, below the checkout.
        sources: below the checkout.
    """

    name: str
    folder: str
    sources: tuple[str, ...]

    def program(self, build: Path) -> Path:
        """The program in a build folder."""
        return build / self.folder / self.name


def units(root: Path, backends: Sequence[str]) -> tuple[UnitTest, ...]:
    """The programs that a checkout builds for these backends."""
    tops = [root / "unittest", *(root / "third_party" / one / "unittest" for one in backends)]
    files = (file for top in tops for file in sorted(top.rglob("CMakeLists.txt")))
    return tuple(one for file in files for one in _of_file(file, root))


def _of_file(file: Path, root: Path) -> Iterator[UnitTest]:
    folder = file.parent.relative_to(root).as_posix()
    for match in _UNIT.finditer(untrusted.read_text(file)):
        names = _SOURCE.findall(match["rest"])
        yield UnitTest(match["name"], folder, tuple(f"{folder}/{name}" for name in names))


def googletest(given: Path | None) -> Path | None:
    """The sources of GoogleTest: those that were given, or the distribution's."""
    places = (given,) if given else _GOOGLETEST
    return next((place for place in places if (place / "CMakeLists.txt").is_file()), None)


def cmake_arguments(sources: Path) -> tuple[str, ...]:
    """What configures the unit tests, without a download."""
    return f"-D{_OPTION}=ON", f"-D{_FOLDER}={sources}"


def configured(build: Path) -> Path | None:
    """The sources of GoogleTest that a build folder is configured with; None if it has no unit tests."""
    cache = cmake_cache.read(build) if (build / "CMakeCache.txt").is_file() else None
    if cache is None or cache.get(_OPTION) != "ON" or not cache.get(_FOLDER):
        return None
    return Path(cache.get(_FOLDER))


def command(program: Path, report: Path) -> tuple[str, ...]:
    """The call of a program."""
    return (str(program), "--gtest_color=no", f"--gtest_output=json:{report}")


def read(report: Path, unit: UnitTest, code: int, last: str) -> tuple[SuiteTest, ...]:
    """The results; a program that died has left none, and is one failure.

    Args:
        report: that the program wrote.
        unit: the program.
        code: its exit code.
        last: the last line that it printed.
    """
    told = untrusted.read_json(report) if report.is_file() else {"testsuites": []}
    found = [_test(unit, one) for suite in told["testsuites"] for one in suite["testsuite"]]
    if code and not any(one.word == "failed" for one in found):
        why = f"exit code {code}: {last}"
        found.append(SuiteTest("cpp", unit.name, "failed", why=why))
    return tuple(found)


def _test(unit: UnitTest, one: dict[str, Any]) -> SuiteTest:
    parameter = f" ({one['value_param']})" if one.get("value_param") else ""
    name = f"{unit.name}: {one['classname']}.{one['name']}{parameter}"
    texts = [str(failure.get("failure", "")) for failure in one.get("failures", ())]
    word: TestWord = "failed" if texts else "passed" if one.get("result") == "COMPLETED" else "skipped"
    seconds = float(str(one.get("time", "0")).removesuffix("s") or 0)
    why = " ".join(texts[0].split()) if texts else ""
    return SuiteTest("cpp", name, word, seconds, why, "\n".join(texts))
