"""Import a program once, and fork it for each run, which saves its start.

The server is a separate process: this one may have threads, which a fork would not survive.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import stopping
from tritonsmith.core.plan.programs import lines_until, readable

_SIZE = 1 << 20  # bytes of a request
_REQUESTER_INTERVAL = 0.1  # seconds between checks that the requester of a run still exists
_POLL_INTERVAL = 0.005  # seconds between checks whether a run has ended
_OURS = "tritonsmith."


class ForkServer:
    """Run a program of this package many times.

    Use as a context manager: at its end the server, and whatever it runs, are gone; also if this process
    is killed.

    Args:
        calls: functions to call in the fork, `module:function`, in order.
        environ: variables that a run has besides those of this process.
    """

    def __init__(self, *calls: str, environ: Mapping[str, str] | None = None) -> None:
        self._calls, self._environ = calls, {**(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(
        self,
        argv: Sequence[str],
        on_line: Callable[[str], None],
        waiting: Callable[[], None] = lambda: None,
        answer: BinaryIO | None = None,
    ) -> int:
        """Run the program in a process group of its own, and read its output line by line.

        Args:
            argv: `sys.argv` of the run.
            on_line: called with each line of output and error, in order, without its line end.
            waiting: called every now and then; what it raises stops the run.
            answer: the file that gets the output; `on_line` then gets the errors alone.

        Returns:
            The exit code; negative for a signal.

        Raises:
            SmithError: the server has died.
            KeyboardInterrupt: after the whole group was stopped.
        """
        self.start()
        reading, writing = os.pipe()
        child: _ServedRun | None = None
        with open(reading, "rb", buffering=0) as output:  # noqa: PTH123 - a descriptor
            try:
                try:
                    # The run writes to a pipe of ours directly: the server need not copy its output.
                    handles = [answer.fileno() if answer else writing, writing]
                    socket.send_fds(self._requests, [json.dumps(list(argv)).encode()], handles)
                finally:
                    os.close(writing)
                child = _ServedRun(self._answer(None), self._answer)

                def ended() -> bool:
                    waiting()
                    return readable(self._requests, 0)

                for line in lines_until(output, ended):
                    on_line(line)
            except BaseException:
                if child:
                    try:
                        stopping.stop(child)
                    finally:
                        child.wait()  # it may have ended by itself
                # Interrupted before the run has a number here: the server knows it, and stops it.
                else:
                    self.close()
                raise
        try:
            return child.wait()
        # Its code may be half read, so the next answer would begin with the rest.
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server; it stops what it runs."""
        if self._process:
            self._requests.close()
            self._process.wait()
        self._process = None

    def start(self) -> None:
        """Start the server, which the first run would have to wait for."""
        if self._process:
            return
        self._requests, its = socket.socketpair()
        with its:
            # Without -P a file of the current folder, `queue.py` say, would stand for a
            # module of the standard library.
            argv = (sys.executable, "-P", "-m", __name__, str(its.fileno()), *self._calls)
            self._process = subprocess.Popen(
                argv,
                env={**os.environ, **self._environ},
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                start_new_session=True,
            )

    def _answer(self, timeout: float | None) -> int:
        self._requests.settimeout(timeout)
        line = b""
        while not line.endswith(b"\n"):
            piece = self._requests.recv(1)
            if not piece:
                self.close()
                raise SmithError("the process that runs the task has ended unexpectedly")
            line += piece
        return int(line)


@dataclass
class _ServedRun:
    """A run, as its requester sees it."""

    pid: int
    answer: Callable[[float | None], int]
    code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.code is None:
            try:
                self.code = self.answer(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
        return self.code


@dataclass
class _ForkedChild:
    """A run, as the server sees it, whose child it is."""

    pid: int
    code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while self.code is None:
            pid, status = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            else:
                time.sleep(_POLL_INTERVAL)
        return self.code


def _serve(requests: socket.socket) -> tuple[list[str], int] | None:
    """Fork at each request; returns in the fork with its arguments, and in the server at the end."""
    while True:
        try:
            message, handles, _, _ = socket.recv_fds(requests, _SIZE, 2)
        except ConnectionResetError:  # the requester is gone, and has not read the last code
            return None
        if not message:
            return None
        ended, ending = os.pipe()
        # Whoever asked for the run may stop it at once: in the midst of a fork, Python prints an interrupt
        # and forgets it.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        pid = os.fork()
        with contextlib.suppress(PermissionError, ProcessLookupError):
            # By both sides: whoever comes second may rely on it.
            os.setpgid(pid, pid)
        if pid == 0:
            for number, name, handle in ((1, "stdout", handles[0]), (2, "stderr", handles[1])):
                os.dup2(handle, number)
                setattr(sys, name, os.fdopen(number, "w", buffering=1))  # in the order of both
            for handle in (*handles, ended):
                os.close(handle)
            requests.close()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
            return json.loads(message), ending
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        for handle in (*handles, ending):
            os.close(handle)
        child = _ForkedChild(pid)
        try:
            requests.sendall(f"{pid}\n".encode())
            used = _modules_used(requests, ended)
            code = _code(child, requests)
            # The run has ended; what it has left running in its group has not.
            stopping.stop(child)
            requests.sendall(f"{code}\n".encode())
        except OSError:  # nobody waits for it any more
            stopping.stop(child)
            return None
        finally:
            os.close(ended)
        _import(used)


def _modules_used(requests: socket.socket, ended: int) -> list[str]:
    """Return the modules that a run has used, at its end; none at once if it becomes another program.

    Raises:
        OSError: the requester is gone.
    """
    text = b""
    while True:
        ready, _, _ = select.select([ended, requests.fileno()], [], [])
        if requests.fileno() in ready:
            raise ConnectionResetError
        piece = os.read(ended, _SIZE)
        if not piece:
            return text.decode().split()
        text += piece


def _code(child: _ForkedChild, requests: socket.socket) -> int:
    """Wait for the end of a run.

    Raises:
        OSError: the requester is gone.
    """
    while True:
        try:
            return child.wait(_REQUESTER_INTERVAL)
        except subprocess.TimeoutExpired:
            if readable(requests, 0):
                raise ConnectionResetError from None


def _import(names: Sequence[str]) -> None:
    """Import the modules that a run has used."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Collected objects are written to, which copies their pages in each fork: frozen ones stay shared.
    gc.freeze()


def _main(handle: int, calls: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = _serve(socket.socket(fileno=handle))
    if request is None:
        return
    argv, ending = request
    sys.argv[:] = argv
    try:
        for call in calls:
            module, _, function = call.partition(":")
            getattr(importlib.import_module(module), function)()
    finally:
        used = [name for name in sys.modules if name.startswith(_OURS)]
        os.write(ending, " ".join(used).encode())


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
