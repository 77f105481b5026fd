"""Call the worker: start it in an interpreter that has Triton, hand it a request, and read its rows.

No other module knows where the worker's files are, how a request reaches it or what its answers look like as
text. It is called in four ways, by what has to outlive the call:

    ask             a question whose rows come back on standard output; nothing is left
    steps, results  steps of a plan, which `--dry-run` shows and a person can repeat; the rows are a file
    Conversation    a worker that stays, and answers one line after the other
    site, script    a user's own program, which the worker joins before its first line; `noted` reads its rows

It is in `compiler/`, the lowest room that starts the worker: build, inspect, check and lab import it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import ClassVar, Protocol, TypeVar

from tritonsmith import worker
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write, files
from tritonsmith.core.plan.programs import LineProcess
from tritonsmith.core.plan.steps.base import CommandFailedError, StepTools
from tritonsmith.core.process import query
from tritonsmith.worker.border import (
    EXIT_REFUSED,
    BorderError,
    RequestRefusedError,
    WorkerRefusal,
    request_of,
    row_of,
    text_of,
)
from tritonsmith.worker.messages import (
    ChildRow,
    GenericJobRequest,
    GenericRequest,
    PointsRequest,
    ServedRow,
)

Row = TypeVar("Row")
Head = TypeVar("Head")
Environ = Sequence[tuple[str, str | None]]

_SHOWN = 2000  # characters of an interpreter's errors
_MAIN = worker.FOLDER / "__main__.py"
# Python itself imports this in every process. It hides its own folder from the path first, so that the user's
# own `sitecustomize`, if there is one, still runs.
_SITE = """import os
import runpy
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != here]
runpy.run_path({worker!r})["run"]({what!r}, {request!r})
del sys.modules["sitecustomize"]
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = type(sys)("sitecustomize")
"""


class WorkerRequest(Protocol):
    """A request of `worker.messages`: a data class that names its command."""

    COMMAND: ClassVar[str]


class UnansweredError(FactError):
    """The worker refused a request, or ended without its rows; the caller adds what the question was.

    Attributes:
        refusal: the worker's reason; None if it gave none.
    """

    def __init__(self, why: str, refusal: WorkerRefusal | None = None) -> None:
        super().__init__("the worker did not answer", why=why)
        self.refusal = refusal


def source_text() -> str:
    """Return the source of the whole worker: what it answered is valid as long as this stays the same."""
    return worker.text()


def source_files() -> dict[str, str]:
    """Return the worker's files by name, for an interpreter that is on another machine."""
    return worker.sources()


def in_own_frame(line: str) -> bool:
    """Report whether a line of a traceback is about the worker, or about `runpy`, which starts it."""
    return str(worker.FOLDER) in line or "runpy" in line


def _argv(python: Path, *words: str) -> tuple[str, ...]:
    return (str(python), str(worker.FOLDER), *words)


def _rows(lines: Sequence[str], row: type[Row]) -> list[Row]:
    try:
        return [row_of(row, line) for line in lines]
    except RequestRefusedError as error:
        raise UnansweredError(error.refusal.what, error.refusal) from None
    except BorderError as error:
        raise UnansweredError(f"its answer cannot be read: {error}") from error


def ask(
    python: Path,
    request: WorkerRequest,
    row: type[Row],
    space: Workspace,
    *,
    timeout: float,
    change: Mapping[str, str | None] | None = None,
    count: int | None = None,
) -> list[Row]:
    """Return the rows that answer a request.

    Args:
        python: an interpreter that has Triton.
        request: the request; it is an argument of the command, so it has to be short.
        row: the class of the rows.
        space: the workspace, in which Triton keeps what it writes.
        timeout: seconds.
        change: more changes of the environment; None removes a variable.
        count: the number of rows, where it is known.

    Raises:
        UnansweredError: the worker refuses, fails, or takes too long.
    """
    rows = _rows(_answer(python, request, space, timeout, change), row)
    if count not in (None, len(rows)):
        raise UnansweredError(f"it ended after {len(rows)} of {count} answers")
    return rows


def ask_one(
    python: Path,
    request: WorkerRequest,
    row: type[Row],
    space: Workspace,
    *,
    timeout: float,
    change: Mapping[str, str | None] | None = None,
) -> Row:
    """Return the only row that answers a request: the last line, since a user's file may print before it.

    Raises:
        UnansweredError: as `ask`.
    """
    return _rows(_answer(python, request, space, timeout, change)[-1:], row)[0]


def _answer(
    python: Path,
    request: WorkerRequest,
    space: Workspace,
    timeout: float,
    change: Mapping[str, str | None] | None,
) -> list[str]:
    """Return the lines of an answer, of which there is at least one."""
    # Under TRITON_INTERPRET, @triton.jit makes functions that cannot be compiled.
    # Triton's caches go to the workspace: a question must not fill ~/.triton.
    around = {"TRITON_INTERPRET": None, "TRITON_HOME": str(space.root / "kernels"), **(change or {})}
    answer = query(_argv(python, request.COMMAND, text_of(request)), change=around, timeout=timeout)
    if answer is None:
        raise UnansweredError("the interpreter did not respond in time")
    # Only rows begin so: libtriton and the user's file may print, too.
    lines = [line for line in answer.out.splitlines() if line.startswith("{")]
    if answer.code or not lines:
        refusal = _refusal(lines)
        raise UnansweredError(refusal.what if refusal else answer.err[-_SHOWN:], refusal)
    return lines


def steps(
    python: Path,
    request: WorkerRequest,
    file: Path,
    *,
    env: Environ,
    phase: str,
    indent: int | None = 2,
) -> tuple[Write, Run]:
    """Return the steps that write a request, and start the worker on it in the folder of that file.

    Args:
        python: an interpreter that has Triton.
        request: the request; it names the file of the results.
        file: where to write it.
        env: changes of the environment; None removes a variable.
        phase: the phase of both steps.
        indent: None for a request that nobody reads, because most of it is memory.
    """
    argv = _argv(python, request.COMMAND, str(file))
    return (
        Write(file, text_of(request, indent) + "\n", phase=phase),
        Run(argv, cwd=file.parent, env=tuple(env), phase=phase),
    )


def results(file: Path, row: type[Row]) -> list[Row]:
    """Read the rows that a worker has written; none if it ended before the first.

    Raises:
        UnansweredError: it refused the request.
        FactError: they have another shape, as rows of another version have.
    """
    text = untrusted.read_text(file, untrusted.OURS) if file.is_file() else ""
    return _rows_in(file, text.splitlines(), row)


def headed_results(file: Path, head: type[Head], row: type[Row]) -> tuple[Head, list[Row]]:
    """Read rows of which the first has a class of its own.

    Raises:
        UnansweredError: the worker refused the request.
        SmithError: there are none, or they have another shape.
    """
    # The head comes first, and before any compile: without it, the worker did not get as far as Triton.
    # Nor does a program that is called like an interpreter, and does nothing.
    text = untrusted.read_text(file, untrusted.OURS) if file.is_file() else ""
    first, *lines = text.splitlines() or [""]
    if not first:
        raise SmithError("the worker wrote no results", where=file)
    return _rows_in(file, [first], head)[0], _rows_in(file, lines, row)


def refusal_in(file: Path) -> WorkerRefusal | None:
    """Return the reason why a request was refused, which is the last row; None if it was not."""
    return _refusal(untrusted.text_if_any(file).splitlines())


def _refusal(lines: Sequence[str]) -> WorkerRefusal | None:
    try:
        row_of(WorkerRefusal, lines[-1] if lines else "")
    except RequestRefusedError as error:
        return error.refusal
    # The last line is an ordinary row: nothing was refused.
    except BorderError:
        return None
    return None


def run(
    plan: Plan, file: Path, row: type[Row], space: Workspace, *, task: str, quiet: bool = False
) -> list[Row]:
    """Run a plan that starts the worker, and read its rows.

    Args:
        plan: the plan.
        file: the file of the results.
        row: the class of the rows.
        space: the workspace.
        task: the name of the task, for the log.
        quiet: show no progress.

    Raises:
        UnansweredError: the worker refused the request.
        CommandFailedError: it failed in another way.
    """
    try:
        space.run(plan, task, quiet=quiet)
    except CommandFailedError as failure:
        # Read only now: a run that succeeded may have thousands of rows, and none of them is a refusal.
        if refusal := refusal_in(file):
            raise UnansweredError(refusal.what, refusal) from failure
        raise
    return results(file, row)


@contextmanager
def in_scratch(
    worker_steps: Sequence[Step], file: Path, row: type[Row], space: Workspace, *, task: str, quiet: bool
) -> Iterator[list[Row]]:
    """Run the steps in a folder that is made for them, and remove it when the body is done with its files.

    Args:
        worker_steps: the steps of `steps`.
        file: the file of the results, in the same folder as the request.
        row: the class of the rows.
        space: the workspace.
        task: the name of the task, for the log.
        quiet: show no progress.

    Raises:
        UnansweredError: as `run`.
        CommandFailedError: as `run`.
    """
    # The folder is removed before, too: a run that was killed has left its rows there, and they would be
    # read.
    work, phase = file.parent, worker_steps[0].phase
    cleanup = Remove((work,), space.root, phase=phase)
    space.claim()
    try:
        plan = Plan(phase, (cleanup, MakeDir(work, phase=phase), *worker_steps))
        yield run(plan, file, row, space, task=task, quiet=quiet)
    finally:
        space.run(Plan(phase, (cleanup,)), task, quiet=True)


def generic_texts(
    files_of_ir: Sequence[Path],
    where: tuple[Path, Workspace],
    work: Path,
    limits: Mapping[str, int],
    *,
    task: str,
    quiet: bool,
) -> list[str]:
    """Print files of IR in MLIR's generic form; the text is empty for a file that cannot be printed.

    Args:
        files_of_ir: the files.
        where: an interpreter whose Triton printed them, and the workspace.
        work: a folder to work in, which is made and removed.
        limits: seconds (`timeout`) and MiB (`memory`) of each file.
        task: the name of the task, for the log.
        quiet: show no progress.

    Raises:
        FactError: the interpreter cannot print them.
    """
    python, space = where
    results = work / "generic.jsonl"
    # By number: a folder that stays does not fill with the texts of thousands of kernels.
    jobs = tuple(
        GenericJobRequest(str(file.absolute()), str(work / f"{number}.mlir"))
        for number, file in enumerate(files_of_ir)
    )
    request = GenericRequest(jobs, str(results), limits["timeout"], limits["memory"] << 20)
    env = (("TRITON_INTERPRET", None),)
    worker_steps = steps(python, request, work / "request.json", env=env, phase="generic form")
    try:
        with in_scratch(worker_steps, results, ChildRow, space, task=task, quiet=quiet) as rows:
            return printed_texts(rows, jobs)
    except UnansweredError as error:
        raise FactError("cannot print the IR in generic form", where=python, why=error.why) from error


def printed_texts(rows: Sequence[ChildRow], jobs: Sequence[GenericJobRequest]) -> list[str]:
    """Read what was printed, a text for each job; empty where that failed."""
    return [
        _printed(Path(job.out)) if row.status == "ok" else "" for row, job in zip(rows, jobs, strict=True)
    ]


def _printed(file: Path) -> str:
    """Read a text in generic form; empty if it is too large to come from Triton."""
    try:
        return untrusted.read_text(file)
    except OSError:
        return ""


def _rows_in(file: Path, lines: Sequence[str], row: type[Row]) -> list[Row]:
    try:
        return _rows(lines, row)
    except UnansweredError as error:
        if error.refusal:
            raise
        raise FactError("cannot read the worker's rows", where=file, why=error.why) from error


class Conversation:
    """A worker that stays, and answers each line with a row.

    Args:
        python: an interpreter that has Triton.
        words: the command and its argument.
        folder: where it runs.
        change: changes of its environment; None removes a variable.
        log: the file of what it prints as errors; None for one in that folder.

    Raises:
        FactError: the interpreter cannot be started.
    """

    def __init__(
        self,
        python: Path,
        *words: str,
        folder: Path,
        change: Mapping[str, str | None],
        log: Path | None = None,
    ) -> None:
        self._log = log or folder / "worker.log"
        self._process = LineProcess(_argv(python, *words), cwd=folder, change=change, errors=self._log)

    def say(self, line: str) -> None:
        """Send a line: a request, or the name of a file that has one.

        Raises:
            FactError: the worker has ended.
        """
        self._process.say(line)

    def hear(self, row: type[Row]) -> Row:
        """Wait for the next row.

        Raises:
            UnansweredError: the worker refuses.
            FactError: it has ended, or answers something else.
        """
        return _rows_in(self._log, [self._process.hear()], row)[0]

    def close(self) -> None:
        """Stop the worker and what it has started."""
        self._process.close()


WARM = 3  # workers of a thread: each has some 30 MiB of its own, and 160 with torch
_DEATHS = 3  # in a row, after which an interpreter is started for each request again
_UNUSED = 300.0  # seconds, after which a worker ends: the process of a cluster may have no work for days


@dataclass(frozen=True)
class _WarmKey:
    """Identify what a worker has imported.

    Attributes:
        python: its interpreter.
        env: changes of its environment.
        state: see `WarmRun`.
    """

    python: Path
    env: Environ
    state: str


@dataclass(frozen=True)
class _IdleWorker:
    """A worker that waits for a request.

    Attributes:
        key: what it has imported.
        conversation: with it.
        since: the time of its last answer.
    """

    key: _WarmKey
    conversation: Conversation
    since: float


class WarmWorkers:
    """Workers that have imported Triton and compile one request after the other, each in a fork.

    There are at most three for each thread that compiles at the same time: the one that was used least
    recently gives way. They end with this process, however it ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_IdleWorker] = []  # the one that was used last is at the end
        self._busy = self._most_busy = 0
        self._deaths: Counter[_WarmKey] = Counter()
        self._orders: SimpleQueue[tuple[Future[Conversation], Run] | None] = SimpleQueue()
        self._starter: threading.Thread | None = None
        self._is_registered = False

    def answer(self, step: Run, state: str = "") -> int | None:
        """Compile the request of a step of `steps`, and return the exit code.

        Args:
            step: the step.
            state: see `WarmRun`.

        Returns:
            The code that the step's own process would have; None if only that process can tell.
        """
        key = _WarmKey(Path(step.argv[0]), step.env, state)
        if self._deaths[key] >= _DEATHS:
            return None
        worker = self._taken(key)
        try:
            worker = worker or self._started(step)
            worker.say(f"{PointsRequest.COMMAND} {step.argv[-1]}")
            row = worker.hear(ServedRow)
        # A crash of the file that is compiled may have taken the worker along. A path that is no UTF-8 cannot
        # be said.
        except (SmithError, UnicodeError):
            self._deaths[key] += 1
            self._give_back(key, None)
            if worker:
                worker.close()
            return None
        except BaseException:
            # ^C: the files of the request are about to be removed, and nothing may write to them any more.
            self._give_back(key, None)
            if worker:
                worker.close()
            raise
        self._deaths[key] = 0
        self._give_back(key, worker)
        return row.value if row.status == "ok" else None

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            idle, self._idle = self._idle, []
            if self._starter:
                self._orders.put(None)
            self._starter = None
        for unused in idle:
            unused.conversation.close()

    def _taken(self, key: _WarmKey) -> Conversation | None:
        """Take an idle worker, or make room for one."""
        with self._lock:
            self._busy += 1
            self._most_busy = max(self._most_busy, self._busy)
            worker = next((idle for idle in self._idle if idle.key == key), None)
            if worker:
                self._idle.remove(worker)
            surplus = self._surplus()
        # Outside of the lock: to end a process may take seconds.
        for idle in surplus:
            idle.conversation.close()
        return worker.conversation if worker else None

    def _give_back(self, key: _WarmKey, conversation: Conversation | None) -> None:
        with self._lock:
            self._busy -= 1
            if conversation:
                self._idle.append(_IdleWorker(key, conversation, time.monotonic()))
            surplus = self._surplus()
        for idle in surplus:
            idle.conversation.close()

    def _surplus(self) -> list[_IdleWorker]:
        """Remove the workers that are too many, and return them."""
        room = WARM * self._most_busy - self._busy
        surplus = self._idle[: max(0, len(self._idle) - room)]
        del self._idle[: len(surplus)]
        return surplus

    def _started(self, step: Run) -> Conversation:
        """Start a worker, and return it.

        Raises:
            FactError: it cannot be started.
        """
        with self._lock:
            if not self._starter:
                # They would end anyway, but CPU seconds of a process that nobody waits for are in no sum.
                # Not `atexit`, which the processes of multiprocessing leave out before Python 3.13.
                if not self._is_registered:
                    from multiprocessing import util  # noqa: PLC0415 - takes 10 ms

                    util.Finalize(None, self.close, exitpriority=0)
                    self._is_registered = True
                self._orders = SimpleQueue()
                self._starter = threading.Thread(target=self._start_each, args=(self._orders,), daemon=True)
                self._starter.start()
            started: Future[Conversation] = Future()
            self._orders.put((started, step))
        try:
            return started.result()
        except BaseException:
            # ^C: the worker may be there a moment later, and nobody has it.
            started.add_done_callback(lambda late: None if late.exception() else late.result().close())
            raise

    def _start_each(self, orders: SimpleQueue[tuple[Future[Conversation], Run] | None]) -> None:
        """Start the workers, in a thread of its own that lives as long as the process."""
        # Linux ends a worker with the thread that started it, not with the process (prctl(2),
        # PR_SET_PDEATHSIG), and a pool of threads, as Dask has, may end any of them.
        while True:
            try:
                order = orders.get(timeout=_UNUSED)
            except Empty:
                self._end_unused()
                continue
            if order is None:
                return
            started, step = order
            try:
                conversation = Conversation(
                    Path(step.argv[0]),
                    "attend",
                    step.argv[-1],
                    # Beside the folder of the request, which is removed before the worker ends.
                    folder=step.cwd.parent,
                    change=dict(step.env),
                    log=step.cwd / "worker.log",
                )
            except Exception as error:  # noqa: BLE001 - whoever waits for the worker gets it
                started.set_exception(error)
            else:
                started.set_result(conversation)

    def _end_unused(self) -> None:
        with self._lock:
            until = time.monotonic() - _UNUSED
            unused = [idle for idle in self._idle if idle.since < until]
            self._idle = [idle for idle in self._idle if idle.since >= until]
        for idle in unused:
            idle.conversation.close()


@dataclass(frozen=True)
class WarmRun(Step):
    """Compile a request by a worker that has imported Triton, or else by the process of a step of `steps`.

    Attributes:
        cold: that step.
        results: the file of the rows.
        workers: the workers.
        state: a key of the files that a worker has imported, where these may change while the process
            lives: a worker that imported others is not asked.
    """

    cold: Run
    results: Path
    workers: WarmWorkers
    state: str = ""

    def shell(self) -> list[str]:
        """Return the line that compiles the same without such a worker."""
        return self.cold.shell()

    def act(self, tools: StepTools) -> None:
        """Compile by a worker, or else by that step."""
        code = self.workers.answer(self.cold, self.state)
        if code is not None:
            printed = untrusted.text_if_any(Path(f"{self.cold.argv[-1]}.log"))
            tools.write_log(*printed.splitlines(), f"exit code {code}, of a worker that had imported Triton")
        if code == EXIT_REFUSED and refusal_in(self.results):
            tools.fail(self.cold, code)
        # A worker is faster, and no more: whatever it has no result for, such as a file that ends its
        # process, goes to a process of its own, whose end is reported.
        if code != 0:
            self.cold.act(tools)

    @property
    def title(self) -> str:
        """The title of that step."""
        return self.cold.title


def site(request: WorkerRequest, file: Path) -> str:
    """Return a `sitecustomize.py` that starts the worker in a Python process before the user's program.

    Args:
        request: the request.
        file: the file that has it.
    """
    return _SITE.format(worker=str(_MAIN), what=request.COMMAND, request=str(file))


def script(request: WorkerRequest, file: Path) -> tuple[str, ...]:
    """Write a request, and return the words between `python` and a script that let the worker run it."""
    files.write(file, text_of(request))
    return (str(_MAIN), request.COMMAND, str(file))


def noted(folder: Path, row: type[Row], pattern: str = "*.jsonl") -> list[Row]:
    """Read the rows of all processes of a user's program, each of which writes a file of its own."""
    return [each for file in sorted(folder.glob(pattern)) for each in results(file, row)]


def kept(text: str, shape: type[Row]) -> Row:
    """Return what the tool has kept in the form of a request.

    Raises:
        ValueError: the text has another form.
    """
    return request_of(shape, text)


def recorded(file: Path, row: type[Row]) -> list[Row]:
    """Read the rows of one process of a user's program."""
    # A process may be killed while it writes: what follows the last line end is half a row.
    whole, _, _cut = untrusted.read_text(file).rpartition("\n")
    return _rows_in(file, whole.splitlines(), row)
