"""A user's command, by the interpreter of each Triton; exit codes as in `git bisect run`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.suites import isolated_run
from tritonsmith.compiler import tritons
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import StepError, UsageError
from tritonsmith.lab.bisect.predicate import pool
from tritonsmith.lab.bisect.predicate.protocol import Outcomes
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.questions import exit_code


@dataclass(frozen=True)
class CommandPredicate:
    """A command whose exit code says what a Triton is.

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
        return pool.results(self.test, tritons, self.scheduler, self.jobs)

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
        code, log, last = isolated_run.run(self.argv, python, self.cwd, scratch)
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
