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
_BLOCK = 512  # bytes: what st_blocks counts, whatever the file system's own blocks are


@dataclass(frozen=True)
class StoreRow:
    """An entry with its size, ages and users.

    Attributes:
        entry: the entry.
        bytes: size on disk; None for an adopted tree, which is not the store's.
        made: seconds since 1970; when it was published, or last changed if it is unfinished.
        used: when it was last requested, published or changed.
        uses: who uses it.
    """

    entry: StoreEntry
    bytes: int | None
    made: float
    used: float
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class StoreListing:
    """The listing of a store, by name, as it is `now`, in seconds since 1970."""

    store: Store
    rows: tuple[StoreRow, ...]
    usage: Usage
    now: float

    @property
    def bytes(self) -> int:
        """Disk space of the store's own entries."""
        return sum(row.bytes or 0 for row in self.rows)


def make(store: Store, space: Workspace, now: float) -> StoreListing:
    """List a store as it is `now`, in seconds since 1970. Read-only, needs no lock."""
    usage = leases.look(store, space, now)
    rows = tuple(_row(store, entry, usage) for entry in store.entries())
    return StoreListing(store, rows, usage, now)


def _row(store: Store, entry: StoreEntry, usage: Usage) -> StoreRow:
    manifest, used = entry.manifest, store.last_used(entry)
    adopted = manifest is not None and manifest.kind == "adopted"
    made = _seconds(manifest.made) if manifest else used
    return StoreRow(entry, None if adopted else on_disk(entry.path), made, used, usage.of(entry.name))


def _seconds(made: str) -> float:
    try:
        return datetime.fromisoformat(made).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def on_disk(folder: Path) -> int:
    """Bytes of a folder; a file with several names counts once, unreadable ones are skipped."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for about in _everything(folder):
        if about.st_nlink > 1 and not stat.S_ISDIR(about.st_mode):
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
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
    """The listing for other programs."""
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
