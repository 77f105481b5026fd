"""List caches: rows for a table, and the documented JSON of `cache.list`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import byte_size, entry_count, short_age
from tritonsmith.doctor import cache_clear
from tritonsmith.doctor.cache_clear import Filters
from tritonsmith.facts import triton_cache
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry, Content, Metadata, Root

SCHEMA = 1
COLUMNS = ("kernel", "target", "Triton", "stages", "size", "age", "options", "cache", "entry")
_BEGINNING = 8  # characters of an entry's name: enough to distinguish a million entries
_NAMED = 5  # entries in an error message
_WAYS = (("ttir", "ttgir", "llir", "ptx", "cubin"), ("ttir", "ttgir", "llir", "amdgcn", "hsaco"))
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class CacheRow:
    """An entry with its metadata.

    Attributes:
        entry: the entry.
        metadata: the entry's metadata.
        stages: the stages in the entry.
    """

    entry: CacheEntry
    metadata: Metadata
    stages: tuple[str, ...]


@dataclass(frozen=True)
class CacheListing:
    """The result of `cache.list`.

    Attributes:
        contents: the complete caches.
        rows: the newest of the chosen entries.
        chosen: number of entries that the filters selected.
        bytes: bytes of all selected entries.
        undecided: entries that `--stale` cannot judge.
        now: seconds since 1970, when the caches were read.
    """

    contents: tuple[Content, ...]
    rows: tuple[CacheRow, ...]
    chosen: int
    bytes: int
    undecided: int
    now: float


def make(
    roots: Iterable[Root], filters: Filters, *, limit: int, installed: tuple[InstalledTriton, ...], now: float
) -> CacheListing:
    """List caches at a time (seconds since 1970), with `limit` rows at most, or all of them for 0.

    Metadata are read only for the rows, unless a filter needs them.

    Raises:
        FactError: the filters cannot be evaluated.
    """
    contents = tuple(triton_cache.scan(root) for root in roots)
    every = (entry for content in contents for entry in content.entries)
    chosen = cache_clear.choose(every, filters, installed, now)
    # Cut before metadata are read: a cache of 100,000 entries is listed as fast as one of 100.
    newest = sorted(chosen.entries, key=lambda entry: -entry.changed)[: limit or None]
    rows = tuple(
        CacheRow(entry, triton_cache.read_metadata(entry), triton_cache.entry_stages(entry))
        for entry in newest
    )
    whole = sum(entry.bytes for entry in chosen.entries)
    return CacheListing(contents, rows, len(chosen.entries), whole, chosen.undecided, now)


def cells(row: CacheRow, now: float) -> list[str]:
    """Return a row of the table, whose columns are `COLUMNS`; `now` is in seconds since 1970."""
    entry, metadata = row.entry, row.metadata
    name = entry.kernel or "?"
    return [
        name if entry.kind == "kernel" else f"{name} ({entry.kind})",
        # Threads per warp are left out: the architecture nearly always implies them.
        ":".join(metadata.target.split(":")[:2]),
        metadata.version or _by_era(entry),
        _in_short(row.stages),
        byte_size(entry.bytes),
        short_age(now - entry.changed / _NANOSECONDS),
        " ".join(f"{option}={value}" for option, value in metadata.options),
        entry.root.label,
        entry.name[:_BEGINNING],
    ]


def as_json(listing: CacheListing) -> dict[str, Any]:
    """Return the documented form of `cache.list --json` (docs/caches.md)."""
    return {
        "schema": SCHEMA,
        "roots": [_root(content) for content in listing.contents],
        "chosen": {"entries": listing.chosen, "bytes": listing.bytes, "undecided": listing.undecided},
        "entries": [_entry(row) for row in listing.rows],
        "more": listing.chosen - len(listing.rows),
    }


def _in_short(stages: tuple[str, ...]) -> str:
    """Shorten stages to `to cubin` if none before it is missing."""
    for way in _WAYS:
        # An entry with a gap, or of a backend with other stages, is spelled out: that
        # is what one wants to see.
        if set(way) <= set(stages) <= {*way, "source"}:
            return f"to {way[-1]}"
    return " ".join(stages)


def _by_era(entry: CacheEntry) -> str:
    """Return the versions with this form of names, for entries without a version."""
    era = triton_cache.era_of(entry)
    return f"({era.versions})" if era else ""


def _root(content: Content) -> dict[str, Any]:
    root = content.root
    return {
        "kind": root.kind,
        "path": str(root.path),
        "real": str(root.real),
        "source": root.source,
        "current": root.current,
        "readable": content.readable,
        "entries": content.total,
        "bytes": content.bytes,
        "strangers": [{"name": name, "why": why} for name, why in content.strangers],
    }


def _entry(row: CacheRow) -> dict[str, Any]:
    entry = row.entry
    changed = datetime.fromtimestamp(entry.changed / _NANOSECONDS, UTC).isoformat(timespec="seconds")
    return {
        "root": str(entry.root.path),
        "name": entry.name,
        "kind": entry.kind,
        "era": entry.era,
        "kernel": entry.kernel,
        "target": row.metadata.target,
        "triton": row.metadata.version,
        "stages": list(row.stages),
        "files": entry.files,
        "bytes": entry.bytes,
        "changed": changed,
        "options": dict(row.metadata.options),
    }


@dataclass(frozen=True)
class EntryFile:
    """A file of an entry.

    Attributes:
        name: name of the file.
        bytes: its size.
        stage: stage of the compile; empty for other files.
        what: description of the file.
    """

    name: str
    bytes: int
    stage: str
    what: str


def entry(text: str, roots: Iterable[Root]) -> Path:
    """Find the folder of an entry.

    Args:
        text: name of the entry or its beginning, name of its kernel, or a path.
        roots: the caches to search.

    Raises:
        UsageError: no entry matches, or several do.
    """
    path, roots = Path(text).expanduser(), tuple(roots)
    if "/" in text and path.is_dir():
        # A copied entry, as from a colleague's bug report, is in no cache; files of stages
        # make it one all the same.
        inside = untrusted.real(path).parent in [untrusted.real(root.path) for root in roots]
        if not inside and not any(file.what for file in files(path)):
            hints = [f"{command('cache.list')} lists the entries"]
            raise UsageError("this folder is not an entry of a Triton cache", where=path, hints=hints)
        return path.absolute()
    entries = [cache_entry for root in roots for cache_entry in triton_cache.scan(root).entries]
    matches = [Path(cache_entry.path) for cache_entry in entries if cache_entry.name.startswith(text)]
    # A whole name may also be the beginning of another entry's.
    exact = [match for match in matches if match.name == text]
    if len(matches) == 1 or exact:
        return (exact or matches)[0]
    # Only then by kernel: names are hashes, so a kernel's name hardly ever begins one of them.
    if not matches:
        matches = [Path(cache_entry.path) for cache_entry in entries if cache_entry.kernel == text]
        if len(matches) == 1:
            return matches[0]
        what = (
            f"{len(matches)} entries are of the kernel {text!r}"
            if matches
            else f"no entry begins with {text!r}"
        )
    else:
        what = f"{len(matches)} entries begin with {text!r}"
    hints = [str(match) for match in matches[:_NAMED]] or [f"{command('cache.list')} lists them"]
    raise UsageError(what, hints=hints)


def files(folder: Path) -> list[EntryFile]:
    """Return the files of an entry, in the order of the stages."""
    rows = configs.load("source-map")["stages"]
    known = configs.load("triton-cache")["entry"]
    order = {name: number for number, name in enumerate(rows)}
    listed = []
    # Backends add stages that no table of ours has; such a file is listed without a description.
    for path in folder.iterdir():
        stage = path.suffix.removeprefix(".") if path.suffix.removeprefix(".") in rows else ""
        if path.name.startswith(known["index"]):
            what = "the list of files of a finished compile, which Triton reads first"
        elif path.name.endswith(known["autotune"]):
            what = "the times of the configs that the autotuner tried"
        else:
            what = rows[stage]["about"] if stage else ""
        listed.append(EntryFile(path.name, path.lstat().st_size, stage, what))
    return sorted(listed, key=lambda file: (order.get(file.stage, len(order)), file.name))


# Text output for caches: sums, and the entries that are kept, with reasons.

_SHOWN = 5  # names in a sentence


def total_text(chosen_entries: Iterable[CacheEntry]) -> str:
    """Return a sum in words: `12 entries, 3.4 MiB`."""
    sizes = [entry.bytes for entry in chosen_entries]
    return f"{entry_count(len(sizes))}, {byte_size(sum(sizes))}"


def kernels_text(chosen_entries: Sequence[CacheEntry], limit: int) -> list[list[str]]:
    """Return rows of cache, kernel, entries and size, the largest first; one more row sums up the rest."""
    groups: dict[tuple[str, str], list[int]] = {}
    for entry in chosen_entries:
        name = entry.kernel or f"({entry.kind})"
        groups.setdefault((entry.root.label, name), []).append(entry.bytes)
    # By size: whoever clears a cache looks for what takes the space.
    largest = sorted(groups.items(), key=lambda group: -sum(group[1]))
    rows = [[*names, str(len(sizes)), byte_size(sum(sizes))] for names, sizes in largest[:limit]]
    if rest := largest[limit:]:
        counts = [len(sizes) for _, sizes in rest]
        whole = sum(sum(sizes) for _, sizes in rest)
        rows.append(["", f"... {len(rest)} more kernels", str(sum(counts)), byte_size(whole)])
    return rows


def kept_text(in_use: Iterable[tuple[CacheEntry, str]]) -> Iterator[str]:
    """Yield messages about entries that are kept because they may be in use."""
    reasons = list(in_use)
    if not reasons:
        return
    # One reason as an example: a thousand entries are usually kept for the same one.
    entry, why = reasons[0]
    more = "; ..." if len(reasons) > 1 else ""
    entries = total_text(item for item, _ in reasons)
    yield f"kept, in use: {entries} ({entry.kernel or entry.name}: {why}{more})"


def strangers_text(content: Content) -> Iterator[str]:
    """Yield messages about folders that are not entries, and about unreadable caches."""
    if not content.readable:
        yield f"cannot read {content.root.path}"
    if not content.strangers:
        return
    reasons = Counter(why for _, why in content.strangers)
    names = [name for name, _ in content.strangers]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    why = ", ".join(reason for reason, _ in reasons.most_common(_SHOWN))
    yield f"not entries, skipped: {len(names)} in {content.root.real}: {shown} ({why})"
