"""The judgement whether the Triton that made an entry is still installed."""

from __future__ import annotations

from typing import Literal

from tritonsmith.core.versions import version_key
from tritonsmith.facts import triton_cache, triton_metadata
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry, Era

Verdict = Literal["stale", "current", "unknown"]


def judge(entry: CacheEntry, installed: tuple[InstalledTriton, ...]) -> Verdict:
    """Judge by the version in the metadata, or, if there is none, by the form of the name.

    Another build of the same version looks the same: entries that a rebuild orphaned are `current`.
    """
    if version := triton_metadata.read(entry).version:
        return "current" if any(_same(version, triton.version) for triton in installed) else "stale"
    era = triton_cache.era_of(entry)
    if era is None:
        return "unknown"
    return "unknown" if any(_may_spell(triton, era) for triton in installed) else "stale"


def _may_spell(triton: InstalledTriton, era: Era) -> bool:
    """Report whether a Triton may use an era's names; a checkout may use those of the next release."""
    ahead = triton.checkout and version_key(triton.version) < version_key(era.since)
    return ahead or era.holds(triton.version)


def _same(one: str, other: str) -> bool:
    return one.partition("+")[0] == other.partition("+")[0]
