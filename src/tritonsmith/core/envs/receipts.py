"""Run a task in an environment under its lock (a session), and read and write the receipts of builds.

A receipt is a JSON file with the inputs of a build. A build that has not succeeded has one, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import redact, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import Plan, Remove, Step, Write, locks
from tritonsmith.core.plan.runner import PlanResult

SCHEMA = 1
_ATTEMPT = "attempt"  # the receipt of a build that was started, until it succeeds
_PHASE = "receipt"
_BUILDS = ("build-triton", "install-triton")


def render(task: str, content: Mapping[str, Any]) -> str:
    """Return the text of a receipt: commits, flags, compilers, times in seconds, sizes in bytes."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    head = {"schema": SCHEMA, "task": task, "tritonsmith": __version__, "finished": when}
    plain = json.loads(json.dumps(head | dict(content), default=_plain))
    return json.dumps(redact.data(plain), indent=2) + "\n"


def _plain(value: object) -> object:
    """Convert facts to tables, and paths to text."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def read(path: Path) -> dict[str, Any] | None:
    """Read a receipt; None if it is missing or unreadable."""
    try:
        receipt = untrusted.read_json(path)
    except (OSError, ValueError):
        return None
    return receipt if isinstance(receipt, dict) and receipt.get("schema") == SCHEMA else None


@dataclass(frozen=True)
class UnfinishedBuild:
    """A build that was started.

    Attributes:
        task: `build-triton` or `install-triton`.
        content: the inputs, as in the receipt.
        log: the run's log file.
        when: start or end; UTC, ISO 8601.
        what: how it ended, in a sentence; empty if it was killed.
        where: the place of the first error.
        why: the first error, or what is known about it.
        interrupted: stopped by ^C.
    """

    task: str
    content: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    when: str = ""
    what: str = ""
    where: str = ""
    why: str = ""
    interrupted: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of the env file, flags included."""
        return dict(self.content.get("settings") or {})


def unfinished_steps(
    env: EnvDir, task: str, content: Mapping[str, Any], log: Path, failure: SmithError | None = None
) -> tuple[Step, ...]:
    """Return the steps that record a build with its inputs and its log: at its start, or after a failure."""
    about: dict[str, Any] = {"attempted": task, "log": str(log)}
    if failure:
        about |= {"what": failure.what, "where": failure.where or "", "why": failure.why or ""}
        about["interrupted"] = isinstance(failure, InterruptedRunError)
    # At the start already: a build that is killed writes nothing at its end.
    text = render(_ATTEMPT, {**about, "content": content})
    return (Write(env.receipt(_ATTEMPT), text, phase=_PHASE),)


def ended_steps(env: EnvDir) -> tuple[Step, ...]:
    """Return the steps that delete that record after a success."""
    return (Remove((env.receipt(_ATTEMPT),), env.root, phase=_PHASE),)


def unfinished(env: EnvDir) -> UnfinishedBuild | None:
    """Return the last build, if it did not succeed; None if it did, or if there was none."""
    receipt = read(env.receipt(_ATTEMPT))
    if receipt is None or not isinstance(receipt.get("content"), dict):
        return None
    when = str(receipt.get("finished") or "")
    # A build that was killed before its receipt left this record, and another has succeeded since.
    if str(succeeded(env).get("finished") or "") > when:
        return None
    words = {name: str(receipt.get(name) or "") for name in ("log", "what", "where", "why")}
    task = str(receipt.get("attempted") or "a build")
    return UnfinishedBuild(
        task, receipt["content"], when=when, interrupted=bool(receipt.get("interrupted")), **words
    )


def succeeded(env: EnvDir) -> dict[str, Any]:
    """Return the receipt of the last build that succeeded, by whichever task; empty if there is none."""
    successes = [receipt for task in _BUILDS if (receipt := read(env.receipt(task)))]
    return max(successes, key=lambda receipt: str(receipt.get("finished") or ""), default={})


@dataclass
class Session:
    """The context of a running task.

    Attributes:
        task: name of the task.
        space: the workspace.
        env: the environment's folder.
        log: this run's log file.
        seconds: wall time per phase, of all plans run so far.
        quiet: show no progress.
    """

    task: str
    space: Workspace
    env: EnvDir
    log: Path
    seconds: dict[str, float] = field(default_factory=dict)
    quiet: bool = False

    def run(self, plan: Plan) -> PlanResult:
        """Run a plan, and record how long its phases took."""
        outcome = self.space.run(plan, self.task, quiet=self.quiet, log=self.log)
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
        text = render(self.task, {**content, "seconds": seconds, "log": str(self.log)})
        paths = (self.env.receipt(self.task), *beside)
        written = (Write(path, text, phase=_PHASE) for path in paths)
        self.run_unseen((*written, *also))

    def run_unseen(self, steps: tuple[Step, ...]) -> None:
        """Run steps that keep records, without output."""
        self.space.run(Plan(_PHASE, steps), self.task, quiet=True, log=self.log)


@contextmanager
def open_session(task: str, env_name: str, *, shared: bool = False) -> Iterator[Session]:
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
