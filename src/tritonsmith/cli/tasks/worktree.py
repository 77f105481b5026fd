"""`worktree.*`: worktrees of Triton, each with an environment."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.worktrees import add as worktrees_add
from tritonsmith.build.worktrees import list_
from tritonsmith.build.worktrees import record as records
from tritonsmith.build.worktrees import remove as worktrees_remove
from tritonsmith.build.worktrees.add import WorktreeRequest, take_llvm
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JSON, SOURCE, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import session, settings, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.ui import console, tables, units
from tritonsmith.facts import git_worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.build.worktrees.list_ import WorktreeRow
    from tritonsmith.build.worktrees.remove import PreparedRemoval


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
    clone = worktrees_add.clone_of(chosen, space, Path.cwd())
    if not worktrees_add.up_to_date(clone, ref):
        if dry_run:
            output.plan(clone.fetch, rest="the clone, which is not fetched yet")
            return
        worktrees_add.fetch(clone, space, "worktree.add")
    prepared = worktrees_add.prepare(request, clone, space)
    if dry_run:
        output.plan(prepared.plan)
        return
    made = prepared.record
    with session.opened("worktree.add", made.name) as running:
        prepared = worktrees_add.prepare(request, clone, space)
        running.run(prepared.plan)
        output.notes(worktrees_add.notes(made))
        taken = take_llvm(made, running)
    following = command("build-triton" if taken else "setup-mlir", env=made.name)
    output.done(f"{made.path}\nenvironment: {made.name}", running, following)


@task(tables=True, name="list")
def listing(context: Context, json: bool = JSON) -> None:
    """List the worktrees with their pins, builds and sizes."""
    now, found = time.time(), list_.rows(workspace.default())
    if json:
        output.json(list_.as_json(found, now))
    elif found:
        listed(found, now)
    else:
        console.out().print(console.typed("no worktrees yet: invoke worktree add REF"), markup=False)


def listed(found: Sequence[WorktreeRow], now: float) -> None:
    """Return the table of worktrees and their problems."""
    head = ["worktree", "ref", "LLVM pin", "LLVM", "Triton", "size", "age"]
    rows = [_cells(row, units.size(row.bytes), units.age(now - row.record.made)) for row in found]
    console.out().print(tables.plain("worktrees", head, rows, right=["size", "age"]))
    for row in found:
        console.out().print(f"{row.record.name}: {row.record.path}", markup=False)
        if row.problem:
            console.warn(f"{row.record.name}: {row.problem}")


def _cells(row: WorktreeRow, size: str, age: str) -> list[str]:
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
    found = records.find(space, name)
    prepared = worktrees_remove.prepare(found, space, os.environ)
    output.notes(prepared.notes)
    if not discard:
        worktrees_remove.check(prepared, found)
    if dry_run:
        output.plan(prepared.plan)
        return
    _show(prepared)
    if not output.agreed(f"Remove {found.name}?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every step"])
    with session.opened("worktree.remove", found.name) as running:
        again = worktrees_remove.prepare(found, space, os.environ)
        if not discard:
            worktrees_remove.check(again, found)
        worktrees_remove.check_unchanged(again, prepared, found)
        running.run(again.plan)
    console.out().print(f"removed: {found.path}", markup=False)


def _show(prepared: PreparedRemoval) -> None:
    for what, place in prepared.places:
        console.out().print(f"to remove: {place} ({what})", markup=False)
    if prepared.losses:
        console.warn(f"lost for good:\n{git_worktrees.shown(prepared.losses)}")
