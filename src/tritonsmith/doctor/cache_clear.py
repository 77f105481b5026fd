"""Clear caches: choose caches and entries, and keep what is in use."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import psutil

from tritonsmith.core import configs, process
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps.cache_entries import RemoveEntries, check_root
from tritonsmith.core.text import version_key
from tritonsmith.core.untrusted import SeenEntry
from tritonsmith.facts import installed_tritons, python_env, triton_cache
from tritonsmith.facts.installed_tritons import InstalledTriton, TritonProcess
from tritonsmith.facts.triton_cache import CacheEntry, Content, Era, Root, RootKind

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Filters:
    """The filters that an entry must pass; empty means all entries.

    Attributes:
        kernel: a glob that the kernel's name must match.
        target: the backend, architecture, and threads per warp if they matter: `("cuda", "90")`.
        older_than: the minimum of seconds since the last change.
        stale: a Triton that is no longer installed made the entry.
        keep_newest: the number of the newest entries to keep, for each kernel in each cache.
    """

    kernel: str = ""
    target: tuple[str, ...] = ()
    older_than: float | None = None
    stale: bool = False
    keep_newest: int | None = None

    @property
    def any(self) -> bool:
        """Report whether any filter is set."""
        return self != Filters()


def parse_filters(
    *,
    kernel: str = "",
    target_name: str = "",
    oldest: str = "",
    stale: bool = False,
    keep_newest: int | None = None,
) -> Filters:
    """Return the filters that flags give: a target or GPU by its name, and an age as a text.

    Raises:
        UsageError: there is no such target, or the text is not an age.
    """
    return Filters(kernel, parse_target(target_name), parse_age(oldest), stale=stale, keep_newest=keep_newest)


def installed_for(filters: Filters) -> tuple[InstalledTriton, ...]:
    """Return the Tritons of this machine, if a filter asks which entries they wrote."""
    if not filters.stale:
        return ()
    # `python3` is asked for its packages, and not searched: it may be a script of pyenv's.
    python = process.which("python3")
    packages = python_env.read(Path(python)) if python else None
    return installed_tritons.find(os.environ, workspace.default(), packages)


@dataclass(frozen=True)
class Chosen:
    """The entries that the filters select.

    Attributes:
        entries: in the order of the caches.
        undecided: entries that were left out because it is unknown which Triton made them.
    """

    entries: tuple[CacheEntry, ...]
    undecided: int = 0


def parse_age(text: str) -> float | None:
    """Parse seconds from `90s`, `30m`, `12h`, `7d` or `2w`; None for an empty text.

    Raises:
        UsageError: the text is not an age.
    """
    if not text:
        return None
    match = re.fullmatch(r"(\d+)([smhdw])", text)
    if not match:
        hints = ["a whole number and a unit: 90s, 30m, 12h, 7d, 2w"]
        raise UsageError(f"{text!r} is not an age", hints=hints)
    return int(match[1]) * _SECONDS[match[2]]


def parse_target(text: str) -> tuple[str, ...]:
    """Parse backend, architecture and optional threads per warp from `cuda:90` or a GPU's name (`h100`).

    Raises:
        UsageError: the text is neither.
    """
    names = configs.load("gpu-targets")["targets"]
    parts = tuple(names.get(text.lower(), text).split(":")) if text else ()
    if text and (len(parts) not in (2, 3) or not all(parts)):
        hints = ["write cuda:90 or hip:gfx942", *did_you_mean(text, names)]
        raise UsageError(f"{text!r} is not a target", hints=hints)
    # sm_90 is what ptxas and people write; metadata have the number alone.
    return tuple(re.sub(r"^sm_?(?=\d)", "", part) for part in parts)


def choose(
    entries: Iterable[CacheEntry], filters: Filters, installed: tuple[InstalledTriton, ...], now: float
) -> Chosen:
    """Select the entries that pass all filters at a time (seconds since 1970).

    Raises:
        FactError: `stale` is set, but no installed Triton was found: all entries would be stale.
    """
    left = list(entries)
    # First of all: the newest entries of a kernel, not the newest of those that other filters leave.
    if filters.keep_newest is not None:
        kept = _newest(left, filters.keep_newest)
        left = [entry for entry in left if id(entry) not in kept]
    if filters.kernel:
        left = [entry for entry in left if fnmatchcase(entry.kernel, filters.kernel)]
    if filters.older_than is not None:
        before = (now - filters.older_than) * _NANOSECONDS
        left = [entry for entry in left if entry.changed < before]
    if filters.target:
        left = [entry for entry in left if _fits(entry, filters.target)]
    # Metadata are read last, for what the cheap filters left: each is a file.
    return _stale(left, installed) if filters.stale else Chosen(tuple(left))


def _newest(entries: Iterable[CacheEntry], count: int) -> set[int]:
    """Return identities of the newest finished entries of each kernel in each cache."""
    groups: dict[tuple[object, ...], list[CacheEntry]] = {}
    for entry in entries:
        if entry.kind != "unfinished":
            groups.setdefault((entry.root.path, entry.kind, entry.kernel), []).append(entry)
    newest_first = [sorted(group, key=lambda entry: -entry.changed) for group in groups.values()]
    return {id(entry) for group in newest_first for entry in group[:count]}


def _fits(entry: CacheEntry, target: tuple[str, ...]) -> bool:
    parts = triton_cache.read_metadata(entry).target.split(":")
    return tuple(parts[: len(target)]) == target


def _stale(entries: Iterable[CacheEntry], installed: tuple[InstalledTriton, ...]) -> Chosen:
    # All entries would be stale, and the cache would be emptied.
    if not installed:
        raise FactError(
            "cannot determine which entries are stale: no Triton to compare with",
            why="none in the tool's environments, in the active one, or for Python on PATH",
            hints=["activate an environment with Triton", "or select by age: --older-than 30d"],
        )
    verdicts = [(entry, staleness(entry, installed)) for entry in entries]
    stale = tuple(entry for entry, verdict in verdicts if verdict == "stale")
    return Chosen(stale, sum(verdict == "unknown" for _, verdict in verdicts))


Staleness = Literal["stale", "current", "unknown"]


def staleness(entry: CacheEntry, installed: tuple[InstalledTriton, ...]) -> Staleness:
    """Judge by the version in the metadata, or, if there is none, by the form of the name."""
    # Another build of the same version looks the same: entries that a rebuild orphaned are `current`.
    if version := triton_cache.read_metadata(entry).version:
        return "current" if any(_same_release(version, triton.version) for triton in installed) else "stale"
    era = triton_cache.era_of(entry)
    if era is None:
        return "unknown"
    return "unknown" if any(_may_spell(triton, era) for triton in installed) else "stale"


def _may_spell(triton: InstalledTriton, era: Era) -> bool:
    """Report whether a Triton may use an era's names; a checkout may use those of the next release."""
    # main has the last release's number for months, and may spell names as the next one does.
    ahead = triton.checkout and version_key(triton.version) < version_key(era.since)
    return ahead or era.holds(triton.version)


def _same_release(version: str, other: str) -> bool:
    return version.partition("+")[0] == other.partition("+")[0]  # a local build has +git1234


Living = tuple[TritonProcess, ...] | None
_SHOWN = 60  # characters of a command line


def reason_to_keep(entry: CacheEntry, living: Living, now: float) -> str:
    """Return why an entry must be kept at a time (seconds since 1970); empty if it may be deleted."""
    # Triton takes no lock, so processes and times decide what a compile may still need.
    limits = configs.load("triton-cache")["in-use"]
    # Negative after the clock was set back: then the entry counts as new.
    age = now - entry.changed / _NANOSECONDS
    for _, pid in entry.temporary:
        if _lives(pid, entry.changed):
            return f"process {pid} is writing to it"
    if entry.temporary or entry.kind == "unfinished":
        return f"unfinished, and changed {max(age, 0):.0f} s ago" if age < limits["unfinished"] else ""
    if living is None:
        return f"made {max(age, 0):.0f} s ago" if age < limits["finished"] else ""
    users = _users(entry, living)
    if users and age < limits["finished"]:
        return f"made {max(age, 0):.0f} s ago, and {_named(users[0])} has Triton loaded"
    # Some Tritons make an entry's folder when the process first needs it, and fail if it
    # is gone at the next write.
    if users and entry.era in limits["folder-made-once"]:
        return f"{_named(users[0])} has a Triton loaded that fails if an entry's folder is deleted"
    return ""


def _users(entry: CacheEntry, living: tuple[TritonProcess, ...]) -> list[TritonProcess]:
    """Return processes whose Triton uses names of this form."""
    era = triton_cache.era_of(entry)
    return [process for process in living if era is None or not process.version or era.holds(process.version)]


def grace_time(living: Living) -> float:
    """Return the seconds that readers get between removing an index and the rest."""
    # An empty tuple means that nobody has Triton loaded; None, that the processes could not be listed.
    return 0.0 if living == () else float(configs.load("triton-cache")["in-use"]["grace"])


def _named(process: TritonProcess) -> str:
    return f"process {process.pid} ({process.command[:_SHOWN]})"


def is_abandoned(pid: int, changed: int, now: float) -> bool:
    """Report whether an unfinished write is abandoned.

    Args:
        pid: process id of the writer, on this machine or on another one that shares the cache.
        changed: time of the last write, in nanoseconds since 1970.
        now: seconds since 1970.
    """
    limit = configs.load("triton-cache")["in-use"]["unfinished"]
    return now - changed / _NANOSECONDS >= limit and not _lives(pid, changed)


def _lives(pid: int, changed: int) -> bool:
    """Report whether an unfinished file's writer is alive, and not another process with the same number."""
    try:
        # A process that started after the file was written only has the writer's number.
        # One second for clock ticks.
        return psutil.Process(pid).create_time() <= changed / _NANOSECONDS + 1
    except psutil.Error:
        return False


PHASE = "clear the cache"


@dataclass(frozen=True)
class PreparedClear:
    """A prepared clearing.

    Attributes:
        plan: the plan, with one step per cache.
        doomed: the entries to delete.
        in_use: the entries that are kept because they are in use, with the reason.
        contents: the contents of the caches.
        undecided: the number of entries that `--stale` cannot judge, which are kept.
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
    # Links are not followed here: the path is shown as the user wrote it, and `Root.real` is what is cleared.
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError("no such folder", where=folder, hints=["invoke cache.list shows the caches"])
    return Root("named", folder, "--root")


def prepare(
    roots: Iterable[Root],
    filters: Filters,
    *,
    living: Living,
    installed: tuple[InstalledTriton, ...] = (),
    now: float | None = None,
) -> PreparedClear:
    """Read caches and make the plan.

    Args:
        roots: caches to clear.
        filters: the filters for their entries.
        living: processes that have Triton loaded; None if unknown.
        installed: the Tritons that are installed.
        now: seconds since 1970; the clock's by default.

    Raises:
        OwnershipError: a cache must not be cleared, such as the home folder.
        FactError: the filters cannot be evaluated.
    """
    roots = tuple(roots)
    # All roots are checked before any is read: a typo must not cost the time of a scan.
    for root in roots:
        check_root(root.real)
    now = time.time() if now is None else now
    contents = tuple(triton_cache.scan(root) for root in roots)
    entries = (entry for content in contents for entry in content.entries)
    chosen = choose(entries, filters, installed, now)
    reasons = [(entry, reason_to_keep(entry, living, now)) for entry in chosen.entries]
    doomed = tuple(entry for entry, why in reasons if not why)
    steps = tuple(step for content in contents if (step := _step(content, doomed, grace_time(living))))
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


def still_there(prepared: PreparedClear) -> tuple[CacheEntry, ...]:
    """Return entries of the plan that still exist after it ran, because they changed meanwhile."""
    return tuple(entry for entry in prepared.doomed if os.path.lexists(entry.path))
