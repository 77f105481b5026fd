"""List the tool's worktrees, and remove one with its environment unless work would be lost."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil

from tritonsmith.build import worktree_add
from tritonsmith.build import worktree_add as records
from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.store import housekeeping
from tritonsmith.build.store import store as stores
from tritonsmith.build.triton.source import request_for
from tritonsmith.build.worktree_add import PHASE, WorktreeRecord
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Move, Plan, Remove, Step
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import git_worktrees, installed_tritons, llvm_tree, machine, package_owners
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.git_worktrees import LinkedWorktree, UniqueWork

# Programs that wait in a folder and lose nothing if it is deleted.
_IDLE = frozenset({"bash", "clangd", "dash", "fish", "ksh", "screen", "sh", "sshd", "tcsh", "tmux", "zsh"})
LlvmState = Literal["ready", "in the store", "in the store, in part", "missing", "unknown"]
BuildState = Literal["built", "outdated", "unfinished", "not built"]


@dataclass(frozen=True)
class PreparedRemoval:
    """The removal of a worktree.

    Attributes:
        plan: the steps.
        losses: work that would be lost; removal then needs consent.
        notes: things that are deleted or kept, in words.
        places: folders and files to delete, each with a description.
    """

    plan: Plan
    losses: tuple[UniqueWork, ...]
    notes: tuple[str, ...]
    places: tuple[tuple[str, Path], ...]


def prepare(record: WorktreeRecord, space: Workspace, environ: Mapping[str, str]) -> PreparedRemoval:
    """Prepare the removal of a worktree, its env file, and its environment with everything built there.

    Args:
        record: the worktree.
        space: the workspace.
        environ: environment variables, by which the Pythons in use are found.
    """
    path, env = record.folder, space.env(record.name)
    tree, half = _known(record)
    losses: list[UniqueWork] = []
    notes: list[str] = []
    steps: tuple[Step, ...] = ()
    if tree:
        losses += _work(tree)
        if not path.exists() and not record.partial.exists():
            repository = shlex.quote(str(record.repository))
            moved = f"if it was moved: git -C {repository} worktree repair NEW_PATH"
            losses.append(UniqueWork("its folder is gone", (moved,)))
        notes += _notes(tree, record)
        steps = _taken_down(record)
    elif path.exists():
        steps, unknown, note = _unknown(record, space)
        losses += unknown
        notes += note
    losses += _in_use(record, space, environ)
    rest = (
        *(() if half else worktree_add.discard(record)),
        *steps,
        Remove((env.path,), space.root, phase=PHASE),
        # The record goes last: without it, nothing could finish what a killed run began.
        Remove(
            (records.env_file(space, record.name), records.file(space, record.name)), space.root, phase=PHASE
        ),
    )
    places = (
        *((("worktree", path),) if steps else ()),
        ("half a worktree", record.partial),
        ("environment, with its builds", env.path),
        ("env file", records.env_file(space, record.name)),
    )
    return PreparedRemoval(
        Plan(f"remove worktree {record.name}", rest),
        tuple(losses),
        tuple(notes),
        tuple((what, place) for what, place in places if place.exists()),
    )


def check(prepared: PreparedRemoval, record: WorktreeRecord) -> None:
    """Check that nothing would be lost.

    Raises:
        SmithError: work would be lost.
    """
    if prepared.losses:
        raise SmithError(
            f"worktree {record.name} was not removed: work would be lost",
            where=record.folder,
            why=git_worktrees.shown(prepared.losses),
            hints=[
                "commit and push it, or keep commits by a branch: git branch NAME COMMIT",
                f"to lose it deliberately: {command('worktree remove', record.name, discard=True)}",
            ],
        )


def check_unchanged(prepared: PreparedRemoval, shown: PreparedRemoval, record: WorktreeRecord) -> None:
    """Check that no new work has appeared since the user agreed to lose the existing work.

    Raises:
        SmithError: there is new work.
    """
    if new := [work for work in prepared.losses if work not in shown.losses]:
        raise SmithError(
            f"worktree {record.name} was not removed: it has changed since you were asked",
            where=record.folder,
            why=git_worktrees.shown(new),
        )


def _work(tree: LinkedWorktree) -> Iterator[UniqueWork]:
    try:
        yield from git_worktrees.unique_work(tree)
    except FactError as error:
        # What git cannot tell counts as work that would be lost.
        yield UniqueWork(error.what, (error.why,) if error.why else ())


def _notes(tree: LinkedWorktree, record: WorktreeRecord) -> Iterator[str]:
    repository = Path(record.repository)
    if branch := tree.branch:
        yield f"branch {branch} stays in {repository}"
    if count := git_worktrees.stashes(repository):
        yield f"stashes belong to the clone, and stay: {count}"
    try:
        ignored = git_worktrees.ignored(tree) if tree.path.is_dir() else ()
    except FactError:
        return  # `unique_work` has reported it
    if ignored:
        more = ", ..." if len(ignored) > 5 else ""  # noqa: PLR2004 - a line of them
        yield f"files that git ignores go too: {', '.join(ignored[:5])}{more}"


def _known(record: WorktreeRecord) -> tuple[LinkedWorktree | None, bool]:
    """Return git's entry for a worktree, and whether git still has it under its temporary name."""
    repository, path, partial = Path(record.repository), record.folder, record.partial
    # A killed `add` renamed the folder without telling git.
    moved = git_worktrees.at(repository, partial) if path.exists() and not partial.exists() else None
    return (replace(moved, path=path), True) if moved else (git_worktrees.at(repository, path), False)


def _taken_down(record: WorktreeRecord) -> tuple[Step, ...]:
    """Return the steps that remove a worktree."""
    # It is renamed first, so that a killed run leaves no half-deleted worktree in which somebody may work.
    path, partial = record.folder, record.partial
    renamed = path.exists() or partial.exists()
    move = (Move(path, partial, phase=PHASE),) if path.exists() else ()
    repair = (record.git("worktree", "repair", str(partial)),) if renamed else ()
    return (
        *move,
        *repair,
        record.git("worktree", "remove", "--force", "--force", str(partial if renamed else path)),
    )


def _unknown(
    record: WorktreeRecord, space: Workspace
) -> tuple[tuple[Step, ...], tuple[UniqueWork, ...], tuple[str, ...]]:
    """Return steps, losses and notes for a folder that the repository does not list as its worktree."""
    path, repository = record.folder, record.repository
    # A folder that git does not know, outside the tool's own: nobody can tell whose it is.
    if not path.is_relative_to(space.worktrees):
        return (), (), (f"{path} is not a worktree of {repository}, and stays",)
    loss = UniqueWork(f"this folder is not a worktree of {repository}: git cannot tell what is in it")
    return (Remove((path,), space.root, phase=PHASE),), (loss,), ()


def _in_use(record: WorktreeRecord, space: Workspace, environ: Mapping[str, str]) -> Iterator[UniqueWork]:
    env = space.env(record.name)
    busy = tuple(_busy(record.folder, env.path))
    if busy:
        yield UniqueWork("programs run in it", busy)
    # An editable install elsewhere imports Triton from this folder, and breaks when it is gone.
    sites = [triton.where for triton in installed_tritons.find(environ, space) if triton.checkout]
    others = [site for site in sites if not site.is_relative_to(env.path)]
    linked = (
        f"{distribution.title} in {distribution.site}"
        for distribution in package_owners.owners(package_owners.read(others))
        if distribution.editable
        and _leads_into(distribution.editable.project or distribution.editable.package, record.folder)
    )
    if installs := tuple(linked):
        yield UniqueWork("editable installs lead to it", installs)


def _leads_into(place: Path | None, folder: Path) -> bool:
    return place is not None and Path(os.path.realpath(place)).is_relative_to(folder)


def _busy(*folders: Path) -> Iterator[str]:
    """Yield programs of this user whose current folder is in one of these, except idle ones."""
    mine = psutil.Process().pid
    for process in psutil.process_iter(["pid", "name", "cwd"]):
        process_info = process.info
        # psutil gives no folder of other users' programs.
        if not process_info["cwd"] or process_info["name"] in _IDLE:
            continue
        if any(Path(process_info["cwd"]).is_relative_to(folder) for folder in folders):
            yield (
                "this command: change to another folder first"
                if process_info["pid"] == mine
                else (f"{process_info['name']} (process {process_info['pid']}) in {process_info['cwd']}")
            )


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
    size = housekeeping.on_disk(record.folder) + housekeeping.on_disk(env.path)
    try:
        if not git_worktrees.at(Path(record.repository), record.folder) or not record.folder.is_dir():
            return WorktreeRow(record, _unusable(record), bytes=size)
        checkout = checkouts.read(record.folder)
        pin = checkout.pin.commit if checkout.pin else ""
        llvm = _llvm(record, checkout, space)
    except SmithError as error:
        # One worktree that cannot be read must not hide the others.
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
    # By the pin: the LLVM of an earlier one does not fit this commit.
    if receipt.get("pin") == checkout.pin.commit and llvm_tree.is_tree(Path(str(receipt.get("prefix")))):
        return "ready"
    needs = prebuilt.wanted(request, machine.read(), prebuilt.key(chosen, checkout))
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
    # Sources with changes may have changed again since the build, so they never count as built.
    same = last.get("commit") == checkout.commit and last.get("dirty") == checkout.dirty is False
    return "built" if same else "outdated"


def as_json(worktrees: tuple[WorktreeRow, ...], now: float) -> dict[str, Any]:
    """Return the worktrees as JSON data."""
    return {"schema": records.SCHEMA, "worktrees": [_as_json(row, now) for row in worktrees]}


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
