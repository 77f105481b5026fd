"""The one interface: an executor, how much it does at once, and whether anybody is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tritonsmith.errors import SmithError, StepError
from tritonsmith.kernels.batch import dask
from tritonsmith.kernels.batch.processes import ATTEMPTS, Processes

T = TypeVar("T")


class DiedError(StepError):
    """Whoever a unit was given to died of it, every time."""


@dataclass(frozen=True)
class ExecutorPool:
    """Where units of work run.

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

    def result(self, future: Future[T]) -> T | SmithError:
        """What came of a unit that is over; a `DiedError` where nobody lived to tell.

        Raises:
            Exception: the unit's own.
        """
        try:
            return future.result()
        except BrokenProcessPool:
            return DiedError(f"its process died, {ATTEMPTS} times of {ATTEMPTS}")
        except CancelledError:
            return DiedError("the cluster gave it up")
        except Exception as error:
            if self.remote and dask.is_death(error):
                return DiedError("its workers died", why=str(error))
            raise


@contextmanager
def opened(scheduler: str, count: int) -> Iterator[ExecutorPool]:
    """A pool for the body of a `with`. Where that ends by an error, what is left is cancelled.

    Args:
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes.

    Raises:
        SmithError: there is no such scheduler.
    """
    if scheduler:
        with dask.connected(scheduler) as client:
            cluster = dask.executor(client)
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
