"""One run of a task in one environment: the workspace, the lock, the log and the runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.plan import Plan, Step, Write, locks
from tritonsmith.core.plan.runner import Outcome


@dataclass
class Session:
    """The context of a running task.

    Attributes:
        task: name of the task.
        space: the workspace.
        env: the environment's folder.
        log: this run's log file.
        seconds: wall time per phase, of all plans run so far.
    """

    task: str
    space: Workspace
    env: EnvDir
    log: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, plan: Plan) -> Outcome:
        """Run a plan, and record how long its phases took."""
        outcome = self.space.run(plan, self.task, log=self.log)
        for phase, took in outcome.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + took
        return outcome

    def leave_receipt(self, content: Mapping[str, Any], *beside: Path, also: tuple[Step, ...] = ()) -> None:
        """Write the receipt of this task.

        Args:
            content: the inputs.
            beside: more files that get a copy, beside the build.
            also: more records to write at the end, without output.
        """
        seconds = {phase: round(took, 1) for phase, took in self.seconds.items()}
        text = receipts.render(self.task, {**content, "seconds": seconds, "log": str(self.log)})
        paths = (self.env.receipt(self.task), *beside)
        written = (Write(path, text, phase="receipt") for path in paths)
        self.run_unseen((*written, *also))

    def run_unseen(self, steps: tuple[Step, ...]) -> None:
        """Run steps that keep records, without output."""
        self.space.run(Plan("receipt", steps), self.task, quiet=True, log=self.log)


@contextmanager
def opened(task: str, env_name: str, *, shared: bool = False) -> Iterator[Session]:
    """Claim the workspace and hold the environment's lock for the body of a `with`.

    Args:
        task: name of the task, for the log and the lock.
        env_name: name of the environment.
        shared: the task also changes what environments share (LLVM's sources and builds): one at a time.

    Raises:
        LockedError: another process holds the lock.
        SmithError: the workspace is not writable.
    """
    space = workspace.default()
    space.claim()
    env = space.env(env_name)
    env.make()
    purpose = f"{task} --env {env_name}"
    with ExitStack() as held:
        # The environment's lock comes before the shared one in all tasks: two runs
        # cannot wait for each other.
        held.enter_context(locks.hold(env.lock, purpose=purpose))
        if shared:
            held.enter_context(locks.hold(space.lock, purpose=purpose))
        yield Session(task, space, env, space.log(task))
