"""The use case behind `doctor`: which environment, which interpreter, which checks; and the fixes."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.doctor import registry
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding
from tritonsmith.envs import settings, workspace
from tritonsmith.envs.schema import Settings
from tritonsmith.errors import UsageError
from tritonsmith.plan import Plan

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
    """The environment with the newest receipts, if its env file still exists; else `dev`."""
    known = {name for name, _, _ in settings.available()}
    newest = {
        path.parents[1].name: path.stat().st_mtime
        for path in sorted(space.root.glob("envs/*/receipts/*.json"), key=lambda path: path.stat().st_mtime)
        if path.parents[1].name in known
    }
    return max(newest, key=lambda name: newest[name], default=_DEFAULT)


def examine(chosen: Settings) -> tuple[Finding, ...]:
    """Check the machine and one environment, without running anything in it."""
    return registry.examine(DoctorContext(chosen, workspace.default()), registry.chosen())


def mending(findings: tuple[Finding, ...]) -> Plan:
    """A plan with the fixes of all findings that can be fixed safely; empty if there are none."""
    steps = dict.fromkeys(step for finding in findings if finding.wrong for step in finding.fix)
    notes = tuple(f"{found.check}: {found.seen}" for found in findings if found.wrong and found.fix)
    return Plan("apply fixes that can be undone", tuple(steps), notes)
