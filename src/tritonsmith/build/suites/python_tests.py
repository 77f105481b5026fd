"""Pytest for a Triton: the call, its results, and the packages that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from tritonsmith.core import untrusted
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import locks
from tritonsmith.wheels import venv

PytestWord = Literal["passed", "failed", "error", "skipped", "xfailed"]

# A wide screen, so that pytest truncates nothing, and none of the user's own options.
ENVIRONMENT: dict[str, str | None] = {"COLUMNS": "1000", "PYTEST_ADDOPTS": None}
NO_TESTS = 5  # pytest's exit code
_ENV = "bisect-pytest"  # the environment with pytest for Tritons without it


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


def command(report: Path, *names: str) -> tuple[str, ...]:
    """Return the call of pytest, which changes nothing in the sources.

    Args:
        report: the file for the results, in JUnit's format.
        names: files, tests and more options.
    """
    quiet = ("-q", "-rf", "--color=no", "-p", "no:cacheprovider")
    return ("python", "-m", "pytest", *quiet, "-o", "junit_family=xunit1", f"--junitxml={report}", *names)


def read(report: Path) -> tuple[PytestResult, ...]:
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
        classes = (case.get("classname") or "").removeprefix(module).strip(".") if file else ""
        name = "::".join(filter(None, (*classes.split("."), name)))
        outcomes = [child for child in case if child.tag in ("failure", "error", "skipped")]
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


def packages() -> Path:
    """Return the packages of an environment with pytest, created on demand.

    Raises:
        SmithError: the environment could not be created.
    """
    return installed(_ENV, "bisect", ("pytest",))


def installed(name: str, task: str, *requirements: tuple[str, ...]) -> Path:
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
            with locks.hold(env.lock, purpose=task):
                space.run(install_plan, task)
    except SmithError as error:
        hints = ["check that pip can reach its index", "or install pytest beside each Triton"]
        raise SmithError(
            "pytest could not be installed", where=env.path, why=error.why, hints=hints
        ) from error
    return venv.site_packages(env, base)
