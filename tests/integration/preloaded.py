"""Runs of `tritonsmith` as forks of one process that has imported it: the same program, without its start.

Most of a quick run is the import of what it needs. The tests that look at the start, at signals or at process
groups run the console script itself: `Smith.running`, and those that name `SMITH`.
"""

from __future__ import annotations

import gc
import importlib
import json
import locale
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_SIZE = 1 << 20  # bytes of a request: arguments and variables


@dataclass(frozen=True)
class Request:
    """A command line.

    Attributes:
        argv: the console script and its arguments.
        cwd: working directory.
        env: all of its variables.
        death: number of the change that it is killed before, and the folder; see `dying.py`.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    death: tuple[int, str] | None = None


class Preloaded:
    """The process that has imported the tool, and waits.

    Args:
        module: that of the process.
    """

    def __init__(self, module: str = __name__) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                (sys.executable, "-m", module, str(its.fileno())),
                cwd=Path(__file__).parents[2],
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
            )
        self._requests = ours

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        death: tuple[int, Path] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """What `subprocess.run` does with this command line, and the same result.

        Args:
            argv: the console script and its arguments.
            cwd: working directory.
            env: all of its variables.
            timeout: seconds.
            death: number of the change below a folder that it is killed before; see `dying.py`.

        Raises:
            TimeoutExpired: it has not ended in time; it is killed.
        """
        words = tuple(str(word) for word in argv)
        request = Request(words, str(cwd), dict(env), death and (death[0], str(death[1])))
        ours, its = socket.socketpair()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, ours:
            with its:
                handles = [its.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(self._requests, [json.dumps(asdict(request)).encode()], handles)
            answers = ours.makefile()
            pid = int(answers.readline())
            ours.settimeout(timeout)
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, code, out.read(), err.read())

    def end(self) -> None:
        """Let it end."""
        self._requests.close()
        self._process.wait()


def serve(requests: socket.socket) -> tuple[Request, list[int]] | None:
    """Fork at each request. Returns in the child, with it and its outputs, and in the parent at the end."""
    while True:
        message, handles, _, _ = socket.recv_fds(requests, _SIZE, 3)
        if not message:
            return None
        if os.fork() == 0:
            requests.close()
            reply = handles.pop(0)
            pid = os.fork()
            if pid == 0:
                os.close(reply)
                return Request(**json.loads(message)), handles
            os.write(reply, f"{pid}\n".encode())
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(reply, f"{code}\n".encode())
            os._exit(0)
        for handle in handles:
            os.close(handle)
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(request: Request, outputs: list[int]) -> None:
    """Make of this process what a start of the console script would have made."""
    for handle, number in zip(outputs, (1, 2), strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    locale.setlocale(locale.LC_CTYPE, "")
    sys.argv[:] = request.argv
    sys.path[0] = str(Path(sys.argv[0]).parent)
    main = sys.modules["__main__"]  # which processes that are spawned import as well
    main.__spec__, main.__file__ = None, sys.argv[0]


def _import_all() -> None:
    """What any task needs: nothing of the tool acts when it is imported."""
    package = importlib.import_module("tritonsmith")
    for module in pkgutil.walk_packages(package.__path__, "tritonsmith."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    from tests.integration import dying
    from tritonsmith.cli import program

    _import_all()
    gc.freeze()  # what is here stays shared with the forks
    found = serve(socket.socket(fileno=int(sys.argv[1])))
    if found:
        become(*found)
        if found[0].death:
            dying.die_at(*found[0].death)
        program.main()
