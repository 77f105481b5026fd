"""A real Dask cluster on this machine: a scheduler, and workers with a workspace each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.harness import wait_for

DASK = Path(sys.executable).with_name("dask")


@dataclass(frozen=True)
class Cluster:
    """A scheduler and its workers.

    Attributes:
        address: of the scheduler.
        workers: processes; none has a nanny that would bring it back.
    """

    address: str
    workers: list[subprocess.Popen[str]]


@contextmanager
def running(place: Path, environ: Mapping[str, str], homes: Sequence[Path]) -> Iterator[Cluster]:
    """Run a cluster for the body of a `with`.

    Args:
        place: a folder for its files.
        environ: of all of its processes.
        homes: the workspace of each worker, which has one thread.
    """
    file, log = place / "scheduler.json", place / "log"
    common = ("--scheduler-file", str(file))
    scheduler = (DASK, "scheduler", *common, "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    flags = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
    started: list[subprocess.Popen[str]] = []
    with log.open("wb") as printed:

        def start(argv: tuple[str | Path, ...], **more: str) -> None:
            env = {**environ, "DASK_TEMPORARY_DIRECTORY": str(place), **more}
            process = subprocess.Popen(argv, env=env, cwd=place, stdout=printed, stderr=printed, text=True)
            started.append(process)

        try:
            start(scheduler)
            for home in homes:
                start((DASK, "worker", *common, *flags), TRITONSMITH_HOME=str(home))
            wait_for(lambda: file.is_file() and file.read_text().endswith("}"), started[0])
            address = json.loads(file.read_text())["address"]
            wait_for(lambda: len(re.findall(r"Register worker", log.read_text())) == len(homes), started[0])
            yield Cluster(address, started[1:])
        finally:
            for process in started:
                process.kill()
                process.wait()
