"""`test-triton`: build what the tests need, run the suites one after the other, and report the results."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tritonsmith.build import sanitized_run
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.suites.results import (
    CONFIG,
    LIT_ENVIRONMENT,
    NO_TESTS,
    PYTEST_ENVIRONMENT,
    SUITES,
    SuiteName,
    SuiteTest,
    TestWord,
    UnitTest,
    cmake_arguments,
    count_by_word,
    fits,
    gtest_command,
    installed_packages,
    lit_command,
    needed_packages,
    of_lit,
    of_pytest,
    pytest_command,
    read_gtest,
    read_lit,
    read_pytest,
    unit_tests_configured,
    without_known,
)
from tritonsmith.build.suites.selection import LIT, SuiteSelection, SuiteTree
from tritonsmith.build.triton import commands, recipe
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command as tool_command
from tritonsmith.core.envs import settings as env_settings
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import build_folder, checkout
from tritonsmith.wheels import venv

_SHOWN_OUTPUT = 100  # characters of the last line
TASK = "test-triton"
_PLUGIN = Path(__file__).parent / "plugin"
_PLUGIN_NAME = "tritonsmith_stub_driver"
_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)
_PACKAGES = "pytest-torch"  # the tool's environment with the packages for Python tests
_SHOWN = 20  # failures, by name
_WORDS: tuple[TestWord, ...] = ("passed", "failed", "known", "skipped")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


class NothingRunError(SmithError):
    """No test ran, so nothing is known."""

    exit_code = 6


@dataclass(frozen=True)
class TestedBuild:
    """A build of Triton whose tests can run.

    Attributes:
        settings: settings of the last build.
        space: the workspace.
        env: the environment.
        root: the checkout that was built.
        version: version of the checkout.
    """

    __test__ = False  # not a test class for pytest

    settings: Settings
    space: Workspace
    env: EnvDir
    root: Path
    version: str

    @property
    def tree(self) -> SuiteTree:
        """The tests of its checkout."""
        return SuiteTree(self.root, self.settings.triton.backends)

    @property
    def folder(self) -> Path:
        """The folder for results and logs."""
        return self.env.path / "tests"


@dataclass(frozen=True)
class SuiteCall:
    """A program that runs tests.

    Attributes:
        suite: suite of the tests.
        name: name of its folder, below that of the results.
        argv: program and arguments.
        cwd: working directory.
        variables: environment variables; None removes one.
        report: the file that it writes.
        unit: the program of unit tests, if it is one.
    """

    suite: SuiteName
    name: str
    argv: tuple[str, ...]
    cwd: Path
    variables: dict[str, str | None]
    report: Path
    unit: UnitTest | None = None

    def shell(self) -> str:
        """Return the call as a shell command."""
        words = [f"{name}={shlex.quote(text)}" for name, text in self.variables.items() if text is not None]
        removed = [f"-u {name}" for name, text in self.variables.items() if text is None]
        env = " ".join(["env", *removed, *words])
        return f"(cd {shlex.quote(str(self.cwd))} && {env} {shlex.join(self.argv)})"


def find(env: str) -> TestedBuild:
    """Find the build of an environment.

    Args:
        env: name or path of the env file.

    Raises:
        FactError: nothing was built there.
    """
    chosen = env_settings.load(env, {}, commands.last_build(env))
    space = workspace.default()
    place = space.env(chosen.name)
    hints = [tool_command("build-triton", env=env, for_="tests")]
    # CMake writes lit's site file when it configures the tests: without it the build has none.
    if not (place.build / LIT / checkout.LIT_SITE).is_file():
        what = f"environment {chosen.name!r} has no build of Triton with tests"
        raise FactError(what, where=place.build, hints=hints)
    cache = build_folder.read_cmake_cache(place.build)
    # The checkout that was built, which need not be the one around the current folder.
    root = Path(cache.get("CMAKE_HOME_DIRECTORY") if cache else "")
    if cache is None or not root.is_dir():
        raise FactError("the checkout of this build is gone", where=root, hints=hints)
    return TestedBuild(chosen, space, place, root, checkout.read(root).version)


def prepare_build(tested: TestedBuild, selection: SuiteSelection, googletest: Path | None) -> PreparedBuild:
    """Prepare the build of what these tests need, in the existing build folder.

    Args:
        tested: the build.
        selection: the tests.
        googletest: sources of GoogleTest; None if no unit test is requested.
    """
    triton, root = tested.settings.triton, tested.root
    targets: list[str] = []
    if selection.lit:
        # Not the env's own targets: lit calls every program that a test names, whatever was built last.
        targets += recipe.resolve_targets(replace(triton, targets=(), for_="tests"), root)
    if selection.gpu_less or selection.interpreter:
        targets += recipe.resolve_targets(replace(triton, targets=(), for_="python"), root)
    targets += [unit.name for unit in selection.cpp]
    # Unit tests stay configured: each change of the call would run CMake again.
    sources = googletest or unit_tests_configured(tested.env.build)
    more = cmake_arguments(sources) if sources else ()
    arguments = (*(argument for argument in triton.cmake_args if argument not in more), *more)
    chosen = replace(
        tested.settings,
        triton=replace(triton, source=str(root), targets=tuple(dict.fromkeys(targets)), cmake_args=arguments),
    )
    space, located = commands.find_triton(chosen)
    return commands.prepare_build(chosen, space, located)


def calls(
    tested: TestedBuild, selection: SuiteSelection, packages: Sequence[Path], jobs: int
) -> Iterator[SuiteCall]:
    """Yield the programs that run the tests.

    Args:
        tested: the build.
        selection: the tests.
        packages: folders with packages for Python tests, besides the environment's own.
        jobs: number of parallel tests.
    """
    build, root, folder = tested.env.build, tested.root, tested.folder
    if selection.lit:
        report = folder / "lit.json"
        tests = (build / test for test in selection.lit)
        argv = lit_command(str(tested.env.venv / "bin" / "lit"), report, *tests, jobs=jobs)
        yield SuiteCall("lit", "lit", argv, build, dict(LIT_ENVIRONMENT), report)
    for unit in selection.cpp:
        report = folder / f"{unit.name}.json"
        argv = gtest_command(unit.program(build), report)
        yield SuiteCall("cpp", unit.name, argv, root, {}, report, unit)
    pairs: tuple[tuple[SuiteName, tuple[str, ...]], ...] = (
        ("gpu-less", selection.gpu_less),
        ("interpreter", selection.interpreter),
    )
    for suite, names in pairs:
        if names:
            report = folder / f"{suite}.xml"
            more = ("-m", "interpreter", "--device", "cpu") if suite == "interpreter" else ()
            # pytest-xdist is not required: without it the tests run one by one.
            parallel = ("-n", str(jobs)) if jobs > 1 and _has(tested, packages, "xdist") else ()
            options = (
                # The report names files relative to this folder.
                f"--rootdir={root}",
                "-p",
                _PLUGIN_NAME,
                # A file that cannot be imported must not hide the results of the others.
                "--continue-on-collection-errors",
                "--tb=short",
            )
            argv = pytest_command(report, *options, *more, *parallel, *(str(root / test) for test in names))
            variables = {
                **PYTEST_ENVIRONMENT,
                "PYTHONPATH": python_path(_PLUGIN, *packages),
                "PYTHONDONTWRITEBYTECODE": "1",  # the sources stay clean
                "TRITON_INTERPRET": "1" if suite == "interpreter" else None,
            }
            yield SuiteCall(suite, suite, argv, root, variables, report)


def execute(
    tested: TestedBuild,
    planned: Sequence[SuiteCall],
    session: Session,
    tell: Callable[[str], None],
) -> tuple[SuiteTest, ...]:
    """Run the programs one after the other.

    Args:
        tested: the build.
        planned: the programs.
        session: session of the environment.
        tell: called with a line before each program.

    Raises:
        SmithError: the sanitizer of the build reported an error.
    """
    sanitizer = tested.settings.triton.sanitizer
    reports = tested.env.path / "sanitizer"
    variables: dict[str, str] = {}
    if sanitizer:
        before, variables = sanitized_run.environment(sanitizer, tested.env, reports, tested.space)
        session.run_unseen(before.steps)
    results: list[SuiteTest] = []
    for call in planned:
        tell(f"{call.suite}: {call.name}: {tested.folder / call.name / 'log'}")
        watched = dict(variables)
        # These programs are linked with the sanitizer's runtime; a preloaded second one would abort them.
        if call.suite in ("lit", "cpp"):
            watched.pop("LD_PRELOAD", None)
        results += _results(call, tested, {**watched, **call.variables})
    if sanitizer:
        head, lines = sanitized_run.first_error(reports, sanitizer)
        if head:
            raise SmithError(head, where=reports, why="\n".join(lines) or None)
    return without_known(results, tested.version)


def _results(call: SuiteCall, tested: TestedBuild, variables: dict[str, str | None]) -> tuple[SuiteTest, ...]:
    scratch = tested.folder / call.name
    # An older report would count if this program dies before it writes one.
    files.remove([call.report, scratch / "log"])
    code, _, last = run_isolated(call.argv, tested.env.python, call.cwd, scratch, variables)
    if call.unit:
        return read_gtest(call.report, call.unit, code, last)
    if call.suite == "lit":
        results = [of_lit(result) for result in read_lit(call.report) if result.code != "EXCLUDED"]
    else:
        results = [of_pytest(call.suite, result) for result in read_pytest(call.report)]
    # pytest ends with 5 where it collected nothing; `check` judges that over the whole suite.
    fine = code in (0, NO_TESTS) if call.suite != "lit" else code == 0
    # A program that dies writes no report, or half of one: without this row its
    # tests would just be missing.
    if not fine and not any(result.word == "failed" for result in results):
        results.append(SuiteTest(call.suite, call.argv[0], "failed", why=f"exit code {code}: {last}"))
    return tuple(results)


def check(selection: SuiteSelection, tests: Sequence[SuiteTest], log: Path) -> None:
    """Refuse a run in which a suite ran nothing.

    Raises:
        NothingRunError: a suite has no result but skips, so nothing is known of it.
    """
    # A suite whose tests are all skipped exits with 0, as if all was well.
    ran = {test.suite for test in tests if test.word != "skipped"}
    if empty := [suite for suite in selection.suites if suite not in ran]:
        skipped = sorted({test.why for test in tests if test.suite in empty and test.why})
        why = "\n".join([f"{what}: {reason}" for what, reason in selection.left_out] + skipped[:5])
        raise NothingRunError(f"no test of {', '.join(empty)} ran", where=log, why=why or None)
    if not selection.suites:
        why = "\n".join(f"{what}: {reason}" for what, reason in selection.left_out)
        raise NothingRunError("no test ran", why=why or None)


def packages(tested: TestedBuild, selection: SuiteSelection, interpreter: Path | None) -> tuple[Path, ...]:
    """Return folders with packages for the Python tests, besides the environment's own.

    Args:
        tested: the build.
        selection: the tests.
        interpreter: another Python that has the packages; None to look in the environment, then install them.

    Raises:
        SmithError: the packages cannot be installed.
    """
    tests = (*selection.gpu_less, *selection.interpreter)
    if not tests:
        return ()
    torch = any(_needs_torch(tested.root / test.partition("::")[0]) for test in tests)
    needed = ("pytest", "torch", "numpy") if torch else ("pytest",)
    if interpreter:
        return (packages_of(interpreter, tested, needed),)
    # Imported and not looked up: a torch for another Python or with a missing library
    # is there and does not load.
    if all(_has(tested, (), name) for name in needed):
        return ()
    if not torch:
        return (needed_packages(),)
    rows = configs.load(CONFIG)["packages"]
    row = next(row for row in rows if fits(row, tested.version))
    # The tests import torch even where the environment has none. They need no GPU, so the small build
    # of torch will do.
    torch_version = tested.settings.python.torch
    index = venv.torch_requirement("cpu" if torch_version == "none" else torch_version)
    # Requirements differ between minor releases (configs/test-suites.toml), so each has a folder.
    name = f"{_PACKAGES}-{'-'.join(map(str, tested.version.split('.')[:2]))}"
    return (installed_packages(name, TASK, index, tuple(row["requirements"])),)


def packages_of(interpreter: Path, tested: TestedBuild, needed: Sequence[str]) -> Path:
    """Return the packages of another interpreter.

    Raises:
        UsageError: the environment's Python cannot use them.
    """
    # Asked of the interpreter: Debian and conda have folders of their own.
    asks = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = process.capture((str(interpreter), "-c", asks))
    if not answer:
        raise UsageError("--packages names no Python", where=interpreter)
    folder = Path(answer)
    # The packages come before the environment's on the path.
    if (folder / "triton").exists():
        why = "tests would import its Triton"
        raise UsageError("--packages: this Python has its own Triton", where=folder / "triton", why=why)
    if missing := [name for name in needed if not _has(tested, (folder,), name)]:
        raise UsageError(
            f"--packages: the Python of {tested.env.name} cannot import {', '.join(missing)} from there",
            where=folder,
            hints=["the same minor version of Python", f"{interpreter} -m pip install {' '.join(missing)}"],
        )
    return folder


def _needs_torch(path: Path) -> bool:
    files_ = path.rglob("*.py") if path.is_dir() else (path,)
    return any(_TORCH.search(untrusted.read_text(file)) for file in files_)


def _has(tested: TestedBuild, folders: Sequence[Path], name: str) -> bool:
    change = {"PYTHONPATH": python_path(*folders)}
    answer = process.query((str(tested.env.python), "-c", f"import {name}"), change=change, timeout=120)
    return answer is not None and answer.code == 0


def run_isolated(
    argv: Sequence[str],
    python: Path,
    cwd: Path,
    scratch: Path,
    variables: Mapping[str, str | None] | None = None,
) -> tuple[int, Path, str]:
    """Run a program with an interpreter first on PATH, and with Triton caches of its own.

    Args:
        argv: program and arguments.
        python: the interpreter.
        cwd: working directory.
        scratch: folder for the caches and for the output.
        variables: environment variables to set or (None) to remove.

    Returns:
        Exit code, file with the output, and its last line.

    Raises:
        StepError: the program cannot be started.
    """
    files.make_folder(scratch)
    # A scheduler may run this on another machine, which need not share the folder.
    if not cwd.is_dir():
        hints = ["share it over the network, at the same path", "or omit --scheduler"]
        raise StepError(
            "this machine has no such folder to test in", where=f"{cwd} on {platform.node()}", hints=hints
        )
    log = scratch / "log"
    # PYTHONHOME would point this interpreter to the standard library of another.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    environ |= {
        "PATH": os.pathsep.join((str(python.parent), os.environ.get("PATH", ""))),
        "VIRTUAL_ENV": str(python.parent.parent),
        # The user's own cache is not filled with the kernels of thousands of tests.
        "TRITON_HOME": str(scratch),
        "TRITON_CACHE_DIR": str(scratch / "cache"),
    }
    environ = process.changed(environ, variables or {})
    last = ""

    def heard(line: str) -> None:
        nonlocal last
        last = line.strip() or last
        print(line, file=written)

    # `Popen` looks for a program on the PATH of this process and not on that of `env`.
    program = process.which(argv[0], environ["PATH"]) or argv[0]
    with files.opened_log(log) as written:
        try:
            code = programs.stream((program, *argv[1:]), cwd=cwd, env=environ, on_line=heard)
        except OSError as error:
            raise StepError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error
    return code, log, last[:_SHOWN_OUTPUT]


def run_cold(
    argv: Sequence[str],
    python: Path,
    cwd: Path,
    scratch: Path,
    variables: Mapping[str, str | None] | None = None,
) -> tuple[int, Path, str]:
    """Run a program like `run_isolated`, with an empty cache that is removed at the end."""
    # A repeated test would otherwise read what the first one compiled, and confirm nothing.
    files.make_folder(scratch)
    # Not in /tmp, which may be small or mounted noexec: Triton loads the launchers that it compiles there.
    with files.scratch("cache-", scratch) as cache:
        return run_isolated(argv, python, cwd, scratch, {**(variables or {}), "TRITON_CACHE_DIR": str(cache)})


def python_path(*folders: Path) -> str:
    """Return a value for `PYTHONPATH` with more folders at its end."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), *map(str, folders))))


def blocks(tests: Sequence[SuiteTest]) -> Iterator[Grid]:
    """Yield a table of the suites, and one of the failed tests."""
    rows = []
    for suite in SUITES:
        if mine := [test for test in tests if test.suite == suite]:
            count = count_by_word(mine)
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
            suite: {
                word: count_by_word(test for test in tests if test.suite == suite)[word] for word in _WORDS
            }
            for suite in SUITES
            if suite in selection.suites
        },
        "left_out": [{"what": what, "why": why} for what, why in selection.left_out],
        "tests": [test.as_json() for test in tests],
    }


def junit_xml(tests: Sequence[SuiteTest]) -> str:
    """Return the text of the file: one suite for each of ours; a known failure counts as skipped."""
    root = ET.Element("testsuites")
    for suite in SUITES:
        if mine := [test for test in tests if test.suite == suite]:
            _suite(root, suite, mine)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, suite: str, tests: Sequence[SuiteTest]) -> None:
    count = count_by_word(tests)
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
            # JUnit has no word for a failure that is expected; as a skip it does not turn a run red.
            known = "known failure: " if test.word == "known" else ""
            ET.SubElement(case, "skipped", message=_clean(known + test.why))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
