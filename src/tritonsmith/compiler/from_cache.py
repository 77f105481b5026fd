"""Compile a Triton cache entry again, for other targets and options: `--from-cache`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonsmith.compiler import targets as gpu_targets
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.facts import triton_cache

# In this order: ttgir holds the layouts of one target, and compiles for that one only.
_IR = ("ttir", "ttgir")
_SHORTEST = 6  # characters of a name that stand for it
_SHOWN = 5


def request_of_entry(
    entry: str,
    targets: tuple[Target, ...],
    options: Mapping[str, Any],
    sweeps: tuple[Sweep, ...] = (),
    stages: tuple[str, ...] = (),
) -> CompileRequest:
    """Return the request that an entry represents, with its own target and options unless others are given.

    Args:
        entry: path of its folder, its name, or the beginning of its name.
        targets: targets; the entry's own if empty.
        options: override the entry's own.
        sweeps: sweeps over options.
        stages: stages to keep.

    Raises:
        FactError: there is no such entry, it is not a kernel's, or it cannot be read.
    """
    folder = find(entry)
    kernel = _kernel(folder)
    file = next(
        (folder / f"{kernel}.{kind}" for kind in _IR if (folder / f"{kernel}.{kind}").is_file()), None
    )
    if file is None:
        hints = ["TRITON_STORE_BINARY_ONLY=1 does not store them"]
        raise FactError("this entry has neither ttir nor ttgir", where=folder, hints=hints)
    table = _metadata(folder / f"{kernel}.json")
    own = target_of(table)
    if not targets and own is None:
        raise FactError(
            "this entry does not record its target",
            where=folder,
            hints=["give one: --target cuda:90"],
        )
    targets = targets or tuple(filter(None, (own,)))
    # Defaults differ by backend: those of the backend that wrote the metadata decide which options were set.
    all_options = options_of(table, own.backend if own else targets[0].backend) | dict(options)
    return CompileRequest(file, kernel, "", targets, all_options, sweeps, stages=stages)


def find(entry: str) -> Path:
    """Return the folder of an entry.

    Raises:
        FactError: no entry, or more than one, begins with this name.
    """
    path = Path(entry).expanduser()
    if path.is_dir():
        return path.absolute()
    roots = triton_cache.find(os.environ, workspace.default())
    # An entry's name is a long digest, so its beginning is enough, as with commits of git.
    folders = [folder for root in roots for folder in _beginning(root.real, entry)]
    if len(folders) == 1:
        return folders[0]
    if folders:
        hints = [str(folder) for folder in folders[:_SHOWN]]
        raise FactError(f"{len(folders)} entries start with {entry!r}", hints=hints)
    searched = ", ".join(str(root.path) for root in roots)
    raise FactError(
        f"no entry {entry!r} in the caches",
        why=f"searched {searched}",
        hints=["invoke cache.list shows the entries", "or give the path of the entry's folder"],
    )


def _beginning(root: Path, name: str) -> Iterator[Path]:
    if len(name) < _SHORTEST or "/" in name or not root.is_dir():
        return
    with os.scandir(root) as entries:
        yield from (Path(item.path) for item in entries if item.name.startswith(name) and item.is_dir())


def _kernel(folder: Path) -> str:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is wanted
    except OSError as error:
        raise FactError("cannot read this entry", where=folder, why=error.strerror) from error
    shape = triton_cache.classify(names, (), "any")
    if isinstance(shape, str) or shape.kind != "kernel":
        why = shape if isinstance(shape, str) else f"the entry's kind is {shape.kind!r}"
        raise FactError(
            "not a complete kernel entry",
            where=folder,
            why=why,
            hints=["invoke cache.list shows the entries"],
        )
    return shape.kernel


def _metadata(path: Path) -> dict[str, Any]:
    try:
        table = untrusted.read_json(path)
    except (OSError, ValueError) as error:
        raise FactError("cannot read the metadata of this entry", where=path, why=str(error)) from error
    if not isinstance(table, dict):
        raise FactError("cannot read the metadata of this entry", where=path, why="not a JSON object")
    return table


def target_of(table: Mapping[str, Any]) -> Target | None:
    """Return the target in Triton's metadata, which holds a GPUTarget since 3.0; None if there is none."""
    # A cache may be a stranger's: its metadata may have anything in this place.
    entry = table.get("target")
    if not isinstance(entry, dict) or not {"backend", "arch", "warp_size"} <= set(entry):
        return None
    return gpu_targets.parse(f"{entry['backend']}:{entry['arch']}:{entry['warp_size']}")


def options_of(table: Mapping[str, Any], backend: str) -> dict[str, Any]:
    """Return warps and stages from Triton's metadata, and options that differ from the backend's defaults."""
    # Metadata has every option of one release. Those at their defaults are left out, since another release
    # may have other defaults, or may not know the option.
    known = configs.load("triton-cache")
    defaults = known["defaults"].get(backend, {})
    kept = {name: table[name] for name in ("num_warps", "num_stages") if name in table}
    kept |= {name: table[name] for name, value in defaults.items() if table.get(name, value) != value}
    return kept | {name: table[name] for name in known["unset"]["options"] if table.get(name) is not None}
