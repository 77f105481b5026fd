"""Tests of Tritons by programs: a user's command, or a test of Triton's own, run by lit or pytest."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tritonsmith.build.suites import command
from tritonsmith.build.suites.results import (
    FAILED,
    LIT_ENVIRONMENT,
    PASSED,
    PYTEST_ENVIRONMENT,
    lit_command,
    needed_packages,
    pytest_command,
    read_lit,
    read_pytest,
)
from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import process, untrusted
from tritonsmith.core.errors import SmithError, StepError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.facts import checkout, git_history
from tritonsmith.lab import failure, questions
from tritonsmith.lab.batch import pool, work_unit
from tritonsmith.lab.bisect.candidates import Observations
from tritonsmith.lab.journal import Observation, Verdict

T = TypeVar("T")
Failures = dict[str, str]  # name of a test to how it fails

# A test imports its neighbours, and pytest reads conftest.py and its settings from the folders above.
_FOR_PYTEST = ("python/test", "python/conftest.py", "python/pytest.ini", "pytest.ini")
_CHECK = re.compile(r"^.*?:\d+:\d+: error: (?P<text>\S+: .*)\n(?P<line>.*)$", re.MULTILINE)  # FileCheck's
_QUOTE = re.compile(r"^# \| ?", re.MULTILINE)  # before each line that a program has printed


@dataclass(frozen=True)
class CommandTests:
    """A command whose exit code says what a Triton is, as for `git bisect run`.

    Attributes:
        argv: program and arguments; `python` is the interpreter that has the Triton.
        cwd: where it runs.
        scratch: folder for Triton's caches, and for the output of the command.
        scheduler: address of a Dask scheduler, whose workers see the same folders; empty for this machine.
        jobs: commands at once.
    """

    argv: tuple[str, ...]
    cwd: Path
    scratch: Path
    scheduler: str = ""
    jobs: int = 1

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Run the command with several Tritons, `jobs` at once."""
        return results(self.test, tritons, self.scheduler, self.jobs)

    def test(self, triton: Triton) -> Observation:
        """Run the command with a Triton.

        Raises:
            StepError: it cannot be started, or its exit code ends the bisect.
        """
        try:
            python = tritons.place_of(triton).python
        except UsageError as error:
            return Observation(Verdict.SKIP, why=error.what)
        began = time.monotonic()
        scratch = self.scratch / folder_name(triton.label)
        # The cache is empty at each test: a kernel that is found there shows nothing of the compiler.
        code, log, last = command.run_cold(self.argv, python, self.cwd, scratch)
        seconds = time.monotonic() - began
        figures = f"exit code {code}" + (f": {last}" if last else "")
        # As for `git bisect run`, a signal or an exit code of 128 and above is no verdict.
        if code < 0 or code >= questions.ABORT:
            raise StepError(f"the command ended the bisect: exit code {code}", where=log, why=last or None)
        why = f"the command skips it: exit code {questions.SKIP}"
        return questions.succeeds(code, figures, seconds, why)


def check() -> None:
    """Refuse a `PYTHONPATH` with a Triton in it.

    Raises:
        UsageError: there is one.
    """
    # It comes before the interpreter's own packages, so all tests would be of that one Triton.
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if (Path(folder) / "triton" / "__init__.py").is_file():
            hints = ["unset PYTHONPATH"]
            raise UsageError(
                "PYTHONPATH contains a Triton, which every test would import", where=folder, hints=hints
            )


def results(
    test: Callable[[Triton], T], tritons: Sequence[Triton], scheduler: str, jobs: int
) -> Generator[tuple[Triton, T], None, None]:
    """Yield the results of the tests as they arrive.

    Args:
        test: the test, which has to be picklable.
        tritons: the Tritons; each is tested once.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        jobs: how many of those.

    Raises:
        SmithError: what a test raises, or its process died; the others are stopped.
    """
    if not scheduler and min(jobs, len(tritons)) < 2:  # noqa: PLR2004 - at once
        yield from ((triton, test(triton)) for triton in tritons)
        return
    if not scheduler:  # wheels are installed one after another, under one bar
        for triton in tritons:
            _install(triton)
    with pool.opened(scheduler, min(jobs, len(tritons))) as workers:
        submitted = {workers.executor.submit(_tested, test, triton): triton for triton in tritons}
        for triton, result in workers.results(submitted):
            if isinstance(result, SmithError):
                raise result
            yield triton, result


def _install(triton: Triton) -> None:
    try:
        tritons.place_of(triton)
    except UsageError:  # a release that this Python has no wheel of: its test says so
        return


def _tested(test: Callable[[Triton], T], triton: Triton) -> T | SmithError:
    """Return a result, or an error that can be sent back."""
    try:
        return test(triton)
    except SmithError as error:
        return work_unit.plain(error)


@dataclass(frozen=True)
class TestFile:
    """A file of tests, or one test in it.

    Attributes:
        path: in the checkout, or absolute.
        name: of one test in it; empty for all.
        lit: whether lit runs it.
        of_commit: each commit has its own.
    """

    __test__ = False  # no test class of pytest's

    path: str
    name: str = ""
    lit: bool = False
    of_commit: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The folders that a commit's own tests consist of."""
        if self.lit:
            # Lit reads its configuration from the folders above a test.
            return ("test",)
        return _FOR_PYTEST if self.of_commit else ()


def parse(text: str, clone: Path | None, commit: str) -> TestFile:
    """Return the test that `FILE` or `FILE::NAME` names.

    Args:
        text: as it was given.
        clone: Triton's history; None if only releases are tested.
        commit: the bad end; empty for a release.

    Raises:
        UsageError: there is no such file, on disk or in that commit; or lit's, and no commits to run it on.
    """
    head, _, name = text.partition("::")
    file = Path(head).expanduser()
    inside = _inside(file, clone) if clone and commit else ""
    # Each commit has its own version of a test in the clone; any other file is the same for all.
    if clone and inside:
        with git_history.opened(clone) as repository:
            content = git_history.text_at(repository, commit, inside)
        if content is not None:
            lit = checkout.is_lit_test(inside, content)
            if lit and not inside.startswith("test/"):
                raise UsageError("--test: only lit tests below test/ are run", where=inside)
            return TestFile(inside, name, lit, of_commit=True)
    if not file.is_file():
        hints = ["--test FILE or FILE::NAME; with --source and commits as ends, also a path in Triton"]
        what = f"--test: no such file{' on disk, or at the bad end' if inside else ''}"
        raise UsageError(what, where=inside or file.absolute(), hints=hints)
    test = TestFile(str(file.absolute()), name, checkout.is_lit_test(file.name, untrusted.read_text(file)))
    if test.lit and not commit:
        raise UsageError(
            "a lit test cannot run on a release: wheels have no triton-opt",
            where=file,
            hints=["--source CLONE with commits, tags or branches as --good and --bad"],
        )
    return test


def _inside(file: Path, clone: Path) -> str:
    """Return the path of a file in Triton; empty for one that is elsewhere."""
    if file.resolve().is_relative_to(clone.resolve()):
        return file.resolve().relative_to(clone.resolve()).as_posix()
    # A relative path that is nowhere here may be meant as one in Triton.
    return "" if file.is_absolute() or file.exists() else file.as_posix()


@dataclass(frozen=True)
class TestRun:
    """The results of the tests with one Triton.

    Attributes:
        failures: test to how it fails; empty if all pass.
        figures: in words.
        why: the reason if nothing was tested; empty otherwise.
        seconds: that it took.
    """

    __test__ = False  # no test class of pytest's

    failures: Failures
    figures: str = ""
    why: str = ""
    seconds: float = 0.0


@dataclass
class CheckoutTests:
    """Tests that are bad where a test fails as at the bad end, and not as at the good one.

    Attributes:
        file: the test.
        scratch: folder for Triton's caches, and for the output.
        good: the Triton whose failures are nothing new; it may have to be built.
        bad: the Triton whose failures are searched for.
        scheduler: address of a Dask scheduler, whose workers see the same folders; empty for this machine.
        jobs: runs of pytest at once.
    """

    __test__ = False

    file: TestFile
    scratch: Path
    good: Callable[[], Triton]
    bad: Callable[[], Triton]
    scheduler: str = ""
    jobs: int = 1
    _known: dict[str, TestRun] = field(default_factory=dict)

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Run pytest for several Tritons at once, and lit for one after another."""
        # Commits of one build share the folder in which lit writes.
        jobs = 1 if self.file.lit else min(self.jobs, len(tritons))
        if jobs > 1 and not self.scheduler:
            needed_packages()  # if pytest is missing, say so before any process begins
        run, scheduler = partial(_run, self.file, self.scratch), "" if self.file.lit else self.scheduler
        # If a test raises, this stops the others before the error is shown.
        with closing(results(run, tritons, scheduler, jobs)) as runs:
            for triton, mine in runs:
                yield triton, self._outcome(triton, mine)

    def test(self, triton: Triton) -> Observation:
        """Run them, and compare the failures with those of the bad end."""
        return self._outcome(triton, _run(self.file, self.scratch, triton))

    def _outcome(self, triton: Triton, mine: TestRun) -> Observation:
        seconds = mine.seconds
        if mine.why:
            return Observation(Verdict.SKIP, mine.figures, mine.why, seconds)
        if not mine.failures:
            return Observation(Verdict.GOOD, mine.figures, seconds=seconds)
        good, bad = self._end("good", self.good, triton, mine), self._end("bad", self.bad, triton, mine)
        if bad.why:
            why = f"how the bad end fails is unknown: {bad.why}"
            return Observation(Verdict.SKIP, mine.figures, why, seconds)
        # What fails at the good end, too, is an old failure and not the one that is searched for.
        searched = dict(bad.failures.items() - good.failures.items()) or bad.failures
        if searched.items() & mine.failures.items():
            return Observation(Verdict.BAD, mine.figures, seconds=seconds)
        # The same test with another message: it may be the same fault or another one that hides it.
        if searched.keys() & mine.failures.keys():
            return Observation(Verdict.SKIP, mine.figures, "it fails in another way", seconds)
        return Observation(Verdict.GOOD, mine.figures, seconds=seconds)

    def _end(self, name: str, end: Callable[[], Triton], triton: Triton, mine: TestRun) -> TestRun:
        """Return the failure at an end, which is tested once."""
        spec = end()
        if spec.label not in self._known:
            # The Triton that has just failed is often that end itself.
            same = spec.label == triton.label
            self._known[spec.label] = mine if same else _run(self.file, self.scratch / f"{name} end", spec)
        return self._known[spec.label]


def _run(file: TestFile, scratch: Path, triton: Triton) -> TestRun:
    """Run the tests for one Triton."""
    began, own = time.monotonic(), scratch / folder_name(triton.label)
    try:
        python = tritons.place_of(triton).python
    except UsageError as error:
        return TestRun({}, why=error.what)
    run = (_by_lit if file.lit else _by_pytest)(file, python, own)
    return replace(run, seconds=time.monotonic() - began)


def _by_lit(file: TestFile, python: Path, scratch: Path) -> TestRun:
    """Run a lit test with the programs of a commit."""
    sources = python.parents[1] / "source"
    suite = sources / "build" / "test"
    if file.of_commit and not (sources / file.path).is_file():
        return TestRun({}, why=f"this commit has no {file.path}")
    if not (suite / checkout.LIT_SITE).is_file():
        return TestRun({}, why="the build of this commit has configured no lit tests")
    test = suite / Path(file.path).relative_to("test") if file.of_commit else _alone(file, suite, scratch)
    with files.scratch("lit-") as folder:
        argv = lit_command("lit", folder / "tests.json", test)
        code, log, last = command.run_cold(argv, python, scratch, scratch, LIT_ENVIRONMENT)
        results = read_lit(folder / "tests.json")
    # A file is one test to lit: none, or an unresolved or unsupported one, is no verdict on the commit.
    if len(results) != 1 or results[0].code not in (*PASSED, *FAILED):
        outcome = results[0].code if results else f"exit code {code}: {last}"
        return TestRun({}, outcome, f"lit did not run it: {log}")
    result = results[0].code
    if result in PASSED:
        return TestRun({}, result)
    how = _lit_failure(results[0].output, result)
    return TestRun({Path(file.path).name: how}, f"{result}: {how}")


def _alone(file: TestFile, suite: Path, scratch: Path) -> Path:
    """Return the path of a test in a suite of its own, with the commit's configuration."""
    # Lit takes the configuration from the folders above a test, and a user's file has none there.
    here = scratch / "suite"
    files.make_folder(here)
    text = (
        f"lit_config.load_config(config, {str(suite / checkout.LIT_SITE)!r})\n"
        f"config.test_source_root = {str(Path(file.path).parent)!r}\nconfig.test_exec_root = {str(here)!r}\n"
    )
    files.write_atomically(here / checkout.LIT_SITE, text)
    return here / Path(file.path).name


def _lit_failure(log: str, result: str) -> str:
    """Describe the failure of a lit test: the compiler's message, or the line that does not match."""
    log = _QUOTE.sub("", log)
    failed = failure.of(log, timeout=result == "TIMEOUT")
    check = _CHECK.search(log)
    if failed.kind in ("assertion", "fatal error", "signal", "timeout") or (not check and failed.text):
        return str(failed)
    return f"{check['text']}: {check['line'].strip()}" if check else result


def _by_pytest(file: TestFile, python: Path, scratch: Path) -> TestRun:
    """Run tests with the pytest of a Triton's interpreter, or else with the tool's."""
    sources = python.parents[1] / "source"
    path = sources / file.path if file.of_commit else Path(file.path)
    if not path.is_file():
        return TestRun({}, why=f"this commit has no {file.path}")
    environ = dict(PYTEST_ENVIRONMENT)
    # The interpreter of a commit has nothing installed, so pytest is taken from the tool's own environment.
    if process.capture((str(python), "-c", "import pytest")) is None:
        environ["PYTHONPATH"] = command.python_path(needed_packages())
    name = f"{path}::{file.name}" if file.name else str(path)
    cwd = sources if file.of_commit else Path.cwd()
    with files.scratch("pytest-") as folder:
        argv = pytest_command(folder / "tests.xml", name)
        code, log, last = command.run_cold(argv, python, cwd, scratch, environ)
        results = read_pytest(folder / "tests.xml")
    figures = f"exit code {code}" + (f": {last}" if last else "")
    if code not in (0, 1):  # interrupted, internal, usage, no test collected
        return TestRun({}, figures, f"pytest did not run it: {log}")
    failures = {row.name: str(failure.of(_first(row.why))) for row in results if row.failed}
    if code and not failures:
        return TestRun({}, figures, f"pytest names no failed test: {log}")
    return TestRun(failures, figures)


def _first(text: str) -> str:
    # The lines that follow show values and addresses, which differ from run to run.
    return text.partition("\n")[0]
