"""Entries that a compile may still need. Triton takes no lock, so processes and times decide."""

from __future__ import annotations

import psutil

from tritonsmith.core import configs
from tritonsmith.facts import triton_cache
from tritonsmith.facts.triton_cache import CacheEntry
from tritonsmith.facts.triton_processes import TritonProcess

Living = tuple[TritonProcess, ...] | None
_NANOSECONDS = 1_000_000_000
_SHOWN = 60  # characters of a command line


def reason(entry: CacheEntry, living: Living, now: float) -> str:
    """Return why an entry must be kept at a time (seconds since 1970); empty if it may be deleted."""
    limits = configs.load("triton-cache")["in-use"]
    age = now - entry.changed / _NANOSECONDS  # negative after the clock was set back: counts as new
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
    if users and entry.era in limits["folder-made-once"]:
        return f"{_named(users[0])} has a Triton loaded that fails if an entry's folder is deleted"
    return ""


def _users(entry: CacheEntry, living: tuple[TritonProcess, ...]) -> list[TritonProcess]:
    """Return processes whose Triton uses names of this form."""
    era = triton_cache.era_of(entry)
    return [process for process in living if era is None or not process.version or era.holds(process.version)]


def grace(living: Living) -> float:
    """Return the seconds that readers get between removing an index and the rest."""
    return 0.0 if living == () else float(configs.load("triton-cache")["in-use"]["grace"])


def _named(process: TritonProcess) -> str:
    return f"process {process.pid} ({process.command[:_SHOWN]})"


def abandoned(pid: int, changed: int, now: float) -> bool:
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
        return psutil.Process(pid).create_time() <= changed / _NANOSECONDS + 1  # a second for clock ticks
    except psutil.Error:
        return False
