"""`store.import`: turn an archive of another store into an entry of this one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build.store import entry as entries
from tritonsmith.build.store import matching, remote
from tritonsmith.build.store.entry import Abi, StoreManifest
from tritonsmith.build.store.store import Store
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import DownloadError, FactError, PreflightError
from tritonsmith.core.plan import Download, Plan, Remove, Stamp, Write
from tritonsmith.core.plan.steps import pack, store_entry
from tritonsmith.core.plan.steps.fetch import VerifyChecksum
from tritonsmith.core.plan.steps.object_store import Obtain
from tritonsmith.core.plan.steps.pack import ARRIVED, Unpack
from tritonsmith.core.plan.steps.store_entry import RemoveLeftovers
from tritonsmith.facts.machine import Machine

PHASE_FETCH = "fetch"
PHASE_VERIFY = "verify"
PHASE_UNPACK = "unpack"


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


def locate(place: str, space: Workspace, sha256: str = "") -> ImportSource:
    """Find an archive and its checksum, by default in the file beside it, and plan to fetch it.

    `place` is a path, `file://`, `http(s)://`, or a URL of an object store.

    Raises:
        DownloadError: the archive or its checksum does not exist.
    """
    if not remote.is_url(place) and not remote.local(place).is_file():
        raise DownloadError(
            "no such archive",
            where=remote.local(place),
            hints=["`invoke store.export NAME DEST` creates one, on the machine that has the entry"],
        )
    expected = sha256.lower() or remote.checksum(place)
    if not remote.is_url(place):
        archive = remote.local(place)
        # A local archive is used where it lies: it may be larger than what the disk has left.
        check = VerifyChecksum(archive, expected, phase=PHASE_VERIFY)
        return ImportSource(place, expected, archive, Plan(f"verify {archive.name}", (check,)), fetched=False)
    name = remote.shown(place).rstrip("/").rsplit("/", 1)[-1]
    archive = space.downloads / f"{expected[:12]}-{name}"
    step = (Download if remote.is_web(place) else Obtain)(place, expected, archive, phase=PHASE_FETCH)
    return ImportSource(place, expected, archive, Plan(f"fetch {name}", (step,)), fetched=True)


def prepare(
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
                f"or delete it: `{command('store.gc', name=name)}`",
            ],
        )
    if not there and not stamp.holds() and store.path(name).exists():
        raise FactError(
            "an unfinished build has the name of this archive",
            where=store.path(name),
            hints=["finish it: `invoke setup-mlir`", f"or delete it: `{command('store.gc', name=name)}`"],
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
    head = pack.peek(source.archive)
    try:
        manifest = entries.parse_table(head["manifest"])
    except ValueError as error:
        raise DownloadError("not an archive of a store", where=source.archive, why=str(error)) from error
    return replace(
        manifest, kind="imported", tree=manifest.name, source="", origin=remote.shown(source.place)
    )


def _check_machine(manifest: StoreManifest, here: Machine, source: ImportSource) -> None:
    ours = Abi(here.system, here.arch, here.glibc, here.glibcxx)
    if problems := matching.foreign(manifest.abi, ours):
        raise PreflightError(
            "the LLVM in this archive is for another machine",
            where=remote.shown(source.place),
            why="\n".join(problems),
            hints=[
                "an archive that was exported on the team's oldest system runs on all systems",
                "--force imports it anyway",
            ],
        )
