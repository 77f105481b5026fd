"""Run a call in its own process, and react to the death of a parent or a child.

Anything that ends such a process, as a crash in a pass does, is an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .border import Table

_MOMENT = 0.1  # seconds
_ADOPTED = 10.0  # seconds to end processes that start others as fast as they are ended


def in_child(act: Callable[[], Any], log: str = os.devnull, timeout: float = 600.0) -> Table:
    """Call a function in its own process, which ends with all processes that it has started.

    Returns:
        `status` (`ok`, `failed`, `crashed`, `timeout`), `value` or `error`, `seconds`.
    """
    began = time.monotonic()
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(act, log, writer)
    os.close(writer)
    _lead(pid)
    try:
        line, late = _hear(reader, pid, timeout)
    finally:
        os.close(reader)
        # The group goes too: what the child has started may still hold the pipe, or the GPU.
        _end(pid)
        status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - began
    if late:
        return {"status": "timeout", "error": f"timed out after {timeout:.0f} s", "seconds": seconds}
    line = line if line.endswith("\n") else ""
    if os.WIFSIGNALED(status) and not line:
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"status": "crashed", "error": f"the compiler died: {name}", "seconds": seconds}
    if not line:
        code = os.WEXITSTATUS(status)
        return {"status": "crashed", "error": f"the process ended: exit code {code}", "seconds": seconds}
    answer: Table = json.loads(line)
    answer["seconds"] = seconds
    return answer


def can_fork() -> bool:
    """Report whether this is the only thread: a lock of another thread would stay locked in the child."""
    if not hasattr(os, "fork"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        import threading

        return threading.active_count() == 1


def _hear(reader: int, pid: int, timeout: float) -> tuple[str, bool]:
    """Return the line that a child writes, and True if it took too long."""
    # The end of the child need not end the pipe: processes that it has started may hold it open.
    until, line = time.monotonic() + timeout, b""
    while not line.endswith(b"\n"):
        # In this order, a line that a child writes just before its end is not missed.
        over, left = _over(pid), until - time.monotonic()
        if left <= 0:
            return "", True
        if select.select([reader], [], [], 0 if over else min(left, _MOMENT))[0]:
            piece = os.read(reader, 1 << 16)
            if not piece:
                break
            line += piece
        elif over:
            break
    return line.decode("utf-8"), False


def _over(pid: int) -> bool:
    """Report whether a process has ended."""
    # Before Python 3.13, macOS can report this only by reaping the process, so the answer is then False.
    look = getattr(os, "waitid", None)
    return look is not None and look(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _lead(pid: int) -> None:
    """Make a process the leader of a group."""
    # Both it and its parent call this: whoever comes second must find the group there.
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)


def _end(pid: int) -> None:
    """Kill a process, unless it has ended, and its group."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def end_adopted() -> None:
    """Kill all children of a process that adopts: see `adopt`. It must have none of its own."""
    # A child that is killed leaves its own children to this process, so one round is not enough.
    until = time.monotonic() + _ADOPTED
    while (children := _children()) and time.monotonic() < until:
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    pids = []
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    pids.append(int(name))
    return pids


def limit_memory(bytes_: int) -> None:
    """Limit the writable memory of this process and each of its children."""
    # RLIMIT_AS would count mapped files, and libtriton alone maps a gigabyte.
    import resource

    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = bytes_ if most == resource.RLIM_INFINITY else min(bytes_, most)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _child(act: Callable[[], Any], log: str, writer: int) -> None:
    try:
        die_with_parent()
        _lead(0)
        into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(into, 1)
        os.dup2(into, 2)
        try:
            line = json.dumps({"status": "ok", "value": act()})
        except BaseException as error:  # noqa: BLE001 - whatever a binding raises
            line = json.dumps({"status": "failed", "error": f"{type(error).__name__}: {error}"})
        # Before the answer, as the parent kills this process as soon as it has it.
        sys.stdout.flush()
        with contextlib.suppress(OSError), open(writer, "w", encoding="utf-8") as file:
            file.write(line + "\n")
        os._exit(0)
    finally:
        # Whatever failed above, this copy of the parent must not go on as the parent.
        os._exit(1)


def interrupt_with_parent() -> None:
    """Clean up as after ^C when the parent dies: nothing waits for the result any more."""
    # Only Linux has such a signal. Elsewhere, `CompilePool` looks for its parent once a second.
    _signal(signal.SIGINT)


def die_with_parent() -> None:
    """End this process when its worker is killed."""
    _signal(signal.SIGKILL)


def ignore_interrupts() -> None:
    """Ignore ^C and end with the worker; write no core file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # writing one takes longer than the compile
    die_with_parent()


def adopt() -> None:
    """Become the parent of processes that this process's children leave behind, so that they can be found."""
    _control(36, 1)  # PR_SET_CHILD_SUBREAPER


def _signal(number: int) -> None:
    _control(1, number)  # PR_SET_PDEATHSIG


def _control(what: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(what, value)
