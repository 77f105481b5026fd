"""`up --ptxas`: another ptxas beside the one that a Triton brings along."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, JSON, WHEEL_ENV
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.core.envs.workspace import Workspace


@task(name="ptxas")
def ptxas(
    context: Any,
    version: str = word("CUDA release: 12.9, 13.0 or 13.0.88; none with --list", ""),
    list_: bool = flag("list the versions of the package index and of this machine", default=False),
    env: str = WHEEL_ENV,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install another ptxas, and print the variables that make Triton use it."""
    from tritonsmith.core.envs import settings, workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.facts import installed_tritons, machine
    from tritonsmith.wheels import ptxas as registry

    space = workspace.default()
    made = space.env(settings.load(env).name)
    python = registry.pip_python(made.python)
    if list_:
        if version:
            raise UsageError("--list takes no version", hints=["omit one of them"])
        rows = _listed(python, space)
        if json:
            output.json(rows)
        for row in () if json else rows:
            console.out().print(f"{row['version']}  {row['path']}".rstrip(), markup=False)
        return
    if not version:
        hints = ["invoke up --ptxas 13.0", "invoke up --ptxas --list"]
        raise UsageError("no version is given", hints=hints)
    wanted = registry.prepare(registry.resolve(version, python), space, machine.read(), python)
    if dry_run:
        output.plan(wanted.plan)
        return
    registry.install(wanted, space, silent=json)
    triton = installed_tritons.of_env(made)
    variables = registry.variables(wanted.path, triton.version if triton else "")
    if json:
        about = {"version": wanted.version, "path": str(wanted.path), "package": wanted.requirement}
        output.json({**about, "variables": variables})
        return
    for name, value in variables.items():
        how = "export" if name.isidentifier() else "env"  # that of 3.3 has a hyphen, and no shell exports it
        console.out().print(f"{how} {name}={shlex.quote(value)}", markup=False)


def _listed(python: Path, space: Workspace) -> list[dict[str, str]]:
    """Return all versions, with the paths of those that are installed."""
    from tritonsmith.core.versions import version_key
    from tritonsmith.facts import machine
    from tritonsmith.wheels import ptxas as registry

    known = registry.known()
    there = {*known, *registry.available(known[0], python), *registry.available(known[-1], python)}
    here = machine.read()
    rows = []
    for version in sorted(there, key=version_key):
        one = registry.prepare(version, space, here, python)
        rows.append({"version": version, "path": "" if one.plan.steps else str(one.path)})
    return rows
