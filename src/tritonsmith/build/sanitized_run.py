"""`run --sanitizer`: run a program with an instrumented Triton and the sanitizer's runtime in its Python."""

from __future__ import annotations

import itertools
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write
from tritonsmith.core.plan.steps.base import AttachedRun, CommandFailedError, Tap
from tritonsmith.facts import tools

TASK = "run"
_CONFIG = "sanitizers"
_REPORTS = "report"  # the runtime appends `.PID`
_HEAD = re.compile(r"^(==\d+==)?(ERROR|WARNING): ")
_FRAME = re.compile(r"^ +#\d+ ")


@dataclass(frozen=True)
class SanitizedRun:
    """A program that is ready to run.

    Attributes:
        before: steps that create the folder of the reports.
        step: the program.
        folder: folder of the reports, which is kept.
        sanitizer: name of the sanitizer.
    """

    before: Plan
    step: AttachedRun
    folder: Path
    sanitizer: str

    @property
    def plan(self) -> Plan:
        """The complete plan."""
        return self.before + Plan(TASK, (self.step,))


def prepare(argv: Sequence[str], sanitizer: str, env: EnvDir, space: Workspace) -> SanitizedRun:
    """Make the plan.

    Args:
        argv: the program; `python` is the environment's.
        sanitizer: `address`, `undefined` or `thread`.
        env: environment whose Triton was built with it.
        space: the workspace.

    Raises:
        SmithError: the environment has no such build, or its runtime is missing.
    """
    known = [name for name in configs.load(_CONFIG) if name not in ("schema", "report", "gpu")]
    if sanitizer not in known:
        one_of = ", ".join((*known, *tools.sanitizer_tools()))
        what = f"--sanitizer cannot be {sanitizer!r}" if sanitizer else "--sanitizer is missing"
        raise UsageError(what, hints=[f"one of {one_of}"])
    if not argv:
        raise UsageError("no program is given", hints=["give it after the flags: -- python script.py"])
    folder = env.path / "sanitizer"
    before, environ = environment(sanitizer, env, folder, space)
    path = os.pathsep.join((str(env.python.parent), os.environ.get("PATH", os.defpath)))
    program = str(env.python) if argv[0] in ("python", "python3") else process.which(argv[0], path)
    if not program:
        raise FactError(
            f"no program {argv[0]}", hints=["give a path, or a name on PATH: -- python script.py"]
        )
    change = {**environ, "PATH": path, "VIRTUAL_ENV": str(env.venv)}
    step = AttachedRun((program, *argv[1:]), tuple(change.items()), folder / "stderr", phase="run")
    return SanitizedRun(before, step, folder, sanitizer)


def prepare_on_gpu(argv: Sequence[str], tool: str, env: EnvDir, space: Workspace) -> SanitizedRun:
    """Make the plan of a program whose kernels compute-sanitizer checks.

    Args:
        argv: the program; `python` is the environment's, if it has one.
        tool: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
        env: environment whose Python runs it.
        space: the workspace.

    Raises:
        SmithError: there is no such program, or no compute-sanitizer.
    """
    if not argv:
        raise UsageError("no program is given", hints=["give it after the flags: -- python script.py"])
    watcher = tools.find_sanitizer()
    folder = space.root / "sanitizer"
    path = os.environ.get("PATH", os.defpath)
    # An environment without a Python does not matter: the program may be any on PATH.
    if env.python.is_file():
        path = os.pathsep.join((str(env.python.parent), path))
    program = process.which(argv[0], path)
    if not program:
        raise FactError(
            f"no program {argv[0]}", hints=["give a path, or a name on PATH: -- python script.py"]
        )
    words = (*tools.sanitizer_argv(watcher, tool, folder / _REPORTS), program, *argv[1:])
    step = AttachedRun(words, (("PATH", path),), folder / "stderr", phase="run")
    before = (Remove((folder,), space.root, phase="prepare"), MakeDir(folder, phase="prepare"))
    return SanitizedRun(Plan(TASK, before), step, folder, tool)


def error_of(prepared: SanitizedRun) -> tuple[str, Sequence[str]]:
    """Return the first report of a run's sanitizer: its head, and the lines below; empty if there is none.

    Raises:
        SmithError: the sanitizer did not finish, so it is unknown whether there was an error.
    """
    if prepared.sanitizer not in tools.sanitizer_tools():
        return first_error(prepared.folder, prepared.sanitizer)
    report = untrusted.text_if_any(prepared.folder / _REPORTS)
    head, lines = tools.first_sanitizer_error(report)
    # Silence proves nothing unless the tool came to its summary.
    if not head and not tools.sanitizer_finished(report):
        raise SmithError(f"{prepared.sanitizer} did not finish", where=prepared.folder, why=report or None)
    return head, lines


def environment(sanitizer: str, env: EnvDir, folder: Path, space: Workspace) -> tuple[Plan, dict[str, str]]:
    """Return the plan for the reports' folder, and the variables of a program with instrumented libraries.

    Args:
        sanitizer: name of the sanitizer.
        env: environment whose Triton was built with it.
        folder: folder for the reports.
        space: the workspace.

    Raises:
        SmithError: the environment has no such build, or its runtime is missing.
    """
    row = configs.load(_CONFIG)[sanitizer]
    compiler = _compiler(sanitizer, env)
    runtime = _runtime(row, compiler)
    # Without a symbolizer the stacks are addresses; that of the compiler reads its debug information.
    symbolizer = process.which(process.capture((compiler, "-print-prog-name=llvm-symbolizer")) or "") or ""
    environ = _variables(row, runtime, folder, symbolizer)
    _check_loaded(row, env.python, environ)
    rows = row.get("suppressions", {}).get("rows", ())
    lines = "".join(f"# {suppression['why']}\n{suppression['line']}\n" for suppression in rows)
    before = (
        Remove((folder,), space.root, phase="prepare"),
        MakeDir(folder, phase="prepare"),
        *([Write(folder / "suppressions", lines, phase="prepare")] if lines else []),
    )
    return Plan(TASK, before), environ


def first_error(folder: Path, sanitizer: str) -> tuple[str, list[str]]:
    """Return the sanitizer's first report: its head, and the lines of its stack; empty if there is none."""
    row, most = configs.load(_CONFIG)[sanitizer], configs.load(_CONFIG)["report"]["frames"]
    # Each process of the program writes its own report; the oldest has the first error.
    reports = sorted(folder.glob(f"{_REPORTS}.*"), key=lambda path: path.stat().st_mtime)
    for report in reports:
        lines = untrusted.read_text(report).splitlines()
        first = next((number for number, line in enumerate(lines) if row["report"] in line), None)
        if first is not None:
            rest = list(itertools.takewhile(str.strip, lines[first + 1 :]))  # a blank line ends it
            frames = [number for number, line in enumerate(rest) if _FRAME.match(line)]
            end = frames[: int(most)][-1] + 1 if frames else 0
            return _HEAD.sub("", lines[first]).strip(), rest[:end]
    return "", []


def execute(prepared: SanitizedRun, space: Workspace, show: Callable[[bytes], None]) -> int:
    """Run the program, with its output on the terminal; return its exit code as a shell would."""
    space.claim()
    log = space.log(TASK)
    space.run(prepared.before, TASK, quiet=True, log=log)
    try:
        space.run(Plan(TASK, (prepared.step,)), TASK, quiet=True, log=log, tap=Tap(show, lambda: None))
    except CommandFailedError as failure:
        # As a shell reports a signal.
        return failure.code if failure.code >= 0 else 128 - failure.code
    return 0


def _compiler(sanitizer: str, env: EnvDir) -> str:
    """Return the compiler of the environment's Triton, which must be instrumented."""
    receipt = receipts.read(env.receipt("build-triton"))
    built = (receipt or {}).get("settings", {}).get("triton.sanitizer", "")
    if not receipt or built != sanitizer:
        how = f"it was built with the sanitizer {built}" if built else "it was built without a sanitizer"
        hints = [
            f"{command('build-triton', env=env.name, sanitizer=sanitizer)} builds it",
            f"{command('install-triton', env=env.name)} installs it",
        ]
        why = how if receipt else "nothing was built in it"
        what = f"the Triton of the environment {env.name} has no {sanitizer} sanitizer"
        raise SmithError(what, where=env.receipt("build-triton"), why=why, hints=hints)
    if not env.python.is_file():
        hints = [f"{command('install-triton', env=env.name)} makes it"]
        raise FactError("no Python interpreter", where=env.python, hints=hints)
    return str(receipt["compiler"]["path"])


def _runtime(row: Mapping[str, Any], compiler: str) -> Path:
    """Return the shared library of the runtime that belongs to a compiler."""
    kind = "clang" if "clang" in Path(compiler).name else "gcc"
    names = [name.format(machine=platform.machine()) for name in row["runtime"][kind]]
    for name in names:
        library = Path(process.capture((compiler, f"-print-file-name={name}")) or "")
        if library.is_absolute() and library.is_file():
            return library.resolve()
    hints = ["Debian: apt install libclang-rt-19-dev, the version of the compiler"] if kind == "clang" else []
    raise FactError(f"the compiler has no runtime {names[-1]}", where=compiler, hints=hints)


def _variables(row: Mapping[str, Any], runtime: Path, folder: Path, symbolizer: str) -> dict[str, str]:
    options = [f"log_path='{folder / _REPORTS}'", *(option["option"] for option in row.get("options", ()))]
    options_of: dict[str, list[str]] = {row["variable"]: options}
    if suppressions := row.get("suppressions"):
        options_of.setdefault(suppressions["variable"], []).append(
            f"suppressions='{folder / 'suppressions'}'"
        )
    joined = {
        name: ":".join([*parts, *filter(None, [os.environ.get(name, "")])])
        for name, parts in options_of.items()
    }
    # First in the list: ASan aborts if its runtime is not the first library. Python itself is not
    # instrumented, so it is not linked with it.
    preloaded = filter(None, [str(runtime), os.environ.get("LD_PRELOAD", "")])
    named = {row["variable"].replace("_OPTIONS", "_SYMBOLIZER_PATH"): symbolizer} if symbolizer else {}
    return {**joined, **named, "LD_PRELOAD": os.pathsep.join(preloaded)}


def _check_loaded(row: Mapping[str, Any], python: Path, environ: Mapping[str, str]) -> None:
    """Check that the runtime is really loaded in this Python."""
    # Tried for real: a Python that is linked statically, or setuid, ignores LD_PRELOAD without a word.
    asks = f"import ctypes; ctypes.CDLL(None).{row['symbol']}"
    options = {row["variable"]: environ[row["variable"]].partition(":")[2]}
    answer = process.query((str(python), "-c", asks), change={**environ, **options}, timeout=60)
    if answer is None or answer.code:
        why = answer.err.strip() if answer else "it does not end"
        what = "this Python does not start with the sanitizer's runtime"
        raise SmithError(what, where=environ["LD_PRELOAD"], why=why)
