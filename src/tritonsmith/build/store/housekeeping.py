"""List the entries of a store with their sizes and users, and choose those that `store --gc` deletes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store.entry import StoreEntry
from tritonsmith.build.store.store import Store, Usage, Use, find_uses
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.core.plan.steps.store_entry import Discard, RemoveLeftovers

LISTING_SCHEMA = 1
GC_SCHEMA = 1
PHASE = "delete"
_BLOCK = 512  # bytes: the unit of st_blocks on every file system


@dataclass(frozen=True)
class StoreRow:
    """An entry with its size, ages and users.

    Attributes:
        entry: the entry.
        bytes: size on disk; None for an adopted tree, which is not the store's.
        created: publication, or last change if it is unfinished; in seconds since 1970.
        used: last request, publication or change; in seconds since 1970.
        uses: its users.
    """

    entry: StoreEntry
    bytes: int | None
    created: float
    used: float
    uses: tuple[Use, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the row of a listing as JSON data."""
        entry = self.entry
        return {
            "name": entry.name,
            "path": str(entry.path),
            "status": entry.status,
            "problem": entry.problem,
            "bytes": self.bytes,
            "made": self.created,
            "used": self.used,
            "users": [{**asdict(use.user), "why": use.why} for use in self.uses],
            "manifest": asdict(entry.manifest) if entry.manifest else None,
        }


@dataclass(frozen=True)
class StoreListing:
    """The entries of a store, sorted by name, as they are `now`, in seconds since 1970."""

    store: Store
    rows: tuple[StoreRow, ...]
    usage: Usage
    now: float

    @property
    def bytes(self) -> int:
        """The disk space of the store's own entries, in bytes."""
        return sum(row.bytes or 0 for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the listing as JSON data."""
        return {
            "schema": LISTING_SCHEMA,
            "store": str(self.store.root),
            "writable": self.store.writable,
            "bytes": self.bytes,
            "entries": [row.as_json() for row in self.rows],
        }


def list_entries(store: Store, space: Workspace, now: float) -> StoreListing:
    """List a store as it is `now`, in seconds since 1970. Read-only, needs no lock."""
    usage = find_uses(store, space, now)
    rows = tuple(_row(store, entry, usage) for entry in store.entries())
    return StoreListing(store, rows, usage, now)


def _row(store: Store, entry: StoreEntry, usage: Usage) -> StoreRow:
    manifest, used = entry.manifest, store.last_used(entry)
    adopted = manifest is not None and manifest.kind == "adopted"
    created = _seconds(manifest.made) if manifest else used
    return StoreRow(entry, None if adopted else on_disk(entry.path), created, used, usage.of(entry.name))


def _seconds(created: str) -> float:
    # The manifest may come from another machine: a time that cannot be read must not hide the entry.
    try:
        return datetime.fromisoformat(created).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def on_disk(folder: Path) -> int:
    """Return the size of a folder in bytes; unreadable files are skipped."""
    counted: set[tuple[int, int]] = set()
    total = 0
    for about in _everything(folder):
        # Git hard-links the objects of a local clone, and uv the files of a venv: each counts once.
        if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
            if (about.st_dev, about.st_ino) in counted:
                continue
            counted.add((about.st_dev, about.st_ino))
        # Blocks and not st_size, because they are what a deletion frees.
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

    def as_json(self) -> dict[str, Any]:
        """Return the decision on each entry as JSON data."""
        return {
            "schema": GC_SCHEMA,
            "before": self.before,
            "freed": self.freed,
            "leftovers": self.leftovers,
            "going": [_decision(row, "") for row in self.going],
            "staying": [_decision(row, reason) for row, reason in self.staying],
        }


def _decision(row: StoreRow, reason: str) -> dict[str, Any]:
    return {
        "name": row.entry.name,
        "status": row.entry.status,
        "bytes": row.bytes,
        "used": row.used,
        "users": [asdict(use.user) for use in row.uses],
        "reason": reason,
    }


def prepare_gc(listing: StoreListing, limits: GcLimits) -> PreparedGc:
    """Choose the entries to delete, and make the plan.

    Raises:
        UsageError: an entry that `limits` names does not exist.
    """
    names = {row.entry.name for row in listing.rows}
    for name in limits.names:
        if name not in names:
            raise UsageError(f"the store has no entry {name!r}", hints=did_you_mean(name, names))
    going: list[StoreRow] = []
    staying: list[tuple[StoreRow, str]] = []
    left = listing.bytes
    # The least recently used goes first.
    for row in sorted(listing.rows, key=lambda row: row.used):
        if reason := _why_kept(row, listing, limits, left):
            staying.append((row, reason))
        else:
            going.append(row)
            left -= row.bytes or 0
    store, stale = listing.store, listing.usage.stale
    remains = store_entry.leftovers(store.root)
    steps = [RemoveLeftovers(store.root, store.owner, stale, phase=PHASE)] if remains else []
    plan = Plan(
        f"delete unused entries of {store.root}",
        # Each step gets the records that were judged stale, with their time stamps: a user who has registered
        # again since then wrote a newer record, and the step leaves the entry alone.
        (*(Discard(store.root, row.entry.name, store.owner, stale, phase=PHASE) for row in going), *steps),
        ("the command keeps an entry that comes into use meanwhile, but this script cannot check that",),
    )
    return PreparedGc(
        plan, tuple(going), tuple(staying), sum(on_disk(path) for path in remains), listing.bytes
    )


def _why_kept(row: StoreRow, listing: StoreListing, limits: GcLimits, left: int) -> str:
    """Return why an entry is kept when the store has `left` bytes; empty if it is deleted."""
    name, unused = row.entry.name, listing.now - row.used
    fresh = 3600 * float(configs.load("store")["gc"]["fresh-hours"])
    # An unfinished build may have been interrupted a minute ago and be about to go on.
    half = row.entry.status == "unfinished" and not limits.names and limits.older_than is None
    # Only the first reason that holds is shown, so those that no flag overrules come before the limits.
    reasons = (
        (limits.names and name not in limits.names, "not selected"),
        (row.bytes is None, "adopted: never deleted"),
        (row.uses, f"used by {', '.join(dict.fromkeys(use.in_words for use in row.uses))}"),
        (limits.older_than is not None and unused < limits.older_than, "used recently"),
        (half and unused < fresh, "changed recently (--name deletes it anyway)"),
        (limits.max_bytes is not None and left <= limits.max_bytes, "within --max-size"),
    )
    return next((text for holds, text in reasons if holds), "")


def still_there(prepared: PreparedGc, store: Store) -> tuple[StoreRow, ...]:
    """Return entries of the plan that exist after it ran: they were locked, or came into use meanwhile."""
    names = {entry.name for entry in store.entries()}
    return tuple(row for row in prepared.going if row.entry.name in names)
