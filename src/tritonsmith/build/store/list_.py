"""The contents of a store: entries, sizes, and users."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store import leases
from tritonsmith.build.store.entry import StoreEntry
from tritonsmith.build.store.leases import Usage, Use
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace

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
    usage = leases.look(store, space, now)
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
