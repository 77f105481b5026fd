"""How a run is stopped: signals end it as ^C does, and its child processes are stopped with it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_AFTER_INT = 5.0  # seconds; Ninja lets running compiles finish writing
GRACE_AFTER_TERM = 2.0


@contextmanager
def stoppable() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as ^C for the body of a `with`.

    One that is ignored, as under `nohup`, stays so.
    """
    if threading.current_thread() is not threading.main_thread():  # nobody else is given signals
        yield
        return
    heard = [sig for sig in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(sig) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a process group: INT, then TERM, then KILL, with time to react in between.

    ^C pressed again takes the next stair at once.
    """
    for number, grace in ((signal.SIGINT, GRACE_AFTER_INT), (signal.SIGTERM, GRACE_AFTER_TERM)):
        if not _signal_group(process, number):
            return
        try:
            process.wait(timeout=grace)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
        break
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        _leave_terminal()
    raise KeyboardInterrupt(signal.Signals(number).name)


def _leave_terminal() -> None:
    """Where the terminal was closed, each further word to it would be an error."""
    for descriptor in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
        except OSError:  # the shell closed it: 2>&-
            continue
        if gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
