"""A long-running program that answers each line of input with a line."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import process, stopping


class LineProcess:
    """Start the program, with a file for its standard error.

    `change` of the environment maps names to values; None removes a variable.

    Raises:
        FactError: the program cannot be started.
    """

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, change: Mapping[str, str | None], errors: Path
    ) -> None:
        try:
            with errors.open("wb") as log:
                self._process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=process.changed(os.environ, change),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # ^C is ours: it says when to stop
                    encoding="utf-8",
                )
        except OSError as error:
            raise FactError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error
        self._errors = errors

    def say(self, line: str) -> None:
        """Send a line.

        Raises:
            FactError: the program has ended.
        """
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def hear(self) -> str:
        """Read the next line.

        Raises:
            FactError: the program has ended.
        """
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        line = self._process.stdout.readline()
        if not line:
            raise self._gone()
        return line

    def close(self) -> None:
        """Stop the program and its child processes."""
        stopping.stop(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with contextlib.suppress(OSError):  # what it was not given any more
                    stream.close()

    def _gone(self) -> FactError:
        errors = self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]
        return FactError("a worker ended unexpectedly", where=self._errors, why=errors or None)
