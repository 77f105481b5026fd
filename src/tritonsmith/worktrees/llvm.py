"""The LLVM of a worktree's environment, if it is there: in the store, or of the environment it inherits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonsmith.builder.llvm import setup_mlir
from tritonsmith.builder.triton import commands
from tritonsmith.builder.triton.source import TritonSource
from tritonsmith.envs import receipts, settings
from tritonsmith.envs.session import Session
from tritonsmith.errors import FactError
from tritonsmith.facts import checkout
from tritonsmith.plan import Plan
from tritonsmith.worktrees.record import WorktreeRecord


def take(record: WorktreeRecord, running: Session) -> bool:
    """Give the environment an LLVM that is there; False if none is, or not all of it.

    That is the store's at the pin, or the installed one that the environment which this one inherits from
    was given for the same pin.

    Args:
        record: the worktree.
        running: holds the environment's lock.
    """
    provider = settings.load(record.name).llvm.provider
    if provider not in ("auto", "store"):
        return False
    if _take(record, running, {"llvm.provider": "store"}):
        return True
    given = receipts.read(running.space.env(settings.load(record.env).name).receipt("setup-mlir"))
    pin = checkout.read(record.folder).pin
    if provider == "store" or not given or given["provider"] != "system" or not pin:
        return False
    installed = {"llvm.provider": "system", "llvm.dir": given["prefix"], "llvm.any-commit": True}
    return given["pin"] == pin.commit and _take(record, running, installed)


def _take(record: WorktreeRecord, running: Session, flags: Mapping[str, Any]) -> bool:
    """Use what these settings provide, if that takes no work."""
    chosen = settings.load(record.name, flags)
    located = TritonSource(Path(record.path), Plan("Triton's sources are present"))
    try:
        prepared, choice = setup_mlir.prepare(chosen, running.space, located)
    except FactError:
        return False
    if choice.plan.steps:
        return False
    commands.execute(prepared, Session("setup-mlir", running.space, running.env, running.log))
    return True
