"""The worktrees that the tool remembers: their pins, builds and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tritonsmith.build.llvm import closure, store_entry
from tritonsmith.build.store import list_ as store_list
from tritonsmith.build.store import store as stores
from tritonsmith.build.triton.source import request_for
from tritonsmith.build.worktrees import record as records
from tritonsmith.build.worktrees.record import WorktreeRecord
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import git_worktrees, llvm_tree, machine
from tritonsmith.facts.checkout import TritonCheckout

LlvmState = Literal["ready", "in the store", "in the store, in part", "missing", "unknown"]
BuildState = Literal["built", "outdated", "unfinished", "not built"]


@dataclass(frozen=True)
class WorktreeRow:
    """A worktree and its state.

    Attributes:
        record: its record.
        problem: the reason why it cannot be used; empty if it can.
        branch: its branch; empty if HEAD is detached.
        commit: HEAD, 40 hex digits; empty if unknown.
        dirty: tracked files differ from HEAD.
        pin: the LLVM commit that it pins; empty if unknown.
        llvm: whether the environment has that LLVM, or the store has it.
        built: whether libtriton is built, and from this exact commit.
        bytes: disk space of the worktree and its environment.
    """

    record: WorktreeRecord
    problem: str = ""
    branch: str = ""
    commit: str = ""
    dirty: bool = False
    pin: str = ""
    llvm: LlvmState = "unknown"
    built: BuildState = "not built"
    bytes: int = 0


def rows(space: Workspace) -> tuple[WorktreeRow, ...]:
    """Return all worktrees, by name. Read-only, needs no lock.

    Raises:
        FactError: a record cannot be read.
    """
    return tuple(_row(record, space) for record in records.records(space))


def _row(record: WorktreeRecord, space: Workspace) -> WorktreeRow:
    env = space.env(record.name)
    size = store_list.on_disk(record.folder) + store_list.on_disk(env.path)
    try:
        if not git_worktrees.at(Path(record.repository), record.folder) or not record.folder.is_dir():
            return WorktreeRow(record, _unusable(record), bytes=size)
        checkout = checkouts.read(record.folder)
        pin = checkout.pin.commit if checkout.pin else ""
        llvm = _llvm(record, checkout, space)
    except SmithError as error:
        return WorktreeRow(record, f"{error.what}: {error.why or error.where}", bytes=size)
    return WorktreeRow(
        record,
        branch=git_worktrees.branch_of(record.folder),
        commit=checkout.commit,
        dirty=checkout.dirty,
        pin=pin,
        llvm=llvm,
        built=_built(env, checkout),
        bytes=size,
    )


def _unusable(record: WorktreeRecord) -> str:
    if not Path(record.repository).is_dir():
        return f"its clone {record.repository} is gone"
    if record.partial.exists():
        return "it was only partly added or removed: `invoke worktree add` or `worktree remove` finishes that"
    return "its folder is gone" if not record.folder.exists() else f"not a worktree of {record.repository}"


def _llvm(record: WorktreeRecord, checkout: TritonCheckout, space: Workspace) -> LlvmState:
    chosen = settings.load(record.name, only_shown=True)
    request = request_for(chosen, checkout)
    receipt = receipts.read(space.env(record.name).receipt("setup-mlir")) or {}
    if checkout.pin is None:
        return "unknown"
    if receipt.get("pin") == checkout.pin.commit and llvm_tree.is_tree(Path(str(receipt.get("prefix")))):
        return "ready"
    needs = store_entry.wanted(request, machine.read(), closure.key(chosen, checkout))
    match = stores.open_store(space, chosen.llvm.store).find(needs)
    if match.entry is None:
        return "missing"
    return "in the store" if match.complete else "in the store, in part"


def _built(env: EnvDir, checkout: TritonCheckout) -> BuildState:
    if receipts.unfinished(env):
        return "unfinished"
    last = receipts.succeeded(env)
    if not last or not env.build.is_dir():
        return "not built"
    same = last.get("commit") == checkout.commit and last.get("dirty") == checkout.dirty is False
    return "built" if same else "outdated"


def as_json(found: tuple[WorktreeRow, ...], now: float) -> dict[str, Any]:
    """Return the worktrees as JSON data."""
    return {"schema": records.SCHEMA, "worktrees": [_as_json(row, now) for row in found]}


def _as_json(row: WorktreeRow, now: float) -> dict[str, Any]:
    return {
        "name": row.record.name,
        "path": row.record.path,
        "repository": row.record.repository,
        "env": row.record.name,
        "inherits": row.record.env,
        "ref": row.record.ref,
        "added_at": row.record.commit,
        "commit": row.commit,
        "branch": row.branch,
        "dirty": row.dirty,
        "pin": row.pin,
        "llvm": row.llvm,
        "built": row.built,
        "bytes": row.bytes,
        "age": max(0, round(now - row.record.made)),
        "problem": row.problem,
    }
