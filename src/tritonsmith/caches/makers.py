"""Whether the Triton that made an entry is still installed."""

from __future__ import annotations

from typing import Literal

from packaging.version import InvalidVersion, Version

from tritonsmith.facts import triton_cache, triton_metadata
from tritonsmith.facts.installed_tritons import Installed
from tritonsmith.facts.triton_cache import Entry, Era

Verdict = Literal["stale", "current", "unknown"]


def judge(entry: Entry, installed: tuple[Installed, ...]) -> Verdict:
    """By the version in its metadata, and where there is none by the spelling of its name.

    Another build of the same version looks the same: what a rebuild orphaned is `current`.

    Args:
        entry: any.
        installed: the Tritons that are installed.
    """
    if version := triton_metadata.read(entry).version:
        return "current" if any(_same(version, found.version) for found in installed) else "stale"
    era = next((era for era in triton_cache.eras() if era.name == entry.era), None)
    if era is None:
        return "unknown"
    return "unknown" if any(_in(era, found.version) for found in installed) else "stale"


def _same(one: str, other: str) -> bool:
    return one.partition("+")[0] == other.partition("+")[0]


def _in(era: Era, version: str) -> bool:
    try:
        release = Version(version).release[:2]
    except InvalidVersion:  # a fork's own: it may be of any era
        return True
    return Version(era.since).release <= release and (not era.until or release <= Version(era.until).release)
