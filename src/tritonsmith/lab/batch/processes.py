"""A pool of local processes, each running one unit at a time; a crash affects only its own unit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, ParamSpec, TypeVar

ATTEMPTS = 2  # of a unit whose process dies: once may be the machine's fault, twice is the unit's

_AGAIN = 0.2  # seconds between signals to a process that is to end

P = ParamSpec("P")
T = TypeVar("T")


class Processes(Executor):
    """As `ProcessPoolExecutor`, but a process that dies breaks one unit, which another process then takes.

    Each is the only process of a pool of its own, so it is known whose death it was. They are spawned, not
    forked: a progress bar has threads. None outlives this process: all of them hold one end of a pipe, and
    stop when the other end is closed.

    Args:
        count: of the processes.
    """

    def __init__(self, count: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._reader, self._writer = self._context.Pipe(duplex=False)
        self._threads = ThreadPoolExecutor(count, "unit")
        self._own = threading.local()
        self._made: list[ProcessPoolExecutor] = []
        self._stopping = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in one of the processes.

        The future's exception is a `BrokenProcessPool` if `ATTEMPTS` processes died of it.
        """
        return self._threads.submit(self._attempt, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures`, interrupt what they run."""
        if cancel_futures:
            self._stopping = True
            self._writer.close()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        for pool in self._made:
            pool.shutdown(wait=wait)
        self._writer.close()
        self._reader.close()

    def _attempt(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._pool().submit(_guarded, fn, *args, **kwargs).result()
            except BrokenProcessPool:
                self._own.pool = None
                if self._stopping or not left:
                    raise
        raise AssertionError("unreachable")

    def _pool(self) -> ProcessPoolExecutor:
        """Return the pool of this thread."""
        pool: ProcessPoolExecutor | None = getattr(self._own, "pool", None)
        if pool is None:
            pool = ProcessPoolExecutor(1, self._context, initializer=_begin, initargs=(self._reader,))
            self._own.pool = pool
            self._made.append(pool)
        return pool


class _State:
    """The state of one of the processes."""

    busy = False
    stopped = False


def _begin(reader: Connection) -> None:
    """Begin a new process, in that process."""
    # ^C on the terminal is the first process's business, which then closes the pipe. A handler, not SIG_IGN,
    # which the compilers would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()


def _watch(reader: Connection) -> None:
    with suppress(EOFError, OSError):
        reader.recv()  # nobody ever sends
    while True:  # a signal that comes just before the first thread blocks does not wake it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_AGAIN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    if not _State.busy:
        os._exit(0)
    if not _State.stopped:  # it tidies up once
        _State.stopped = True
        raise KeyboardInterrupt


def _guarded(fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    _State.busy = True
    try:
        return fn(*args, **kwargs)
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        _State.busy = False
