"""Steps, plans, and the runner that executes them."""

from tritonsmith.core.plan.steps.base import Plan, Run, Stamp, Step, digest, stamped, step_key
from tritonsmith.core.plan.steps.fetch import Download, Extract, GitFetch, UnpackPackage
from tritonsmith.core.plan.steps.files import Copy, Link, MakeDir, Move, Patch, Remove, RemoveWritten, Write
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
    "Stamp",
    "Step",
    "Uninstall",
    "UnpackPackage",
    "Write",
    "digest",
    "stamped",
    "step_key",
]
