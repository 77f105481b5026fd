"""The pool that units of work run in: processes of this machine, or the workers of a Dask cluster.

tritonsmith must be installed on the machines of the cluster, in the same version.
"""

from __future__ import annotations

import functools
import logging
import math
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from tritonsmith import __version__
from tritonsmith.compiler import call
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.core import command_line
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.core.plan import stopping
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from distributed import Client


ATTEMPTS = 2  # of a unit whose process dies: once may be the machine's fault, twice is the unit's
_AGAIN = 0.2  # seconds between signals to a process that is to end
_TICK = 1.0  # seconds between looks at the pool
_ALONE = 30.0  # seconds without any worker, until what is left is given up
_CONNECT = 10.0  # seconds that a scheduler may take to answer
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^\s/:]+:\d+", re.ASCII)  # distributed.comm
_PACKAGE = "tritonsmith"
_SAFE_PATH = "PYTHONSAFEPATH"  # since Python 3.11
_PREPARING = threading.Lock()

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")


class DiedError(StepError):
    """A unit of work killed its worker in every attempt."""


class LostError(StepError):
    """A unit of work was not run, for a reason that is none of its own."""


@dataclass(frozen=True)
class ExecutorPool:
    """A pool of processes or workers that runs units of work.

    Attributes:
        executor: takes them.
        slots: how many run at once.
        remote: whether they run on other machines, so that a unit has to contain what it needs.
        workers: the addresses of those that can run units now; a single word for processes of this machine.
    """

    executor: Executor
    slots: int
    remote: bool
    workers: Callable[[], Collection[str]]

    def results(
        self,
        pending: dict[Future[T], K],
        again: Callable[[K, T], Future[T] | None] = lambda _unit, _result: None,
        patience: float = math.inf,
    ) -> Iterator[tuple[K, T | SmithError]]:
        """Yield each unit's result as it arrives; a `LostError` for units that no worker is left for.

        Args:
            pending: units by their futures; each future is removed from it when its result arrives.
            again: submits a unit again whose result does not count, and returns None if it counts.
            patience: seconds without any result, until what is left is given up.
        """
        # A queue and not `concurrent.futures.wait`, which takes and gives back the lock of every future that
        # is pending, for each result: of twenty thousand units, minutes.
        finished: SimpleQueue[Future[T]] = SimpleQueue()
        for future in pending:
            future.add_done_callback(finished.put)
        last_alive = last_result = time.monotonic()
        what = "no worker is left"
        while pending:
            try:
                future = finished.get(timeout=_TICK)
            except Empty:
                # Only now, since it asks the scheduler.
                last_alive = time.monotonic() if self.workers() else last_alive
                # A cluster may be empty for a while, as where its workers are restarted: only a longer time
                # counts.
                if time.monotonic() - last_alive > _ALONE:
                    break
                # A worker may hang in a way that its own limits do not end, as on a disk that is gone.
                if time.monotonic() - last_result > patience:
                    what = f"no worker has answered for {duration(patience)}"
                    break
                continue
            last_alive = last_result = time.monotonic()
            unit, result = pending.pop(future), self.result(future)
            # As long as a future of a cluster exists, its result stays in the memory of the worker, and is
            # computed once more if that worker dies.
            del future
            if not isinstance(result, LostError | DiedError) and (other := again(unit, result)):
                pending[other] = unit
                other.add_done_callback(finished.put)
                del other
                continue
            yield unit, result
        hints = ["check the workers, then run the same command again"]
        yield from ((unit, LostError(what, hints=hints)) for unit in pending.values())

    def submit_elsewhere(
        self, unfit: Collection[str], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T] | None:
        """Run `fn` on a worker that is none of these; None if there is no other."""
        others = [worker for worker in self.workers() if worker not in unfit]
        if not others:
            return None
        # Others are allowed all the same: a unit for workers that all end would wait for them for ever.
        where: dict[str, Any] = {"workers": others, "allow_other_workers": True}
        return self.executor.submit(fn, *args, **kwargs, **where)

    def result(self, future: Future[T]) -> T | DiedError | LostError:
        """Return the result of a finished unit; a `DiedError` if its worker died.

        Raises:
            Exception: the unit's own.
        """
        try:
            return future.result()
        except BrokenProcessPool:
            return DiedError(f"the compiling process died in all {ATTEMPTS} attempts")
        except CancelledError:
            return LostError("cancelled by the cluster")
        except Exception as error:
            # Anything else is a bug of this tool: a unit returns its `SmithError`s as results.
            if self.remote and _is_death(error):
                return DiedError("its workers died repeatedly", why=str(error))
            raise


@contextmanager
def opened(scheduler: str, count: int) -> Iterator[ExecutorPool]:
    """Open a pool for the body of a `with`; if the body fails, remaining units are cancelled.

    Args:
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes.

    Raises:
        SmithError: there is no such scheduler.
    """
    if scheduler:
        with _connected(scheduler) as client:
            # Not pure: Dask would take two compiles of the same arguments for one. The unit of a dead worker
            # is retried elsewhere.
            cluster: Executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
            threads = sum(row["nthreads"] for row in _workers(client).values())
            try:
                yield ExecutorPool(cluster, threads, remote=True, workers=lambda: _connected_workers(client))
            finally:
                cluster.shutdown(wait=False)
        return
    # A plain `ProcessPoolExecutor` would end with the first process that dies, and take along all that is
    # pending.
    processes = Processes(count)
    try:
        yield ExecutorPool(processes, count, remote=False, workers=lambda: ("here",))
    except BaseException:
        # This also happens when the consumer drops the generator: units that nobody waits for would compile
        # on.
        processes.shutdown(cancel_futures=True)
        raise
    processes.shutdown()


def prepare() -> BaseContext:
    """Start the server that processes of this machine are forked from, and return the context of its forks.

    The server imports the tool, which takes 0.4 s of CPU time. Whoever calls this early, and has other work
    to do before the pool opens, does not wait for that. If there is a server, it stays.
    """
    # Not a fork of this process: a progress bar has threads, whose locks it would copy as they are.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tritonsmith.lab.batch.work_unit"])
    with _PREPARING:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"  # else a `copy.py` of the current folder would stand for Python's
        try:
            forkserver.ensure_running()
        except OSError:  # its socket is in TMPDIR, and a socket's path has 107 characters at most (unix(7))
            return multiprocessing.get_context("spawn")
        finally:
            del os.environ[_SAFE_PATH]
            os.environ.update({_SAFE_PATH: before} if before else {})
    return context


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect to the scheduler at `tcp://host:port`, whose workers must have this tool.

    Raises:
        UsageError: that is no address.
        FactError: Dask is not installed, the scheduler does not answer, or a worker lacks the tool.
    """
    if not _ADDRESS.fullmatch(address):  # its client would take ten seconds to end, and print
        raise UsageError(f"--scheduler cannot be {address!r}", hints=["--scheduler tcp://HOST:8786"])
    try:
        from distributed import Client  # noqa: PLC0415 - optional, and takes half a second
    except ImportError as error:
        raise FactError(
            "--scheduler needs Dask, which is not installed",
            why=str(error),
            hints=[
                command_line.installing("dask"),
                "or omit --scheduler to use processes on this machine",
            ],
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it prints the second half of an error here
    try:
        client = Client(address, timeout=_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise FactError(
            f"no Dask scheduler responds at {address}",
            why=str(error),
            hints=[
                "start one with `dask scheduler`, which prints its address",
                "check whether a firewall blocks the connection",
            ],
        ) from None
    with client:
        _check(client, address)
        yield client


def _is_death(error: Exception) -> bool:
    """Report whether an exception means that a unit repeatedly killed its workers."""
    from distributed import KilledWorker  # noqa: PLC0415

    return isinstance(error, KilledWorker)


def this_worker() -> str:
    """Return the address of the worker that runs this; empty if none does."""
    from distributed import get_worker  # noqa: PLC0415

    try:
        return str(get_worker().address)
    except ValueError:
        return ""


@contextmanager
def cancellable() -> Iterator[None]:
    """Interrupt the body, which a worker runs, when its task is cancelled or the worker closes.

    Dask cannot end a thread: a compile that nobody waits for would go on for minutes.
    """
    from distributed import Reschedule, get_worker  # noqa: PLC0415

    try:
        worker = get_worker()
    except ValueError:
        yield
        return
    key = worker.get_current_task()

    def is_unwanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name in ("closing", "closed")

    with stopping.interruptible(is_unwanted) as interruption:
        try:
            yield
        except KeyboardInterrupt:
            # To Dask, this would be a worker that is to end.
            if not interruption.happened:
                raise
    if interruption.happened:
        # Nobody gets this, unless somebody wants the task again after all.
        raise Reschedule


def _connected_workers(client: Client) -> Collection[str]:
    """Return the addresses of the workers; none if the scheduler is gone."""
    return tuple(_workers(client)) if client.status == "running" else ()


def _workers(client: Client) -> Mapping[str, Any]:
    # Without n_workers, Dask since 2025 describes the first five only.
    workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def _check(client: Client, address: str) -> None:
    """Check that there are workers, and that they run the same version of tritonsmith."""
    hints = [f"run this on each machine: pip install '{_PACKAGE}[dask]=={__version__}'"]
    try:
        client.wait_for_workers(1, timeout=_CONNECT)
    except TimeoutError:
        raise FactError(
            "the Dask scheduler has no workers",
            where=address,
            hints=["start one with `dask worker ADDRESS`"],
        ) from None
    # "return": a worker without the tool answers with an exception, which must not end the other answers.
    versions: dict[str, Any] = client.run(metadata.version, _PACKAGE, on_error="return")
    without = [worker for worker, answer in versions.items() if not isinstance(answer, str)]
    if without:
        raise FactError("tritonsmith is not installed on a worker", where=", ".join(without), hints=hints)
    for version in sorted(set(versions.values()) - {__version__}):
        names = ", ".join(worker for worker, answer in versions.items() if answer == version)
        console.warn(f"tritonsmith is {version} on {names}, and {__version__} here")


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[T]):
    """A unit of work that no process has begun.

    Attributes:
        future: gets its result.
        triton: the key of the worker that can compile it: see `call.WarmWorkers`.
        run: runs it.
    """

    future: Future[T]
    triton: Hashable
    run: Callable[[], T]


def _triton(place: Interpreter) -> Hashable:
    return place.python, tuple(place.variables.items())


class Processes(Executor):
    """As `ProcessPoolExecutor`, but a process that dies breaks one unit, which another process then takes.

    Args:
        count: of the processes.
    """

    def __init__(self, count: int) -> None:
        self._context = prepare()
        # No process outlives this one: each holds the reader, and stops when the writer is closed.
        self._reader, self._writer = self._context.Pipe(duplex=False)
        # A thread for each process: it waits for the unit, and gives it to the next process if this one dies.
        self._threads = ThreadPoolExecutor(count, "unit")
        self._own = threading.local()
        self._count = count
        self._lock = threading.Lock()
        self._waiting: list[_Waiting[Any]] = []
        self._tritons: dict[Hashable, bool] = {}  # whether a process has a worker for it
        self._made: list[ProcessPoolExecutor] = []
        self._stopping = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in one of the processes.

        The future's exception is a `BrokenProcessPool` if `ATTEMPTS` processes died of it.
        """
        future: Future[T] = Future()
        place = next((part for part in args if isinstance(part, Interpreter)), None)
        # Units that share stages keep their order: two Tritons at once would both make what one could find.
        triton = None if place is None or kwargs.get("shared") else _triton(place)
        with self._lock:
            self._waiting.append(
                _Waiting(future, triton, functools.partial(self._attempt, fn, *args, **kwargs))
            )
            self._tritons.setdefault(triton, False)
        self._threads.submit(self._run_next)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures`, interrupt what they run."""
        if cancel_futures:
            self._stopping = True
            self._writer.close()
            with self._lock:
                for unit in self._waiting:
                    unit.future.cancel()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        for pool in self._made:
            pool.shutdown(wait=wait)
        self._writer.close()
        self._reader.close()

    def _run_next(self) -> None:
        """Run the unit that suits this thread's process best."""
        unit = self._taken()
        if not unit.future.set_running_or_notify_cancel():
            return
        try:
            result = unit.run()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
            unit.future.set_exception(error)
        else:
            unit.future.set_result(result)

    def _taken(self) -> _Waiting[Any]:
        """Take the first unit by a Triton that this process has a worker for, or that nobody has one for."""
        own: list[Hashable] | None = getattr(self._own, "tritons", None)
        if own is None:
            own = self._own.tritons = []
        with self._lock:
            # Where processes divide the Tritons among them, fewer workers are started. As the units of one
            # kernel come one after the other, all of its results are there at about the same time.
            share = min(call.WARM, math.ceil(len(self._tritons) / self._count))
            free = len(own) < share
            suits = (
                unit
                for unit in self._waiting
                if unit.triton in own or (free and not self._tritons[unit.triton])
            )
            unit = next(suits, self._waiting[0])
            self._waiting.remove(unit)
            self._tritons[unit.triton] = True
        if unit.triton in own:
            own.remove(unit.triton)
        own.append(unit.triton)
        del own[: -call.WARM]
        return unit

    def _attempt(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._submitted(fn, *args, **kwargs).result()
            except BrokenProcessPool:
                self._own.pool = None
                # A process that is told to stop ends itself, which looks like a death: that is no reason to
                # try again.
                if self._stopping or not left:
                    raise
        raise AssertionError("unreachable")

    def _submitted(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return self._pool().submit(_guarded, fn, *args, **kwargs)
        except (EOFError, ConnectionError) as error:
            raise BrokenProcessPool("the server that forks processes has ended") from error

    def _pool(self) -> ProcessPoolExecutor:
        """Return the pool of this thread."""
        # One process to a pool: a larger pool breaks as a whole, and does not say whose death it was.
        pool: ProcessPoolExecutor | None = getattr(self._own, "pool", None)
        if pool is None:
            with _PREPARING:  # or the variables would be those of the server
                begin = (self._reader, dict(os.environ))
            pool = ProcessPoolExecutor(1, prepare(), initializer=_begin, initargs=begin)
            self._own.pool = pool
            self._made.append(pool)
        return pool


class _State:
    """The state of one of the processes."""

    busy = False
    stopped = False


def _begin(reader: Connection, variables: Mapping[str, str]) -> None:
    """Begin a new process, in that process.

    Args:
        reader: ends when the first process does.
        variables: the environment of the first process.
    """
    os.environ.clear()
    os.environ.update(variables)
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
        # An exception would be the unit's result to the pool, which would then begin the next unit.
        os._exit(130)
    finally:
        _State.busy = False
