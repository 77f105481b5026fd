"""`env` and `env --allow`: list and explain environments, and allow their env files."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks.option_fields import word
from tritonsmith.cli.tasks.options import ENV, JSON
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.ui import console


@task(tables=True)
def explain(context: Any, env: str = ENV, json: bool = JSON) -> None:
    """Show every setting of an environment, and where its value comes from."""
    from json import dumps  # lists and words as TOML writes them

    from tritonsmith.core.envs import settings
    from tritonsmith.core.ui import tables

    chosen = settings.load(env, only_shown=True)
    if json:
        settled = {key: {"value": value, "from": source} for key, value, source in settings.explain(chosen)}
        console.out().print_json(data={"schema": 1, "environment": chosen.name, "settings": settled})
        return
    rows = [[key, dumps(value), source] for key, value, source in settings.explain(chosen)]
    console.out().print(tables.plain(f"environment {env}", ["key", "value", "from"], rows))


@task()
def allow(context: Any, file: str = word("path of an env file"), json: bool = JSON) -> None:
    """Allow an env file in a source tree to name what to run."""
    from json import dumps

    from tritonsmith.core.envs import consent, settings, workspace
    from tritonsmith.core.errors import UsageError

    if not file.endswith(".toml"):
        raise UsageError("only env files that are named by path need consent", hints=["./my.toml"])
    path, wanted = settings.wanted(file)
    if wanted:
        consent.allow(path, wanted, workspace.default())
    if json:
        console.out().print_json(data={"schema": 1, "file": str(path), "allowed": dict(wanted)})
        return
    if not wanted:
        console.out().print(f"{path} names nothing that needs consent", markup=False)
        return
    console.out().print(f"{path} is allowed to name these, until they change:", markup=False)
    for key, value in wanted.items():
        console.out().print(f"  {key} = {dumps(value)}", markup=False)


@task(tables=True, name="list")
def listing(context: Any, json: bool = JSON) -> None:
    """List the environments that have an env file."""
    from tritonsmith.core.envs import settings
    from tritonsmith.core.ui import tables

    if json:
        found = [
            {"name": name, "purpose": about, "file": str(path)} for name, path, about in settings.available()
        ]
        console.out().print_json(data={"schema": 1, "environments": found})
        return
    rows = [[name, about, str(path)] for name, path, about in settings.available()]
    console.out().print(tables.plain("environments", ["name", "purpose", "file"], rows))
