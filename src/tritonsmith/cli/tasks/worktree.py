"""`worktree`: worktrees of Triton, each with an environment."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build import worktree_add, worktree_remove
from tritonsmith.build.worktree_add import WorktreeRequest
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JSON, SOURCE, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.text import byte_size, short_age
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import git_worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.build.worktree_remove import PreparedRemoval, WorktreeRow


@task(tables=True)
def add(
    context: Context,
    ref: str = word("branch, tag, commit or release of Triton"),
    source: str = SOURCE,
    env: str = ENV,
    name: str = flag("name of the worktree and its environment", "", unset="wt-REF"),
    path: Path | None = flag("folder of the worktree", None, unset="beside the clone"),
    branch: str = flag("new branch to create in the worktree", ""),
    dry_run: bool = DRY_RUN,
) -> None:
    """Add a git worktree with its own environment."""
    chosen = settings.load(env, {"triton.source": source or None})
    space, request = workspace.default(), WorktreeRequest(ref, name, path, branch, env)
    clone = worktree_add.clone_of(chosen, space, Path.cwd())
    # A ref that the clone does not have yet, such as a new release, is fetched first.
    if not worktree_add.up_to_date(clone, ref):
        if dry_run:
            output.plan(clone.fetch, rest="the clone, which is not fetched yet")
            return
        worktree_add.fetch(clone, space, "worktree.add")
    prepared = worktree_add.prepare(request, clone, space)
    if dry_run:
        output.plan(prepared.plan)
        return
    record = prepared.record
    with receipts.open_session("worktree.add", record.name) as running:
        # Again under the lock: another run may have added it, or taken the folder, since the first time.
        prepared = worktree_add.prepare(request, clone, space)
        running.run(prepared.plan)
        output.notes(worktree_add.notes(record))
        has_llvm = worktree_add.take_llvm(record, running)
    following = command("build-triton" if has_llvm else "setup-mlir", env=record.name)
    output.done(f"{record.path}\nenvironment: {record.name}", running, following)


@task(tables=True, name="list")
def listing(context: Context, json: bool = JSON) -> None:
    """List the worktrees with their pins, builds and sizes."""
    now, rows = time.time(), worktree_remove.rows(workspace.default())
    if json:
        output.json(worktree_remove.as_json(rows, now))
    elif rows:
        print_worktrees(rows, now)
    else:
        console.out().print(console.typed("no worktrees yet: invoke worktree add REF"), markup=False)


def print_worktrees(rows: Sequence[WorktreeRow], now: float) -> None:
    """Print the table of worktrees, their folders and their problems."""
    head = ["worktree", "ref", "LLVM pin", "LLVM", "Triton", "size", "age"]
    cells = [_cells(row, byte_size(row.bytes), short_age(now - row.record.made)) for row in rows]
    console.out().print(tables.plain("worktrees", head, cells, right=["size", "age"]))
    for row in rows:
        console.out().print(f"{row.record.name}: {row.record.path}", markup=False)
        if row.problem:
            console.warn(f"{row.record.name}: {row.problem}")


def _cells(row: WorktreeRow, size: str, age: str) -> list[str]:
    # The ref is what the worktree was made from; the branch or commit is where it is now.
    where = row.branch or row.commit[:12]
    ref = row.record.ref if where in ("", row.record.ref[:12]) else f"{row.record.ref}\n{where}"
    if row.dirty:
        ref += "\nchanged"
    return [row.record.name, ref, row.pin[:12], row.llvm, row.built, size, age]


@task()
def remove(
    context: Context,
    name: str = word("name of the worktree, or its folder"),
    discard: bool = flag("remove even work that exists nowhere else", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove a worktree and its environment, unless work would be lost."""
    space = workspace.default()
    record = worktree_add.find(space, name)
    prepared = worktree_remove.prepare(record, space, os.environ)
    output.notes(prepared.notes)
    if not discard:
        worktree_remove.check(prepared, record)
    if dry_run:
        output.plan(prepared.plan)
        return
    _show(prepared)
    if not output.agreed(f"Remove {record.name}?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every step"])
    with receipts.open_session("worktree.remove", record.name) as running:
        # Work may have been saved while the question was open, and nobody agreed to lose that.
        again = worktree_remove.prepare(record, space, os.environ)
        if not discard:
            worktree_remove.check(again, record)
        worktree_remove.check_unchanged(again, prepared, record)
        running.run(again.plan)
    console.out().print(f"removed: {record.path}", markup=False)


def _show(prepared: PreparedRemoval) -> None:
    for what, place in prepared.places:
        console.out().print(f"to remove: {place} ({what})", markup=False)
    if prepared.losses:
        console.warn(f"lost for good:\n{git_worktrees.shown(prepared.losses)}")
