"""Read the metadata of an entry of a Triton cache: target, version, options, stages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.facts.triton_cache import CacheEntry


@dataclass(frozen=True)
class Metadata:
    """The contents of an entry's `KERNEL.json`.

    Attributes:
        target: `cuda:90:32`; empty if it has none.
        version: version of the Triton that made it; empty before 3.3 (47e409060c, #5912).
        options: options that differ from the backend's defaults, as name and value.
    """

    target: str = ""
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()


def read(entry: CacheEntry) -> Metadata:
    """Read it; all fields are empty for an entry that is no kernel, or cannot be read."""
    if entry.kind != "kernel":
        return Metadata()
    table = _json(Path(entry.path) / f"{entry.kernel}.json")
    if not isinstance(table, dict):
        return Metadata()
    target = _target(table)
    return Metadata(target, str(table.get("triton_version", "")), _options(table, target))


def stages(entry: CacheEntry) -> tuple[str, ...]:
    """Return the suffixes of its files, in the order of the pipeline; those of other backends come last."""
    if entry.kind == "launcher":
        return ("so",)
    known = configs.load("triton-cache")["entry"]["stages"]
    unfinished = {name for name, _ in entry.temporary}
    try:
        names = set(os.listdir(entry.path)) - unfinished  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return ()
    stem = f"{entry.kernel}."
    here = {name.removeprefix(stem) for name in names if name.startswith(stem)} - {"json"}
    return (*(name for name in known if name in here), *sorted(here.difference(known)))


def dangling(entry: CacheEntry) -> tuple[str, ...]:
    """Return missing files that the index names; such an entry is recompiled, or fails to load.

    An index has absolute paths since 3.0, so that the entries of a moved or copied cache dangle.
    """
    folder = Path(entry.path)
    index = configs.load("triton-cache")["entry"]["index"]
    table = _json(folder / f"{index}{entry.kernel}.json")
    children = table.get("child_paths", {}) if isinstance(table, dict) else {}
    paths = children.values() if isinstance(children, dict) else children
    return tuple(str(path) for path in paths if not os.path.lexists(folder / str(path)))


def _json(path: Path) -> Any:
    try:
        return untrusted.read_json(path)
    except (OSError, ValueError):
        return None


def _target(table: dict[str, Any]) -> str:
    """Return the target: a GPUTarget since 3.0, a descriptor in 2.2, `arch` and `device_type` in 2.1."""
    target = table.get("target")
    if isinstance(target, dict) and "backend" in target:
        return f"{target['backend']}:{target.get('arch')}:{target.get('warp_size')}"
    arch = target.get("capability") if isinstance(target, dict) else table.get("arch")
    device = table.get("device_type")
    return f"{device}:{arch}:32" if device == "cuda" and isinstance(arch, int) else ""


def _options(table: dict[str, Any], target: str) -> tuple[tuple[str, str], ...]:
    known = configs.load("triton-cache")
    defaults = known["defaults"].get(target.partition(":")[0], {})
    changed = {name: table[name] for name, value in defaults.items() if table.get(name, value) != value}
    changed |= {name: table[name] for name in known["unset"]["options"] if table.get(name) is not None}
    return tuple((name, str(value)) for name, value in changed.items())
