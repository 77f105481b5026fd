"""Ask programs quick questions: their output is a fact, and the question changes nothing.

Programs that act (build, install, run a kernel) are started by `core.plan.programs`, and stopped with their
whole group.
"""

from __future__ import annotations

import locale
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which as _which

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
    """Return an environment with a change: name to value; None removes a variable."""
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
    environment = changed(os.environ, {"LC_ALL": plain_locale(), **(change or {})})
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=environment, capture_output=True, timeout=timeout, check=False
        )
    # A missing program and one that hangs are the same answer to an observer: the fact is not known.
    except (OSError, subprocess.TimeoutExpired):
        return None
    out, err = (text.decode("utf-8", errors="replace").strip() for text in (done.stdout, done.stderr))
    return CommandOutput(done.returncode, out, err)


@cache
def plain_locale() -> str:
    """Return a locale of English messages and UTF-8."""
    # Messages are parsed, so they must be English; but under plain `C` a Python 3.11 cannot start in an
    # environment whose `.pth` file names a folder with an é.
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
    """Return the path of a program on PATH, or in another list of folders."""
    return _which(name, path=path)


def capture(argv: Sequence[str], *, cwd: Path | None = None, timeout: float = 20.0) -> str | None:
    """Return the standard output of a quick, harmless command, for reading a fact.

    Args:
        argv: program and arguments.
        cwd: working directory.
        timeout: seconds.

    Returns:
        The output, stripped; None if the program is missing, fails or takes too long.
    """
    answer = query(argv, cwd=cwd, timeout=timeout)
    return answer.out if answer and answer.code == 0 else None
