"""A pool of processes that compile points; if one dies, its point fails and another process continues."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import selectors
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from typing import Any

from .border import row_of
from .compile_point import failed
from .messages import CompiledRow, PointsRequest

Report = Callable[[int, CompiledRow], None]

# Compiles that take as long as loading a file with many imports: `import torch` takes 3 s of CPU time.
COMPILES_OF_A_LOAD = 8
LOOKS_UP = 1.0  # seconds between two checks that the parent is still alive


@dataclasses.dataclass(frozen=True)
class CompileGroup:
    """A group of points that can share one load of the kernel's file.

    Attributes:
        target: the target of the load and the compiles: `cuda:90:32`.
        loads: each child of the group loads the file by itself.
        llvm: options of LLVM.
    """

    target: str
    loads: bool
    llvm: tuple[str, ...] = ()


class CompileProcess:
    """A process that compiles points of one group, which share one load of the file."""

    def __init__(
        self,
        group: CompileGroup,
        work: Callable[[Any, Any], None],
        argv: list[str] | None,
        siblings: list[CompileProcess],
    ) -> None:
        """Start the process.

        Args:
            group: of its points.
            work: the function of a forked process, which gets its input and output.
            argv: the command of a new process, used where a fork is not possible; None to fork.
            siblings: the existing children.
        """
        self.group = group
        self.number = -1
        self.deadline = self.began = 0.0
        self.buffer = b""
        self.process: subprocess.Popen[bytes] | None = None
        there, self.into = os.pipe()
        self.out, back = os.pipe()
        if argv is None:
            self.pid = os.fork()
            if self.pid == 0:
                self._serve(work, there, back, siblings)
        else:
            self.process = subprocess.Popen(argv, stdin=there, stdout=back, start_new_session=True)
            self.pid = self.process.pid
        os.close(there)
        os.close(back)

    def _serve(
        self, work: Callable[[Any, Any], None], there: int, back: int, siblings: list[CompileProcess]
    ) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            for child in (self, *siblings):  # or the pipes would stay open after the parent closes them
                os.close(child.into)
                os.close(child.out)
            with open(there, encoding="ascii") as reader, open(back, "w", encoding="utf-8") as writer:
                try:
                    work(reader, writer)
                except BaseException:  # why; before the pipes close, and it is killed
                    traceback.print_exc()
                    raise
            code = 0
        finally:
            os._exit(code)

    def give(self, number: int, timeout: float) -> None:
        """Send a point to compile."""
        self.number, self.began = number, time.monotonic()
        self.deadline = self.began + timeout
        # A child that has died is noticed when its pipe ends, with its exit code.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.into, b"%d\n" % number)

    def end(self) -> str:
        """Stop the process and its children, and return a description of its end."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.into)
        os.close(self.out)
        if self.process:
            code = self.process.wait()
        else:
            status = os.waitpid(self.pid, 0)[1]
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with contextlib.suppress(ValueError):
            return f"the compiler died: {signal.Signals(-code).name}"
        return f"the compiler ended the process: exit code {code}"


class CompilePool:
    """A pool that distributes points to children, and passes rows to `report`."""

    def __init__(
        self,
        request: PointsRequest,
        groups: list[CompileGroup],
        start: Callable[[CompileGroup, list[CompileProcess]], CompileProcess],
        report: Report,
    ) -> None:
        """Create a pool; starts no process yet.

        Args:
            request: of the compile.
            groups: of each point.
            start: starts a child for a group, beside others.
            report: called with the result of each point.
        """
        self.request, self.start, self.report = request, start, report
        # In reverse, since `pop` takes the last: the first point is compiled first.
        self.waiting: dict[CompileGroup, list[int]] = {}
        for number in reversed(range(len(groups))):
            self.waiting.setdefault(groups[number], []).append(number)
        self.chosen = selectors.DefaultSelector()
        self.children: list[CompileProcess] = []
        self.asker = os.getppid()

    def run(self) -> None:
        """Run until every point has its row."""
        try:
            for _ in range(min(self.request.jobs, len(self.request.points))):
                self._more()
            while self.children:
                # The parent was killed: nobody waits for results, and its lock is free.
                if os.getppid() != self.asker:
                    raise KeyboardInterrupt
                nearest = min(child.deadline for child in self.children) - time.monotonic()
                for key, _ in self.chosen.select(min(max(0.0, nearest), LOOKS_UP)):
                    self._hear(key.data)
                for child in [child for child in self.children if child.deadline < time.monotonic()]:
                    seconds = self.request.timeout
                    self._lost(child, "timeout", f"timed out after {seconds} s")
        finally:
            for child in list(self.children):
                child.end()

    def _more(self) -> None:
        group = self._next()
        if group is not None:
            child = self.start(group, self.children)
            self.children.append(child)
            self.chosen.register(child.out, selectors.EVENT_READ, child)
            child.give(self.waiting[group].pop(), self.request.timeout)

    def _next(self) -> CompileGroup | None:
        """Return the group that most needs another child; None if no group benefits."""
        # If each child has to load the file, another one costs as much time as several compiles.
        busy = [child.group for child in self.children]
        left = {group: len(waiting) for group, waiting in self.waiting.items() if waiting}
        worth = [
            group
            for group, count in left.items()
            if group not in busy or not group.loads or count > COMPILES_OF_A_LOAD * busy.count(group)
        ]
        return min(worth, key=lambda group: (busy.count(group), -left[group]), default=None)

    def _hear(self, child: CompileProcess) -> None:
        heard = os.read(child.out, 1 << 16)
        if not heard:
            self._lost(child, "crashed", "")
            return
        child.buffer += heard
        if child.buffer.endswith(b"\n"):
            row, child.buffer = row_of(CompiledRow, child.buffer), b""
            self.report(child.number, row)
            # A child stays with its group: another one would need another load of the file.
            if self.waiting[child.group]:
                child.give(self.waiting[child.group].pop(), self.request.timeout)
            else:
                self._gone(child)
                self._more()

    def _lost(self, child: CompileProcess, status: str, error: str) -> None:
        ended = self._gone(child)
        point = self.request.points[child.number]
        self.report(child.number, failed(point, status, error or ended, child.began))
        self._more()

    def _gone(self, child: CompileProcess) -> str:
        self.chosen.unregister(child.out)
        self.children.remove(child)
        return child.end()


def can_fork() -> bool:
    """Report whether this is the only thread: a lock of another thread would stay locked in the child."""
    if not hasattr(os, "fork"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        import threading

        return threading.active_count() == 1
