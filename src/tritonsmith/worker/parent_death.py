"""React in a worker process to the death of its parent or its child."""

from __future__ import annotations

import contextlib
import signal
import sys


def interrupt() -> None:
    """Clean up as after ^C when the parent dies: nothing waits for the result any more.

    On systems without such a signal, `CompilePool` checks for the parent periodically.
    """
    _signal(signal.SIGINT)


def kill() -> None:
    """End this process when its worker is killed."""
    _signal(signal.SIGKILL)


def ignore_interrupts() -> None:
    """Ignore ^C and end with the worker; write no core file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # writing one takes longer than the compile
    kill()


def adopt() -> None:
    """Become the parent of processes that this process's children leave behind, so that they can be found."""
    _control(36, 1)  # PR_SET_CHILD_SUBREAPER


def _signal(number: int) -> None:
    _control(1, number)  # PR_SET_PDEATHSIG


def _control(what: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(what, value)
