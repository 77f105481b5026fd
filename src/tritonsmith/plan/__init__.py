"""Steps, plans, and the runner that executes them."""

from tritonsmith.plan.steps.base import Plan, Stamp, Step, digest, stamped, step_key
from tritonsmith.plan.steps.fetch import Download, Extract, GitFetch, UnpackPackage
from tritonsmith.plan.steps.files import Copy, Link, MakeDir, Move, Remove, RemoveWritten, Write
from tritonsmith.plan.steps.ninja import NINJA_STATUS, BuildObjects, BuildUsed, OutdateForeignOutput
from tritonsmith.plan.steps.patch import Patch
from tritonsmith.plan.steps.run import Run
from tritonsmith.plan.steps.uninstall import Recover, Uninstall

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
