"""`store.gc`: choose entries to delete, least recently used first, and entries to keep, with reasons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tritonsmith.build.store.list_ import StoreListing, StoreRow, on_disk
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.core.plan.steps.store_entry import Discard, RemoveLeftovers

SCHEMA = 1
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


def as_json(prepared: PreparedGc) -> dict[str, Any]:
    """Return the plan as JSON data."""
    return {
        "schema": SCHEMA,
        "before": prepared.before,
        "freed": prepared.freed,
        "leftovers": prepared.leftovers,
        "going": [_row(row, "") for row in prepared.going],
        "staying": [_row(row, reason) for row, reason in prepared.staying],
    }


def _row(row: StoreRow, reason: str) -> dict[str, Any]:
    return {
        "name": row.entry.name,
        "status": row.entry.status,
        "bytes": row.bytes,
        "used": row.used,
        "users": [asdict(use.user) for use in row.uses],
        "reason": reason,
    }
