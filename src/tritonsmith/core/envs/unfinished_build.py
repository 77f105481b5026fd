"""The last unsuccessful build of an environment's Triton: its settings, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import Remove, Step, Write

_NAME = "attempt"
_PHASE = "receipt"
_BUILDS = ("build-triton", "install-triton")


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


def record(
    env: EnvDir, task: str, content: Mapping[str, Any], log: Path, failure: SmithError | None = None
) -> tuple[Step, ...]:
    """Steps that record a build with its inputs and its log: one that starts, or one that failed."""
    about: dict[str, Any] = {"attempted": task, "log": str(log)}
    if failure:
        about |= {"what": failure.what, "where": failure.where or "", "why": failure.why or ""}
        about["interrupted"] = isinstance(failure, InterruptedRunError)
    text = receipts.render(_NAME, {**about, "content": content})
    return (Write(env.receipt(_NAME), text, phase=_PHASE),)


def end(env: EnvDir) -> tuple[Step, ...]:
    """Steps that delete the record after a success."""
    return (Remove((env.receipt(_NAME),), env.root, phase=_PHASE),)


def read(env: EnvDir) -> UnfinishedBuild | None:
    """Return the last build, if it did not succeed; None if it did, or if there was none."""
    receipt = receipts.read(env.receipt(_NAME))
    if receipt is None or not isinstance(receipt.get("content"), dict):
        return None
    when = str(receipt.get("finished") or "")
    if str(succeeded(env).get("finished") or "") > when:
        return None  # its end was not written down, and another has succeeded since
    words = {name: str(receipt.get(name) or "") for name in ("log", "what", "where", "why")}
    task = str(receipt.get("attempted") or "a build")
    return UnfinishedBuild(
        task, receipt["content"], when=when, interrupted=bool(receipt.get("interrupted")), **words
    )


def succeeded(env: EnvDir) -> dict[str, Any]:
    """Return the receipt of the last build that succeeded, by whichever task; empty if there is none."""
    successes = [receipt for task in _BUILDS if (receipt := receipts.read(env.receipt(task)))]
    return max(successes, key=lambda receipt: str(receipt.get("finished") or ""), default={})
