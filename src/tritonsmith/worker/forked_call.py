"""A call in its own process: anything that ends the process, such as a crash in a pass, is an answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import parent_death

if TYPE_CHECKING:
    from .json_types import Table


def in_child(act: Callable[[], Any], log: str = os.devnull, timeout: float = 600.0) -> Table:
    """Call a function in its own process.

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
    with open(reader, encoding="utf-8") as file:
        said, late = _hear(file, pid, timeout)
    status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - began
    if late:
        return {"status": "timeout", "error": f"timed out after {timeout:.0f} s", "seconds": seconds}
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"status": "crashed", "error": f"the compiler died: {name}", "seconds": seconds}
    if not said:
        code = os.WEXITSTATUS(status)
        return {"status": "crashed", "error": f"the process ended: exit code {code}", "seconds": seconds}
    answer: Table = json.loads(said)
    answer["seconds"] = seconds
    return answer


def _hear(file: Any, pid: int, timeout: float) -> tuple[str, bool]:
    late = []

    def kill(*_: Any) -> None:
        late.append(pid)
        os.kill(pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        return file.read(), bool(late)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _child(act: Callable[[], Any], log: str, writer: int) -> None:
    parent_death.kill()
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(into, 1)
    os.dup2(into, 2)
    try:
        answer = {"status": "ok", "value": act()}
    except BaseException as error:  # noqa: BLE001 - whatever a binding raises
        answer = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(OSError), open(writer, "w", encoding="utf-8") as file:
        file.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)
