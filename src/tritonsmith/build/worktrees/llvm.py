"""The LLVM of a worktree's environment, if one exists: in the store, or from the inherited environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.triton import commands
from tritonsmith.build.triton.source import TritonSource
from tritonsmith.build.worktrees.record import WorktreeRecord
from tritonsmith.core.envs import receipts, settings, unfinished_build
from tritonsmith.core.envs.session import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan
from tritonsmith.facts import checkout, llvm_tree


def take(record: WorktreeRecord, running: Session) -> bool:
    """Give the environment an existing LLVM; return False if there is none, or not all of it.

    This is the store's LLVM at the pin, or the installed one that the inherited environment uses for the
    same pin.

    Args:
        record: the worktree.
        running: session that holds the environment's lock.
    """
    llvm = settings.load(record.name).llvm
    if llvm.dir:
        return llvm_tree.is_tree(Path(llvm.dir))
    provider = llvm.provider
    if provider not in ("auto", "store"):
        return False
    if _take(record, running, {"llvm.provider": "store"}):
        return True
    prefix, pin_then = _installed(running.space.env(settings.load(record.env).name))
    pin = checkout.read(record.folder).pin
    if provider == "store" or not prefix or not pin or pin_then != pin.commit:
        return False
    return _take(record, running, {"llvm.provider": "system", "llvm.dir": prefix, "llvm.any-commit": True})


def _installed(env: EnvDir) -> tuple[str, str]:
    """Return an environment's installed LLVM, by its last build or `setup-mlir`, and its pin, or blanks."""
    built = unfinished_build.succeeded(env)
    if named := (built.get("settings") or {}).get("llvm.dir"):
        return str(named), str(built.get("pin"))
    receipt = receipts.read(env.receipt("setup-mlir"))
    return (receipt["prefix"], receipt["pin"]) if receipt and receipt["provider"] == "system" else ("", "")


def _take(record: WorktreeRecord, running: Session, flags: Mapping[str, Any]) -> bool:
    """Use the LLVM that these settings provide, if that takes no work."""
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
