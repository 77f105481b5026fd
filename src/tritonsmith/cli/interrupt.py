"""A signal while Python imports the tool, or one of its tasks, ends it with a word and its exit code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_EXIT_INTERRUPTED = 130  # of errors.py, which is one of the modules that are not imported yet


@contextmanager
def interruptible() -> Iterator[None]:
    """End at once at ^C in the body of a `with`, which imports and holds nothing.

    SIGTERM and SIGHUP do so until `stopping.stoppable` takes them over, in the body and after it: their
    default would leave neither a word nor the exit code of a run that was stopped.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield  # it is ignored, or who imports this has an answer of its own
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_EXIT_INTERRUPTED)
