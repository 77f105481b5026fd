"""Read the compiler cache: its size, its hit rate, and how it treats folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.plan.process import capture

_GIB = float(1 << 30)
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": _GIB}


@dataclass(frozen=True)
class Ccache:
    """Configuration and statistics of ccache.

    Attributes:
        folder: its cache folder.
        limit_gib: size limit, at which it starts to evict; 0 for none.
        used_gib: size now.
        hits: cache hits since its statistics were last zeroed.
        misses: cache misses.
        base_dir: paths below it are made relative, so that worktrees share; empty for none.
        hash_dir: the current folder is part of the key (for debug info).
        remote: there is a remote storage, by its settings or the environment's variables.
        remote_hits: local misses that a remote storage had.
        remote_misses: local misses that it did not have either.
        remote_errors: requests without an answer: errors and timeouts.
    """

    folder: Path
    limit_gib: float
    used_gib: float
    hits: int
    misses: int
    base_dir: str
    hash_dir: bool
    remote: bool = False
    remote_hits: int = 0
    remote_misses: int = 0
    remote_errors: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of hits, 0 to 1; None before the first compile."""
        requests = self.hits + self.misses
        return self.hits / requests if requests else None


def read(program: Path) -> Ccache | None:
    """Query ccache (3.7 or later: `--print-stats`) by its two machine-readable listings; None if it fails."""
    config = capture((str(program), "--show-config"), timeout=10)
    stats = capture((str(program), "--print-stats"), timeout=10)
    if config is None or stats is None:
        return None
    return parse(config, stats)


def parse(config: str, stats: str) -> Ccache:
    """Parse the two listings.

    Args:
        config: output of `ccache --show-config`: `(origin) key = value`.
        stats: output of `ccache --print-stats`: key, tab, number.
    """
    # To 4.6 it was called another way.
    config, stats = (text.replace("secondary_storage", "remote_storage") for text in (config, stats))
    values = dict(re.findall(r"^(?:\(.*?\) )?(\w+) = ?(.*)$", config, re.MULTILINE))
    counts = {name: int(number) for name, number in re.findall(r"^(\w+)\t(\d+)$", stats, re.MULTILINE)}
    return Ccache(
        folder=Path(values.get("cache_dir", "")),
        limit_gib=_size(values, "max_size"),
        used_gib=counts.get("cache_size_kibibyte", 0) / 2**20,
        hits=counts.get("direct_cache_hit", 0) + counts.get("preprocessed_cache_hit", 0),
        misses=counts.get("cache_miss", 0),
        base_dir=values.get("base_dir", ""),
        hash_dir=values.get("hash_dir", "true") == "true",
        remote=bool(values.get("remote_storage")),
        remote_hits=counts.get("remote_storage_hit", 0),
        remote_misses=counts.get("remote_storage_miss", 0),
        remote_errors=counts.get("remote_storage_error", 0) + counts.get("remote_storage_timeout", 0),
    )


def _size(values: Mapping[str, str], key: str) -> float:
    """Return a size in GiB from `5.0G` (to 4.7), `5.0 GB` or `5.0 GiB` (4.8 on); no unit means bytes."""
    match = re.match(r"([\d.]+)\s*([KMG]i?)?", values.get(key, "").replace("k", "K"))
    return float(match[1]) * _UNITS[match[2] or ""] / _GIB if match else 0.0
