"""Run a user's program so that the worker starts first in each of its Python processes.

`prepare` and `execute` change the passes of its compiles: some are skipped, repeated or made the last.
Captures and profiles run a program in the same way, with a request of their own: see `watched_step`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import call
from tritonsmith.compiler.call import WorkerRequest
from tritonsmith.compiler.request import Surgery
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write
from tritonsmith.core.plan.steps.base import AttachedRun, CommandFailedError, Tap
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import OperatedRow, OperateRequest

EXAMPLE = " -- python script.py"
_TASK = "passes.run"


@dataclass(frozen=True)
class PreparedProgram:
    """A program that is ready to run.

    Attributes:
        before: steps that make the scratch folder.
        step: the program.
        after: steps that clear up.
        work: the scratch folder.
        surgery: what to change in each compile.
    """

    before: Plan
    step: AttachedRun
    after: Plan
    work: Path
    surgery: Surgery

    @property
    def plan(self) -> Plan:
        """The whole plan, in order."""
        return self.before + Plan("run", (self.step,)) + self.after


@dataclass(frozen=True)
class ProgramRun:
    """The result of the program.

    Attributes:
        compiles: one row per compile.
        code: the program's exit code, as a shell would report it.
    """

    compiles: tuple[OperatedRow, ...]
    code: int


def prepare(argv: Sequence[str], surgery: Surgery, python: Path | None, space: Workspace) -> PreparedProgram:
    """Make the plan.

    Raises:
        SmithError: there is no such program.
    """
    work = space.root / "passes" / ".run" / str(os.getpid())
    request = OperateRequest(str(work / "results"), surgery.request())
    step, site = watched_step(argv, python, request, work, command("passes.replay"))
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        *site,
    )
    clear = (Remove((work,), space.root, phase="clear"),)
    return PreparedProgram(Plan("run", before), step, Plan("clear up", clear), work, surgery)


def execute(prepared: PreparedProgram, space: Workspace) -> ProgramRun:
    """Run the program, with its output on the terminal.

    Raises:
        SmithError: its Python has no Triton.
    """
    space.claim()
    log = space.log(_TASK)
    space.run(prepared.before, _TASK, quiet=True, log=log)
    try:
        code = run_step(prepared.step, space, _TASK, log)
        # A program may survive a failed import of Triton, so its exit code decides.
        if code:
            check_triton(prepared.step, command("passes.replay", env="wheel"))
        return ProgramRun(tuple(call.noted(prepared.work / "results", OperatedRow)), code)
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def check(program_run: ProgramRun) -> None:
    """Check that the program was compiled as asked for.

    Raises:
        SmithError: nothing was compiled, or something asked for had no effect on any kernel.
    """
    # A compile without passes was answered by a cache.
    compiled = [row for row in program_run.compiles if row.passes]
    if not compiled:
        hints = [
            "check that it launches a Triton kernel, and that its Python is not started with -I or -E",
            f"or name the interpreter: {command('passes.replay', env='wheel')}{EXAMPLE}",
        ]
        raise SmithError("the program compiled no kernel with this surgery", hints=hints)
    # One of several kernels may lack the pass: that is no error, as long as another one has it.
    if all(row.unmet for row in compiled):
        raise SmithError("no kernel was compiled as requested", why=compiled[0].unmet)


def describe_changes(row: OperatedRow, surgery: Surgery) -> list[str]:
    """Describe in words the changes that the surgery made to a compile."""
    words = [
        f"{'without' if not run['times'] else 'twice'} {run['pass']}#{run['number']}"
        for run in row.passes
        if run["times"] != 1
    ]
    return [
        *words,
        *(f"LLVM {option}" for option in surgery.llvm),
        *(f"ptxas {flag}" for flag in surgery.ptxas),
    ]


def interpreter(env: str, python: Path | None, space: Workspace) -> Path | None:
    """Return the interpreter that flags name; None if they name none.

    Raises:
        FactError: it does not exist.
    """
    if python is None and not env:
        return None
    path = python or space.env(settings.load(env).name).python
    if not (path.is_file() and os.access(path, os.X_OK)):
        hints = [f"{command('up', env=env)} creates it"] if env else ["give the path of an interpreter"]
        raise FactError("no Python interpreter", where=path, hints=hints)
    return path


def watched_step(
    argv: Sequence[str],
    python: Path | None,
    request: WorkerRequest,
    work: Path,
    command_line: str,
    variables: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
) -> tuple[AttachedRun, tuple[Write, ...]]:
    """Return the step that runs the program, and the files to write before it.

    Args:
        argv: the program; flags alone are flags of Python itself, as in `-m pytest`.
        python: replaces `python`, and its folder is put before PATH; None to use PATH as it is.
        request: the request for the worker.
        work: the scratch folder, which holds the caches of this run.
        command_line: the command that runs it, without the program, for errors.
        variables: facts about the GPU as environment variables; the user's own override them.
        folders: put before the user's PYTHONPATH.

    Raises:
        UsageError: no program is given.
        FactError: the program does not exist.
    """
    if not argv:
        raise UsageError("no program is given", hints=[f"give it after the flags: {command_line}{EXAMPLE}"])
    # A flag of Python's or a script, as in `-- -m pytest`, implies `python`.
    words = [*(["python"] if argv[0].startswith("-") or argv[0].endswith(".py") else []), *argv]
    programs = [str(python.parent)] if python else []
    path = os.pathsep.join([*programs, os.environ.get("PATH", os.defpath)])
    if python and words[0] in ("python", "python3"):
        words[0] = str(python)
    elif (resolved := process.which(words[0], path)) is None:
        hints = ["give a path, or a name on PATH: -- python script.py"]
        raise FactError(f"no program {words[0]}", hints=hints)
    else:
        words[0] = resolved
    # Python imports `sitecustomize` from the first folder of its path that has one; ours runs the user's
    # afterwards.
    paths = [str(work / "site"), *map(str, folders), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    environ: dict[str, str | None] = {
        **dict.fromkeys(configs.load("kernels")["variables"]["unset"]),
        **{name: text for name, text in (variables or {}).items() if name not in os.environ},
        # Caches of this run alone: a kernel that an earlier run left there would not be compiled, nor
        # recorded.
        **{name: str(work / folder) for name, folder in configs.load("capture")["caches"].items()},
        "PYTHONPATH": os.pathsep.join(paths),
        **({"PATH": path, "VIRTUAL_ENV": str(python.parents[1])} if python else {}),
    }
    step = AttachedRun(tuple(words), tuple(environ.items()), work / "stderr", phase="run")
    file = work / "request.json"
    return step, (
        Write(file, text_of(request, 2) + "\n", phase="prepare"),
        Write(work / "site" / "sitecustomize.py", call.site(request, file), phase="prepare"),
    )


def run_step(
    step: AttachedRun,
    space: Workspace,
    task: str,
    log: Path,
    *,
    feed: Callable[[bytes], object] | None = None,
    seconds: float = 0.0,
) -> int:
    """Run the program with its output on the terminal; return its exit code, as a shell would report it.

    Args:
        step: the step.
        space: the workspace.
        task: the task, for the log.
        log: the log.
        feed: gets what the program writes to standard error; None to pass it on.
        seconds: the program is killed after this time; 0 for no limit.

    Raises:
        SmithError: the program did not end in time.
    """
    feed = feed or pass_on
    end = time.monotonic() + seconds

    def check() -> None:
        if seconds and time.monotonic() > end:
            raise SmithError(f"the program did not end within {seconds:g} s", where=step.argv[-1])

    def read(data: bytes) -> None:
        feed(data)
        check()  # a program that prints for ever is never idle

    try:
        space.run(Plan("run", (step,)), task, quiet=True, log=log, tap=Tap(read, check))
    except CommandFailedError as failure:
        # A negative code is a signal, for which shells add 128.
        return failure.code if failure.code >= 0 else 128 - failure.code
    return 0


def pass_on(data: bytes) -> None:
    """Pass on the program's standard error."""
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


def check_triton(step: AttachedRun, command_line: str) -> None:
    """Check that the program's Python had Triton.

    Args:
        step: the program that failed.
        command_line: the command that ran it, with an environment that has Triton.

    Raises:
        SmithError: it could not import Triton.
    """
    if "No module named 'triton'" in untrusted.text_if_any(step.errors):
        raise SmithError(
            "the program needs triton, which its Python does not have",
            where=step.argv[0],
            why="without --env and --python, a program runs with the Python on PATH",
            hints=[
                f"use an environment: {command_line}{EXAMPLE}",
                "or an interpreter of yours that has it: --python PATH",
            ],
        )
