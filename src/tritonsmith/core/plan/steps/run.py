"""Run a program."""

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

from tritonsmith.core import process
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan.steps.base import Step, StepTools, quote


@dataclass(frozen=True)
class Run(Step):
    """Run a program, without a shell.

    Attributes:
        argv: program and arguments.
        cwd: working directory; created by an earlier step if need be.
        env: change of the environment, name to value; None removes a variable.
        path: folders put before PATH.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: tuple[tuple[str, str | None], ...] = ()
    path: tuple[Path, ...] = ()

    def shell(self) -> list[str]:
        prefix = [f"-u {name}" for name, value in self.env if value is None]
        prefix += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        if self.path:
            prefix.append(f'PATH={quote(":".join(map(str, self.path)))}:"$PATH"')
        command = shlex.join(self.argv)
        if prefix:
            command = f"env {' '.join(prefix)} {command}"
        return [f"(cd {quote(self.cwd)} && {command})"]

    def act(self, tools: StepTools) -> None:
        change = dict(self.env)
        if self.path:
            change["PATH"] = os.pathsep.join((*map(str, self.path), tools.environ.get("PATH", os.defpath)))
        tools.run(self, self.argv, self.cwd, change)

    @property
    def title(self) -> str:
        return Path(self.argv[0]).name

    @property
    def goes_on(self) -> bool:
        return self.title.startswith("ninja")


# A program that keeps the terminal while its standard error is read.

CHUNK = 1 << 20
_PAUSE = 0.01  # seconds between looks at a file that does not grow at the moment
_QUIET = 0.25  # seconds after which a program is thought to have said what it wanted to


@dataclass(frozen=True)
class AttachedRun(Step):
    """Run a program in our terminal, its standard error in a file: writing there never waits for a reader.

    The terminal sends ^C to the program as well, which decides how to react.

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
        words = [*(f"-u {name}" for name, value in self.env if value is None)]
        words += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        into = (
            f"> {shlex.quote(str(self.errors))} 2>&1" if self.both else f"2> {shlex.quote(str(self.errors))}"
        )
        return [f"env {' '.join([*words, shlex.join(self.argv)])} {into} || code=$?"]

    def act(self, tools: StepTools) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        with self.errors.open("xb") as errors, self.errors.open("rb", buffering=0) as reader:
            stdout, environ = errors if self.both else None, process.changed(tools.environ, dict(self.env))
            try:
                program = subprocess.Popen(self.argv, env=environ, stdout=stdout, stderr=errors)
            except OSError as error:
                raise FactError(f"cannot run {self.argv[0]}", why=error.strerror or str(error)) from error
            old = signal.signal(signal.SIGINT, lambda *_: None)
            try:
                if tools.tap:
                    follow(reader, lambda: program.poll() is not None, tools.tap.feed, tools.tap.idle)
                code = program.wait()
            except BaseException:
                program.kill()
                program.wait()
                raise
            finally:
                signal.signal(signal.SIGINT, old)
        if code:
            tools.fail(self, code)


def follow(
    reader: BinaryIO, over: Callable[[], bool], feed: Callable[[bytes], object], idle: Callable[[], object]
) -> None:
    """Read a growing file until nothing comes any more: `over` says so.

    `feed` gets what comes, in pieces; `idle` is called when nothing came for a moment.
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
