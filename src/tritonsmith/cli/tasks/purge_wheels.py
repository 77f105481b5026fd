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
    # Without flags, a machine on which nothing was installed yet is no error: a script may purge to be sure.
    if not env and not python and (nothing := _nothing_built()):
        console.out().print(nothing, markup=False)
        return
    packages = _packages(env, python)
    # A removal that was stopped midway is undone first: what is left of it cannot be surveyed.
    recovery = purge.recovery(packages, system=system)
    if recovery.steps:
        console.note(recovery.title)
        if dry_run:
            output.plan(recovery, rest="the restored files")
            return
        with receipts.open_session("purge-wheels", chosen.name) as running:
            running.run(recovery)
        packages = _packages(env, python)
    survey = purge.survey(packages, system=system)
    if dry_run:
        output.plan(survey.plan, about=_summary(survey))
        _print_notes(survey)
        return
    if not survey.plan.steps:
        console.out().print(f"nothing to remove: nothing in {packages.prefix} owns triton/", markup=False)
        _print_notes(survey)
        return
    print_survey(survey)
    what = f"{sum(row.files for row in survey.rows)} files from {packages.prefix}"
    if not output.agreed(f"Remove {what}?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every file that would be removed"])
    with receipts.open_session("purge-wheels", chosen.name) as running:
        running.run(survey.plan)
    console.out().print(f"removed {what}", markup=False)
    # An import hook, a PYTHONPATH or a folder without a RECORD can provide `triton`, too.
    if still := purge.still_found(_packages(env, python)):
        console.warn(f"`import triton` still finds {still}, which no installed distribution owns")


def _nothing_built() -> str:
    """Explain why nothing can be removed: no virtual environment is active, and the default has none yet."""
    # A virtual environment that is active counts before `dev`, as for the doctor, so its packages have to be
    # looked for.
    subject = run.subject(_DEFAULT)
    if subject.packages is not None or os.path.lexists(subject.env.venv):
        return ""
    names = [path.parts[-4] for path in sorted(subject.space.root.glob("envs/*/venv/bin/python"))]
    others = f"; to purge another: {', '.join(f'--env {name}' for name in names)}" if names else ""
    where = f"environment {_DEFAULT} has no Python yet, and no virtual environment is active"
    return f"nothing to remove: {where}{others or '; --python PATH names an interpreter'}"


def _packages(env: str, python: Path | None) -> PythonEnv:
    """Return the packages of the interpreter that the flags select, or of the active one."""
    subject = run.subject(env or _DEFAULT, str(python or ""))
    # The doctor prefers an active virtual environment. Files are removed from the one that was named only.
    if env and not python:
        subject.python = subject.env.python
    if subject.packages is None:
        names = sorted(path.parts[-4] for path in subject.space.root.glob("envs/*/venv/bin/python"))
        raise FactError(
            "no working interpreter found",
            where=subject.interpreter or subject.env.python,
            hints=["give one: --python PATH", *(f"or an environment: --env {name}" for name in names)],
        )
    return subject.packages


def _summary(survey: Survey) -> Iterator[str]:
    """Yield a line for each distribution to remove, with its size, the largest first."""
    for row in sorted(survey.rows, key=lambda row: -row.size):
        yield f"removes {_printable(row.title)}: {row.files:,} files, {row.size / _MIB:,.0f} MiB"


def print_survey(survey: Survey) -> None:
    """Print the distributions to remove, by the folder that they are in, and the notes."""
    for site in dict.fromkeys(row.site for row in survey.rows):
        lines = [
            [_printable(row.title), _printable(row.what), str(row.files), f"{row.size / _MIB:.1f}"]
            for row in survey.rows
            if row.site == site
        ]
        heads = ["distribution", "what", "files", "MiB"]
        console.out().print(tables.plain(f"removed from {site}", heads, lines, right=heads[2:]))
    _print_notes(survey)


def _printable(text: str) -> str:
    # The names come from RECORD files, and may contain bytes that are not UTF-8.
    return text.encode(errors="backslashreplace").decode()


def _print_notes(survey: Survey) -> None:
    output.notes(survey.notes)
    why = "kept, although a RECORD lists it, because no wheel installs files there"
    output.warnings(f"{why}: {path}" for path in survey.refused[:_SHOWN])
    if len(survey.refused) > _SHOWN:
        console.warn(f"{len(survey.refused) - _SHOWN} more are kept")
