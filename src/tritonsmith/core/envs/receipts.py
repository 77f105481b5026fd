"""Receipts: JSON files that record the inputs of builds, of the last unsuccessful one too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import redact, untrusted
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import Remove, Step, Write

SCHEMA = 1


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


# The last unsuccessful build of an environment's Triton: its settings, and how it ended.

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


def unfinished_steps(
    env: EnvDir, task: str, content: Mapping[str, Any], log: Path, failure: SmithError | None = None
) -> tuple[Step, ...]:
    """Return the steps that record a build with its inputs and its log: at its start, or after a failure."""
    about: dict[str, Any] = {"attempted": task, "log": str(log)}
    if failure:
        about |= {"what": failure.what, "where": failure.where or "", "why": failure.why or ""}
        about["interrupted"] = isinstance(failure, InterruptedRunError)
    text = render(_NAME, {**about, "content": content})
    return (Write(env.receipt(_NAME), text, phase=_PHASE),)


def ended_steps(env: EnvDir) -> tuple[Step, ...]:
    """Return the steps that delete that record after a success."""
    return (Remove((env.receipt(_NAME),), env.root, phase=_PHASE),)


def unfinished(env: EnvDir) -> UnfinishedBuild | None:
    """Return the last build, if it did not succeed; None if it did, or if there was none."""
    receipt = read(env.receipt(_NAME))
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
