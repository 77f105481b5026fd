"""`purge-wheels`: remove every distribution that owns files under `triton/`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, PYTHON, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor import run
from tritonsmith.wheels import purge

if TYPE_CHECKING:
    from tritonsmith.facts.python_env import PythonEnv
    from tritonsmith.wheels.purge import Survey


_MIB = float(1 << 20)
_SHOWN = 5  # refused paths
_DEFAULT = "dev"


@task(tables=True, name="purge-wheels")
def purge_wheels(
    context: Context,
    env: str = again(ANY_ENV, "dev, or the active one"),
    python: Path | None = PYTHON,
    system: bool = flag("allow an interpreter outside virtual environments", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove every distribution that owns files under triton/."""
    chosen = settings.load(env or _DEFAULT)
    if not env and not python and (nothing := _nothing_built()):
        console.out().print(nothing, markup=False)
        return
    seen = _interpreter(env, python)
    recovery = purge.recovery(seen, system=system)
    if recovery.steps:
        console.note(recovery.title)
        if dry_run:
            output.plan(recovery, rest="the restored files")
            return
        with receipts.open_session("purge-wheels", chosen.name) as running:
            running.run(recovery)
        seen = _interpreter(env, python)
    survey = purge.survey(seen, system=system)
    if dry_run:
        output.plan(survey.plan, about=_counted(survey))
        _tell(survey)
        return
    if not survey.plan.steps:
        console.out().print(f"nothing to remove: nothing in {seen.prefix} owns triton/", markup=False)
        _tell(survey)
        return
    _show(survey)
    what = f"{sum(row.files for row in survey.rows)} files from {seen.prefix}"
    if not output.agreed(f"Remove {what}?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every file that would be removed"])
    with receipts.open_session("purge-wheels", chosen.name) as running:
        running.run(survey.plan)
    console.out().print(f"removed {what}", markup=False)
    if still := purge.still_found(_interpreter(env, python)):
        console.warn(f"`import triton` still finds {still}, which no installed distribution owns")


def _nothing_built() -> str:
    """Explain why nothing can be removed: no virtual environment is active, and the default has none yet."""
    subject = run.subject(_DEFAULT)
    if subject.packages is not None or os.path.lexists(subject.env.venv):
        return ""
    names = [path.parts[-4] for path in sorted(subject.space.root.glob("envs/*/venv/bin/python"))]
    others = f"; to purge another: {', '.join(f'--env {name}' for name in names)}" if names else ""
    where = f"environment {_DEFAULT} has no Python yet, and no virtual environment is active"
    return f"nothing to remove: {where}{others or '; --python PATH names an interpreter'}"


def _interpreter(env: str, python: Path | None) -> PythonEnv:
    subject = run.subject(env or _DEFAULT, str(python or ""))
    if env and not python:
        subject.python = subject.env.python  # never another one that happens to be active
    if subject.packages is None:
        made = sorted(path.parts[-4] for path in subject.space.root.glob("envs/*/venv/bin/python"))
        raise FactError(
            "no working interpreter found",
            where=subject.interpreter or subject.env.python,
            hints=["give one: --python PATH", *(f"or an environment: --env {name}" for name in made)],
        )
    return subject.packages


def _counted(survey: Survey) -> Iterator[str]:
    """Yield a line for each distribution to remove, with its size, the largest first."""
    for row in sorted(survey.rows, key=lambda row: -row.size):
        yield f"removes {_printable(row.title)}: {row.files:,} files, {row.size / _MIB:,.0f} MiB"


def _show(survey: Survey) -> None:
    for site in dict.fromkeys(row.site for row in survey.rows):
        lines = [
            [_printable(row.title), _printable(row.what), str(row.files), f"{row.size / _MIB:.1f}"]
            for row in survey.rows
            if row.site == site
        ]
        heads = ["distribution", "what", "files", "MiB"]
        console.out().print(tables.plain(f"removed from {site}", heads, lines, right=heads[2:]))
    _tell(survey)


def _printable(text: str) -> str:
    """Escape file names, which may contain bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _tell(survey: Survey) -> None:
    output.notes(survey.notes)
    why = "kept, although a RECORD lists it, because no wheel installs files there"
    output.warnings(f"{why}: {path}" for path in survey.refused[:_SHOWN])
    if len(survey.refused) > _SHOWN:
        console.warn(f"{len(survey.refused) - _SHOWN} more are kept")
