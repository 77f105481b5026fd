"""Child processes: captured for facts, streamed for steps, and stopped with increasing force."""

from __future__ import annotations

import locale
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

from tritonsmith.errors import FactError
from tritonsmith.plan import locks, stopping

_PLAIN_LOCALES = ("C.UTF-8", "en_US.UTF-8")  # macOS has the second only


@dataclass(frozen=True)
class CommandOutput:
    """The output of a quick program.

    Attributes:
        code: its exit code.
        out: standard output, stripped.
        err: standard error, stripped.
    """

    code: int
    out: str
    err: str


def changed(environ: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    """An environment with a change: name to value; None removes a variable."""
    both = {**environ, **change}
    return {name: value for name, value in both.items() if value is not None}


def query(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    change: Mapping[str, str | None] | None = None,
    timeout: float = 20.0,
) -> CommandOutput | None:
    """Run a quick, harmless command to read a fact.

    Args:
        argv: program and arguments.
        cwd: working directory.
        change: of the environment, name to value; None removes a variable.
        timeout: seconds.

    Returns:
        Its output; None if the program is missing or takes too long.
    """
    environment = changed(os.environ, {"LC_ALL": _plain_locale(), **(change or {})})
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=environment, capture_output=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    out, err = (text.decode("utf-8", errors="replace").strip() for text in (done.stdout, done.stderr))
    return CommandOutput(done.returncode, out, err)


@cache
def _plain_locale() -> str:
    """English messages and UTF-8: in the locale `C` Python 3.11 cannot read a `.pth` file that names an é."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in _PLAIN_LOCALES:
            with suppress(locale.Error):
                locale.setlocale(locale.LC_CTYPE, name)
                return name
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C"


def which(name: str, path: str | None = None) -> str | None:
    """The path of a program on PATH, or in another list of folders."""
    return shutil.which(name, path=path)


def capture(argv: Sequence[str], *, cwd: Path | None = None, timeout: float = 20.0) -> str | None:
    """The standard output of a quick, harmless command, for reading a fact.

    Args:
        argv: program and arguments.
        cwd: working directory.
        timeout: seconds.

    Returns:
        The output, stripped; None if the program is missing, fails or takes too long.
    """
    answer = query(argv, cwd=cwd, timeout=timeout)
    return answer.out if answer and answer.code == 0 else None


def exec_(argv: Sequence[str], change: Mapping[str, str]) -> NoReturn:
    """Replace this process by another program, which gets our terminal, signals and exit code.

    Args:
        argv: program and arguments.
        change: of the environment.

    Raises:
        FactError: the program is missing, or cannot be run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(argv[0], list(argv), {**os.environ, **change})  # noqa: S606 - what the user typed
    except OSError as error:
        raise FactError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error


def run_attached(argv: Sequence[str], *, change: Mapping[str, str] | None = None) -> int:
    """Run a program in our terminal: an editor, a user's own command.

    Args:
        argv: program and arguments.
        change: of the environment.

    Returns:
        Its exit code.

    Raises:
        FactError: the program is missing, or cannot be run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        return subprocess.run(argv, env={**os.environ, **(change or {})}, check=False).returncode
    except OSError as error:
        raise FactError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error


def stream(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    on_line: Callable[[str], None],
) -> int:
    """Run a program in its own process group, and read its output line by line.

    Args:
        argv: program and arguments.
        cwd: working directory.
        env: the whole environment.
        on_line: called with each line of output and error, in order, without its line end.

    Returns:
        The exit code.

    Raises:
        OSError: the program could not be started.
        KeyboardInterrupt: after the whole group was stopped.
    """
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=locks.inherited(),
        encoding="utf-8",
        errors="replace",
    )
    with process:  # whose exit waits: so the group is stopped before
        try:
            assert process.stdout is not None  # noqa: S101 - for the type checker
            for line in process.stdout:
                on_line(line.rstrip("\r\n"))
            return process.wait()
        except BaseException:
            stopping.stop(process)
            raise
