"""`env.list` and `env.explain`: which environments there are, and where their values come from."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.kit import task


@task(tables=True, help={"env": "environment to explain"})
def explain(context: Any, env: str = "dev") -> None:
    """Show every setting of an environment, and where its value came from."""
    from tritonsmith.envs import settings
    from tritonsmith.ui import console, tables

    rows = [[key, repr(value), source] for key, value, source in settings.explain(settings.load(env))]
    console.out().print(tables.plain(f"environment {env}", ["key", "value", "from"], rows))


@task(tables=True)
def listing(context: Any) -> None:
    """List the environments that have an env file."""
    from tritonsmith.envs import settings
    from tritonsmith.ui import console, tables

    rows = [[name, about, str(path)] for name, path, about in settings.available()]
    console.out().print(tables.plain("environments", ["name", "what for", "file"], rows))
