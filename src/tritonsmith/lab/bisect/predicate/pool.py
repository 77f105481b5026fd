"""Tests of several Tritons at once, in processes of this machine or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.lab.batch import pool, work_unit

T = TypeVar("T")


def results(
    test: Callable[[Triton], T], tritons: Sequence[Triton], scheduler: str, jobs: int
) -> Generator[tuple[Triton, T], None, None]:
    """Yield the results of the tests as they arrive.

    Args:
        test: what is called for each; it can be sent to a process.
        tritons: of which each is tested once.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        jobs: how many of those.

    Raises:
        SmithError: what a test raises, or its process died; the others are stopped.
    """
    if not scheduler and min(jobs, len(tritons)) < 2:  # noqa: PLR2004 - at once
        yield from ((one, test(one)) for one in tritons)
        return
    if not scheduler:  # wheels are installed one after another, under one bar
        for one in tritons:
            _install(one)
    with pool.opened(scheduler, min(jobs, len(tritons))) as workers:
        submitted = {workers.executor.submit(_tested, test, one): one for one in tritons}
        for triton, found in workers.results(submitted):
            if isinstance(found, SmithError):
                raise found
            yield triton, found


def _install(triton: Triton) -> None:
    try:
        tritons.place_of(triton)
    except UsageError:  # a release that this Python has no wheel of: its test says so
        return


def _tested(test: Callable[[Triton], T], triton: Triton) -> T | SmithError:
    """One result, or an error that can be sent back."""
    try:
        return test(triton)
    except SmithError as error:
        return work_unit.plain(error)
