"""The runner: calls the steps of a plan one by one, with a log, progress, stamps, and an end by ^C."""

from __future__ import annotations

import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import IO, NoReturn

from tritonsmith.errors import InterruptedRunError, StepError
from tritonsmith.plan import files, process
from tritonsmith.plan.steps.base import Plan, Step
from tritonsmith.ui import redact
from tritonsmith.ui.progress import PhaseProgress

_NINJA = re.compile(r"^\[(\d+)/(\d+)\]\s*(.*)$")
_OURS = re.compile(
    r"^\.(.+)\.tritonsmith$|^(.+)\.partial$"
)  # names of files that get another when they are whole
_KEPT_LINES = 4000  # of a failing command, for the search for its first error


class CommandFailedError(StepError):
    """A program of the plan ended with an error.

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
            hints=["the log has the whole command and its output"],
        )
        self.step, self.code, self.output, self.log = step, code, output, log


@dataclass
class Outcome:
    """What a run did.

    Attributes:
        log: the run's log file.
        seconds: wall time per phase, in order; a phase that was skipped whole is absent.
        skipped: steps whose stamp held.
    """

    log: Path
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True)
class Tap:
    """Takes what a program at the terminal writes to standard error, while it runs.

    Attributes:
        feed: gets the next piece.
        idle: called when nothing came for a moment.
    """

    feed: Callable[[bytes], object]
    idle: Callable[[], object]


class StepTools:
    """What a step acts with: programs whose output goes into the log, and a bar of progress.

    Args:
        log: the run's log.
        path: of it.
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
        """Run a program of a step: the step fails if it does.

        Args:
            step: the step.
            argv: program and arguments.
            cwd: working directory.
            change: of the environment, name to value; None removes a variable.
            ninja: it prints Ninja's `[done/total]`.

        Raises:
            CommandFailedError: it ended with an error.
        """
        code, lines = self.stream(argv, cwd, change, ninja=ninja)
        if code:
            self.fail(step, code, lines)

    def fail(self, step: Step, code: int, lines: tuple[str, ...] = ()) -> NoReturn:
        """Say that a program of a step failed.

        Raises:
            CommandFailedError: always.
        """
        raise CommandFailedError(step, code, lines, self._path)

    def stream(
        self, argv: tuple[str, ...], cwd: Path, change: Mapping[str, str | None], *, ninja: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        """As `run`; returns the exit code, and the last lines."""
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
        """Write lines into the log, without secrets, and when that was."""
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        self._log.write(redact.hidden("".join(f"{line}\n" for line in (*lines, f"# at {now}"))))
        self._log.flush()

    def _line(self, line: str) -> None:
        if line.strip():
            self.update(0, None, line.strip())

    def _ninja(self, line: str) -> None:
        if match := _NINJA.match(line):
            self.update(int(match[1]), int(match[2]), match[3])


class Runner:
    """Acts on plans.

    Args:
        log: the file that gets every command, its change of the environment and its output.
        progress: where phases are shown.
        environ: the environment that steps change; the process's own by default.
        tap: gets what a program at the terminal writes to standard error, while it runs.
    """

    def __init__(
        self,
        log: Path,
        progress: PhaseProgress,
        environ: Mapping[str, str] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self._log, self._progress, self._tap = log, progress, tap
        self._environ = dict(os.environ if environ is None else environ)

    def run(self, plan: Plan) -> Outcome:
        """Do every step whose stamp does not hold, in order.

        Raises:
            CommandFailedError: a program failed.
            StepError: a file could not be changed, the log and the stamps included.
            InterruptedRunError: ^C; everything finished so far is kept.
        """
        outcome = Outcome(self._log)
        todo = [step for step in plan.steps if not (step.stamp and step.stamp.holds())]
        outcome.skipped = len(plan.steps) - len(todo)
        if not todo:
            return outcome
        stamped = any(step.stamp for step in plan.steps)
        try:
            with files.opened_log(self._log) as log, self._progress:
                tools = StepTools(log, self._log, self._progress, self._environ, self._tap)
                tools.write_log(f"# {plan.title}")
                self._act_on(todo, tools, outcome, stamped=stamped)
        except OSError as error:
            raise _explain(error, "log", self._log) from error
        return outcome

    def _act_on(self, todo: list[Step], tools: StepTools, outcome: Outcome, *, stamped: bool) -> None:
        last_of = {step.stamp: step for step in todo if step.stamp}
        for phase, steps in groupby(todo, key=lambda step: step.phase):
            with self._timed(phase, outcome):
                for step in steps:
                    if step.stamp:  # no longer true, even if this fails and the old inputs come back
                        step.stamp.path.unlink(missing_ok=True)
                    try:
                        _act(step, tools)
                    except KeyboardInterrupt:
                        tools.write_log("interrupted")
                        raise _interrupted(self._log, goes_on=stamped or step.goes_on) from None
                    if step.stamp and last_of[step.stamp] is step:
                        files.write_atomically(step.stamp.path, step.stamp.key)

    @contextmanager
    def _timed(self, phase: str, outcome: Outcome) -> Iterator[None]:
        self._progress.begin(phase)
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        outcome.seconds[phase] = outcome.seconds.get(phase, 0.0) + seconds
        self._progress.end(seconds)


def _act(step: Step, tools: StepTools) -> None:
    tools.write_log(f"\n## {step.phase}: {step.title}", *(f"+ {line}" for line in step.shell()))
    try:
        step.act(tools)
    except OSError as error:
        with suppress(OSError):  # the log's disk may be the full one
            tools.write_log(f"failed: {error}")
        raise _explain(error, step.phase, step.title) from error


def _interrupted(log: Path, *, goes_on: bool) -> InterruptedRunError:
    """What ^C leaves: a build goes on, and so does a plan that has stamps; the rest begins anew."""
    what, then = (
        ("interrupted; what was built so far is kept", "it goes on from here")
        if goes_on
        else ("interrupted", "it begins anew")
    )
    return InterruptedRunError(what, where=log, hints=[f"run the same command again: {then}"])


def _explain(error: OSError, doing: str, what: object) -> StepError:
    hints = {
        errno.ENOSPC: "free some disk space, or set TRITONSMITH_HOME to a larger disk",
        errno.EACCES: "check the permissions of that folder, or set TRITONSMITH_HOME to one of your own",
        errno.EROFS: "that file system is read-only: set TRITONSMITH_HOME to a writable folder",
        errno.ENOENT: "a program or a folder that the step needs is missing: run `invoke doctor`",
    }
    hint = hints.get(error.errno or 0)
    return StepError(
        f"{doing}: {error.strerror or error}",
        where=_meant(error) or what,
        hints=[hint] if hint else [],
    )


def _meant(error: OSError) -> str | None:
    """The file that was to be written, where the error names the one beside it that becomes it."""
    if error.filename is None:
        return None
    path = Path(os.fsdecode(error.filename))
    return str(path.with_name(_OURS.sub(r"\1\2", path.name)))
