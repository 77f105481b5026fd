"""`watch`: a command that runs again at each save, with the files and the build that it depends on."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

from tritonsmith.build import cmake, diagnose
from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.suites.results import FAILED, LIT_ENVIRONMENT, LitResult, lit_command, read_lit
from tritonsmith.build.triton import recipe
from tritonsmith.build.watch.files import (
    NamedPaths,
    PythonFiles,
    SavedError,
    Saves,
    WatchedFiles,
    files_of_tree,
)
from tritonsmith.build.watch.outcome import WatchedRun, WatchReport
from tritonsmith.compiler.dump import index
from tritonsmith.core import configs, process, redact, untrusted
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.settings import Purpose, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import Plan, files, programs
from tritonsmith.core.plan.fork_server import ForkServer
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import build_folder, checkout, machine

OnPart = Callable[[str | Grid], None]
_TASK = ("tritonsmith.core.ui.console:begin_records", "tritonsmith.cli.program:main")
_PROGRAM = "tritonsmith.core.plan.programs:exec_argv"
# Python considers bytecode current if the source has the same size and time stamp in seconds: two saves
# within one second would run the first one's code twice.
_NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
GRAPH = "build.ninja"
_BUILD_TASK = "watch"
_RUNS = 3  # consecutive runs with saves of one file before we ask whether the command writes it
_AT_ONCE = 1.0  # seconds after a run in which no person keeps saving
_OPT = "triton-opt"
_PYTHON = ("python", "pytest", "py.test")  # prefixes of programs that import Triton


class WatchedCommand(Protocol):
    """A command that `watch` runs."""

    def run(self, on_part: OnPart) -> WatchedRun:
        """Run it until it ends.

        Args:
            on_part: called with each line and table as it arrives.

        Raises:
            KeyboardInterrupt: ^C; all of its processes were stopped.
        """


class WatchedTask:
    """A task of this tool.

    Args:
        server: the server that runs it.
        words: its name and arguments.
    """

    def __init__(self, server: ForkServer, words: Sequence[str]) -> None:
        self._server, self._argv = server, (sys.argv[0], *words)

    @staticmethod
    def server() -> ForkServer:
        """Return the server that runs tasks, a context manager."""
        return ForkServer(*_TASK, environ=_NO_BYTECODE)

    def run(self, on_part: OnPart) -> WatchedRun:
        """Run the task, as described in `WatchedCommand`."""
        parts: list[str | Grid] = []
        files: list[Path] = []

        def on_line(line: str) -> None:
            record = console.parse_record(line)
            if "file" in record:
                files.append(Path(record["file"]))
                return
            parts.append(Grid.of_json(record["table"]) if record else line)
            on_part(parts[-1])

        code = self._server.run(self._argv, on_line)
        # Read at once: the next run writes the same files.
        texts = {str(path): untrusted.read_text(path) for path in files if untrusted.is_file(path)}
        return WatchedRun(code, tuple(parts), texts)


class WatchedProgram:
    """A command of the user's, in the current folder.

    Args:
        server: the server that runs it, and ends it with its children when this process is killed.
        argv: program and arguments.
    """

    def __init__(self, server: ForkServer, argv: Sequence[str]) -> None:
        self._server, self._argv = server, tuple(argv)

    @staticmethod
    def server() -> ForkServer:
        """Return the server that runs commands, a context manager."""
        return ForkServer(_PROGRAM, environ=_NO_BYTECODE)

    def run(self, on_part: OnPart) -> WatchedRun:
        """Run the program, as described in `WatchedCommand`."""
        parts: list[str] = []
        hide = redact.SecretLines()

        def on_line(line: str) -> None:
            parts.append(hide(line))
            on_part(parts[-1])

        return WatchedRun(self._server.run(self._argv, on_line), tuple(parts))


class WatchedTests:
    """Lit tests of a build.

    Args:
        build: the build under test.
        pattern: regular expression for their names.

    Raises:
        FactError: lit is missing, or no test is configured.
    """

    def __init__(self, build: WatchedBuild, pattern: str) -> None:
        program = build.env.venv / "bin" / "lit"
        self._lit, self._pattern, self._folder = program, pattern, build.folder / "test"
        if not program.is_file():
            hints = ["invoke build-triton installs it into the environment"]
            raise FactError("this environment has no lit", where=program, hints=hints)
        if not (self._folder / checkout.LIT_SITE).is_file():
            raise FactError(
                "this build has no lit tests", where=self._folder, why=f"it has no {checkout.LIT_SITE}"
            )

    def run(self, on_part: OnPart) -> WatchedRun:
        """Run the tests, as described in `WatchedCommand`."""
        output: list[str] = []
        hide = redact.SecretLines()
        with files.scratch("lit-") as scratch:
            report = scratch / "tests.json"
            # The results come from lit's JSON and not from its output, whose form depends on the terminal.
            argv = lit_command(str(self._lit), report, self._folder, pattern=self._pattern)
            env = process.changed(os.environ, LIT_ENVIRONMENT)
            code = programs.stream(
                argv, cwd=self._folder, env=env, on_line=lambda line: output.append(hide(line))
            )
            results = read_lit(report)
        parts = tuple(_parts(results)) if results else tuple(output)
        for part in parts:
            on_part(part)
        return WatchedRun(code, parts)


def _parts(tests: Sequence[LitResult]) -> list[str | Grid]:
    """Return a table of the results, and the output of the failed tests."""
    chosen = [test for test in tests if test.code != "EXCLUDED"]
    rows = [(test.name, test.code) for test in chosen]
    styles = ["red" if code in FAILED else "" for _, code in rows]
    counts = Counter(code for _, code in rows)
    parts: list[str | Grid] = [tables.plain("lit tests", ["test", "result"], rows, styles=styles)]
    for test in chosen:
        if test.code in FAILED:
            parts += test.output.strip().splitlines()
    return [*parts, ", ".join(f"{number} {code}" for code, number in sorted(counts.items()))]


@dataclass(frozen=True)
class WatchedBuild:
    """A build folder of Triton, and the targets that a command needs.

    Attributes:
        folder: CMake's build folder.
        source: the checkout that it builds.
        targets: Ninja's targets; all if empty.
        jobs: number of parallel compiles.
        space: the workspace.
    """

    folder: Path
    source: Path
    targets: tuple[str, ...]
    jobs: int
    space: Workspace

    @property
    def env(self) -> EnvDir:
        """The environment of the folder, if it is in one."""
        return self.space.env(self.folder.parent.name)

    def run(self) -> WatchedRun | None:
        """Build, and return the outcome of a failure. Ninja runs TableGen, and CMake again, if they are due.

        Raises:
            KeyboardInterrupt: ^C; all processes were stopped.
        """
        phase = f"build {' '.join(self.targets) or 'all'}"
        step = cmake.build_targets(
            self.folder, cmake.own_tools(), targets=self.targets, jobs=self.jobs, phase=phase
        )
        plan = Plan(f"{phase} in {self.folder}", (step,))
        try:
            if self.env.build == self.folder:
                # An environment's folder is built under its lock, so that `watch` and
                # `build-triton` do not write it at once.
                with receipts.open_session(_BUILD_TASK, self.env.name) as running:
                    running.run(plan)
            else:
                self.space.claim()
                self.space.run(plan, _BUILD_TASK)
        except InterruptedRunError:
            raise
        except CommandFailedError as failure:
            return _failed(diagnose.explain(failure))
        except SmithError as error:
            return _failed(error)
        return None


def build_of(folder: Path, purpose: Purpose, settings: Settings, space: Workspace) -> WatchedBuild | None:
    """Return the build of a folder for a purpose; None if the folder was never configured.

    Args:
        folder: the build folder.
        purpose: purpose, as for `build-triton --for`.
        settings: settings that bound the jobs.
        space: the workspace.
    """
    # A folder that was never configured has no graph, and `watch` does not begin a first build of an hour.
    cache = build_folder.read_cmake_cache(folder) if (folder / GRAPH).is_file() else None
    source = Path(cache.get("CMAKE_HOME_DIRECTORY")) if cache else None
    if source is None or not source.is_dir():
        return None
    targets = recipe.resolve_targets(replace(settings.triton, targets=(), for_=purpose), source)
    jobs = bounded_jobs(machine.read(), settings.toolchain, settings.llvm.debug_info).compile
    return WatchedBuild(folder, source, targets, jobs, space)


def is_built(path: Path) -> bool:
    """Report whether a file is compiled, read by TableGen, or read by CMake."""
    return any(fnmatch(path.name, name) for name in configs.load("watch")["built"]["names"])


def stale_files(saved: Iterable[Path]) -> bool:
    """Report whether something must be built after these files were saved."""
    return any(map(is_built, saved))


def _failed(error: SmithError) -> WatchedRun:
    return WatchedRun(1, tuple(console.typed(f"error: {error}").splitlines()), what="build")


def follow(
    command: WatchedCommand, watched: Sequence[WatchedFiles], build: WatchedBuild | None = None
) -> None:
    """Run a command, and again at each save, until ^C.

    Args:
        command: the command.
        watched: the files that it depends on.
        build: the build that it needs; None for none.

    Raises:
        SmithError: the files cannot be watched.
        KeyboardInterrupt: ^C; all processes were stopped.
    """
    attempts = _Attempts(command, build)
    report = WatchReport()
    saved: frozenset[Path] = frozenset()
    own = _OwnSaves()
    with Saves(watched) as saves:
        while True:
            try:
                with saves.heeded():
                    result, seconds = attempts.make(saved, report.part)
            except (SavedError, InterruptedRunError) as error:
                # The runner turns every KeyboardInterrupt into its own error, a save's too: the
                # context tells them apart.
                cause = error.__context__ if isinstance(error, InterruptedRunError) else error
                if not isinstance(cause, SavedError):  # ^C, perhaps while a save stopped the build
                    raise
                saved |= own.wait(saves)
                continue
            report.run(result, saved, seconds)
            saved = own.wait(saves)


class _OwnSaves:
    """Notices files that are saved during, or right after, consecutive runs."""

    def __init__(self) -> None:
        self._again: Counter[Path] = Counter()

    def wait(self, saves: Saves) -> frozenset[Path]:
        """Wait for the next save; note, once, that the command itself seems to write these files."""
        began = time.monotonic()
        saved = saves.wait()
        # A save within a second after the end of a run is hardly a person's. Three in a row, and the
        # command writes what it is started by.
        at_once = saved if time.monotonic() - began < _AT_ONCE else frozenset()
        self._again = Counter({path: self._again[path] + 1 for path in at_once})
        if suspects := sorted(path.name for path, count in self._again.items() if count == _RUNS):
            console.note(
                f"{', '.join(suspects)} was saved at each of the last {_RUNS} runs: "
                "does the command write this? Then let git ignore it, or name what to watch by --path"
            )
        return saved


class _Attempts:
    """Build if something is stale, then run."""

    def __init__(self, command: WatchedCommand, build: WatchedBuild | None) -> None:
        self._command, self._build = command, build
        self._stale = True

    def make(self, saved: frozenset[Path], on_part: OnPart) -> tuple[WatchedRun, dict[str, float]]:
        """Return the outcome after these files were saved, and the duration of each part in seconds."""
        seconds: dict[str, float] = {}
        self._stale = self._stale or stale_files(saved)
        if self._build and self._stale:
            began = time.monotonic()
            failed = self._build.run()
            seconds["build"] = time.monotonic() - began
            if failed:
                return failed, seconds
        self._stale = False
        began = time.monotonic()
        result = self._command.run(on_part)
        seconds["run"] = time.monotonic() - began
        return result, seconds


@dataclass(frozen=True)
class Dependencies:
    """The dependencies of a command.

    Attributes:
        files: the files whose saves matter.
        build: the build that it needs; None for none.
    """

    files: tuple[WatchedFiles, ...]
    build: WatchedBuild | None = None


def of_task(name: str, values: Mapping[str, Any], named: Sequence[Path], space: Workspace) -> Dependencies:
    """Return the dependencies of a task of this tool.

    Args:
        name: name of the task.
        values: arguments of its body.
        named: additional files and folders.
        space: the workspace.

    Raises:
        UsageError: there is nothing to watch.
    """
    files = [file for text in _texts(values) if (file := _file(text))]
    task_build = _build_of_task(name, values, space)
    if not files and not named and not task_build:
        hints = ["name it: --path FILE_OR_FOLDER"]
        raise UsageError("nothing to watch: this task names no file", hints=hints)
    sources = (files_of_tree(task_build.source, _compiles),) if task_build else ()
    python = PythonFiles(file for file in files if file.suffix == ".py")
    return Dependencies((python, NamedPaths([*named, *files]), *sources), task_build)


def of_command(
    argv: Sequence[str], named: Sequence[Path], env: str, source: Path | None, space: Workspace
) -> Dependencies:
    """Return the dependencies of a command of the user's.

    Args:
        argv: program and arguments.
        named: files and folders to watch instead of the current one.
        env: environment whose build of this checkout the command uses.
        source: checkout; None for the one around the current folder.
        space: the workspace.
    """
    # The command is the user's, and tells nothing of what it reads: the whole tree around it is watched.
    here = source or checkout.enclosing(Path.cwd())
    chosen = settings.load(env)
    folder = space.env(chosen.name).build
    watched_build = build_of(folder, _purpose(argv), chosen, space)
    if watched_build is None or here is None or watched_build.source.resolve() != here.resolve():
        watched_build = None
    files: list[WatchedFiles] = [NamedPaths(named)] if named else [files_of_tree(here or Path.cwd())]
    if watched_build and named:
        files.append(files_of_tree(watched_build.source, _compiles))
    return Dependencies(tuple(files), watched_build)


def of_tests(
    named: Sequence[Path], env: str, space: Workspace
) -> tuple[WatchedBuild, tuple[WatchedFiles, ...]]:
    """Return the build that an environment's lit tests need, and the files that they depend on.

    Raises:
        FactError: the environment has no build.
    """
    chosen = settings.load(env)
    watched_build = build_of(space.env(chosen.name).build, "tests", chosen, space)
    if watched_build is None:
        hints = ["run `invoke build-triton --for tests` first, or use another environment: --env NAME"]
        where = space.env(chosen.name).build
        raise FactError(f"environment {chosen.name!r} has no build of Triton", where=where, hints=hints)
    tests = watched_build.source / "test"
    sources = files_of_tree(watched_build.source, lambda path: is_built(path) or path.is_relative_to(tests))
    return watched_build, (sources, NamedPaths(named))


def _build_of_task(name: str, values: Mapping[str, Any], space: Workspace) -> WatchedBuild | None:
    """Return the build that a task on kernels or dumps needs, by its choice of program or interpreter."""
    group, _, _ = name.partition(".")
    if group not in ("kernel", "passes"):
        return None
    opt, env, python = (_value(values, argument) for argument in ("triton_opt", "env", "python"))
    chosen = settings.load(env or "dev")
    if opt:
        # BUILD/bin/triton-opt, whatever link it was named by.
        return build_of(Path(opt).resolve().parent.parent, "opt", chosen, space)
    if env and not python:
        folder = space.env(chosen.name).build
        # Passes are replayed by triton-opt if the build has one, else by the Python
        # module: only that is rebuilt.
        replays = group == "passes" and (folder / "bin" / _OPT).is_file()
        return build_of(folder, "opt" if replays else "python", chosen, space)
    return _build_of_python(python or _python_of_dump(values), chosen, space)


def _build_of_python(python: str, chosen: Settings, space: Workspace) -> WatchedBuild | None:
    """Return the build of the environment that an interpreter belongs to."""
    path = Path(python)
    if not python or len(path.parents) < 3:  # noqa: PLR2004 - NAME/venv/bin/python
        return None
    env = space.env(path.parents[2].name)
    return build_of(env.build, "python", chosen, space) if env.python == path else None


def _python_of_dump(values: Mapping[str, Any]) -> str:
    """Return the interpreter that wrote a dump, which also replays it by default."""
    folder = values.get("folder")
    if not isinstance(folder, Path) or not (folder / index.FILE).is_file():
        return ""
    return index.read(folder).python


def _purpose(argv: Sequence[str]) -> Purpose:
    """Return the purpose of the build that a command needs: `triton-opt`, the Python module, or both."""
    names = {Path(word).name for word in argv}
    program = Path(argv[0]).name
    if program.startswith(_PYTHON) and _OPT not in names:
        return "python"
    return "opt" if program == _OPT else "all"


def _compiles(path: Path) -> bool:
    return is_built(path) or path.suffix == ".py"


def _value(values: Mapping[str, Any], name: str) -> str:
    """Return an argument, or a field of one, as text."""
    held = [values, *(vars(holder) for holder in values.values() if is_dataclass(holder))]
    return next((str(holder[name]) for holder in held if holder.get(name)), "")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        yield from _texts(tuple(value.values()))
    elif is_dataclass(value):
        yield from _texts(tuple(getattr(value, item.name) for item in fields(value)))


def _file(text: str) -> Path | None:
    """Return the file of FILE or FILE:KERNEL; None for a program or a file without a suffix."""
    # The whole text first: a file's own name may contain a colon.
    for name in (text, text.rpartition(":")[0]):
        path = Path(name).expanduser().absolute() if name else None
        # An interpreter or compiler among the arguments has no suffix, and does not
        # change while one watches.
        if path and path.is_file() and path.suffix:
            return path
    return None
