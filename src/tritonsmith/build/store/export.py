"""`store.export`: an LLVM of the store as one relocatable archive."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store import verify
from tritonsmith.build.store.entry import StoreEntry, StoreManifest
from tritonsmith.build.store.remote import is_url, local
from tritonsmith.core import configs, redact
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove
from tritonsmith.core.plan.steps import object_store
from tritonsmith.core.plan.steps.object_store import Upload
from tritonsmith.core.plan.steps.pack import SCHEMA, Item, Pack, beside
from tritonsmith.facts import cmake_cache, llvm_tree
from tritonsmith.facts.machine import Machine

ENDING = ".tar.zst"
SOURCES = "source-include"  # the archive's folder for headers of the source tree
PHASE_PACK = "pack"
PHASE_UPLOAD = "upload"


@dataclass(frozen=True)
class StoreExport:
    """A prepared export to a path or URL: the number of files, and notes on what the archive will lack."""

    plan: Plan
    dest: str
    files: int
    notes: tuple[str, ...]


def prepare(entry: StoreEntry, dest: str, space: Workspace, machine: Machine) -> StoreExport:
    """Plan an export.

    `dest` is a file (`*.tar.zst`), a folder (a name is appended), or a URL of an object store. A prebuilt or
    adopted tree is recorded as working with the libraries of this machine.

    Raises:
        FactError: the entry is damaged.
        UsageError: the destination is not valid.
        SmithError: the client for that kind of URL is missing.
    """
    manifest = entry.manifest
    if manifest is None or entry.status != "ready":
        raise FactError(f"{entry.name} cannot be exported", why=entry.problem or f"it is {entry.status}")
    # The damage would first be noticed on another machine.
    if broken := verify.problems(entry, quick=True):
        hints = [
            f"`{command('store --verify', name=entry.name)}` lists all problems",
            "`invoke setup-mlir` repairs a build",
        ]
        raise FactError(f"{entry.name} is damaged", where=entry.path, why=broken[0], hints=hints)
    target = _target(entry.name, dest)
    if is_url(target):
        object_store.check(target)
    source = Path(manifest.source) if manifest.source else llvm_tree.source_of(entry.path)
    items = tuple(_items(entry.path, source))
    archive = space.downloads / f"{entry.name}{ENDING}" if is_url(target) else local(target)
    pack = Pack(
        dest=archive,
        head=_head(_as_exported(manifest, machine)),
        items=items,
        places=tuple(_places(entry.path, source)),
        texts=tuple(_table()["texts"]),
        mtime=_seconds(manifest.made),
        level=int(_table()["level"]),
        phase=PHASE_PACK,
    )
    plan = Plan(f"export {entry.name}", (MakeDir(archive.parent, phase=PHASE_PACK), pack))
    if is_url(target):
        plan += _upload(archive, target, space)
    return StoreExport(plan, redact.hidden(target), len(items), tuple(_notes(manifest)))


def _upload(archive: Path, url: str, space: Workspace) -> Plan:
    """Return the plan that uploads an archive and its checksum."""
    return Plan(
        "upload",
        (
            # The checksum comes last: where it exists, the archive is complete.
            Upload(archive, url, phase=PHASE_UPLOAD),
            Upload(beside(archive), f"{url}.sha256", phase=PHASE_UPLOAD),
            Remove((archive, beside(archive)), space.root, phase=PHASE_UPLOAD),
        ),
    )


def _target(name: str, dest: str) -> str:
    if dest.startswith(("http://", "https://")):
        raise UsageError(
            "cannot upload to a web server",
            where=redact.hidden(dest),
            hints=[
                "export to a file, then copy it and its .sha256 there",
                "or use a bucket: s3://BUCKET/PATH/",
            ],
        )
    if dest.endswith(ENDING):
        return dest
    folder = dest.endswith("/") or (not is_url(dest) and local(dest).is_dir())
    if folder or is_url(dest):
        return f"{dest.rstrip('/')}/{name}{ENDING}"
    raise UsageError(
        f"an archive's name ends in {ENDING}", where=dest, hints=[f"{dest}{ENDING}", "or give a folder"]
    )


def _table() -> dict[str, Any]:
    table: dict[str, Any] = configs.load("store")["export"]
    return table


def _head(manifest: StoreManifest) -> str:
    return json.dumps(
        {"schema": SCHEMA, "manifest": asdict(manifest) | {"schema": 1}, "texts": _table()["texts"]}, indent=2
    )


def _as_exported(manifest: StoreManifest, machine: Machine) -> StoreManifest:
    """Return the manifest without local facts, and with the libraries it is known to work with."""
    abi = manifest.abi
    known = replace(abi, glibc=abi.glibc or machine.glibc, glibcxx=abi.glibcxx or machine.glibcxx)
    # The .dwo files, with types and variables, are not packed: they are most of a debug build.
    stays = manifest.debug_info == "split"
    return replace(
        manifest,
        kind="imported",
        tree=manifest.name,
        source="",
        origin="",
        abi=known,
        bytes=None,
        debug_info="lines" if stays else manifest.debug_info,
    )


def _seconds(created: str) -> int:
    """Return a manifest's time in seconds since 1970."""
    try:
        return int(datetime.fromisoformat(created).timestamp())
    except (ValueError, OverflowError):
        # Not 0: zip files, such as wheels that are built from these headers, hold no time before 1980.
        return int(datetime(2000, 1, 1).astimezone().timestamp())


def _places(prefix: Path, source: Path | None) -> Iterator[tuple[str, str]]:
    """Yield folders that texts may name, as given and resolved."""
    cache = cmake_cache.read(prefix)
    configured = cache.get("CMAKE_CACHEFILE_DIR") if cache else ""
    yield from dict.fromkeys(
        (place, "") for place in (str(prefix), str(prefix.resolve()), configured) if place
    )
    if source:
        yield from dict.fromkeys((str(place), SOURCES) for place in (source, source.resolve()))


def _items(prefix: Path, source: Path | None) -> Iterator[Item]:
    """Yield all members, sorted by name."""
    items: dict[str, Item] = {}
    table = _table()
    libraries = (f"lib/{pattern}" for pattern in table["libraries"])
    for pattern in (*libraries, *table["folders"], *table["headers"], *table["programs"], SOURCES):
        for path in prefix.glob(pattern):
            items |= {item.name: item for item in _walk(path, prefix)}
    for folder in (*table["sources"], *table["scripts"]):
        for item in _walk(source / folder, source) if source else ():
            items[f"{SOURCES}/{item.name}"] = replace(item, name=f"{SOURCES}/{item.name}")
    # The same tree gives the same archive on any file system.
    for name in sorted(items):
        if not _unwanted(name):
            yield _whole(items[name], items, prefix)


def _whole(item: Item, items: dict[str, Item], prefix: Path) -> Item:
    """Replace a link to a file outside the archive by that file."""
    target = os.path.normpath(Path(item.name).parent / item.source) if item.link else ""
    if not item.link or target in items or any(name.startswith(f"{target}/") for name in items):
        return item
    real = (prefix / item.name).resolve()
    return Item(item.name, str(real)) if real.is_file() else item


def _unwanted(name: str) -> bool:
    """Report whether a file is a leftover of CMake or the linker, or compiled Python."""
    parts = Path(name).parts
    return bool({"CMakeFiles", "__pycache__", ".git"} & set(parts)) or parts[-1] in {
        "cmake_install.cmake",
        "CTestTestfile.cmake",
    }


def _walk(path: Path, root: Path, above: tuple[Path, ...] = ()) -> Iterator[Item]:
    """Walk a file or a folder; a link out of the tree is replaced by its target."""
    name = str(path.relative_to(root))
    if path.is_symlink() and not path.exists():
        return
    real = path.resolve()
    if path.is_symlink() and real.is_relative_to(root.resolve()):
        # An absolute link would lead to this machine's folder on the next.
        yield Item(name, os.path.relpath(real, path.parent.resolve()), link=True)
    elif path.is_file():
        yield Item(name, str(path))
    elif path.is_dir() and real not in above:
        for child in path.iterdir():
            yield from _walk(child, root, (*above, real))


def _notes(manifest: StoreManifest) -> Iterator[str]:
    if manifest.debug_info == "split":
        yield (
            "debug information is split: line numbers are included, types and variables stay behind in .dwo "
            "files (debug-info = 'full' under [llvm] builds an LLVM that includes everything)"
        )
    if manifest.sanitizer:
        yield f"instrumented by the sanitizer {manifest.sanitizer}"
