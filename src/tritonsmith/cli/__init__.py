"""The command line: Invoke's program, a file per command, and what guards their imports from ^C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# As in core/errors.py, which is not imported here: this guards the very first import.
_EXIT_INTERRUPTED = 130


@contextmanager
def interruptible() -> Iterator[None]:
    """End the process at ^C in the body of a `with`, which imports modules and holds nothing."""
    # Unlike ^C, these two keep our handler after the body, until `stopping.stoppable` takes them over: their
    # default would leave neither a message nor the exit code of a run that was stopped.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        # SIGINT is ignored, as for `tritonsmith TASK &` in a script, or whoever imports us has a handler.
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    # An exception in the middle of an import may be caught there, or end in a traceback of half a module.
    os.write(2, b"interrupted\n")
    os._exit(_EXIT_INTERRUPTED)
