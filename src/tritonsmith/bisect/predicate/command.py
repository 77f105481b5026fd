"""A user's command, by the interpreter of each Triton; exit codes as in `git bisect run`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.bisect.outcome import BisectOutcome, Verdict
from tritonsmith.bisect.predicate import pool
from tritonsmith.bisect.predicate.protocol import Outcomes
from tritonsmith.errors import StepError, UsageError
from tritonsmith.kernels.batch import wheel_env
from tritonsmith.kernels.batch.spec import CompilerSpec
from tritonsmith.kernels.compile.folder_name import folder_name
from tritonsmith.plan import files, process

SKIP = 125
ABORT = 128  # and above; below zero where a signal ended it
_SHOWN = 100  # characters of the last line


@dataclass(frozen=True)
class CommandPredicate:
    """A command whose exit code says what a Triton is.

    Attributes:
        argv: program and arguments; `python` is the interpreter that has the Triton.
        cwd: where it runs.
        scratch: folder for Triton's caches, and for what the command prints.
        scheduler: address of a Dask scheduler, whose workers see the same folders; empty for this machine.
        jobs: commands at once.
    """

    argv: tuple[str, ...]
    cwd: Path
    scratch: Path
    scheduler: str = ""
    jobs: int = 1

    def outcomes(self, tritons: Sequence[CompilerSpec]) -> Outcomes:
        """Run it for several Tritons, as many at once as was asked for."""
        return pool.results(self.test, tritons, self.scheduler, self.jobs)

    def test(self, triton: CompilerSpec) -> BisectOutcome:
        """Run it.

        Raises:
            StepError: it cannot be started, or its exit code ends the bisect.
        """
        try:
            python = wheel_env.place_of(triton).python
        except UsageError as error:
            return BisectOutcome(Verdict.SKIP, why=error.what)
        began = time.monotonic()
        code, log, last = run(self.argv, python, self.cwd, self.scratch / folder_name(triton.label))
        seconds = time.monotonic() - began
        figures = f"exit code {code}" + (f": {last}" if last else "")
        if code < 0 or code >= ABORT:
            raise StepError(f"the command ended the bisect: exit code {code}", where=log, why=last or None)
        if code == SKIP:
            return BisectOutcome(Verdict.SKIP, figures, f"the command skips it: exit code {SKIP}", seconds)
        return BisectOutcome(Verdict.BAD if code else Verdict.GOOD, figures, seconds=seconds)


def run(
    argv: Sequence[str],
    python: Path,
    cwd: Path,
    scratch: Path,
    variables: Mapping[str, str | None] | None = None,
) -> tuple[int, Path, str]:
    """Run a program with an interpreter first on PATH, and caches of Triton's of its own.

    Args:
        argv: program and arguments.
        python: the interpreter.
        cwd: where it runs.
        scratch: folder for the caches, and for what is printed.
        variables: of the environment, which are set or (None) not passed on.

    Returns:
        Exit code, file with what it printed, and the last line of that.

    Raises:
        StepError: it cannot be started.
    """
    files.make_folder(scratch)
    if not cwd.is_dir():
        hints = ["share it over the network, at the same path", "or omit --scheduler"]
        raise StepError(
            "this machine has no such folder to test in", where=f"{cwd} on {platform.node()}", hints=hints
        )
    log = scratch / "log"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    environ |= {
        "PATH": os.pathsep.join((str(python.parent), os.environ.get("PATH", ""))),
        "VIRTUAL_ENV": str(python.parent.parent),
        "TRITON_HOME": str(scratch),
        "TRITON_CACHE_DIR": str(scratch / "cache"),
    }
    environ = process.changed(environ, variables or {})
    last = ""

    def heard(line: str) -> None:
        nonlocal last
        last = line.strip() or last
        print(line, file=written)

    program = process.which(argv[0], environ["PATH"]) or argv[0]
    with files.opened_log(log) as written:
        try:
            code = process.stream((program, *argv[1:]), cwd=cwd, env=environ, on_line=heard)
        except OSError as error:
            raise StepError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error
    return code, log, last[:_SHOWN]


def python_path(folder: Path) -> str:
    """`PYTHONPATH` with one more folder, last."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), str(folder))))


def check() -> None:
    """Refuse a `PYTHONPATH` with a Triton in it: each interpreter would import that one.

    Raises:
        UsageError: there is one.
    """
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if (Path(folder) / "triton" / "__init__.py").is_file():
            hints = ["unset PYTHONPATH"]
            raise UsageError(
                "PYTHONPATH has a Triton, which every test would import", where=folder, hints=hints
            )
