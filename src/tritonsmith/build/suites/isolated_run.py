"""Run a program with one interpreter and with Triton caches of its own."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonsmith.core import process
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import files, programs

_SHOWN = 100  # characters of the last line


def run(
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
    return code, log, last[:_SHOWN]


def run_cold(
    argv: Sequence[str],
    python: Path,
    cwd: Path,
    scratch: Path,
    variables: Mapping[str, str | None] | None = None,
) -> tuple[int, Path, str]:
    """Run a program as `run` does, with an empty cache that is removed at the end.

    A repeated test would otherwise read what the first one compiled, and confirm nothing.
    """
    files.make_folder(scratch)
    # Not in /tmp, which may be small or mounted noexec: Triton loads the launchers that it compiles there.
    with files.scratch("cache-", scratch) as cache:
        return run(argv, python, cwd, scratch, {**(variables or {}), "TRITON_CACHE_DIR": str(cache)})


def python_path(*folders: Path) -> str:
    """Return a value for `PYTHONPATH` with more folders at its end."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), *map(str, folders))))
