"""Text output for caches: sums, and the entries that are kept, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tritonsmith.core.ui.units import entries, size
from tritonsmith.facts.triton_cache import CacheEntry, Content

_SHOWN = 5  # names in a sentence


def total(found: Iterable[CacheEntry]) -> str:
    """Return a sum in words: `12 entries, 3.4 MiB`."""
    sizes = [entry.bytes for entry in found]
    return f"{entries(len(sizes))}, {size(sum(sizes))}"


def by_kernel(found: Sequence[CacheEntry], limit: int) -> list[list[str]]:
    """Return rows of cache, kernel, entries and size, the largest first; one more row sums up the rest."""
    groups: dict[tuple[str, str], list[int]] = {}
    for entry in found:
        name = entry.kernel or f"({entry.kind})"
        groups.setdefault((entry.root.label, name), []).append(entry.bytes)
    largest = sorted(groups.items(), key=lambda group: -sum(group[1]))
    rows = [[*names, str(len(sizes)), size(sum(sizes))] for names, sizes in largest[:limit]]
    if rest := largest[limit:]:
        counts = [len(sizes) for _, sizes in rest]
        whole = sum(sum(sizes) for _, sizes in rest)
        rows.append(["", f"... {len(rest)} more kernels", str(sum(counts)), size(whole)])
    return rows


def kept(in_use: Iterable[tuple[CacheEntry, str]]) -> Iterator[str]:
    """Yield messages about entries that are kept because they may be in use."""
    reasons = list(in_use)
    if not reasons:
        return
    entry, why = reasons[0]
    more = "; ..." if len(reasons) > 1 else ""
    yield f"kept, in use: {total(item for item, _ in reasons)} ({entry.kernel or entry.name}: {why}{more})"


def strangers(content: Content) -> Iterator[str]:
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
