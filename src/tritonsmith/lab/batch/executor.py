"""The interface to an executor: its parallelism, and whether any worker is still alive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tritonsmith.core.errors import SmithError, StepError
from tritonsmith.lab.batch import dask
from tritonsmith.lab.batch.processes import ATTEMPTS, Processes

K = TypeVar("K")
T = TypeVar("T")

_TICK = 1.0  # seconds between looks at the pool
_ALONE = 30.0  # seconds without any worker, until what is left is given up


class DiedError(StepError):
    """A unit of work killed its worker in every attempt."""


@dataclass(frozen=True)
class ExecutorPool:
    """A pool of processes or workers that runs units of work.

    Attributes:
        executor: takes them.
        slots: how many run at once.
        remote: on other machines: what a unit needs must be in it.
        alive: whether anybody is there to do them.
    """

    executor: Executor
    slots: int
    remote: bool
    alive: Callable[[], bool]

    def results(self, submitted: Mapping[Future[T], K]) -> Iterator[tuple[K, T | SmithError]]:
        """Yield each unit's result as it arrives; a `DiedError` for units that no worker is left for."""
        pending = dict(submitted)
        seen = time.monotonic()
        while pending:
            done, _ = wait(pending, timeout=_TICK, return_when=FIRST_COMPLETED)
            for future in done:
                found = self.result(future)
                yield pending.pop(future), found
            now = time.monotonic()
            seen = now if self.alive() else seen
            if now - seen > _ALONE:
                lost = DiedError(
                    "no worker is left", hints=["start a worker, then run the same command again"]
                )
                yield from ((unit, lost) for unit in pending.values())
                return

    def result(self, future: Future[T]) -> T | SmithError:
        """The result of a finished unit; a `DiedError` if its worker died.

        Raises:
            Exception: the unit's own.
        """
        try:
            return future.result()
        except BrokenProcessPool:
            return DiedError(f"the compiling process died in all {ATTEMPTS} attempts")
        except CancelledError:
            return DiedError("cancelled by the cluster")
        except Exception as error:
            if self.remote and dask.is_death(error):
                return DiedError("its workers died repeatedly", why=str(error))
            raise


@contextmanager
def opened(scheduler: str, count: int) -> Iterator[ExecutorPool]:
    """A pool for the body of a `with`; if the body fails, remaining units are cancelled.

    Args:
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes.

    Raises:
        SmithError: there is no such scheduler.
    """
    if scheduler:
        with dask.connected(scheduler) as client:
            # The unit of a dead worker is retried elsewhere.
            cluster: Executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
            try:
                yield ExecutorPool(cluster, dask.slots(client), remote=True, alive=lambda: dask.alive(client))
            finally:
                cluster.shutdown(wait=False)
        return
    processes = Processes(count)
    try:
        yield ExecutorPool(processes, count, remote=False, alive=lambda: True)
    except BaseException:
        processes.shutdown(cancel_futures=True)
        raise
    processes.shutdown()
