"""`test-triton`: build what the tests need, run them suite by suite, and gather the results."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build import sanitized_run
from tritonsmith.build.prepared_build import PreparedBuild
from tritonsmith.build.suites import isolated_run
from tritonsmith.build.suites.results import (
    CONFIG,
    LIT_ENVIRONMENT,
    NO_TESTS,
    PYTEST_ENVIRONMENT,
    SuiteName,
    SuiteTest,
    UnitTest,
    cmake_arguments,
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
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.session import Session
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.facts import checkout, cmake_cache
from tritonsmith.wheels import venv

TASK = "test-triton"
_PLUGIN = Path(__file__).parent / "plugin"
_PLUGIN_NAME = "tritonsmith_stub_driver"
_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)
_PACKAGES = "pytest-torch"  # the tool's environment with the packages for Python tests


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
    cache = cmake_cache.read(place.build)
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
            parallel = ("-n", str(jobs)) if jobs > 1 and _has(tested, packages, "xdist") else ()
            options = (
                f"--rootdir={root}",
                "-p",
                _PLUGIN_NAME,
                "--continue-on-collection-errors",
                "--tb=short",
            )
            argv = pytest_command(report, *options, *more, *parallel, *(str(root / test) for test in names))
            variables = {
                **PYTEST_ENVIRONMENT,
                "PYTHONPATH": isolated_run.python_path(_PLUGIN, *packages),
                "PYTHONDONTWRITEBYTECODE": "1",  # the sources stay clean
                "TRITON_INTERPRET": "1" if suite == "interpreter" else None,
            }
            yield SuiteCall(suite, suite, argv, root, variables, report)


def execute(
    tested: TestedBuild,
    made: Sequence[SuiteCall],
    session: Session,
    tell: Callable[[str], None],
) -> tuple[SuiteTest, ...]:
    """Run the programs one after the other.

    Args:
        tested: the build.
        made: the programs.
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
    for call in made:
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
    files.remove([call.report, scratch / "log"])
    code, _, last = isolated_run.run(call.argv, tested.env.python, call.cwd, scratch, variables)
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


def packages(tested: TestedBuild, selection: SuiteSelection, given: Path | None) -> tuple[Path, ...]:
    """Return folders with packages for the Python tests, besides the environment's own.

    Args:
        tested: the build.
        selection: the tests.
        given: interpreter with the packages; None to look in the environment, then install them.

    Raises:
        SmithError: the packages cannot be installed.
    """
    tests = (*selection.gpu_less, *selection.interpreter)
    if not tests:
        return ()
    torch = any(_needs_torch(tested.root / test.partition("::")[0]) for test in tests)
    needed = ("pytest", "torch", "numpy") if torch else ("pytest",)
    if given:
        return (packages_of(given, tested, needed),)
    # Imported and not looked up: a torch for another Python or with a missing library
    # is there and does not load.
    if all(_has(tested, (), name) for name in needed):
        return ()
    if not torch:
        return (needed_packages(),)
    rows = configs.load(CONFIG)["packages"]
    row = next(row for row in rows if fits(row, tested.version))
    torch_version = tested.settings.python.torch
    index = venv.torch_requirement("cpu" if torch_version == "none" else torch_version)
    name = f"{_PACKAGES}-{'-'.join(map(str, tested.version.split('.')[:2]))}"
    return (installed_packages(name, TASK, index, tuple(row["requirements"])),)


def _needs_torch(path: Path) -> bool:
    files_ = path.rglob("*.py") if path.is_dir() else (path,)
    return any(_TORCH.search(untrusted.read_text(file)) for file in files_)


def packages_of(given: Path, tested: TestedBuild, needed: Sequence[str]) -> Path:
    """Return the packages of another interpreter.

    Raises:
        UsageError: the environment's Python cannot use them.
    """
    # Asked of the interpreter: Debian and conda have folders of their own.
    asks = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = process.capture((str(given), "-c", asks))
    if not answer:
        raise UsageError("--packages names no Python", where=given)
    folder = Path(answer)
    # The packages come before the environment's on the path.
    if (folder / "triton").exists():
        why = "tests would import its Triton"
        raise UsageError("--packages: this Python has its own Triton", where=folder / "triton", why=why)
    if missing := [name for name in needed if not _has(tested, (folder,), name)]:
        raise UsageError(
            f"--packages: the Python of {tested.env.name} cannot import {', '.join(missing)} from there",
            where=folder,
            hints=["the same minor version of Python", f"{given} -m pip install {' '.join(missing)}"],
        )
    return folder


def _has(tested: TestedBuild, folders: Sequence[Path], name: str) -> bool:
    change = {"PYTHONPATH": isolated_run.python_path(*folders)}
    answer = process.query((str(tested.env.python), "-c", f"import {name}"), change=change, timeout=120)
    return answer is not None and answer.code == 0


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
