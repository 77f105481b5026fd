"""`doctor`: is it the environment?"""

from __future__ import annotations

from typing import Any

from invoke.exceptions import Exit

from tritonsmith.tasks.kit import task


@task(help={"env": "environment to look at", "json": "print the findings as JSON"})
def doctor(context: Any, env: str = "dev", json: bool = False) -> None:
    """Check tools, memory, disk and the environment's builds; exit 1 if something is wrong."""
    from tritonsmith.doctor import finding, report
    from tritonsmith.envs import settings
    from tritonsmith.ui import console

    found = report.examine(settings.load(env))
    if json:
        console.out().print_json(data=finding.as_json(found))
    else:
        console.out().print(report.table(found))
        console.out().print(report.summary(found).splitlines()[0], markup=False)
    if finding.worst(found) in ("error", "crashed"):
        raise Exit(code=1)
