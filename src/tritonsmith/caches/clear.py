"""Clearing: which caches, which of their entries, and what stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.caches import filters, in_use
from tritonsmith.caches.filters import Filters
from tritonsmith.caches.in_use import Living
from tritonsmith.envs import workspace
from tritonsmith.errors import UsageError
from tritonsmith.facts import triton_cache
from tritonsmith.facts.cache_roots import Root, RootKind
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry, Content
from tritonsmith.plan import Plan
from tritonsmith.plan.steps.cache_entries import RemoveEntries, SeenEntry, check_root

PHASE = "clear the cache"


@dataclass(frozen=True)
class PreparedClear:
    """What clearing would do.

    Attributes:
        plan: one step per cache.
        doomed: what goes.
        in_use: what would go and stays, with the reason.
        contents: what was looked at.
        undecided: entries that `--stale` cannot judge, which stay.
    """

    plan: Plan
    doomed: tuple[CacheEntry, ...]
    in_use: tuple[tuple[CacheEntry, str], ...]
    contents: tuple[Content, ...]
    undecided: int


def select(roots: Iterable[Root], kinds: Iterable[RootKind]) -> tuple[Root, ...]:
    """The caches that are meant: Triton's own that is in use here, and those of some kinds.

    Args:
        roots: all that there are.
        kinds: more than that one. `jit` are Triton's other defaults.
    """
    wanted = set(kinds)
    return tuple(root for root in roots if root.current or root.kind in wanted)


def named(path: str) -> Root:
    """A cache that somebody names.

    Raises:
        UsageError: there is no such folder.
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(
            "there is no such folder", where=folder, hints=["invoke cache.list shows the caches"]
        )
    return Root("named", folder, "--root")


def prepare(
    roots: Iterable[Root],
    wanted: Filters,
    *,
    living: Living,
    installed: tuple[InstalledTriton, ...] = (),
    now: float | None = None,
) -> PreparedClear:
    """Look at caches and make the plan.

    Args:
        roots: which.
        wanted: which of their entries.
        living: processes that have Triton loaded; None if that cannot be told.
        installed: the Tritons that are installed.
        now: seconds since 1970; the clock's by default.

    Raises:
        OwnershipError: one of them is no folder to clear, such as the home folder.
        FactError: the filters cannot be decided.
    """
    roots = tuple(roots)
    for root in roots:
        check_root(root.real)
    now = time.time() if now is None else now
    contents = tuple(triton_cache.scan(root) for root in roots)
    chosen = filters.choose((e for content in contents for e in content.entries), wanted, installed, now)
    reasons = [(entry, in_use.reason(entry, living, now)) for entry in chosen.entries]
    doomed = tuple(entry for entry, why in reasons if not why)
    steps = tuple(step for content in contents if (step := _step(content, doomed, in_use.grace(living))))
    plan = Plan(
        "clear Triton's cache",
        steps,
        ("an entry that has changed since it was looked at stays, but this script cannot tell",),
    )
    busy = tuple((entry, why) for entry, why in reasons if why)
    return PreparedClear(plan, doomed, busy, contents, chosen.undecided)


def _step(content: Content, doomed: tuple[CacheEntry, ...], grace: float) -> RemoveEntries | None:
    """None for a cache that nothing goes from, and where no run was stopped before."""
    names = tuple(SeenEntry(entry.name, entry.changed) for entry in doomed if entry.root is content.root)
    if not names and not content.trash:
        return None
    return RemoveEntries(content.root.real, names, triton_cache.index(), grace, phase=PHASE)


def execute(prepared: PreparedClear) -> None:
    """Run the plan.

    Raises:
        SmithError: a cache is no folder to clear, is being cleared by another run, or cannot be written to.
    """
    space = workspace.default()
    space.claim()
    space.run(prepared.plan, "clear-cache")


def stayed(prepared: PreparedClear) -> tuple[CacheEntry, ...]:
    """Entries of the plan that are still there after it ran: somebody changed them meanwhile."""
    return tuple(entry for entry in prepared.doomed if os.path.lexists(entry.path))
