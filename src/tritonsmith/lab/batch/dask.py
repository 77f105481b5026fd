"""A Dask cluster as an executor; tritonsmith must be installed on its machines."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tritonsmith import __version__
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.ui import console

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
            hints=["pip install 'tritonsmith[dask]'", "or omit --scheduler to use processes on this machine"],
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells the second half of an error here
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


def slots(client: Client) -> int:
    """Count the units that may run at once: the threads of all workers."""
    return sum(row["nthreads"] for row in _workers(client).values())


def is_death(error: Exception) -> bool:
    """Report whether an exception means that a unit repeatedly killed its workers."""
    from distributed import KilledWorker  # noqa: PLC0415

    return isinstance(error, KilledWorker)


def alive(client: Client) -> bool:
    """Report whether any worker is connected."""
    return client.status == "running" and bool(_workers(client))


def _workers(client: Client) -> Mapping[str, Any]:
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
    seen: dict[str, Any] = client.run(metadata.version, _PACKAGE, on_error="return")
    without = [worker for worker, answer in seen.items() if not isinstance(answer, str)]
    if without:
        raise FactError("tritonsmith is not installed on a worker", where=", ".join(without), hints=hints)
    for version in sorted(set(seen.values()) - {__version__}):
        names = ", ".join(worker for worker, answer in seen.items() if answer == version)
        console.warn(f"tritonsmith is {version} on {names}, and {__version__} here")
