"""A program that keeps the terminal while somebody reads what it writes to standard error."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tritonsmith.errors import FactError
from tritonsmith.plan.steps import Step

CHUNK = 1 << 20
_PAUSE = 0.01  # seconds between looks at a file that does not grow at the moment
_QUIET = 0.25  # seconds after which a program is thought to have said what it wanted to


@dataclass(frozen=True)
class StderrTap(Step):
    """Run a program here, with its standard error in a file: writing to a file never waits for a reader.

    Attributes:
        argv: program and arguments.
        env: change of the environment, name to value; None removes a variable.
        errors: the file.
        both: standard output goes there too.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str | None], ...]
    errors: Path
    both: bool = False

    def shell(self) -> list[str]:
        """The step as a line of POSIX shell."""
        words = [*(f"-u {name}" for name, value in self.env if value is None)]
        words += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        into = (
            f"> {shlex.quote(str(self.errors))} 2>&1" if self.both else f"2> {shlex.quote(str(self.errors))}"
        )
        return [f"env {' '.join([*words, shlex.join(self.argv)])} {into} || code=$?"]


def run(step: StderrTap, feed: Callable[[bytes], object], idle: Callable[[], object]) -> int:
    """Run it to its end.

    ^C goes to the program as well, which the terminal sends it to; it decides what comes of it.

    Args:
        step: what is run.
        feed: gets what the program writes, in pieces.
        idle: called when nothing came for a moment.

    Returns:
        The exit code; negative for a signal.

    Raises:
        FactError: there is no such program, or it cannot be run.
    """
    changed = dict(step.env)
    kept = {name: value for name, value in os.environ.items() if name not in changed}
    environ = kept | {name: value for name, value in changed.items() if value is not None}
    sys.stdout.flush()
    sys.stderr.flush()
    with step.errors.open("xb") as errors, step.errors.open("rb", buffering=0) as reader:
        try:
            process = subprocess.Popen(
                step.argv, env=environ, stdout=errors if step.both else None, stderr=errors
            )
        except OSError as error:
            raise FactError(f"cannot run {step.argv[0]}", why=error.strerror or str(error)) from error
        old = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            follow(reader, lambda: process.poll() is not None, feed, idle)
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            signal.signal(signal.SIGINT, old)


def follow(
    reader: BinaryIO, over: Callable[[], bool], feed: Callable[[bytes], object], idle: Callable[[], object]
) -> None:
    """Read a file that grows, until whoever writes it is done.

    Args:
        reader: the file.
        over: whether nothing comes any more.
        feed: gets what comes, in pieces.
        idle: called when nothing came for a moment.
    """
    waited = 0.0
    while True:
        done = over()  # before the read: what is written until then is read
        chunk = reader.read(CHUNK)
        if chunk:
            feed(chunk)
            waited = 0.0
        elif done:
            return
        else:
            waited += _PAUSE
            if waited > _QUIET:
                idle()
                waited = 0.0
            time.sleep(_PAUSE)
