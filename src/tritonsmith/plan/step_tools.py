"""What the runner passes to a step: programs whose output is logged, and a progress bar."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from tritonsmith.errors import StepError
from tritonsmith.plan import process
from tritonsmith.ui import redact
from tritonsmith.ui.progress import PhaseProgress

if TYPE_CHECKING:
    from tritonsmith.plan.steps.base import Step

_NINJA = re.compile(r"^\[(\d+)/(\d+)\]\s*(.*)$")
_KEPT_LINES = 4000  # of a failing command, for the search for its first error


class CommandFailedError(StepError):
    """A program of the plan failed.

    Attributes:
        step: the step.
        code: its exit code.
        output: the last lines that it printed.
        log: the run's log file.
    """

    def __init__(self, step: Step, code: int, output: tuple[str, ...], log: Path) -> None:
        super().__init__(
            f"{step.title} failed with exit code {code}",
            where=log,
            why="\n".join(output[-8:]) or None,
            hints=["the log contains the full command and its output"],
        )
        self.step, self.code, self.output, self.log = step, code, output, log


@dataclass(frozen=True)
class Tap:
    """Receives what a program in the terminal writes to standard error, while it runs.

    Attributes:
        feed: gets the next piece.
        idle: called when nothing came for a moment.
    """

    feed: Callable[[bytes], object]
    idle: Callable[[], object]


class StepTools:
    """What a step works with: programs whose output is logged, and a progress bar.

    Args:
        log: the run's log.
        path: of the log.
        progress: where the phase is shown.
        environ: the environment that programs get, but for what the step changes.
        tap: gets what a program at the terminal writes to standard error.
    """

    def __init__(
        self, log: IO[str], path: Path, progress: PhaseProgress, environ: Mapping[str, str], tap: Tap | None
    ) -> None:
        self._log, self._path, self._progress = log, path, progress
        self.environ, self.tap = environ, tap

    def run(
        self,
        step: Step,
        argv: tuple[str, ...],
        cwd: Path,
        change: Mapping[str, str | None],
        *,
        ninja: bool = False,
    ) -> None:
        """Run a program of a step; the step fails if the program fails.

        Args:
            step: the step.
            argv: program and arguments.
            cwd: working directory.
            change: of the environment, name to value; None removes a variable.
            ninja: it prints Ninja's `[done/total]`.

        Raises:
            CommandFailedError: the program failed.
        """
        code, lines = self.stream(argv, cwd, change, ninja=ninja)
        if code:
            self.fail(step, code, lines)

    def fail(self, step: Step, code: int, lines: tuple[str, ...] = ()) -> NoReturn:
        """Report that a program of a step failed.

        Raises:
            CommandFailedError: always.
        """
        raise CommandFailedError(step, code, lines, self._path)

    def stream(
        self, argv: tuple[str, ...], cwd: Path, change: Mapping[str, str | None], *, ninja: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        """Like `run`; returns the exit code and the last lines."""
        kept: deque[str] = deque(maxlen=_KEPT_LINES)
        hide = redact.SecretLines()
        show = self._ninja if ninja else self._line

        def on_line(said: str) -> None:
            line = hide(said)
            kept.append(line)
            self._log.write(f"{line}\n")
            show(line)

        environ = process.changed(self.environ, change)
        code = process.stream(argv, cwd=cwd, env=environ, on_line=on_line)
        self.write_log(f"exit code {code}")
        return code, tuple(kept)

    def update(self, done: int, total: int | None, what: str = "") -> None:
        """Report the progress.

        Args:
            done: steps, files or bytes.
            total: of how many, if that is known.
            what: is going on.
        """
        self._progress.update(done, total, what)

    def transfer(self, title: str) -> Callable[[int, int | None], None]:
        """A callback that reports the bytes of one file."""
        shown = redact.hidden(title)  # before the screen cuts it
        return lambda done, total: self.update(done, total, shown)

    def write_log(self, *lines: str) -> None:
        """Write lines to the log, without secrets, followed by the time."""
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        self._log.write(redact.hidden("".join(f"{line}\n" for line in (*lines, f"# at {now}"))))
        self._log.flush()

    def _line(self, line: str) -> None:
        if line.strip():
            self.update(0, None, line.strip())

    def _ninja(self, line: str) -> None:
        if match := _NINJA.match(line):
            self.update(int(match[1]), int(match[2]), match[3])
