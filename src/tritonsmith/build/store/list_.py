"""The contents of a store: entries, sizes, and users.

`store.gc`: choose entries to delete, least recently used first, and entries to keep, with reasons.

`store --verify`: check that a tree matches its manifest and is undamaged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.entry import StoreEntry, StoreManifest, native
from tritonsmith.build.store.store import Store, Usage, Use, look
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, archive, download
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.core.plan.steps.pack import CHECKSUMS
from tritonsmith.core.plan.steps.store_entry import Discard, RemoveLeftovers
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree

SCHEMA = 1
_BLOCK = 512  # bytes: the unit of st_blocks on every file system


@dataclass(frozen=True)
class StoreRow:
    """An entry with its size, ages and users.

    Attributes:
        entry: the entry.
        bytes: size on disk; None for an adopted tree, which is not the store's.
        made: publication, or last change if it is unfinished; in seconds since 1970.
        used: last request, publication or change; in seconds since 1970.
        uses: its users.
    """

    entry: StoreEntry
    bytes: int | None
    made: float
    used: float
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class StoreListing:
    """The listing of a store, sorted by name, as it is `now`, in seconds since 1970."""

    store: Store
    rows: tuple[StoreRow, ...]
    usage: Usage
    now: float

    @property
    def bytes(self) -> int:
        """The disk space of the store's own entries, in bytes."""
        return sum(row.bytes or 0 for row in self.rows)


def make(store: Store, space: Workspace, now: float) -> StoreListing:
    """List a store as it is `now`, in seconds since 1970. Read-only, needs no lock."""
    usage = look(store, space, now)
    rows = tuple(_row(store, entry, usage) for entry in store.entries())
    return StoreListing(store, rows, usage, now)


def _row(store: Store, entry: StoreEntry, usage: Usage) -> StoreRow:
    manifest, used = entry.manifest, store.last_used(entry)
    adopted = manifest is not None and manifest.kind == "adopted"
    created = _seconds(manifest.made) if manifest else used
    return StoreRow(entry, None if adopted else on_disk(entry.path), created, used, usage.of(entry.name))


def _seconds(created: str) -> float:
    try:
        return datetime.fromisoformat(created).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def on_disk(folder: Path) -> int:
    """Return the size of a folder in bytes; hard links count once, unreadable files are skipped."""
    counted: set[tuple[int, int]] = set()
    total = 0
    for about in _everything(folder):
        if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
            if (about.st_dev, about.st_ino) in counted:
                continue
            counted.add((about.st_dev, about.st_ino))
        total += about.st_blocks * _BLOCK
    return total


def _everything(folder: Path) -> Iterator[os.stat_result]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    yield from _everything(Path(entry.path))
    except OSError:
        return


def as_json(found: StoreListing) -> dict[str, Any]:
    """Return the listing as JSON data."""
    return {
        "schema": SCHEMA,
        "store": str(found.store.root),
        "writable": found.store.writable,
        "bytes": found.bytes,
        "entries": [_row_as_json(row) for row in found.rows],
    }


def _row_as_json(row: StoreRow) -> dict[str, Any]:
    entry = row.entry
    return {
        "name": entry.name,
        "path": str(entry.path),
        "status": entry.status,
        "problem": entry.problem,
        "bytes": row.bytes,
        "made": row.made,
        "used": row.used,
        "users": [{**asdict(use.user), "why": use.why} for use in row.uses],
        "manifest": asdict(entry.manifest) if entry.manifest else None,
    }


GC_SCHEMA = 1
PHASE = "delete"


@dataclass(frozen=True)
class GcLimits:
    """Limits for deleting.

    Attributes:
        max_bytes: delete until the store's entries have at most this size; None for as much as possible.
        older_than: minimum seconds since the last use; None for any.
        names: only these entries; all if empty.
    """

    max_bytes: int | None = None
    older_than: float | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedGc:
    """A prepared deletion: entries to delete, in this order, and entries to keep, with the reason.

    `leftovers` are bytes left by interrupted runs, also deleted; `before` are bytes of the store's entries.
    """

    plan: Plan
    going: tuple[StoreRow, ...]
    staying: tuple[tuple[StoreRow, str], ...]
    leftovers: int
    before: int

    @property
    def freed(self) -> int:
        """The number of bytes to be freed."""
        return sum(row.bytes or 0 for row in self.going) + self.leftovers


def prepare(found: StoreListing, limits: GcLimits) -> PreparedGc:
    """Choose the entries, and make the plan.

    Raises:
        UsageError: an entry that `limits` names does not exist.
    """
    names = {row.entry.name for row in found.rows}
    for name in limits.names:
        if name not in names:
            raise UsageError(f"the store has no entry {name!r}", hints=did_you_mean(name, names))
    going: list[StoreRow] = []
    staying: list[tuple[StoreRow, str]] = []
    left = found.bytes
    # The least recently used goes first.
    for row in sorted(found.rows, key=lambda row: row.used):
        if reason := _reason(row, found, limits, left):
            staying.append((row, reason))
        else:
            going.append(row)
            left -= row.bytes or 0
    store, stale = found.store, found.usage.stale
    remains = store_entry.leftovers(store.root)
    steps = [RemoveLeftovers(store.root, store.owner, stale, phase=PHASE)] if remains else []
    plan = Plan(
        f"delete unused entries of {store.root}",
        (*(Discard(store.root, row.entry.name, store.owner, stale, phase=PHASE) for row in going), *steps),
        ("the command keeps an entry that comes into use meanwhile, but this script cannot check that",),
    )
    return PreparedGc(plan, tuple(going), tuple(staying), sum(on_disk(path) for path in remains), found.bytes)


def _reason(row: StoreRow, listing: StoreListing, limits: GcLimits, left: int) -> str:
    """Return why an entry is kept when the store has `left` bytes; empty if it is deleted."""
    name, unused = row.entry.name, listing.now - row.used
    fresh = 3600 * float(configs.load("store")["gc"]["fresh-hours"])
    # An unfinished build may have been interrupted a minute ago and be about to go on.
    half = row.entry.status == "unfinished" and not limits.names and limits.older_than is None
    reasons = (
        (limits.names and name not in limits.names, "not selected"),
        (row.bytes is None, "adopted: never deleted"),
        (row.uses, f"used by {', '.join(dict.fromkeys(use.in_words for use in row.uses))}"),
        (limits.older_than is not None and unused < limits.older_than, "used recently"),
        (half and unused < fresh, "changed recently (--name deletes it anyway)"),
        (limits.max_bytes is not None and left <= limits.max_bytes, "within --max-size"),
    )
    return next((text for holds, text in reasons if holds), "")


def stayed(prepared: PreparedGc, found: StoreListing) -> tuple[StoreRow, ...]:
    """Return entries of the plan that still exist: locked, or in use since then."""
    there = {entry.name for entry in found.store.entries()}
    return tuple(row for row in prepared.going if row.entry.name in there)


def gc_as_json(prepared: PreparedGc) -> dict[str, Any]:
    """Return the plan as JSON data."""
    return {
        "schema": GC_SCHEMA,
        "before": prepared.before,
        "freed": prepared.freed,
        "leftovers": prepared.leftovers,
        "going": [_gc_row(row, "") for row in prepared.going],
        "staying": [_gc_row(row, reason) for row, reason in prepared.staying],
    }


def _gc_row(row: StoreRow, reason: str) -> dict[str, Any]:
    return {
        "name": row.entry.name,
        "status": row.entry.status,
        "bytes": row.bytes,
        "used": row.used,
        "users": [asdict(use.user) for use in row.uses],
        "reason": reason,
    }


def problems(entry: StoreEntry, *, quick: bool = False) -> tuple[str, ...]:
    """Return the problems of an entry, in words; empty if there are none.

    `quick` skips checksums, which read every file of an imported tree.
    """
    if entry.manifest is None or entry.status != "ready":
        return (entry.problem or entry.status,)
    try:
        tree = llvm_tree.read(entry.path)
    except (FactError, OSError) as error:
        return (f"cannot read its CMake packages: {error}",)
    return (
        *_says_otherwise(entry.manifest, tree),
        *_archives(entry.path),
        *(() if quick else _checksums(entry.path)),
    )


def _says_otherwise(have: StoreManifest, tree: LlvmTree) -> Iterator[str]:
    """Yield differences between a tree and its manifest: the tree was reconfigured or replaced."""
    arch = have.abi.arch
    pairs = (
        ("version", have.version, tree.version),
        ("build type", have.build_type, tree.build_type),
        ("assertions", have.assertions, tree.assertions),
        ("RTTI", have.rtti, tree.rtti),
        ("code generators", sorted(native(have.targets, arch)), sorted(native(tree.targets, arch))),
        ("CMake packages", sorted(have.packages), sorted(tree.packages)),
    )
    for what, written, actual in pairs:
        if written != actual:
            yield f"{what}: the manifest says {_words(written)}, the tree {_words(actual)}"
    if gone := sorted(set(have.tools) - tree.tools):
        yield f"programs in the manifest, but missing: {', '.join(gone)}"
    there = {path.name for path in describe_tree.libraries(tree.prefix)}
    yield from (f"lib/{name} is missing" for name in have.libraries if name not in there)
    if have.commit and tree.commit and not llvm_tree.same_commit(have.commit, tree.commit):
        yield f"commit: the manifest says {have.commit[:12]}, the tree {tree.commit[:12]}"


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def _archives(prefix: Path) -> Iterator[str]:
    """Yield archives that are damaged or name missing objects."""
    for path in describe_tree.libraries(prefix):
        if path.suffix != ".a" or not archive.ar_kind(path):
            if path.suffix == ".a":
                yield f"lib/{path.name} is not an archive"
            continue
        try:
            # A build was interrupted, or cleaned with `ninja -t clean`: thin archives
            # stay, their objects do not.
            if missing := archive.read_ar(path).missing():
                yield f"lib/{path.name} names an object that is missing or was changed: {missing}"
        except (ValueError, OSError) as error:
            yield f"lib/{path.name}: {error}"


def _checksums(prefix: Path) -> Iterator[str]:
    """Yield files of an imported tree that have changed."""
    file = prefix / CHECKSUMS
    if not file.is_file():
        return
    try:
        sums = dict(untrusted.read_json(file, untrusted.OURS)["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"cannot read {CHECKSUMS}: {error}"
        return
    for name, sha256 in sums.items():
        path = prefix / str(name)
        if not untrusted.fits(path):
            yield f"{CHECKSUMS} names {str(name)[:80]!r}, which is not a valid file name"
            continue
        # Reading a device or a pipe would never end.
        if untrusted.exists(path) and not untrusted.is_file(path):
            yield f"{name} is no longer a file"
            continue
        try:
            if download.sha256_of(path) != sha256:
                yield f"{name} was changed since it was imported"
        except OSError as error:
            yield f"{name}: {error.strerror}"
