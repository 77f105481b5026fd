"""Unit tests work in memory: a disk takes milliseconds for each folder that goes, and they make thousands."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import require
from tests.unit.repositories import Made
from tritonsmith.core.ui import tables
from tritonsmith.lab.batch import pool

# Of tests that name no number; and on a busy machine nothing is too slow.
settings.register_profile(
    "unit", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")

_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of the user's own there, as in /tmp
_ENOUGH = 2 << 30  # bytes; a container often has 64 MiB


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: no look for garbage need pass over them."""
    gc.freeze()


@pytest.fixture(scope="session")
def tmp_path_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pytest.TempPathFactory]:
    """What `tmp_path` is made by: in memory, where there is enough that programs may be started from."""
    if request.config.getoption("basetemp") and "PYTEST_XDIST_WORKER" not in os.environ:
        yield tmp_path_factory  # somebody wants to look at what is left there
        return
    if not _takes_programs(_MEMORY):
        yield tmp_path_factory
        return
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    factory = pytest.TempPathFactory(
        None, workers, "failed", request.config.trace.get("tmpdir"), _ispytest=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
        factory.getbasetemp()
    yield factory


@pytest.fixture(autouse=True)
def _tables_fit_the_screen() -> Iterator[None]:
    """A task that ran in this process may have been told to print wide tables; the next test was not."""
    yield
    tables.widen(wide=False)


def _takes_programs(folder: Path) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize >= _ENOUGH and not state.f_flag & os.ST_NOEXEC


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Made]]:
    """Makes repositories; their folders have a space in their names."""
    require("git")
    made: list[Made] = []

    def new(name: str) -> Made:
        made.append(Made(tmp_path / f"{name} clone"))
        return made[-1]

    yield new
    for one in made:
        one.close()


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of work run in threads of this process, not in processes of their own."""
    monkeypatch.setattr(pool, "Processes", ThreadPoolExecutor)
