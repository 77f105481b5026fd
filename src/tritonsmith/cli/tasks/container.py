"""`container`: write a Dockerfile and devcontainer.json of an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, OUT
from tritonsmith.cli.tasks.task import task


@task()
def container(
    context: Any,
    env: str = ENV,
    out: Path | None = again(OUT, ".devcontainer in the current folder"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a Dockerfile that builds an environment's Triton."""
    from tritonsmith.build.editors import container as containers
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.ui import console

    space = workspace.default()
    folder = out or Path.cwd() / ".devcontainer"
    plan, missing = containers.prepare(env, space, Path.cwd(), folder)
    if missing:
        console.warn(f"the container does not have what this checkout has: {missing}")
    if dry_run:
        output.plan(plan)
        return
    space.claim()
    space.run(plan, "container", quiet=True)
    console.out().print(f"docker build {folder}", markup=False)
