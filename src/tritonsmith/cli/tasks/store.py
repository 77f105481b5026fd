"""`store.*`: manage the LLVMs in the store."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.store import describe_tree, housekeeping, transfer
from tritonsmith.build.store.store import open_store
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, JSON, SHA256, YES, StoreOptions
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import compression
from tritonsmith.core.text import byte_size, entry_count, short_age
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor import cache_clear
from tritonsmith.facts import machine

if TYPE_CHECKING:
    from tritonsmith.build.store.housekeeping import PreparedGc, StoreListing, StoreRow
    from tritonsmith.build.store.store import Store
    from tritonsmith.core.plan import Plan


_ENTRY = word("entry of the store")
_ENTRIES = flag("only this entry (repeatable)", ())


@task(tables=True, name="list")
def listing(context: Context, which: StoreOptions, json: bool = JSON) -> None:
    """List the LLVMs in the store, and who uses them."""
    entries = housekeeping.list_entries(_store(which), workspace.default(), time.time())
    if json:
        console.out().print_json(data=entries.as_json())
    else:
        print_entries(entries)


@task()
def verify(
    context: Context,
    which: StoreOptions,
    name: tuple[str, ...] = _ENTRIES,
    quick: bool = flag("skip checksums", default=False),
    json: bool = JSON,
) -> None:
    """Verify the LLVMs in the store against their manifests."""
    shelf = _store(which)
    entries = [shelf.entry(each) for each in name] if name else list(shelf.entries())
    results = {entry.name: describe_tree.problems(entry, quick=quick) for entry in entries}
    if json:
        console.out().print_json(data={"schema": 1, "store": str(shelf.root), "problems": results})
    elif not results:
        console.note(f"nothing in {shelf.root} yet")
    for entry_name, problems in results.items() if not json else ():
        console.out().print(f"{entry_name}: {'; '.join(problems) or 'intact'}", markup=False)
    if damaged := [entry_name for entry_name, problems in results.items() if problems]:
        raise SmithError(
            f"damaged: {', '.join(damaged)}",
            where=shelf.root,
            hints=["`invoke setup-mlir` repairs a build", "`invoke store --gc --name NAME` deletes an entry"],
        )


@task(tables=True)
def gc(
    context: Context,
    which: StoreOptions,
    name: tuple[str, ...] = _ENTRIES,
    max_size: str = flag("delete until the store is no larger than this: 50GB", ""),
    older_than: str = flag("only entries unused for this long: 12h, 30d, 8w", ""),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
    json: bool = flag("print the plan as JSON, and delete only with --yes", default=False),
) -> None:
    """Delete unused LLVMs, the least recently used first."""
    most = compression.size(max_size) if max_size else None
    limits = housekeeping.GcLimits(most, cache_clear.parse_age(older_than), name)
    entries = housekeeping.list_entries(_store(which), workspace.default(), time.time())
    prepared = housekeeping.prepare_gc(entries, limits)
    if json:
        console.out().print_json(data=prepared.as_json())
    elif dry_run:
        output.plan(prepared.plan)
    else:
        print_deletions(prepared, entries)
    # JSON is for scripts, which have no terminal to be asked in: only --yes deletes then.
    if dry_run or not prepared.plan.steps or (json and not yes):
        return
    if not output.agreed(f"Delete {byte_size(prepared.freed)}?", yes=yes):
        raise SmithError("nothing was deleted")
    _run("store.gc", prepared.plan)
    # A build that began while the question was open uses its LLVM, which is skipped then.
    left = housekeeping.still_there(prepared, entries.store)
    output.notes(f"{row.entry.name} was kept: it is in use now" for row in left)
    freed = prepared.freed - sum(row.bytes or 0 for row in left)
    if not json:
        console.out().print(f"deleted {byte_size(freed)}", markup=False)


@task()
def adopt(
    context: Context,
    which: StoreOptions,
    path: Path = word("build folder or install prefix of an LLVM"),
    name: str = flag("name in the store", "", unset="derived from the build"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Register an existing LLVM build in the store, in place."""
    shelf = _store(which)
    manifest, plan = transfer.adopt(shelf, path, machine.read(), name)
    output.warnings(plan.notes)
    if dry_run:
        output.plan(plan)
        return
    with shelf.hold(manifest.name, purpose=f"store.adopt {path}"):
        _run("store.adopt", plan)
    console.out().print(f"adopted as {manifest.name}", markup=False)


@task()
def forget(context: Context, which: StoreOptions, name: str = _ENTRY, dry_run: bool = DRY_RUN) -> None:
    """Remove an adopted LLVM from the store's list."""
    shelf = _store(which)
    plan = transfer.forget(shelf, shelf.entry(name))
    if dry_run:
        output.plan(plan)
        return
    with shelf.hold(name, purpose=f"store.forget {name}"):
        _run("store.forget", plan)
    console.out().print(f"forgotten: {name}; its files stay", markup=False)


@task()
def export(
    context: Context,
    which: StoreOptions,
    name: str = _ENTRY,
    dest: str = word("file (.tar.zst), folder, or bucket (s3://BUCKET/PATH/)"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Pack an LLVM of the store into one relocatable archive."""
    shelf = _store(which)
    prepared = transfer.prepare_export(shelf.entry(name), dest, workspace.default(), machine.read())
    output.notes(prepared.notes)
    if dry_run:
        output.plan(prepared.plan)
        return
    purpose = f"store.export {name}"
    # A store of another user's, which one may only read, has no place for our lock.
    with shelf.hold(name, purpose=purpose) if shelf.writable else nullcontext():
        _run("store.export", prepared.plan)
    console.out().print(f"{prepared.files} files in {prepared.dest}", markup=False)


@task(name="import")
def import_(
    context: Context,
    which: StoreOptions,
    source: str = word("archive of an export: path, http(s):// or s3:// (.tar.zst)"),
    sha256: str = SHA256,
    force: bool = flag("import an archive made for another kind of machine", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Unpack an archive of store --export into the store."""
    shelf, space = _store(which), workspace.default()
    archive = transfer.locate(source, space, sha256)
    if archive.fetched and dry_run:
        output.plan(archive.plan)
        console.note("the rest depends on the content of the archive")
        return
    # The manifest with name and machine is inside the archive, so the plan of the import needs the file.
    if not dry_run:
        _run("store.import", archive.plan)
    prepared = transfer.prepare_import(archive, shelf, space, machine.read(), force=force)
    name = prepared.manifest.name
    if dry_run:
        output.plan(prepared.plan)
        return
    with shelf.hold(name, purpose=f"store.import {source}"):
        # Again under the lock: another run may have imported it since the first time.
        prepared = transfer.prepare_import(archive, shelf, space, machine.read(), force=force)
        _run("store.import", prepared.plan)
    console.out().print(
        f"{'already there' if prepared.there else 'imported'}: {shelf.path(name)}", markup=False
    )


def _run(task_name: str, plan: Plan) -> None:
    """Run a plan with a log in the workspace."""
    space = workspace.default()
    space.claim()
    space.run(plan, task_name.replace(".", "-"))


def _store(which: StoreOptions) -> Store:
    """Return the store that a flag or the env file selects, or the workspace's."""
    return open_store(workspace.default(), which.store or settings.load(which.env, {}).llvm.store)


def print_entries(entries: StoreListing) -> None:
    """Print the table of entries, and their problems."""
    if entries.rows:
        rows = [_cells(row, entries.now) for row in entries.rows]
        head, right = ["entry", "size", "age"], ["size", "age"]
        console.out().print(tables.plain(str(entries.store.root), head, rows, right=right))
        total = f"{entry_count(len(entries.rows))}, {byte_size(entries.bytes)}"
    else:
        total = f"nothing in {entries.store.root} yet: `invoke setup-mlir` fills it"
    console.out().print(console.typed(total), markup=False)
    for row in entries.rows:
        if row.entry.problem:
            console.note(f"{row.entry.name}: {row.entry.problem}")
        for use in row.uses:
            # Only these: such a user, on another machine, keeps an entry for as long as nobody looks.
            if "cannot be checked" in use.why:
                console.note(f"{row.entry.name}, kept for {use.in_words} of {use.user.user}: {use.why}")


def _cells(row: StoreRow, now: float) -> list[str]:
    """Return the cells of an entry: its name, and below it the description and the users."""
    # The name is alone in its line, so that a double click copies it.
    lines = [row.entry.name]
    if manifest := row.entry.manifest:
        commit = f" {manifest.commit[:12]}{'+' if manifest.diff else ''}" if manifest.commit else ""
        asserts = " + asserts" if manifest.assertions else ""
        part = "" if manifest.scope == "all" or manifest.closures else ", in part"
        built = manifest.scope if manifest.kind == "built" else f"{manifest.kind}{part}"
        lines.append(f"  {manifest.version}{commit}, {manifest.build_type}{asserts}, {built}")
    if row.entry.status != "ready":
        lines.append(f"  {row.entry.status}")
    lines += [f"  used by {name}" for name in dict.fromkeys(use.in_words for use in row.uses)]
    size = "" if row.bytes is None else byte_size(row.bytes)
    return ["\n".join(lines), size, short_age(now - row.created)]


def print_deletions(prepared: PreparedGc, entries: StoreListing) -> None:
    """Print the entries to delete and to keep, and the space that is freed."""

    def cells(row: StoreRow, more: str) -> list[str]:
        size = "" if row.bytes is None else byte_size(row.bytes)
        state = "" if row.entry.status == "ready" else f" ({row.entry.status})"
        return [f"{row.entry.name}{state}{more}", size, short_age(entries.now - row.used)]

    head, right = ["entry", "size", "last used"], ["size", "last used"]
    if prepared.going:
        rows = [cells(row, "") for row in prepared.going]
        console.out().print(tables.plain("to delete", head, rows, right=right))
    if prepared.staying:
        rows = [cells(row, f"\n  {reason}") for row, reason in prepared.staying]
        console.out().print(tables.plain("kept", head, rows, right=right))
    if prepared.leftovers:
        console.out().print(f"left by stopped runs: {byte_size(prepared.leftovers)}", markup=False)
    if not prepared.plan.steps:
        console.out().print("nothing to delete", markup=False)
        return
    after = byte_size(prepared.before + prepared.leftovers - prepared.freed)
    before = byte_size(prepared.before + prepared.leftovers)
    console.out().print(f"{before} -> {after}", markup=False)
