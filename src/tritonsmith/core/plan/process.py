"""Child processes: captured for facts, streamed for steps, and stopped with increasing force."""

from __future__ import annotations

import codecs
import io
import locale
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import locks, stopping

_ABORTING = 5.0  # seconds that a program has to say where it is, before it is stopped
_CHECKED = 0.1  # seconds between looks whether a silent program has ended
_PIECE = 1 << 16  # bytes
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
    """Return a locale of English and UTF-8; under `C` Python 3.11 fails on a `.pth` file with an é."""
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
    return shutil.which(name, path=path)


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


def exec_argv() -> None:
    """Replace this process by the program in `sys.argv`; a `ForkServer` calls this in a fork."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the program
        signal.signal(number, signal.SIG_DFL)
    try:
        exec_(sys.argv, {})
    except FactError as error:
        sys.exit(f"error: {error.what}: {error.why}")


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
    timeout: float = 0.0,
) -> int:
    """Run a program in its own process group, and read its output line by line.

    Args:
        argv: program and arguments.
        cwd: working directory.
        env: the whole environment.
        on_line: called with each line of output and error, in order, without its line end.
        timeout: seconds after which it is told to abort, so that Python's faulthandler prints where it is,
            and stopped; 0 for never.

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
    )
    locks.note_child(process.pid, Path(argv[0]).name)
    with process, _aborted_after(process, timeout):  # whose exit waits: so the group is stopped before
        try:
            assert process.stdout is not None  # noqa: S101 - for the type checker
            for line in lines_until(process.stdout, lambda: process.poll() is not None):
                on_line(line)
            return process.wait()
        except BaseException:
            stopping.stop(process)
            raise


@contextmanager
def _aborted_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Send ABRT when the time is over, and stop the group if that is not enough."""

    def abort() -> None:
        process.send_signal(signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ABORTING)
        stopping.stop(process)

    timer = threading.Timer(seconds, abort)
    if seconds:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def lines_until(output: IO[bytes], ended: Callable[[], bool]) -> Iterator[str]:
    """Yield a program's lines without their ends, until all writers are gone, or it has ended and is silent.

    A child that it has left in the background may keep the pipe open for hours.

    Args:
        output: the pipe.
        ended: whether the program itself has.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
    rest = ""
    while piece := _next_piece(output, ended):
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from lines
    if rest := rest + decoder.decode(b"", final=True):
        yield from rest.split("\n")


def _next_piece(output: IO[bytes], ended: Callable[[], bool]) -> bytes:
    while True:
        over = ended()  # before the last look: what it has written then is there
        if readable(output, 0 if over else _CHECKED):
            return os.read(output.fileno(), _PIECE)
        if over:
            return b""


def readable(source: IO[bytes] | socket.socket, seconds: float) -> bool:
    """Return whether there is something to read, or the other side is gone, within so many seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        return bool(selector.select(seconds))


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
                    env=changed(os.environ, change),
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
                with suppress(OSError):  # what it was not given any more
                    stream.close()

    def _gone(self) -> FactError:
        errors = self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]
        return FactError("a worker ended unexpectedly", where=self._errors, why=errors or None)
