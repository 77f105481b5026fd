"""A run that is stopped from outside ends as one that is stopped by ^C, and leaves no child at work."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
