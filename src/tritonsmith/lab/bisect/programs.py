"""A user's command, by the interpreter of each Triton, and programs that several Tritons run at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tritonsmith.build.suites import isolated_run
from tritonsmith.compiler import tritons
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import SmithError, StepError, UsageError
from tritonsmith.lab.batch import pool, work_unit
from tritonsmith.lab.bisect.candidates import Outcomes
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.questions import exit_code

T = TypeVar("T")


@dataclass(frozen=True)
class CommandTests:
    """A command whose exit code says what a Triton is, as for `git bisect run`.

    Attributes:
        argv: program and arguments; `python` is the interpreter that has the Triton.
        cwd: where it runs.
        scratch: folder for Triton's caches, and for what the command prints.
        scheduler: address of a Dask scheduler, whose workers see the same folders; empty for this machine.
        jobs: commands at once.
    """

    argv: tuple[str, ...]
    cwd: Path
    scratch: Path
    scheduler: str = ""
    jobs: int = 1

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Run it for several Tritons, as many at once as was asked for."""
        return results(self.test, tritons, self.scheduler, self.jobs)

    def test(self, triton: Triton) -> Observation:
        """Run it.

        Raises:
            StepError: it cannot be started, or its exit code ends the bisect.
        """
        try:
            python = tritons.place_of(triton).python
        except UsageError as error:
            return Observation(Verdict.SKIP, why=error.what)
        began = time.monotonic()
        scratch = self.scratch / folder_name(triton.label)
        code, log, last = isolated_run.run_cold(self.argv, python, self.cwd, scratch)
        seconds = time.monotonic() - began
        figures = f"exit code {code}" + (f": {last}" if last else "")
        if code < 0 or code >= exit_code.ABORT:
            raise StepError(f"the command ended the bisect: exit code {code}", where=log, why=last or None)
        why = f"the command skips it: exit code {exit_code.SKIP}"
        return exit_code.succeeds(code, figures, seconds, why)


def check() -> None:
    """Refuse a `PYTHONPATH` with a Triton in it: each interpreter would import that one.

    Raises:
        UsageError: there is one.
    """
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if (Path(folder) / "triton" / "__init__.py").is_file():
            hints = ["unset PYTHONPATH"]
            raise UsageError(
                "PYTHONPATH contains a Triton, which every test would import", where=folder, hints=hints
            )


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
        yield from ((triton, test(triton)) for triton in tritons)
        return
    if not scheduler:  # wheels are installed one after another, under one bar
        for triton in tritons:
            _install(triton)
    with pool.opened(scheduler, min(jobs, len(tritons))) as workers:
        submitted = {workers.executor.submit(_tested, test, triton): triton for triton in tritons}
        for triton, result in workers.results(submitted):
            if isinstance(result, SmithError):
                raise result
            yield triton, result


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
