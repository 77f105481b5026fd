"""What a process of the worker does when the one that started it is killed."""

from __future__ import annotations

import contextlib
import signal
import sys


def interrupt() -> None:
    """Nobody waits for the result any more: tidy up as after ^C.

    Where there is no such signal, `CompilePool` looks up from time to time.
    """
    _signal(signal.SIGINT)


def kill() -> None:
    """What a killed worker started must not go on."""
    _signal(signal.SIGKILL)


def ignore_interrupts() -> None:
    """End by the worker's kill alone, and leave no core file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # writing one takes longer than the compile
    kill()


def _signal(number: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
