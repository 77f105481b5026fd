"""Filters for cache entries: by kernel, target, age, Triton version, and rank among entries of a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.doctor.caches import stale as caches_stale
from tritonsmith.facts import triton_metadata
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Filters:
    """The filters that an entry must pass; empty means all entries.

    Attributes:
        kernel: glob that the kernel's name must match.
        target: backend, architecture, and threads per warp if they matter: `("cuda", "90")`.
        older_than: minimum seconds since the last change.
        stale: made by a Triton that is no longer installed.
        keep_newest: keep this many of the newest entries of each kernel in each cache.
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


@dataclass(frozen=True)
class Chosen:
    """The entries that the filters select.

    Attributes:
        entries: in the order of the caches.
        undecided: entries that were left out because it is unknown which Triton made them.
    """

    entries: tuple[CacheEntry, ...]
    undecided: int = 0


def age(text: str) -> float | None:
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


def target(text: str) -> tuple[str, ...]:
    """Parse backend, architecture and optional threads per warp from `cuda:90` or a GPU's name (`h100`).

    Raises:
        UsageError: the text is neither.
    """
    names = configs.load("gpu-targets")["targets"]
    parts = tuple(names.get(text.lower(), text).split(":")) if text else ()
    if text and (len(parts) not in (2, 3) or not all(parts)):
        hints = ["write cuda:90 or hip:gfx942", *did_you_mean(text, names)]
        raise UsageError(f"{text!r} is not a target", hints=hints)
    return tuple(re.sub(r"^sm_?(?=\d)", "", part) for part in parts)


def choose(
    entries: Iterable[CacheEntry], filters: Filters, installed: tuple[InstalledTriton, ...], now: float
) -> Chosen:
    """Select the entries that pass all filters at a time (seconds since 1970).

    Metadata are read last, and only if a filter needs them.

    Raises:
        FactError: `stale` is set, but no installed Triton was found: all entries would be stale.
    """
    left = list(entries)
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
    parts = triton_metadata.read(entry).target.split(":")
    return tuple(parts[: len(target)]) == target


def _stale(entries: Iterable[CacheEntry], installed: tuple[InstalledTriton, ...]) -> Chosen:
    if not installed:
        raise FactError(
            "cannot determine which entries are stale: no Triton to compare with",
            why="none in the tool's environments, in the active one, or for Python on PATH",
            hints=["activate an environment with Triton", "or select by age: --older-than 30d"],
        )
    verdicts = [(entry, caches_stale.judge(entry, installed)) for entry in entries]
    stale = tuple(entry for entry, verdict in verdicts if verdict == "stale")
    return Chosen(stale, sum(verdict == "unknown" for _, verdict in verdicts))
