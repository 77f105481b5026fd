"""A Dask cluster as an executor: what runs on other machines, which have this tool installed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tritonsmith import __version__
from tritonsmith.errors import FactError, UsageError
from tritonsmith.ui import console

if TYPE_CHECKING:
    from distributed import Client

_CONNECT = 5.0  # seconds, until nobody is there
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?[^\s/:]+:\d+", re.ASCII)  # distributed.comm
_PACKAGE = "tritonsmith"


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at `tcp://host:port`, with workers that have this tool.

    Raises:
        UsageError: that is no address.
        FactError: Dask is not installed, nobody answers, or a worker lacks the tool.
    """
    if not _ADDRESS.fullmatch(address):  # its client would take ten seconds to end, and print
        raise UsageError(f"--scheduler cannot be {address!r}", hints=["--scheduler tcp://HOST:8786"])
    try:
        from distributed import Client  # noqa: PLC0415 - optional, and takes half a second
    except ImportError as error:
        raise FactError(
            "--scheduler needs Dask, which is not installed",
            why=str(error),
            hints=["pip install 'tritonsmith[dask]'", "without --scheduler, processes of this machine do it"],
        ) from None
    logging.getLogger("distributed").setLevel(
        logging.CRITICAL
    )  # what it tells here is an error's second half
    try:
        client = Client(address, timeout=_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise FactError(
            f"no scheduler answers at {address}",
            why=str(error),
            hints=["`dask scheduler` starts one, and prints its address", "a firewall may be in between"],
        ) from None
    with client:
        _check(client, address)
        yield client


def executor(client: Client) -> Executor:
    """What units are submitted to. A worker that dies gives its unit to another one, some times."""
    made: Executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
    return made


def slots(client: Client) -> int:
    """How many units run at once: threads of all workers."""
    return sum(row["nthreads"] for row in _workers(client).values())


def is_death(error: Exception) -> bool:
    """Whether that says that workers died of a unit, one after the other."""
    from distributed import KilledWorker  # noqa: PLC0415

    return isinstance(error, KilledWorker)


def alive(client: Client) -> bool:
    """Whether there is somebody to do the work."""
    return client.status == "running" and bool(_workers(client))


def _workers(client: Client) -> Mapping[str, Any]:
    workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def _check(client: Client, address: str) -> None:
    """That there are workers, and that they have this tool: the same one."""
    hints = [f"on each machine: pip install '{_PACKAGE}[dask]=={__version__}'"]
    try:
        client.wait_for_workers(1, timeout=_CONNECT)
    except TimeoutError:
        raise FactError(
            "this scheduler has no workers",
            where=address,
            hints=["`dask worker ADDRESS` starts one"],
        ) from None
    seen: dict[str, Any] = client.run(metadata.version, _PACKAGE, on_error="return")
    without = [worker for worker, answer in seen.items() if not isinstance(answer, str)]
    if without:
        raise FactError("a worker has no tritonsmith", where=", ".join(without), hints=hints)
    for version in sorted(set(seen.values()) - {__version__}):
        names = ", ".join(worker for worker, answer in seen.items() if answer == version)
        console.warn(f"tritonsmith is {version} on {names}, and {__version__} here")
