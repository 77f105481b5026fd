"""The LLVM of a worktree's environment, if the store has it at the pin."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.builder.llvm import setup_mlir
from tritonsmith.builder.triton import commands
from tritonsmith.builder.triton.source import TritonSource
from tritonsmith.envs import settings
from tritonsmith.envs.session import Session
from tritonsmith.errors import FactError
from tritonsmith.plan import Plan
from tritonsmith.worktrees.record import WorktreeRecord


def take_from_store(record: WorktreeRecord, running: Session) -> bool:
    """Give the environment the store's LLVM at the pin; False if that is not there, or not all of it.

    Args:
        record: the worktree.
        running: holds the environment's lock.
    """
    provider = settings.load(record.name).llvm.provider
    if provider not in ("auto", "store"):
        return False
    chosen = settings.load(record.name, {"llvm.provider": "store"})
    located = TritonSource(Path(record.path), Plan("Triton's sources are present"))
    try:
        prepared, choice = setup_mlir.prepare(chosen, running.space, located)
    except FactError:
        return False
    if choice.plan.steps:
        return False
    commands.execute(prepared, Session("setup-mlir", running.space, running.env, running.log))
    return True
