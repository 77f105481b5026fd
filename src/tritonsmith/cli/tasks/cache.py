"""`cache.*` and `clear-cache`: the entries of Triton's caches, and the results that commands keep."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import PoolOptions, listed_kernels
from tritonsmith.cli.tasks.option_fields import CommaList, CommaLists, again, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    AT,
    DRY_RUN,
    JSON,
    KERNELS_FILE,
    LIBCUDA,
    OUT,
    PYTHON,
    SHA256,
    TARGET,
    TRITON_AT,
    YES,
    EntryOptions,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import fill as cache_fill
from tritonsmith.compiler import targets, user_program
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.text import byte_size, counted, entry_count
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor import cache_clear, cache_list
from tritonsmith.facts import installed_tritons, triton_cache
from tritonsmith.lab.batch import kept, kept_files
from tritonsmith.lab.bisect import session as bisects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from tritonsmith.compiler.fill import Filled, FillWish, PreparedFill, Verified
    from tritonsmith.core.plan import Plan
    from tritonsmith.doctor.cache_clear import Filters, PreparedClear
    from tritonsmith.doctor.cache_list import CacheListing
    from tritonsmith.facts.installed_tritons import InstalledTriton
    from tritonsmith.facts.triton_cache import Content, Root, RootKind
    from tritonsmith.lab.batch.kept import KeptResults
    from tritonsmith.lab.bisect.session import KeptFolder


_GROUPS = 20  # rows of the summary


@task(tables=True, name="list")
def listing(
    context: Context,
    which: EntryOptions,
    limit: int | None = flag("maximum number of rows (0: all)", 50, example="--limit 20; 0 for all"),
    json: bool = JSON,
) -> None:
    """List the entries of Triton's caches, the newest first."""
    filters = _filters(which)
    space = workspace.default()
    roots = (cache_clear.named(which.root),) if which.root else triton_cache.find(os.environ, space)
    installed = _installed(filters)
    entries = cache_list.make(roots, filters, limit=limit or 0, installed=installed, now=time.time())
    # What compare and bisect keep is in the workspace, so no cache that --root names has it.
    results = () if which.root else kept.results(space)
    folders = () if which.root else bisects.kept(space)
    if json:
        rehearsed = [{"path": str(row.folder), "kernels": row.kernels, "bytes": row.bytes} for row in results]
        bisected = [{"path": str(row.folder), "kind": row.kind, "bytes": row.bytes} for row in folders]
        more = {"rehearsed": rehearsed, "bisected": bisected}
        console.out().print_json(data={**cache_list.as_json(entries), **more})
        return
    _print_listing(entries, filtered=filters.any)
    if results:
        _print_rehearsed(results)
    if folders:
        _print_bisected(folders)


@task(tables=True)
def show(
    context: Context,
    entry: str = word("entry of cache.list: the start of its name, its folder, or a kernel"),
    root: str = flag("look only in the cache in this folder", ""),
    json: bool = JSON,
) -> None:
    """Show the files of a cache entry, and what each is."""
    roots = (cache_clear.named(root),) if root else triton_cache.find(os.environ, workspace.default())
    folder = cache_list.entry(entry, roots)
    files = cache_list.files(folder)
    if json:
        rows = [
            {"file": file.name, "bytes": file.bytes, "stage": file.stage, "what": file.what} for file in files
        ]
        console.out().print_json(data={"schema": 1, "entry": str(folder), "files": rows})
        return
    cells = [[file.name, byte_size(file.bytes), file.what] for file in files]
    console.out().print(tables.plain(f"{folder}", ["file", "size", "what it is"], cells, right=["size"]))
    # An entry has IR of an early stage, from which it can be compiled again without the kernel's source.
    if any(file.stage for file in files):
        console.note(f"compile it again, with every stage: {command('kernel.compile', from_cache=folder)}")


@task(tables=True)
def fill(
    context: Context,
    by: PoolOptions,
    kernels: str = KERNELS_FILE,
    target: CommaLists = TARGET,
    out: Path | None = again(OUT),
    into: Path | None = flag("existing cache to add to; asks first", None, value="DIR"),
    at: Path | None = again(AT, "where it is written"),
    libcuda: CommaList = LIBCUDA,
    triton_at: str = TRITON_AT,
    no_extensions: bool = flag("leave out the C extensions, which need a C compiler", default=False),
    tuned: Path | None = flag("cache whose results of autotuners are added", None, value="DIR"),
    yes: bool = YES,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Fill a cache without a GPU, so that a program starts without a compile."""
    if (out is None) == (into is None):
        hints = ["--out DIR for a new cache", "--into ~/.triton/cache to add to one"]
        raise UsageError("give either --out or --into", hints=hints)
    cache = out or into
    assert cache is not None  # noqa: S101 - one of them is given
    if out and out.is_dir() and any(out.iterdir()) and not cache_fill.is_unfinished(out):
        hints = [f"add to it: --into {out}", "or name another folder"]
        raise UsageError("--out is not empty", hints=hints)
    wish = cache_fill.FillWish(
        cache, at or cache, libcuda, triton_at, extensions=not no_extensions, tuned=tuned
    )
    prepared = prepared_fill(kernels, by, target, wish, dry_run=dry_run)
    if dry_run:
        output.plan(prepared.plan)
        return
    if into and not output.agreed(f"Add {entry_count(prepared.points)} to {into}?", yes=yes):
        raise SmithError("nothing was added")
    filled = cache_fill.execute(prepared)
    if json:
        output.json(cache_fill.as_json(filled, wish, prepared.target))
    else:
        print_filled(filled, wish.out)
    if filled.is_incomplete:
        raise Exit(code=1)


def prepared_fill(
    kernels: str, by: PoolOptions, target: CommaLists, wish: FillWish, *, dry_run: bool
) -> PreparedFill:
    """Return a fill of a cache by a kernels file, ready to run.

    Args:
        kernels: FILE.toml or FILE.toml:KERNEL.
        by: the Triton that will look the entries up.
        target: the GPU; that of the list if empty.
        wish: what to write, and where.
        dry_run: install nothing.

    Raises:
        SmithError: one of them makes no sense, or no kernel can be compiled.
    """
    path, name = kernels_file.named(kernels) or (Path(kernels).expanduser().absolute(), "")
    requests = cache_fill.requests_of(listed_kernels(path, name, by), path, targets.parse_all(target))
    return cache_fill.prepare(requests, by.toolchain(dry_run=dry_run), wish)


def print_filled(filled: Filled, cache: Path) -> None:
    """Print a row for each kernel, and what the cache is good for."""
    head = ["kernel", "entries", "status", "why"]
    rows = [list(row) for row in cache_fill.summary(filled)]
    console.out().print(tables.plain("filled", head, rows, right=["entries"]))
    output.lines(cache_fill.closing(filled, cache))


@task(tables=True)
def verify(
    context: Context,
    cache: Path | None = flag("filled cache", None, unset="Triton's own", value="DIR"),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program on a filled cache, and tell why launches missed."""
    _, program = command_line()
    space = workspace.default()
    own = triton_cache.find(os.environ, space)
    folder = cache or next(root.path for root in own if root.current)
    interpreter = user_program.interpreter(env, python, space)
    prepared = cache_fill.prepare_verify(program, folder, interpreter, space)
    if dry_run:
        output.plan(prepared.plan)
        return
    verified = cache_fill.verify(prepared, space)
    if json:
        output.json(cache_fill.verified_json(verified))
    else:
        _print_verified(verified)
    output.notes(verified.notes)
    if verified.misses:
        raise Exit(code=1)
    if verified.code:
        raise Exit(code=verified.code)


def _print_verified(verified: Verified) -> None:
    if verified.misses:
        head = ["missed", "where", "what differs"]
        rows = [[miss.name, miss.file, "\n".join(miss.differences)] for miss in verified.misses]
        console.out().print(tables.plain("missed", head, rows))
    console.out().print(cache_fill.verdict(verified), markup=False)


@task(tables=True, name="clear-cache")
def clear_cache(
    context: Context,
    which: EntryOptions,
    dump: bool = flag("also the dumps of TRITON_KERNEL_DUMP", default=False),
    inductor: bool = flag("also the kernels in TorchInductor's cache", default=False),
    envs: bool = flag("also the caches of the tool's environments", default=False),
    all: bool = flag("all of these, and Triton's other default caches", default=False),  # noqa: A002 - the flag's name
    rehearsed: bool = flag("only what compare keeps: kernels of each Triton", default=False),
    bisected: bool = flag("only what bisect keeps: answers, libraries, builds", default=False),
    override: bool = flag("also the overrides, which are written by hand; --all keeps them", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Clear Triton's cache or a part of it; safe while kernels compile."""
    filters, root = _filters(which), which.root
    if rehearsed or bisected:
        name = "rehearse" if rehearsed else "bisect"
        others = (filters.any, root, dump, inductor, envs, all, override, rehearsed and bisected)
        # What these commands keep is removed as a whole: no filter of cache entries fits it.
        if any(others):
            raise UsageError(
                f"--{name.removesuffix('e')}ed clears everything that {name} keeps",
                hints=["omit the other flags"],
            )
        (_clear_rehearsed if rehearsed else _clear_bisected)(yes=yes, dry_run=dry_run)
        return
    flags: dict[RootKind, bool] = {
        "jit": all,
        "dump": dump or all,
        "inductor": inductor or all,
        "env": envs or all,
        # No compile brings these back, so `all` does not include them.
        "override": override,
    }
    kinds = [kind for kind, is_given in flags.items() if is_given]
    if root and kinds:
        raise UsageError("--root selects a single cache", hints=["omit --root, or the other flags"])
    # All of them, as the notes name the caches that were not inspected.
    every = triton_cache.find(os.environ, workspace.default())
    roots = (cache_clear.named(root),) if root else cache_clear.select(every, kinds)
    # Triton takes no lock, so the programs that have it loaded decide which entries may still be needed.
    living = installed_tritons.living_processes()
    prepared = cache_clear.prepare(roots, filters, living=living, installed=_installed(filters))
    if dry_run:
        output.plan(prepared.plan)
    else:
        _print_doomed(prepared)
    _print_notes(prepared, [] if root else [other for other in every if other not in roots])
    if dry_run or not prepared.plan.steps:
        return
    if not output.agreed(f"Clear {cache_list.total_text(prepared.doomed)}?", yes=yes):
        # An error, so that a script does not take an unanswered question for an empty cache.
        raise SmithError("nothing was cleared")
    cache_clear.execute(prepared)
    # Programs may go on while their cache is cleared, and compile again what they need.
    console.out().print(f"cleared {cache_list.total_text(prepared.doomed)}", markup=False)
    if there := cache_clear.still_there(prepared):
        console.note(
            f"still there, or back again: {cache_list.total_text(there)}; a program is compiling them now"
        )


@task()
def export(
    context: Context,
    dest: str = word("file (.db), folder, or bucket (s3://BUCKET/PATH/)"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Pack the kept results of releases and commits into one file."""
    space = workspace.default()
    plan = kept.export(dest, space)
    if dry_run:
        output.plan(plan)
        return
    space.run(plan, "farm-export")
    rows = kept.portable(space)
    kernels = sum(row.kernels for row in rows)
    console.out().print(
        f"{counted(kernels, 'kernel')} of {counted(len(rows), 'Triton')} packed", markup=False
    )


@task(name="import")
def import_(
    context: Context,
    source: str = word("packed results: path, http(s):// or s3:// (.db)"),
    sha256: str = SHA256,
    dry_run: bool = DRY_RUN,
) -> None:
    """Take over results that another machine packed."""
    from tritonsmith.build.store import transfer

    space = workspace.default()
    hint = "`invoke farm --export DEST` creates one, on the machine that has the results"
    archive = transfer.locate(source, space, sha256, hint)
    if dry_run:
        output.plan(archive.plan)
        console.note("results that are not here are then copied into the workspace")
        return
    space.claim()
    space.run(archive.plan, "farm-import")
    new, total = kept_files.database().merge(archive.archive)
    console.out().print(f"{new:,} of {total:,} results are new here", markup=False)


def _clear_rehearsed(*, yes: bool, dry_run: bool) -> None:
    space = workspace.default()
    rows = kept.results(space)
    size = sum(row.bytes for row in rows)
    # No lock: an experiment that runs compiles again what it misses.
    held = nullcontext()
    _clear_kept(kept.removal(space), size, held, lambda: _print_rehearsed(rows), yes=yes, dry_run=dry_run)


def _clear_bisected(*, yes: bool, dry_run: bool) -> None:
    space = workspace.default()
    rows = bisects.kept(space)
    held = bisects.all_held(rows, space, "clear-cache")
    size = sum(row.bytes for row in rows)
    _clear_kept(
        bisects.removal(rows, space), size, held, lambda: _print_bisected(rows), yes=yes, dry_run=dry_run
    )


def _clear_kept(
    plan: Plan,
    size: int,
    held: AbstractContextManager[None],
    show: Callable[[], None],
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Show the results that a command keeps, and remove them under their lock."""
    if dry_run:
        output.plan(plan)
        return
    if not plan.steps:
        console.out().print("nothing to clear", markup=False)
        return
    show()
    if not output.agreed(f"Clear {byte_size(size)}?", yes=yes):
        raise SmithError("nothing was cleared")
    # The lock is taken after the answer: a question must not keep a rehearsal waiting.
    with held:
        workspace.default().run(plan, "clear-cache")
    console.out().print(f"cleared {byte_size(size)}", markup=False)


def _print_bisected(rows: Iterable[KeptFolder]) -> None:
    cells = [[row.kind, byte_size(row.bytes), str(row.folder)] for row in rows]
    console.out().print(tables.plain("kept by bisect", ["what", "size", "folder"], cells, right=["size"]))


def _print_rehearsed(rows: Iterable[KeptResults]) -> None:
    cells = [[row.folder.name, str(row.kernels), byte_size(row.bytes), str(row.folder)] for row in rows]
    head = ["Triton", "kernels", "size", "folder"]
    console.out().print(tables.plain("kept by compare", head, cells, right=["kernels", "size"]))


def _filters(which: EntryOptions) -> Filters:
    return cache_clear.parse_filters(
        kernel=which.kernel,
        target_name=which.target,
        oldest=which.older_than,
        stale=which.stale,
        keep_newest=which.keep_newest,
    )


def _installed(filters: Filters) -> tuple[InstalledTriton, ...]:
    """Return the installed Tritons if a filter needs them, and print their versions."""
    installed = cache_clear.installed_for(filters)
    if filters.stale:
        versions = sorted({triton.version for triton in installed})
        console.note(f"installed: {', '.join(versions)}" if versions else "no Triton is installed")
    return installed


def _print_listing(listing: CacheListing, *, filtered: bool) -> None:
    rows = [cache_list.cells(row, listing.now) for row in listing.rows]
    if rows:
        console.out().print(tables.plain("newest first", [*cache_list.COLUMNS], rows, right=["size", "age"]))
    if listing.chosen > len(rows):
        console.out().print(f"... and {listing.chosen - len(rows)} more (--limit 0 shows all)", markup=False)
    if filtered:
        what = f"{entry_count(listing.chosen)}, {byte_size(listing.bytes)}"
        console.out().print(f"chosen by the filters: {what}", markup=False)
    totals = [_total(content) for content in listing.contents]
    head = ["cache", "entries", "size", "folder", "from"]
    console.out().print(tables.plain("caches", head, totals, right=["entries", "size"]))
    for content in listing.contents:
        output.notes(cache_list.strangers_text(content))
    _print_undecided(listing.undecided)


def _total(content: Content) -> list[str]:
    root = content.root
    # With the target of a link, which is where the space is taken and where files would be removed.
    path = str(root.path) if root.path == root.real else f"{root.path} -> {root.real}"
    return [root.label, str(content.total), byte_size(content.bytes), path, root.source]


def _print_doomed(prepared: PreparedClear) -> None:
    if not prepared.doomed:
        console.out().print("nothing to clear", markup=False)
        return
    rows = cache_list.kernels_text(prepared.doomed, _GROUPS)
    head = ["cache", "kernel", "entries", "size"]
    console.out().print(tables.plain("to delete", head, rows, right=["entries", "size"]))
    for content in prepared.contents:
        if doomed := [entry for entry in prepared.doomed if entry.root is content.root]:
            text = f"{cache_list.total_text(doomed)} of {content.total} in {content.root.real}"
            console.out().print(f"{text} ({content.root.source})", markup=False)


def _print_notes(prepared: PreparedClear, others: Iterable[Root]) -> None:
    output.notes(cache_list.kept_text(prepared.in_use))
    for content in prepared.contents:
        output.notes(cache_list.strangers_text(content))
    _print_undecided(prepared.undecided)
    if names := [f"{root.label} ({root.path})" for root in others]:
        console.note(f"not inspected: {', '.join(names)}; invoke cache.list shows them")


def _print_undecided(number: int) -> None:
    if number:
        text = "compiled before 3.3 or without metadata, so the version is unknown"
        console.note(f"undecided, and not counted as stale: {entry_count(number)} ({text})")
