"""`doctor --packages`: print the distribution's packages for a purpose."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import JSON
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.ui import console


@task()
def packages(
    context: Any,
    need: str = flag("build, llvm, debug, editor or integration-tests", "build"),
    manager: str = flag("package manager: apt, dnf or brew", "apt"),
    llvm: str = flag("version of LLVM", "19"),
    json: bool = JSON,
) -> None:
    """Print the system packages that building needs."""
    from tritonsmith.core import configs

    table = configs.load("system-packages")
    needs = {name: row for name, row in table.items() if isinstance(row, dict)}
    if need not in needs:
        raise UsageError(f"unknown purpose: {need!r}", hints=did_you_mean(need, needs))
    if manager not in needs[need]:
        raise UsageError(f"{need!r} is not listed for {manager!r}", hints=did_you_mean(manager, needs[need]))
    names = [name.replace("NN", llvm) for name in needs[need][manager]]
    if json:
        console.out().print_json(data={"schema": 1, "need": need, "manager": manager, "packages": names})
        return
    console.out().print(" ".join(names), markup=False)
