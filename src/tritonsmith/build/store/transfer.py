"""Move LLVMs into and out of a store: `store --export`, `store --import`, and trees registered in place.

An archive lies at a path or `file://` URL, on a web server, or in an object store (through fsspec). A
registered tree stays its owner's, who may change it: its state is recorded, and an LLVM in another state is
not used.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tritonsmith.build import explain
from tritonsmith.build.store import describe_tree, entry
from tritonsmith.build.store import entry as entries
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import Abi, StoreEntry, StoreManifest, is_name
from tritonsmith.build.store.store import PHASE, Store
from tritonsmith.core import configs, redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.settings import SPLIT_DWARF
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import DownloadError, FactError, PreflightError, UsageError
from tritonsmith.core.plan import Download, MakeDir, Plan, Remove, Stamp, Write, digest, download
from tritonsmith.core.plan.steps import fetch, pack, store_entry
from tritonsmith.core.plan.steps.fetch import Obtain, Upload, VerifyChecksum
from tritonsmith.core.plan.steps.pack import ARRIVED, SCHEMA, Item, Pack, Unpack, checksum_file
from tritonsmith.core.plan.steps.store_entry import RemoveLeftovers
from tritonsmith.facts import build_folder, git, llvm_tree, tools
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine

_WEB = ("http://", "https://")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
ENDING = ".tar.zst"
SOURCES = "source-include"  # the archive's folder for headers of the source tree
PHASE_PACK = "pack"
PHASE_UPLOAD = "upload"
PHASE_FETCH = "fetch"
PHASE_VERIFY = "verify"
PHASE_UNPACK = "unpack"


@dataclass(frozen=True)
class StoreExport:
    """A prepared export to a path or URL: the number of files, and notes on what the archive will lack."""

    plan: Plan
    dest: str
    files: int
    notes: tuple[str, ...]


def prepare_export(entry: StoreEntry, dest: str, space: Workspace, machine: Machine) -> StoreExport:
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
    if broken := describe_tree.problems(entry, quick=True):
        hints = [
            f"`{command('store --verify', name=entry.name)}` lists all problems",
            "`invoke setup-mlir` repairs a build",
        ]
        raise FactError(f"{entry.name} is damaged", where=entry.path, why=broken[0], hints=hints)
    target = _target(entry.name, dest)
    if is_url(target):
        fetch.check_object_store(target)
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
        plan += upload(archive, target, space)
    return StoreExport(plan, redact.hidden(target), len(items), tuple(_notes(manifest)))


def upload(archive: Path, url: str, space: Workspace) -> Plan:
    """Return the plan that uploads an archive and its checksum."""
    return Plan(
        "upload",
        (
            # The checksum comes last: where it exists, the archive is complete.
            Upload(archive, url, phase=PHASE_UPLOAD),
            Upload(checksum_file(archive), f"{url}.sha256", phase=PHASE_UPLOAD),
            Remove((archive, checksum_file(archive)), space.root, phase=PHASE_UPLOAD),
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
    # A prebuilt or adopted tree does not tell what it was built on. It works here, so what this machine has
    # is enough.
    known = replace(abi, glibc=abi.glibc or machine.glibc, glibcxx=abi.glibcxx or machine.glibcxx)
    # The .dwo files, with types and variables, are not packed: they are most of a debug build.
    stays = manifest.debug_info in SPLIT_DWARF
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
    # CMake recorded the folder by the name that it had then: through a link, or before a move.
    cache = build_folder.read_cmake_cache(prefix)
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
    # A link to a folder outside is walked like that folder, and one to a folder above it would never end.
    elif path.is_dir() and real not in above:
        for child in path.iterdir():
            yield from _walk(child, root, (*above, real))


def _notes(manifest: StoreManifest) -> Iterator[str]:
    if manifest.debug_info in SPLIT_DWARF:
        yield (
            "debug information is split: line numbers are included, types and variables stay behind in .dwo "
            "files (debug-info = 'full' under [llvm] builds an LLVM that includes everything)"
        )
    if manifest.sanitizer:
        yield f"instrumented by the sanitizer {manifest.sanitizer}"


@dataclass(frozen=True)
class ImportSource:
    """An archive, its location, and the plan that verifies it, or fetches it temporarily."""

    place: str
    sha256: str
    archive: Path
    plan: Plan
    fetched: bool


@dataclass(frozen=True)
class StoreImport:
    """A prepared import of an entry, which may already exist."""

    manifest: StoreManifest
    plan: Plan
    there: bool


def locate(
    place: str,
    space: Workspace,
    sha256: str = "",
    hint: str = "`invoke store --export NAME DEST` creates one, on the machine that has the entry",
) -> ImportSource:
    """Find an archive and its checksum, by default in the file beside it, and plan to fetch it.

    Args:
        place: a path, `file://`, `http(s)://`, or a URL of an object store.
        space: the workspace, for downloads.
        sha256: the checksum; empty to read the file beside the archive.
        hint: how to get such an archive, where there is none.

    Raises:
        DownloadError: the archive or its checksum does not exist.
    """
    if not is_url(place) and not local(place).is_file():
        raise DownloadError(
            "no such archive",
            where=local(place),
            hints=[hint],
        )
    expected = sha256.lower() or checksum(place)
    if not is_url(place):
        archive = local(place)
        # A local archive is used where it lies: it may be larger than what the disk has left.
        check = VerifyChecksum(archive, expected, phase=PHASE_VERIFY)
        return ImportSource(place, expected, archive, Plan(f"verify {archive.name}", (check,)), fetched=False)
    name = shown(place).rstrip("/").rsplit("/", 1)[-1]
    archive = space.downloads / f"{expected[:12]}-{name}"
    # Two archives of one name must not be taken for one another, so the file is named by its checksum.
    step = (Download if is_web(place) else Obtain)(place, expected, archive, phase=PHASE_FETCH)
    return ImportSource(place, expected, archive, Plan(f"fetch {name}", (step,)), fetched=True)


def prepare_import(
    source: ImportSource, store: Store, space: Workspace, here: Machine, *, force: bool = False
) -> StoreImport:
    """Plan the import of an archive that was fetched; `force` also allows one for another machine.

    Raises:
        DownloadError: the file is not an archive of a store.
        PreflightError: the archive is for another kind of machine.
        FactError: an unfinished build or an unreadable entry has the same name.
    """
    manifest = _manifest(source)
    if not force:
        _check_machine(manifest, here, source)
    name = manifest.name
    # The stamp is in the tree: a run that was killed after the rename finds the tree complete, and
    # only writes the manifest.
    stamp = Stamp(store.path(name) / ARRIVED, source.sha256)
    before = store.entry(name) if store.manifest(name).exists() else None
    there = before is not None and before.status == "ready"
    if before and before.status == "unreadable":
        raise FactError(
            "an entry of that name exists, and cannot be read",
            where=store.manifest(name),
            why=before.problem,
            hints=[
                f"its owner can make it readable: chmod -R g+rX {shlex.quote(str(store.path(name)))}*",
                "for future entries: umask 002 (see shared stores in docs/store.md)",
                f"or delete it: `{command('store --gc', name=name)}`",
            ],
        )
    if not there and not stamp.holds() and store.path(name).exists():
        raise FactError(
            "an unfinished build has the name of this archive",
            where=store.path(name),
            hints=["finish it: `invoke setup-mlir`", f"or delete it: `{command('store --gc', name=name)}`"],
        )
    scratch = store.root / f"{store_entry.INCOMING}{name}"
    steps = (
        RemoveLeftovers(store.root, store.owner, must=False, phase=PHASE_UNPACK),
        # The sweep above passes over leftovers that are locked: this very entry's,
        # whose lock this run holds.
        Remove((scratch,), store.owner, phase=PHASE_UNPACK),
        Unpack(
            archive=source.archive,
            sha256=source.sha256,
            dest=store.path(name),
            scratch=scratch,
            owner=store.owner,
            phase=PHASE_UNPACK,
            stamp=stamp,
        ),
        Write(store.manifest(name), manifest.render(), phase=PHASE_UNPACK),
    )
    done = (Remove((source.archive,), space.root, phase=PHASE_UNPACK),) if source.fetched else ()
    return StoreImport(manifest, Plan(f"import {name}", (*(steps[:2] if there else steps), *done)), there)


def _manifest(source: ImportSource) -> StoreManifest:
    """Return the manifest of the future entry."""
    head = pack.read_head(source.archive)
    try:
        manifest = entries.parse_table(head["manifest"])
    except ValueError as error:
        raise DownloadError("not an archive of a store", where=source.archive, why=str(error)) from error
    return replace(manifest, kind="imported", tree=manifest.name, source="", origin=shown(source.place))


def _check_machine(manifest: StoreManifest, here: Machine, source: ImportSource) -> None:
    ours = Abi(here.system, here.arch, here.glibc, here.glibcxx)
    if problems := entry.incompatible(manifest.abi, ours):
        raise PreflightError(
            "the LLVM in this archive is for another machine",
            where=shown(source.place),
            why="\n".join(problems),
            hints=[
                "an archive that was exported on the team's oldest system runs on all systems",
                "--force imports it anyway",
            ],
        )


def adopt(store: Store, path: Path, machine: Machine, name: str = "") -> tuple[StoreManifest, Plan]:
    """Plan to register an LLVM, whose files stay in place and are never changed or deleted.

    `path` is a build folder or an install prefix. Without a name, the entry gets a descriptive one.

    Raises:
        FactError: there is no LLVM, or it is not built.
        UsageError: it is registered already, or the name is taken.
    """
    if name and not is_name(name):
        raise UsageError(
            f"{name!r} is not a valid entry name", hints=["allowed: letters, digits, dots and dashes"]
        )
    tree = llvm_tree.read(path)
    if tree.prefix.resolve().is_relative_to(store.root.resolve()):
        raise UsageError("this is in the store already", where=tree.prefix)
    if not describe_tree.libraries(tree.prefix):
        raise FactError("this LLVM is configured, but not built", where=tree.prefix)
    # Before anything else is read, so that any change from now on is noticed.
    looks = describe_tree.looks(tree.prefix)
    known, notes = _known(tree)
    before = next((entry for entry in store.entries() if _is(entry, tree)), None)
    if before and name and name != before.name:
        hints = [f"`{command('store --forget', before.name)}` removes it from the store"]
        raise UsageError(
            f"this LLVM is already in the store as {before.name}", where=tree.prefix, hints=hints
        )
    if before and not before.name.endswith(_mark(tree)):
        name = before.name  # a user chose it
    name = name or _name(tree)
    if any(entry.name == name and entry != before for entry in store.entries()):
        hints = ["choose another with --name"]
        raise UsageError(f"the name {name!r} is taken", where=store.path(name), hints=hints)
    manifest = describe_tree.manifest(name, "adopted", tree, machine, known, str(tree.prefix))
    manifest = replace(manifest, looks=looks)
    another = before is not None and before.name != name  # the generated name then was of another LLVM
    gone = forget(store, before).steps if before and another else ()
    return manifest, Plan(f"adopt {tree.prefix}", (*gone, *store.publish(manifest)), notes)


def _is(entry: StoreEntry, tree: LlvmTree) -> bool:
    """Report whether an entry is this same tree, adopted."""
    have = entry.manifest
    return bool(have and have.kind == "adopted" and Path(have.tree).resolve() == tree.prefix.resolve())


def _known(tree: LlvmTree) -> tuple[Known, tuple[str, ...]]:
    """Return facts from a build tree's sources and Ninja, and notes on its limits.

    An installed LLVM counts as complete; its packages, programs and targets show what it lacks.
    """
    source = llvm_tree.source_of(tree.prefix)
    if source is None:
        return Known(), ()
    head = git.head(source)
    diff = (git.changes(source) or "unknown") if head.dirty else ""
    notes = []
    if diff:
        notes.append(f"its sources in {source} are modified, so no environment will use it")
    part = _why_a_part(tree.prefix)
    if part:
        notes.append(f"{part}. No environment will use it until the build is complete and adopted again")
    return Known(diff=diff, scope="python-module" if part else "all", source=str(source)), tuple(notes)


def _why_a_part(build: Path) -> str:
    """Return the reason why a build tree is incomplete; empty if Ninja has nothing left to build."""
    # An LLVM that is half built would be chosen for an environment, and fail only in Triton's links.
    ninja = tools.own("ninja")
    if ninja is None:
        return "no Ninja to check what is built"
    try:
        left = explain.dry_run(ninja.path, build, ("all",))
    except FactError as error:
        return f"Ninja cannot check the build ({error.why or error.what})"
    if left.regeneration:
        return "CMake would reconfigure it"
    return f"build steps left: {len(left.steps)}" if left.steps else ""


def _name(tree: LlvmTree) -> str:
    """Return a name like those of builds, with a mark of the prefix."""
    source = tree.commit[:12] or f"{tree.prefix.name}-{tree.version}"
    asserts = "-asserts" if tree.assertions else ""
    plain = f"{source}-{tree.build_type or 'any'}{asserts}{_mark(tree)}"
    return re.sub(r"[^A-Za-z0-9._+]+", "-", plain).strip("-.")


def _mark(tree: LlvmTree) -> str:
    """Return a mark that distinguishes prefixes in generated names."""
    # Several prefixes may hold the same commit, in the same build type.
    return f"-{digest(str(tree.prefix.resolve()))[:8]}"


def forget(store: Store, entry: StoreEntry) -> Plan:
    """Plan to unregister an adopted LLVM.

    Raises:
        UsageError: the entry was not adopted.
    """
    if entry.manifest is None or entry.manifest.kind != "adopted":
        raise UsageError(
            f"{entry.name} is not an adopted entry",
            where=entry.path,
            hints=[f"`{command('store --gc', name=entry.name)}` deletes it"],
        )
    # The records only: the tree is its owner's.
    paths = (store.manifest(entry.name), store.root / f"{entry.name}.used")
    return Plan(f"forget {entry.name}", (Remove(paths, store.owner, phase=PHASE),))


def is_url(place: str) -> bool:
    """Report whether a location is on another machine, or in an object store."""
    return "://" in place and not place.startswith("file://")


def is_web(place: str) -> bool:
    """Report whether a location is fetched over HTTP."""
    return place.startswith(_WEB)


def local(place: str) -> Path:
    """Return the path of a path or `file://` URL."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return Path(place).expanduser().absolute()


def shown(place: str) -> str:
    """Return a location for the record: without passwords and signatures of signed URLs."""
    return redact.hidden(place.partition("?")[0] if is_url(place) else place)


def checksum(place: str) -> str:
    """Read the checksum of an archive, at a path or URL, from the file beside it.

    Raises:
        DownloadError: the checksum does not exist, or cannot be read.
        UsageError: the file has no checksum.
    """
    beside = _beside(place)
    text = _read(beside)
    match = _HEX.match(text.strip())
    if not match:
        raise UsageError("not a SHA-256 checksum", where=shown(beside), hints=["give one with --sha256 HEX"])
    return match[0].lower()


def _beside(place: str) -> str:
    # A signed URL has its signature behind the path, and the ending belongs before it.
    path, mark, query = place.partition("?") if is_web(place) else (place, "", "")
    return f"{path}.sha256{mark}{query}"


def _read(place: str) -> str:
    hints = ["give the expected one with --sha256 HEX", "an interrupted export has none: export again"]
    try:
        if is_web(place):
            return download.text(place)
        return fetch.object_text(place) if is_url(place) else untrusted.read_text(local(place))
    except DownloadError as error:
        why = error.why or error.what
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise DownloadError("no checksum beside this archive", where=shown(place), why=why, hints=hints)
