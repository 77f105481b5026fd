"""The use case behind `doctor`: choose environment, interpreter and checks, and apply the fixes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console
from tritonsmith.doctor import finding, history, registry, snapshot
from tritonsmith.doctor import since as sinces
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding
from tritonsmith.doctor.since import SinceAnswer
from tritonsmith.doctor.snapshot import Snapshot

_DEFAULT = "dev"


def subject(env: str = "", python: str = "") -> DoctorContext:
    """Resolve the environment to check, by name or path (by default the last used), and its interpreter.

    Raises:
        UsageError: there is no such environment or interpreter.
    """
    path = Path(python).expanduser().absolute() if python else None
    if path and not path.is_file():
        raise UsageError("no such interpreter", where=path, hints=["--python /path/to/bin/python"])
    space = workspace.default()
    asked = str(settings.find(env)) if env.endswith(".toml") else ""
    return DoctorContext(settings.load(env or last_used(space)), space, python=path, asked=asked)


def last_used(space: workspace.Workspace) -> str:
    """Return the environment with the newest receipts, if its env file still exists; else `dev`."""
    known = {name for name, _, _ in settings.available()}
    newest = {
        path.parents[1].name: path.stat().st_mtime
        for path in sorted(space.root.glob("envs/*/receipts/*.json"), key=lambda path: path.stat().st_mtime)
        if path.parents[1].name in known
    }
    return max(newest, key=lambda name: newest[name], default=_DEFAULT)


@dataclass(frozen=True)
class Examination:
    """The result of a run of the doctor.

    Attributes:
        env: name of the environment.
        findings: findings of all checks that ran.
        setup: versions and variables; None if only some checks ran.
        since: differences from an earlier setup; None if not requested.
    """

    env: str
    findings: tuple[Finding, ...]
    setup: Snapshot | None = None
    since: SinceAnswer | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the output of `doctor --json` (docs/doctor.md)."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        document: dict[str, Any] = finding.as_json(self.findings)
        document |= {"tritonsmith": __version__, "when": when, "env": self.env}
        document |= {"setup": self.setup} if self.setup is not None else {}
        return document | ({"since": self.since.as_json()} if self.since else {})


def examined(
    subject: DoctorContext,
    chosen: Iterable[Check],
    *,
    deep: bool = False,
    since: str = "",
    whole: bool = True,
) -> Examination:
    """Run checks; keep the setup of a `whole` run in the environment's history, and compare it with another.

    An interpreter other than the environment's own choice is not part of its history.

    Raises:
        UsageError, SmithError: nothing is known of the time that `since` names.
    """
    if since:
        sinces.check(since)
    findings = registry.examine(subject, chosen)
    if not whole and not since:
        return Examination(subject.settings.name, findings)
    setup = snapshot.read(subject)
    try:
        answer = sinces.answer(since, subject, setup) if since else None
    finally:  # a history that is too short for an answer must still begin now
        problem = history.keep(subject, findings, setup, deep=deep) if whole and not subject.python else ""
        if problem:
            console.note(f"the history of this environment is not kept: {problem}")
    return Examination(subject.settings.name, findings, setup, answer)


def examine(chosen: Settings) -> tuple[Finding, ...]:
    """Check the machine and one environment, without running anything in it."""
    return examined(DoctorContext(chosen, workspace.default()), registry.chosen()).findings


def mending(findings: tuple[Finding, ...]) -> Plan:
    """Return a plan with the fixes of all findings that can be fixed safely; empty if there are none."""
    steps = dict.fromkeys(step for result in findings if result.wrong for step in result.fix)
    notes = tuple(f"{result.check}: {result.seen}" for result in findings if result.wrong and result.fix)
    return Plan("apply fixes that can be undone", tuple(steps), notes)
