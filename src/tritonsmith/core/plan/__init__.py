"""Steps, plans, and the runner that executes them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonsmith.core.plan.steps.base import Plan, Run, Stamp, Step, digest, stamped, step_key
    from tritonsmith.core.plan.steps.fetch import Download, Extract, GitFetch, InstallWheel, UnpackPackage
    from tritonsmith.core.plan.steps.files import (
        Copy,
        Link,
        MakeDir,
        Move,
        Patch,
        Remove,
        RemoveWritten,
        RunSql,
        Write,
    )
    from tritonsmith.core.plan.steps.ninja import NINJA_STATUS, BuildObjects, BuildUsed, OutdateForeignOutput
    from tritonsmith.core.plan.steps.uninstall import Recover, Uninstall

__all__ = [
    "NINJA_STATUS",
    "BuildObjects",
    "BuildUsed",
    "Copy",
    "Download",
    "Extract",
    "GitFetch",
    "InstallWheel",
    "Link",
    "MakeDir",
    "Move",
    "OutdateForeignOutput",
    "Patch",
    "Plan",
    "Recover",
    "Remove",
    "RemoveWritten",
    "Run",
    "RunSql",
    "Stamp",
    "Step",
    "Uninstall",
    "UnpackPackage",
    "Write",
    "digest",
    "stamped",
    "step_key",
]


# What a step is comes first: most modules need no more, and few need those that fetch or uninstall.
_MODULES = ("base", "files", "ninja", "fetch", "uninstall")


def __getattr__(name: str) -> object:
    """Import the module of a name at its first use: `locks` and `stopping` need none, nor does `--help`."""
    for module in _MODULES if name in __all__ else ():
        home = import_module(f"{__name__}.steps.{module}")
        if hasattr(home, name):
            globals()[name] = value = getattr(home, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
