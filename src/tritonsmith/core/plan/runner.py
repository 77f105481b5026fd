"""Execute the steps of a plan in order, with a log, progress, stamps and ^C."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from tritonsmith.core.errors import InterruptedRunError, PreflightError, StepError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import PhaseDisplay, Plan, Step, StepTools, Tap

# A variable: nothing is downloaded or installed where it is set. `mcp` sets it for what an agent calls, since
# many a command installs the release of Triton that it is to compile with.
NO_INSTALL = "TRITONSMITH_NO_INSTALL"
# Names of files that get another one when they are whole.
_OURS = re.compile(r"^\.(.+)\.tritonsmith$|^(.+)\.partial$")


@dataclass
class PlanResult:
    """The result of a run.

    Attributes:
        log: the run's log file.
        seconds: wall time per phase, in order; a phase that was skipped completely is absent.
        skipped: steps whose stamp held.
    """

    log: Path
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: int = 0


class Runner:
    """Executes plans.

    Args:
        log: the file that gets every command, its change of the environment and its output.
        progress: where phases are shown.
        environ: the environment that steps change; the process's own by default.
        tap: gets what a program at the terminal writes to standard error, while it runs.
    """

    def __init__(
        self,
        log: Path,
        progress: PhaseDisplay,
        environ: Mapping[str, str] | None = None,
        tap: Tap | None = None,
    ) -> None:
        self._log, self._progress, self._tap = log, progress, tap
        self._environ = dict(os.environ if environ is None else environ)

    def run(self, plan: Plan) -> PlanResult:
        """Execute every step without a valid stamp, in order.

        Raises:
            CommandFailedError: a program failed.
            StepError: a file could not be changed, the log and the stamps included.
            InterruptedRunError: ^C; everything finished so far is kept.
            PreflightError: a step installs something, and `NO_INSTALL` is set.
        """
        outcome = PlanResult(self._log)
        # All stamps are asked before the first step: a group whose stamp holds is skipped as a whole.
        todo = [step for step in plan.steps if not (step.stamp and step.stamp.holds())]
        outcome.skipped = len(plan.steps) - len(todo)
        if not todo:
            return outcome
        if os.environ.get(NO_INSTALL) and (install := next((step for step in todo if step.installs), None)):
            raise PreflightError(
                f"{plan.title} is not there yet, and this run may not install it",
                why="\n".join((f"{NO_INSTALL} is set, and this would run", *install.shell())),
                hints=[
                    "of an agent: ask the user to start the server with `invoke mcp --allow install`",
                    f"elsewhere: unset {NO_INSTALL}",
                ],
            )
        stamped = any(step.stamp for step in plan.steps)
        try:
            with files.opened_log(self._log) as log, self._progress:
                tools = StepTools(log, self._log, self._progress, self._environ, self._tap)
                tools.write_log(f"# {plan.title}")
                self._act_on(todo, tools, outcome, stamped=stamped)
        except OSError as error:
            raise _explain(error, "log", self._log) from error
        return outcome

    def _act_on(self, todo: list[Step], tools: StepTools, outcome: PlanResult, *, stamped: bool) -> None:
        # A group of steps shares a stamp, which its last step writes.
        last_of = {step.stamp: step for step in todo if step.stamp}
        for phase, steps in groupby(todo, key=lambda step: step.phase):
            with self._timed(phase, outcome):
                for step in steps:
                    # The stamp no longer holds, even if this step fails and the old inputs come back: what
                    # it stands for is being changed.
                    if step.stamp:
                        step.stamp.path.unlink(missing_ok=True)
                    try:
                        _act(step, tools)
                    except KeyboardInterrupt:
                        tools.write_log("interrupted")
                        raise _interrupted(self._log, goes_on=stamped or step.goes_on) from None
                    if step.stamp and last_of[step.stamp] is step and not step.stamp.holds():
                        # a step may have put it there, with its tree: a run that is killed here adds nothing
                        files.write_atomically(step.stamp.path, step.stamp.key)

    @contextmanager
    def _timed(self, phase: str, outcome: PlanResult) -> Iterator[None]:
        self._progress.begin(phase)
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        outcome.seconds[phase] = outcome.seconds.get(phase, 0.0) + seconds
        self._progress.end(seconds)


def _act(step: Step, tools: StepTools) -> None:
    tools.write_log(f"\n## {step.phase}: {step.title}", *(f"+ {line}" for line in step.shell()))
    try:
        step.act(tools)
    except OSError as error:
        # The log's disk may be the full one.
        with suppress(OSError):
            tools.write_log(f"failed: {error}")
        raise _explain(error, step.phase, step.title) from error


def _interrupted(log: Path, *, goes_on: bool) -> InterruptedRunError:
    """Return the error after ^C."""
    # Ninja and a plan with stamps know what is done; other plans begin anew.
    what, then = (
        ("interrupted; what was built so far is kept", "the next run resumes here")
        if goes_on
        else ("interrupted", "the next run starts over")
    )
    return InterruptedRunError(what, where=log, hints=[f"run the same command again: {then}"])


def _explain(error: OSError, doing: str, what: object) -> StepError:
    hints = {
        errno.ENOSPC: "free some disk space, or set TRITONSMITH_HOME to a larger disk",
        errno.EACCES: "check the permissions of that folder, or set TRITONSMITH_HOME to a folder of your own",
        errno.EROFS: "that file system is read-only: set TRITONSMITH_HOME to a writable folder",
        errno.ENOENT: "a program or a folder that the step needs is missing: run `invoke doctor`",
    }
    hint = hints.get(error.errno or 0)
    return StepError(
        f"{doing}: {error.strerror or error}",
        where=_meant(error) or what,
        hints=[hint] if hint else [],
    )


def _meant(error: OSError) -> str | None:
    """Return the target file, where the error names the temporary file beside it."""
    if error.filename is None:
        return None
    path = Path(os.fsdecode(error.filename))
    return str(path.with_name(_OURS.sub(r"\1\2", path.name)))
