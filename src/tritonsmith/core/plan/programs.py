"""Start programs that act: streamed, captured, attached to our terminal, or answering line by line."""

from __future__ import annotations

import codecs
import io
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import locks, stopping
from tritonsmith.core.process import CommandOutput, changed, plain_locale

_ABORTING = 5.0  # seconds that a program has to say where it is, before it is stopped
_CHECKED = 0.1  # seconds between looks whether a silent program has ended
_PIECE = 1 << 16  # bytes


def exec_(argv: Sequence[str], change: Mapping[str, str]) -> NoReturn:
    """Replace this process by another program, which gets our terminal, signals and exit code.

    Args:
        argv: program and arguments.
        change: of the environment.

    Raises:
        FactError: the program is missing, or cannot be run.
    """
    # Our buffers are lost with this process image.
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(argv[0], list(argv), {**os.environ, **change})  # noqa: S606 - what the user typed
    except OSError as error:
        raise FactError(f"cannot run {argv[0]}", why=error.strerror or str(error)) from error


def exec_argv() -> None:
    """Replace this process by the program in `sys.argv`; a `ForkServer` calls this in a fork."""
    # An ignored signal stays ignored across `exec`. Without this, `program | head` would get EPIPE from
    # every write instead of ending at the first.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the two that Python ignores
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
    # The program shares the terminal: what is buffered here would appear after its output.
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
        timeout: seconds after which it gets SIGABRT, so that Python's faulthandler prints where it is,
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
        # A step must fail rather than wait for an answer that nobody is there to type.
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A session, not only a process group: Ninja gives each compile a group of its own, and the session
        # is what still connects these with their Ninja after it has died (`stopping.session`).
        start_new_session=True,
        # The child keeps the lock's descriptor: if this process is killed by SIGKILL, the lock stays held
        # until the last compile has ended, and no second run writes into the same build folder.
        pass_fds=locks.inherited(),
    )
    locks.note_child(process.pid, Path(argv[0]).name)
    # `Popen.__exit__` waits for the program; an exception must stop the group before it gets there.
    with process, _aborted_after(process, timeout):
        try:
            assert process.stdout is not None  # noqa: S101 - for the type checker

            def ended() -> bool:
                stopping.check()
                return process.poll() is not None

            for line in lines_until(process.stdout, ended):
                on_line(line)
            return process.wait()
        except BaseException:
            stopping.stop(process)
            raise


@contextmanager
def _aborted_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Abort a program when its time is over, and stop its group if that is not enough."""

    def abort() -> None:
        # On ABRT Python's faulthandler prints the stack, so the log tells where a pass
        # hangs; KILL would tell nothing.
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

    Args:
        output: the pipe.
        ended: whether the program itself has.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
    rest = ""
    # A child that the program leaves in the background (ccache's server, sccache's) keeps the pipe open for
    # hours: the end of the file is not the end of the program.
    while piece := _next_piece(output, ended):
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from lines
    if rest := rest + decoder.decode(b"", final=True):
        yield from rest.split("\n")


def _next_piece(output: IO[bytes], ended: Callable[[], bool]) -> bytes:
    while True:
        # The order matters: whatever the program wrote before it ended is in the pipe by now, so the last
        # look cannot miss it. The other way round, output between the two calls would be lost.
        over = ended()
        if readable(output, 0 if over else _CHECKED):
            return os.read(output.fileno(), _PIECE)
        if over:
            return b""


def readable(source: IO[bytes] | IO[str] | socket.socket, seconds: float) -> bool:
    """Return whether there is something to read, or the other side is gone, within so many seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        return bool(selector.select(seconds))


class CapturedProgram:
    """Runs a program to its end, or until another thread closes this."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed, self._starting = False, threading.Lock()

    @property
    def is_closed(self) -> bool:
        """Report whether it was closed, so that what it returns says nothing of the program."""
        return self._closed

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        change: Mapping[str, str | None],
        timeout: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> CommandOutput | None:
        """Run a program in a session of its own, all of which is killed at the end.

        Args:
            argv: program and arguments.
            cwd: working directory.
            change: of the environment, name to value; None removes a variable.
            timeout: seconds.
            stop: returns whether to kill it; called several times a second.

        Returns:
            Its output; None if the program is missing, or was killed.
        """
        until = time.monotonic() + timeout
        try:
            with self._starting:
                if self._closed:
                    return None
                self._process = process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=changed(os.environ, {"LC_ALL": plain_locale(), **change}),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # ^C is ours: it says when to stop
                )
        except OSError:
            return None
        over = False
        with process:
            try:
                while True:
                    try:
                        out, err = process.communicate(timeout=_CHECKED)
                        break
                    except subprocess.TimeoutExpired as silent:
                        # What it has left in the background may hold its output open for hours.
                        if over:
                            out, err = silent.output or b"", silent.stderr or b""
                            break
                    if self._closed or stop() or time.monotonic() > until:
                        return None
                    over = process.poll() is not None
            finally:
                self._kill()
        out_text, err_text = (text.decode("utf-8", errors="replace").strip() for text in (out, err))
        return None if self._closed else CommandOutput(process.returncode, out_text, err_text)

    def close(self) -> None:
        """Kill the program that runs, if there is one, and start none any more."""
        with self._starting:
            self._closed = True
        self._kill()

    def _kill(self) -> None:
        with self._starting:
            process, self._process = self._process, None
        if process:
            stopping.kill(process)


class LineProcess:
    """A program that answers line by line.

    Args:
        argv: program and arguments.
        cwd: working directory.
        change: of the environment, name to value; None removes a variable.
        errors: the file that gets its standard error.

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
        # Only there: what an earlier call has read of the pipe already is not seen by `readable`.
        while stopping.is_interruptible() and not readable(self._process.stdout, _CHECKED):
            stopping.check()
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
        # The caller may have removed the folder that the program was started for.
        try:
            errors = self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]
        except OSError:
            errors = ""
        return FactError("a worker ended unexpectedly", where=self._errors, why=errors or None)
