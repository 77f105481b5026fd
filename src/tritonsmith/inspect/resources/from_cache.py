"""Measure every kernel in a Triton cache; unchanged entries are not read again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tritonsmith.compiler import from_cache
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Write, digest
from tritonsmith.facts import cache_roots, machine, triton_cache
from tritonsmith.facts.cache_roots import Root
from tritonsmith.facts.triton_cache import CacheEntry
from tritonsmith.ir import gpu_elf

ALL = "all"
_KINDS = ("jit", "env", "inductor", "named")  # the others hold no cubins that run
_ALONE = 256  # entries that one process reads before others have started
_CHUNK = 64  # entries that a process takes at once
_NAME = 12  # characters of an entry's name that a table shows

Known = dict[str, Any]  # name of an entry to what was read of it


def read(wanted: str, space: Workspace) -> Measured:
    """Measure each kernel of all caches, of one cache, or of one entry.

    Args:
        wanted: `all`, the folder of a cache, the folder of an entry, or the beginning of an entry's name.
        space: the workspace, which caches the results.

    Raises:
        FactError: there is no such entry.
        SmithError: the workspace cannot be written to.
    """
    if wanted == ALL:
        roots = cache_roots.find(os.environ, space)
        return _found([known for root in roots if root.kind in _KINDS for known in _of_root(root, space)])
    path = Path(wanted).expanduser()
    index = triton_cache.index().prefix
    if path.is_dir() and not any(name.startswith(index) for name in os.listdir(path)):  # noqa: PTH208
        return _found(_of_root(Root("named", path.absolute(), "--from-cache"), space))
    folder = from_cache.find(wanted)
    content = triton_cache.scan(Root("named", folder.parent, "--from-cache"))
    entries = [entry for entry in content.entries if entry.name == folder.name and entry.kind == "kernel"]
    if not entries:
        raise FactError("not a complete kernel entry", where=folder, hints=["invoke cache.list"])
    results = [_read(entry) for entry in entries]
    if why := results[0]["row"].get("error"):
        raise FactError("cannot read this entry", where=folder, why=why)
    return _found(results)


def _of_root(root: Root, space: Workspace) -> list[Known]:
    """Return the data of each kernel, in the order of names; cache it if something is new."""
    entries = [entry for entry in triton_cache.scan(root).entries if entry.kind == "kernel"]
    file = space.root / "kernels" / "resources" / f"{digest(root.real)}.json"
    known = _load(file)
    new = [entry for entry in entries if known.get(entry.name, {}).get("stamp") != _stamp(entry)]
    current = {entry.name: known[entry.name] for entry in entries if entry.name in known}
    current |= {entry.name: data for entry, data in zip(new, _read_all(new), strict=True)}
    if new or len(current) != len(known):
        _save(file, current, space)
    return [current[name] for name in sorted(current)]


def _read_all(entries: Sequence[CacheEntry]) -> Iterator[Known]:
    if len(entries) <= _ALONE:
        yield from map(_read, entries)
        return
    with ProcessPoolExecutor(machine.read().cores, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_read, entries, chunksize=_CHUNK)


def _read(entry: CacheEntry) -> Known:
    """Return the data to cache for an entry: its stamp and its row."""
    metadata = triton_cache.read_metadata(entry)
    row: Known = {
        "kernel": entry.kernel,
        "point": entry.name,
        "target": metadata.target,
        "options": ", ".join(f"{name}={value}" for name, value in metadata.options),
    }
    folder = Path(entry.path)
    binary = next(
        (path for kind in measure.BINARIES if (path := folder / f"{entry.kernel}.{kind}").is_file()), None
    )
    try:
        if binary is None:
            raise FactError("the entry has neither a cubin nor an hsaco")  # noqa: TRY301 - told like the others
        about = untrusted.read_json(folder / f"{entry.kernel}.json")
        backend, _, arch = metadata.target.partition(":")
        if backend not in gpu_elf.MACHINES.values():
            raise FactError("its metadata does not record the target")  # noqa: TRY301
        ptx = folder / f"{entry.kernel}.ptx"
        arch = arch.partition(":")[0]
        row["values"] = measure.values(binary, arch, about, ptx if ptx.is_file() else None)
        row["notes"] = list(measure.unseen(about))
    except FactError as error:
        row["error"] = ": ".join(filter(None, (error.what, error.why)))
    except (OSError, ValueError) as error:
        row["error"] = f"cannot read its metadata: {error}"
    return {"stamp": _stamp(entry), "row": row}


def _found(read: Sequence[Known]) -> Measured:
    rows = [ResourceRow(**data["row"]) for data in read]
    good = [row for row in rows if not row.error]
    notes = [f"{row.kernel} in {row.point[:_NAME]}: {row.error}" for row in rows if row.error]
    if len(notes) > len(good) + 1:
        notes = [f"{len(notes)} entries cannot be read; the first: {notes[0]}"]
    arrays = [row for row in good if row.values.get("spill_store_bytes", 0) is None]
    if arrays:
        notes.append(
            f"{len(arrays)} kernels keep arrays in local memory, which only ptxas distinguishes from spills: "
            "invoke kernel.compile --resources --from-cache ENTRY --target ... recompiles an entry"
        )
    good.sort(key=lambda row: (row.kernel, row.target, row.options, row.point))
    return Measured(tuple(good), (*notes, *measure.told(good)))


def _stamp(entry: CacheEntry) -> list[Any]:
    """Return the stamp of an entry, which changes with its content."""
    # Triton only adds files to an entry's folder, and changes none.
    return [entry.changed, entry.bytes, entry.files]


def _load(file: Path) -> Known:
    try:
        content = untrusted.read_json(file, untrusted.OURS)
        if content["edition"] == _edition():
            entries: Known = content["entries"]
            return entries
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def _save(file: Path, entries: Known, space: Workspace) -> None:
    space.claim()
    text = json.dumps({"edition": _edition(), "entries": entries}, separators=(",", ":"))
    steps = (MakeDir(file.parent, phase="resources"), Write(file, text, phase="resources"))
    space.run(Plan("resources", steps), "kernel.resources", quiet=True)


@cache
def _edition() -> str:
    """Return a digest of everything that decides the content of a row."""
    limits = configs.data_dir("configs") / "gpu-limits.toml"
    return digest([path.read_text("utf-8") for path in (*sorted(Path(__file__).parent.glob("*.py")), limits)])
