"""Stop a run: SIGTERM and SIGHUP end it like ^C, and its child processes are stopped, too."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Protocol, TypeVar

GRACE_AFTER_INT = 5.0  # seconds; Ninja lets running compiles finish writing
GRACE_AFTER_TERM = 2.0
_TOGETHER = 0.1  # seconds within which signals are one: a session that ends sends TERM and HUP
K = TypeVar("K")
V = TypeVar("V")


class ProcessGroup(Protocol):
    """A process that leads a group: `subprocess.Popen`, and what is like it.

    Attributes:
        pid: of the process and of the group.
    """

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it goes on.
        """


@contextmanager
def stoppable() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like ^C for the body of a `with`, and those that come together as one."""
    # Python runs signal handlers in the main thread only, and refuses to set one from another.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    all_ = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # A signal that is ignored on entry stays ignored: under `nohup` a closed
    # terminal must not end the build.
    heard = [sig for sig in all_ if signal.getsignal(sig) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Interruption:
    """A request to interrupt a thread, as ^C interrupts the first one.

    Attributes:
        asked: whether it is to be interrupted.
        happened: whether it was.
    """

    def __init__(self, asked: Callable[[], bool]) -> None:
        self.asked, self.happened = asked, False


class _OwnInterruption(threading.local):
    """The request of the current thread."""

    current: Interruption | None = None


_OWN = _OwnInterruption()


@contextmanager
def interruptible(asked: Callable[[], bool]) -> Iterator[Interruption]:
    """Interrupt whatever the body waits for in this thread as soon as `asked` returns true.

    Args:
        asked: called several times a second, in this thread.
    """
    before, _OWN.current = _OWN.current, Interruption(asked)
    try:
        yield _OWN.current
    finally:
        _OWN.current = before


def is_interruptible() -> bool:
    """Report whether waits of this thread should call `check` every now and then."""
    return _OWN.current is not None


def check() -> None:
    """Interrupt this thread if that is asked for.

    Raises:
        KeyboardInterrupt: it is, for the first time: what then tidies up may wait, too.
    """
    interruption = _OWN.current
    if interruption and not interruption.happened and interruption.asked():
        interruption.happened = True
        raise KeyboardInterrupt


def at_once(calls: Mapping[K, Callable[[], V]], count: int) -> Generator[tuple[K, V], None, None]:
    """Run functions that wait for processes in `count` threads, and yield each result as it comes.

    When one of them fails, at ^C, and when the generator is closed, the others are stopped, and have ended
    then. So whoever does not run it to its end in one loop closes it.

    Raises:
        Exception: as the first function that fails.
        KeyboardInterrupt: ^C.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed  # noqa: PLC0415 - logging comes with it

    stopped = threading.Event()

    def run(function: Callable[[], V]) -> V:
        with interruptible(stopped.is_set):
            return function()

    with stoppable(), ThreadPoolExecutor(max(1, min(len(calls), count))) as threads:
        pending = {threads.submit(run, function): key for key, function in calls.items()}
        try:
            for future in as_completed(pending):
                yield pending[future], future.result()
        except BaseException:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def stop(process: ProcessGroup) -> None:
    """Stop a process group: INT, then TERM, then KILL, with time to react in between.

    Another ^C skips to the next signal at once.

    Raises:
        KeyboardInterrupt: ^C came meanwhile: whoever stops the group for another reason ends, too.
    """
    interrupt: KeyboardInterrupt | None = None
    for number, grace in ((signal.SIGINT, GRACE_AFTER_INT), (signal.SIGTERM, GRACE_AFTER_TERM)):
        if not _signal_group(process, number):
            break
        try:
            process.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt as error:
            # A second ^C means "faster", not "leave it running": it shortens this wait,
            # and is raised at the end.
            interrupt = error
            continue
        break
    # KILL comes in any case: the leader may have ended at INT while a grandchild ignored it.
    kill(process)
    if interrupt:
        raise interrupt


def kill(process: ProcessGroup) -> None:
    """Kill a process group at once: what runs in it has nothing to tidy up."""
    if _signal_group(process, signal.SIGKILL):
        process.wait()


def session(leader: int) -> Iterator[tuple[int, int]]:
    """Yield process and group of what runs in the session that a process leads, or led before it ended.

    Nothing is known where there is no /proc.
    """
    # The group of the leader is not enough: Ninja gives each compile a group of its own, and a Ninja that
    # is killed, or that writes to a pipe which nobody reads any more, leaves them at work.
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field is the program's name in parentheses, which may itself contain
            # blanks and a `)`: so the split begins at the last one. Then come state, parent,
            # group and session (proc(5)).
            state, _, group, number = path.read_text("utf-8", "replace").rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(number) == leader and state not in "ZX":
            yield int(path.parent.name), int(group)


class _Heard:
    """The time of the last signal."""

    at = 0.0


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        _leave_terminal()
    # A session that ends sends TERM and HUP within a moment. The second would interrupt `stop` before
    # it has signalled anybody.
    before, _Heard.at = _Heard.at, time.monotonic()
    if _Heard.at - before < _TOGETHER:
        return
    raise KeyboardInterrupt(signal.Signals(number).name)


def _leave_terminal() -> None:
    """Redirect our output if the terminal was closed."""
    for descriptor in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
        except OSError:  # the shell closed it: 2>&-
            continue
        if gone:
            # After a hangup each write to the terminal is an EIO, and the first one would replace the
            # message that says where the log is.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _signal_group(process: ProcessGroup, number: signal.Signals) -> bool:
    """Signal a group, and the others of its session; return whether there is one."""
    reached = False
    for group in {process.pid, *(group for _, group in session(process.pid))}:
        # PermissionError is what macOS answers for a group of zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            reached = True
    return reached
