"""Clear caches: choose caches and entries, and keep what is in use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.cache_entries import SeenEntry
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps.cache_entries import RemoveEntries, check_root
from tritonsmith.doctor.caches import filters
from tritonsmith.doctor.caches.filters import Filters, Living
from tritonsmith.facts import triton_cache
from tritonsmith.facts.cache_roots import Root, RootKind
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry, Content

PHASE = "clear the cache"


@dataclass(frozen=True)
class PreparedClear:
    """A prepared clearing.

    Attributes:
        plan: one step per cache.
        doomed: entries to delete.
        in_use: entries that are kept because they are in use, with the reason.
        contents: the contents of the caches.
        undecided: entries that `--stale` cannot judge, which are kept.
    """

    plan: Plan
    doomed: tuple[CacheEntry, ...]
    in_use: tuple[tuple[CacheEntry, str], ...]
    contents: tuple[Content, ...]
    undecided: int


def select(roots: Iterable[Root], kinds: Iterable[RootKind]) -> tuple[Root, ...]:
    """Select Triton's own current cache, and those of more kinds; `jit` stands for its other defaults."""
    requested = set(kinds)
    return tuple(root for root in roots if root.current or root.kind in requested)


def named(path: str) -> Root:
    """Return the cache at a given path.

    Raises:
        UsageError: there is no such folder.
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError("no such folder", where=folder, hints=["invoke cache.list shows the caches"])
    return Root("named", folder, "--root")


def prepare(
    roots: Iterable[Root],
    wanted: Filters,
    *,
    living: Living,
    installed: tuple[InstalledTriton, ...] = (),
    now: float | None = None,
) -> PreparedClear:
    """Read caches and make the plan.

    Args:
        roots: caches to clear.
        wanted: filters for their entries.
        living: processes that have Triton loaded; None if unknown.
        installed: the Tritons that are installed.
        now: seconds since 1970; the clock's by default.

    Raises:
        OwnershipError: a cache must not be cleared, such as the home folder.
        FactError: the filters cannot be evaluated.
    """
    roots = tuple(roots)
    for root in roots:
        check_root(root.real)
    now = time.time() if now is None else now
    contents = tuple(triton_cache.scan(root) for root in roots)
    chosen = filters.choose((e for content in contents for e in content.entries), wanted, installed, now)
    reasons = [(entry, filters.reason_to_keep(entry, living, now)) for entry in chosen.entries]
    doomed = tuple(entry for entry, why in reasons if not why)
    steps = tuple(
        step for content in contents if (step := _step(content, doomed, filters.grace_time(living)))
    )
    plan = Plan(
        "clear Triton's cache",
        steps,
        ("the command keeps an entry that has changed meanwhile, but this script cannot check that",),
    )
    busy = tuple((entry, why) for entry, why in reasons if why)
    return PreparedClear(plan, doomed, busy, contents, chosen.undecided)


def _step(content: Content, doomed: tuple[CacheEntry, ...], grace: float) -> RemoveEntries | None:
    """Return the step for a cache; None if there is nothing to delete and no leftover of a stopped run."""
    # With the time of the last change: the step keeps an entry that somebody has changed since.
    names = tuple(SeenEntry(entry.name, entry.changed) for entry in doomed if entry.root is content.root)
    if not names and not content.trash:
        return None
    return RemoveEntries(content.root.real, names, triton_cache.index(), grace, phase=PHASE)


def execute(prepared: PreparedClear) -> None:
    """Run the plan.

    Raises:
        SmithError: a cache must not be cleared, is being cleared by another run, or is not writable.
    """
    space = workspace.default()
    space.claim()
    space.run(prepared.plan, "clear-cache")


def stayed(prepared: PreparedClear) -> tuple[CacheEntry, ...]:
    """Return entries of the plan that still exist after it ran, because they changed meanwhile."""
    return tuple(entry for entry in prepared.doomed if os.path.lexists(entry.path))
