"""Run a user's program so that the worker starts first in each of its Python processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonsmith.compiler import call
from tritonsmith.compiler.call import WorkerRequest
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.plan.steps.base import CommandFailedError, Tap
from tritonsmith.core.plan.steps.run import AttachedRun
from tritonsmith.worker.border import text_of

EXAMPLE = " -- python script.py"


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


def prepare(
    argv: Sequence[str],
    python: Path | None,
    request: WorkerRequest,
    work: Path,
    asked_by: str,
    variables: Mapping[str, str] | None = None,
) -> tuple[AttachedRun, tuple[Write, ...]]:
    """Return the step that runs the program, and the files to write before it.

    Args:
        argv: the program; flags alone are flags of Python itself, as in `-m pytest`.
        python: replaces `python`, and its folder is put before PATH; None to use PATH as it is.
        request: for the worker.
        work: the scratch folder, which holds the caches of this run.
        asked_by: the command that runs it, without the program.
        variables: facts about the GPU as environment variables; the user's own override them.

    Raises:
        UsageError: no program is given.
        FactError: the program does not exist.
    """
    if not argv:
        raise UsageError("no program is given", hints=[f"give it after the flags: {asked_by}{EXAMPLE}"])
    words = [*(["python"] if argv[0].startswith("-") or argv[0].endswith(".py") else []), *argv]
    folders = [str(python.parent)] if python else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    if python and words[0] in ("python", "python3"):
        words[0] = str(python)
    elif (resolved := process.which(words[0], path)) is None:
        hints = ["give a path, or a name on PATH: -- python script.py"]
        raise FactError(f"no program {words[0]}", hints=hints)
    else:
        words[0] = resolved
    paths = [str(work / "site"), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    environ: dict[str, str | None] = {
        **dict.fromkeys(configs.load("kernels")["variables"]["unset"]),
        **{name: text for name, text in (variables or {}).items() if name not in os.environ},
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


def run(step: AttachedRun, space: Workspace, asked_by: str, log: Path) -> int:
    """Run the program with its output on the terminal; return its exit code, as a shell would report it."""
    try:
        space.run(Plan("run", (step,)), asked_by, quiet=True, log=log, tap=Tap(show, lambda: None))
    except CommandFailedError as failure:
        return failure.code if failure.code >= 0 else 128 - failure.code
    return 0


def check_triton(step: AttachedRun, asked_by: str) -> None:
    """Check that the program's Python had Triton.

    Args:
        step: the program that failed.
        asked_by: the command that ran it, with an environment that has Triton.

    Raises:
        SmithError: it could not import Triton.
    """
    if "No module named 'triton'" in untrusted.text_if_any(step.errors):
        raise SmithError(
            "the program needs triton, which its Python does not have",
            where=step.argv[0],
            why="without --env and --python, a program runs with the Python on PATH",
            hints=[
                f"use an environment: {asked_by}{EXAMPLE}",
                "or an interpreter of yours that has it: --python PATH",
            ],
        )


def show(data: bytes) -> None:
    """Pass on the program's standard error."""
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()
