"""The checks in display order, and the use case behind `doctor`: choose some, run them, apply their fixes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import configs
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console
from tritonsmith.doctor import (
    builds,
    gpu,
    history,
    machine,
    python_env,
    python_triton,
    snapshot,
    sources,
    tools,
    variables,
)
from tritonsmith.doctor import cache_checks as caches
from tritonsmith.doctor.check import Check, DoctorContext, Finding, findings_as_json
from tritonsmith.doctor.history import SetupComparison
from tritonsmith.doctor.snapshot import Snapshot

UNREADABLE = "env.file"  # stands for a check: the env file could not be read, so none ran


def checks_of(*modules: ModuleType) -> tuple[Check, ...]:
    """Return the checks that modules define, in the order of their definition."""
    # Whatever is in a module's namespace counts: a module that imports a check of another one lists it twice.
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Check))


# The order on the screen, in `--list` and in docs/doctor.md, which a test compares.
ALL = (
    *checks_of(machine),
    *tools.PROGRAMS,
    *checks_of(
        tools,
        sources,
        builds,
        python_env,
        python_triton,
        caches,
        variables,
        gpu,
    ),
)


def explanation(name: str) -> str:
    """Return the Markdown of docs/doctor.md about a check, or about each check of a group.

    Raises:
        UsageError: there is no such check.
    """
    # The page is the only source, in a checkout and in the wheel: no second text that could contradict it.
    text = configs.page("doctor")
    if name == UNREADABLE:
        anchor = f'<a id="{name.replace(".", "")}"></a>'
        return text.partition(anchor)[2].partition("\n\n")[0]
    sections = re.split(r"^(?=##)", text, flags=re.MULTILINE)
    heads = tuple(f"### {check.id}\n" for check in chosen_checks((name,), deep=True))
    return "".join(section for section in sections if section.startswith(heads)).rstrip()


def chosen_checks(only: Iterable[str] = (), *, deep: bool = False) -> tuple[Check, ...]:
    """Return the checks to run.

    Args:
        only: ids (`tools.cmake`) or groups (`tools`); empty for all.
        deep: include those that start programs. A check that `only` names by its id runs anyway.

    Raises:
        UsageError: there is no such check.
    """
    names = tuple(only)
    known = {check.id for check in ALL} | {check.group for check in ALL}
    for name in names:
        if name not in known:
            raise UsageError(f"no such check: {name!r}", hints=did_you_mean(name, known))
    # A deep check that is named by its id runs without --deep: nobody names one in order to skip it.
    if not names:
        return tuple(check for check in ALL if deep or not check.deep)
    return tuple(
        check for check in ALL if check.id in names or (check.group in names and (deep or not check.deep))
    )


def run_checks(subject: DoctorContext, checks: Iterable[Check]) -> tuple[Finding, ...]:
    """Run checks, in order."""
    return tuple(finding for check in checks for finding in check(subject))


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
    env_file = str(settings.find(env)) if env.endswith(".toml") else ""
    return DoctorContext(settings.load(env or last_used(space)), space, python=path, asked=env_file)


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
    since: SetupComparison | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the output of `doctor --json` (docs/doctor.md)."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        document: dict[str, Any] = findings_as_json(self.findings)
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
        history.check_since(since)
    findings = run_checks(subject, chosen)
    # After the checks: the setup reuses the facts that they have read.
    if not whole and not since:
        return Examination(subject.settings.name, findings)
    setup = snapshot.read(subject)
    try:
        answer = history.answer_since(since, subject, setup) if since else None
    # A history that is too short for an answer must still begin now.
    finally:
        problem = history.keep(subject, findings, setup, deep=deep) if whole and not subject.python else ""
        if problem:
            console.note(f"the history of this environment is not kept: {problem}")
    return Examination(subject.settings.name, findings, setup, answer)


def examine(chosen: Settings) -> tuple[Finding, ...]:
    """Check the machine and one environment, without running anything in it."""
    return examined(DoctorContext(chosen, workspace.default()), chosen_checks()).findings


def fix_plan(findings: tuple[Finding, ...]) -> Plan:
    """Return a plan with the fixes of all findings that can be fixed safely; empty if there are none."""
    # Several findings may have the same step, as all that are due to one stale CMake cache.
    steps = dict.fromkeys(step for result in findings if result.wrong for step in result.fix)
    notes = tuple(f"{result.check}: {result.seen}" for result in findings if result.wrong and result.fix)
    return Plan("apply fixes that can be undone", tuple(steps), notes)
