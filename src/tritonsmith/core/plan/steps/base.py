"""Define steps, plans of steps, the tools that the runner gives a step, and the steps that run a program.

A step prints itself as shell, and does the same when the runner calls it: `shell` and `act`, side by side.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, ClassVar, NoReturn, Protocol, Self

from tritonsmith.core import process, redact
from tritonsmith.core.errors import FactError, StepError
from tritonsmith.core.plan import programs
from tritonsmith.core.text import noun_for

_NUMBERED = re.compile(r"^\[(\d+)/(\d+)\]\s*(.*)$")  # as Ninja, and the worker, count their steps
_PHASES = 6  # lines of a summary
_KEPT_LINES = 4000  # of a failing command, for the search for its first error
CHUNK = 1 << 20  # bytes of a program's standard error that are read at once
_PAUSE = 0.01  # seconds between looks at a file that does not grow at the moment
_QUIET = 0.25  # seconds of silence after which a program is thought to have written all it wanted to


@dataclass(frozen=True)
class Stamp:
    """A file that marks a step as done: it exists, and its whole content equals `key`.

    Attributes:
        path: the file.
        key: a key of the step's inputs.
        result: what the step makes, where that may be deleted without its stamp.
        again: do the step even if this was done.
    """

    path: Path
    key: str
    result: Path | None = None
    again: bool = False

    def holds(self) -> bool:
        """Return whether the step was completed with exactly these inputs, and its result still exists."""
        try:
            gone = self.result is not None and not self.result.exists()
            return not self.again and not gone and self.path.read_text(encoding="utf-8") == self.key
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True)
class Step:
    """The base class of steps.

    Attributes:
        phase: the progress bar and the line of the time table that it belongs to.
        stamp: when it holds, the step is skipped; written when the step succeeds.
    """

    noun: ClassVar[str] = "command"
    """The word that counts such steps in a summary; empty for what is not worth counting."""

    _: KW_ONLY
    phase: str
    stamp: Stamp | None = None

    def shell(self) -> list[str]:
        """Return the step as lines of POSIX shell that can be pasted."""
        raise NotImplementedError  # pragma: no cover - abstract

    def act(self, tools: StepTools) -> None:
        """Execute the step.

        Args:
            tools: how the step starts programs and reports its progress.
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def title(self) -> str:
        """A short title for the progress bar and the log."""
        return self.phase

    @property
    def count(self) -> int:
        """The number of things that the step changes, of its `noun`."""
        return 1

    @property
    def goes_on(self) -> bool:
        """Report whether the step resumes where it was interrupted."""
        return False

    @property
    def installs(self) -> bool:
        """Report whether the step gets code from elsewhere, or makes an environment to put it into."""
        return False


@dataclass(frozen=True)
class Plan:
    """The steps of a task, in order. `--dry-run` prints the plan; the runner executes the same object."""

    title: str
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.title, self.steps + other.steps, self.notes + other.notes)

    @property
    def phases(self) -> tuple[str, ...]:
        """Phase names in the order of their first step."""
        return tuple(dict.fromkeys(step.phase for step in self.steps))

    @property
    def open_phases(self) -> tuple[str, ...]:
        """Phases with a step that is not done yet."""
        todo = (step for step in self.steps if step.stamp is None or not step.stamp.holds())
        return tuple(dict.fromkeys(step.phase for step in todo))

    def summary(self) -> tuple[str, ...]:
        """Return the title, then a line for each phase: how many commands and files, and where."""
        lines, todo = [], self.open_phases
        for phase in self.phases:
            steps = [step for step in self.steps if step.phase == phase]
            counts = Counter[str]()
            for step in steps:
                counts[step.noun] += step.count
            parts = [f"{number:,} {noun_for(number, noun)}" for noun, number in counts.items() if noun]
            done = phase not in todo
            folder = _common_folder(steps)
            words = [", ".join(parts), f"in {folder}" if folder else "", "(done already)" if done else ""]
            lines.append(f"{phase}: {' '.join(filter(None, words))}")
        if len(lines) > _PHASES:
            lines[_PHASES - 1 :] = [f"and {len(lines) - _PHASES + 1} more phases"]
        return (self.title, *lines)

    def shell(self) -> str:
        """Return the whole plan as a POSIX shell script."""
        lines = [
            "#!/bin/sh",
            _comment(self.title),
            *(_comment(f"note: {note}") for note in self.notes),
            "set -eu",
        ]
        phase, stamp = None, None
        for step in self.steps:
            if step.phase != phase:
                phase = step.phase
                lines += ["", _comment(phase)]
            # A group of steps shares a stamp, and is skipped as a whole.
            if step.stamp != stamp:
                stamp = step.stamp
                once = stamp if stamp and not stamp.again else None
                lines.append(f"# skipped if {once.path} is up to date:" if once else "# always:")
            lines += step.shell()
        return "\n".join(lines) + "\n"


def _common_folder(steps: Iterable[Step]) -> str:
    """Return the folder that contains everything of these steps; empty if that says nothing."""
    paths = [getattr(step, field.name) for step in steps for field in fields(step)]
    places = [str(path) for path in paths if isinstance(path, Path) and path.is_absolute()]
    # `/home` tells a reader nothing.
    folder = os.path.commonpath(places) if places else ""
    return folder if folder.count("/") > 1 else ""


def digest(*parts: object) -> str:
    """Return a short, stable key for inputs: 16 hex digits of the SHA-256 of their JSON."""
    # JSON and not `repr` or `hash`: the key is compared by later versions of Python and of this tool.
    encoded = json.dumps(parts, sort_keys=True, default=_plain)
    return hashlib.sha256(encoded.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def step_key(step: Step) -> str:
    """Return a key that changes whenever anything in the step but the stamp changes."""
    # Without the stamp, which is made of this key.
    values = {field.name: getattr(step, field.name) for field in fields(step) if field.name != "stamp"}
    return digest(type(step).__name__, values)


def stamped(steps: Iterable[Step], path: Path, result: Path | None = None) -> tuple[Step, ...]:
    """Give a sequence one stamp: all steps are skipped once the last one has succeeded.

    Args:
        steps: steps that make one thing together.
        path: the stamp's file, beside that thing.
        result: that thing; without it the stamp does not hold.
    """
    sequence = tuple(steps)
    stamp = Stamp(path, digest(*(step_key(step) for step in sequence)), result)
    return tuple(replace(step, stamp=stamp) for step in sequence)


def quote(path: Path | str) -> str:
    """Quote a word for the shell."""
    return shlex.quote(str(path))


def make_parent(path: Path) -> str:
    """Return the line of shell that creates the folder of a file."""
    return f"mkdir -p {quote(path.parent)}"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))


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


class PhaseDisplay(Protocol):
    """A display of the phases of a run; a context manager, entered for the whole run.

    The runner knows no screen: `core.ui.progress` draws bars, a test keeps what it is sent.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, phase: str) -> None:
        """Start a phase of still unknown extent."""

    def update(self, done: int, total: int | None, current: str = "") -> None:
        """Update the phase: steps, files or bytes done, of how many if known; and the current step."""

    def end(self, seconds: float) -> None:
        """End the current phase, which took so long."""


class StepTools:
    """The tools of a step: programs whose output is logged, and a progress bar.

    Args:
        log: the run's log.
        path: of the log.
        progress: where the phase is shown.
        environ: the environment that programs get, but for what the step changes.
        tap: gets what a program at the terminal writes to standard error.
    """

    def __init__(
        self, log: IO[str], path: Path, progress: PhaseDisplay, environ: Mapping[str, str], tap: Tap | None
    ) -> None:
        self._log, self._path, self._progress = log, path, progress
        self.environ, self.tap = environ, tap

    def run(
        self,
        step: Step,
        argv: tuple[str, ...],
        cwd: Path,
        change: Mapping[str, str | None],
    ) -> None:
        """Run a program of a step; the step fails if the program fails.

        Args:
            step: the step.
            argv: program and arguments.
            cwd: working directory.
            change: of the environment, name to value; None removes a variable.

        Raises:
            CommandFailedError: the program failed.
        """
        code, lines = self.stream(argv, cwd, change)
        if code:
            self.fail(step, code, lines)

    def fail(self, step: Step, code: int, lines: tuple[str, ...] = ()) -> NoReturn:
        """Report that a program of a step failed.

        Raises:
            CommandFailedError: always.
        """
        raise CommandFailedError(step, code, lines, self._path)

    def stream(
        self, argv: tuple[str, ...], cwd: Path, change: Mapping[str, str | None]
    ) -> tuple[int, tuple[str, ...]]:
        """Run a program, and return its exit code and last lines; `[done/total]` drives the progress bar."""
        kept: deque[str] = deque(maxlen=_KEPT_LINES)
        hide = redact.SecretLines()
        numbered = False

        def on_line(printed: str) -> None:
            nonlocal numbered
            # Before anything else sees the line: the log, the screen and the error are written from it.
            line = hide(printed)
            kept.append(line)
            self._log.write(f"{line}\n")
            if match := _NUMBERED.match(line):
                numbered = True
                self.update(int(match[1]), int(match[2]), match[3])
            # Once a program counts its steps, its other lines (warnings) would only flicker in the bar.
            elif line.strip() and not numbered:
                self.update(0, None, line.strip())

        environ = process.changed(self.environ, change)
        code = programs.stream(argv, cwd=cwd, env=environ, on_line=on_line)
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
        """Return a callback that reports the bytes of one file."""
        # Before the screen cuts it: half a secret has no form by which it is recognised.
        shown = redact.hidden(title)
        return lambda done, total: self.update(done, total, shown)

    def write_log(self, *lines: str) -> None:
        """Write lines to the log, without secrets, followed by the time."""
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        self._log.write(redact.hidden("".join(f"{line}\n" for line in (*lines, f"# at {now}"))))
        self._log.flush()


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

    @property
    def installs(self) -> bool:
        # PYTHON -m pip install, PYTHON -m venv
        return self.argv[1:2] == ("-m",) and self.argv[2:3] in (("pip",), ("venv",))

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


@dataclass(frozen=True)
class AttachedRun(Step):
    """Run a program in our terminal, with its standard error in a file.

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
        # A file and not a pipe: the program never waits for us to read.
        with self.errors.open("xb") as errors, self.errors.open("rb", buffering=0) as reader:
            stdout, environ = errors if self.both else None, process.changed(tools.environ, dict(self.env))
            try:
                program = subprocess.Popen(self.argv, env=environ, stdout=stdout, stderr=errors)
            except OSError as error:
                raise FactError(f"cannot run {self.argv[0]}", why=error.strerror or str(error)) from error
            # The terminal sends ^C to the program as well, which decides how to react; we go on reading.
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
        # Asked before the read: what the program wrote until its end is then in the file.
        done = over()
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
