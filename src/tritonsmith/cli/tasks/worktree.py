"""`worktree.*`: worktrees of Triton, each with an environment.

`env` and `env-triton`: the environments, and the Triton that a PyTorch requires.
"""

from __future__ import annotations

import os
import time
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.worktrees import add as records
from tritonsmith.build.worktrees import add as worktrees_add
from tritonsmith.build.worktrees import remove as worktrees_remove
from tritonsmith.build.worktrees.add import WorktreeRequest, take_llvm
from tritonsmith.build.worktrees.remove import as_json, rows
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, ENV_WORD, JSON, PYTORCH, SOURCE, YES
from tritonsmith.cli.tasks.output import task
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import consent, receipts, settings, workspace
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.text import byte_size, short_age
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor.pins import install
from tritonsmith.facts import git_worktrees, machine, pytorch_pins
from tritonsmith.wheels import purge, venv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.build.worktrees.remove import PreparedRemoval, WorktreeRow


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
    with receipts.open_session("worktree.add", made.name) as running:
        prepared = worktrees_add.prepare(request, clone, space)
        running.run(prepared.plan)
        output.notes(worktrees_add.notes(made))
        taken = take_llvm(made, running)
    following = command("build-triton" if taken else "setup-mlir", env=made.name)
    output.done(f"{made.path}\nenvironment: {made.name}", running, following)


@task(tables=True, name="list")
def listing(context: Context, json: bool = JSON) -> None:
    """List the worktrees with their pins, builds and sizes."""
    now, found = time.time(), rows(workspace.default())
    if json:
        output.json(as_json(found, now))
    elif found:
        listed(found, now)
    else:
        console.out().print(console.typed("no worktrees yet: invoke worktree add REF"), markup=False)


def listed(found: Sequence[WorktreeRow], now: float) -> None:
    """Return the table of worktrees and their problems."""
    head = ["worktree", "ref", "LLVM pin", "LLVM", "Triton", "size", "age"]
    rows = [_cells(row, byte_size(row.bytes), short_age(now - row.record.made)) for row in found]
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
    with receipts.open_session("worktree.remove", found.name) as running:
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


@task(tables=True)
def explain(context: Context, env: str = ENV_WORD, json: bool = JSON) -> None:
    """Show every setting of an environment, and where its value comes from."""
    env = env or ENV.default
    chosen = settings.load(env, only_shown=True)
    if json:
        settled = {key: {"value": value, "from": source} for key, value, source in settings.explain(chosen)}
        console.out().print_json(data={"schema": 1, "environment": chosen.name, "settings": settled})
        return
    rows = [[key, dumps(value), source] for key, value, source in settings.explain(chosen)]
    console.out().print(tables.plain(f"environment {env}", ["key", "value", "from"], rows))


@task()
def allow(context: Context, file: str = word("path of an env file"), json: bool = JSON) -> None:
    """Allow an env file in a source tree to name what to run."""
    if not file.endswith(".toml"):
        raise UsageError("only env files that are named by path need consent", hints=["./my.toml"])
    path, wanted = settings.wanted(file)
    if wanted:
        consent.allow(path, wanted, workspace.default())
    if json:
        console.out().print_json(data={"schema": 1, "file": str(path), "allowed": dict(wanted)})
        return
    if not wanted:
        console.out().print(f"{path} names nothing that needs consent", markup=False)
        return
    console.out().print(f"{path} is allowed to name these, until they change:", markup=False)
    for key, value in wanted.items():
        console.out().print(f"  {key} = {dumps(value)}", markup=False)


@task(tables=True, name="list")
def environments(context: Context, json: bool = JSON) -> None:
    """List the environments that have an env file."""
    if json:
        found = [
            {"name": name, "purpose": about, "file": str(path)} for name, path, about in settings.available()
        ]
        console.out().print_json(data={"schema": 1, "environments": found})
        return
    rows = [[name, about, str(path)] for name, path, about in settings.available()]
    console.out().print(tables.plain("environments", ["name", "purpose", "file"], rows))


@task(tables=True, name="env-triton")
def env_triton(
    context: Context,
    pytorch: str = again(PYTORCH, "the installed one"),
    env: str = ENV,
    channel: str = flag("build of PyTorch: cuda, rocm or xpu", "cuda"),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install the Triton that a PyTorch requires, or name its commit."""
    if channel not in pytorch_pins.CHANNELS:
        raise UsageError(
            f"--channel cannot be {channel!r}", hints=did_you_mean(channel, pytorch_pins.CHANNELS)
        )
    chosen = settings.load(env)
    folder = workspace.default().env(chosen.name)
    match = install.release_of(pytorch, folder)
    if match.note:
        console.note(match.note)
    base = venv.base_interpreter(chosen.python.interpreter)
    now = install.current(folder, base)
    others = set(now.triton_owners) - {"triton"} if now else set()  # pip itself replaces another `triton`
    before = purge.survey(now).plan if now and others else Plan("nothing to purge")
    prepared = install.prepare(match.release, channel, folder, base, machine.read(), now, before)
    if dry_run:
        output.plan(prepared.plan)
        return
    if not prepared.plan.steps:
        console.out().print(prepared.plan.title, markup=False)
        return
    output.notes(f"replaces {one}" for one in prepared.replaces)
    question = f"Replace with {prepared.requirement} in {folder.venv}?"
    if prepared.replaces and not output.agreed(question, yes=yes):
        raise SmithError("nothing was replaced", hints=["--dry-run shows what would happen"])
    with receipts.open_session("env-triton", chosen.name) as running:
        install.execute(prepared, match.release, running)
    output.done(
        f"{prepared.requirement}, as PyTorch {match.release.version} requires, in {folder.venv}", running
    )
