"""The console entry point, which imports no more than the command line needs, and its signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# As in core/errors.py, which this module cannot import: it guards the very first import.
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


def main() -> None:
    """Import and run the program; for a Tab of the shell, print completions, which needs fewer imports."""
    # Before the import of Invoke and of rich: a user waits for each Tab.
    if sys.argv[1:2] == ["--complete"]:
        with interruptible():
            from tritonsmith.cli import completion  # noqa: PLC0415
        completion.main(sys.argv[1:])
        return
    with interruptible():
        from tritonsmith.cli.program import main as run  # noqa: PLC0415 - this is what takes the time
    run()
