"""`store.import`: an archive of a store becomes an entry of this one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import DownloadError, FactError, PreflightError
from tritonsmith.facts.machine import Machine
from tritonsmith.plan import Download, Plan, Remove, Write
from tritonsmith.plan.steps import Stamp, pack, store_entry
from tritonsmith.plan.steps.object_store import Obtain
from tritonsmith.plan.steps.pack import ARRIVED, Unpack, VerifyChecksum
from tritonsmith.plan.steps.store_entry import RemoveLeftovers
from tritonsmith.store import entry as entries
from tritonsmith.store import matching, remote
from tritonsmith.store.entry import Abi, StoreManifest
from tritonsmith.store.store import Store

PHASE_FETCH = "fetch"
PHASE_VERIFY = "verify"
PHASE_UNPACK = "unpack"


@dataclass(frozen=True)
class ImportSource:
    """An archive, and how it comes here.

    Attributes:
        place: path or URL, as it was given.
        sha256: what it must be.
        archive: where it lies, once the plan has run.
        plan: what fetches it, or verifies one that lies on this machine.
        fetched: it was brought here only to be unpacked.
    """

    place: str
    sha256: str
    archive: Path
    plan: Plan
    fetched: bool


@dataclass(frozen=True)
class StoreImport:
    """An import, prepared.

    Attributes:
        manifest: of the entry that comes about.
        plan: what it does; empty if the entry is there.
        there: the entry is there already.
    """

    manifest: StoreManifest
    plan: Plan
    there: bool


def locate(place: str, space: Workspace, sha256: str = "") -> ImportSource:
    """Find an archive and its checksum, and plan how it comes here.

    Args:
        place: path, `file://`, `http(s)://`, or URL of an object store.
        space: where archives are fetched to.
        sha256: what it must be; empty for what the file beside it says.

    Raises:
        DownloadError: the archive or its checksum is not there.
    """
    if not remote.is_url(place) and not remote.local(place).is_file():
        raise DownloadError(
            "there is no such archive",
            where=remote.local(place),
            hints=["`invoke store.export NAME DEST` makes one, on the machine that has the entry"],
        )
    expected = sha256.lower() or remote.checksum(place)
    if not remote.is_url(place):
        archive = remote.local(place)
        check = VerifyChecksum(archive, expected, phase=PHASE_VERIFY)
        return ImportSource(place, expected, archive, Plan(f"verify {archive.name}", (check,)), fetched=False)
    name = remote.shown(place).rstrip("/").rsplit("/", 1)[-1]
    archive = space.downloads / f"{expected[:12]}-{name}"
    step = (Download if remote.is_web(place) else Obtain)(place, expected, archive, phase=PHASE_FETCH)
    return ImportSource(place, expected, archive, Plan(f"fetch {name}", (step,)), fetched=True)


def prepare(
    source: ImportSource, store: Store, space: Workspace, here: Machine, *, force: bool = False
) -> StoreImport:
    """Make the plan for an archive that is here by now.

    Args:
        source: from `locate`, whose plan has run.
        store: where to.
        space: what was fetched to it goes once it is unpacked.
        here: this machine, which must be able to run what is in it.
        force: go on in spite of that.

    Raises:
        DownloadError: it is no archive of a store.
        PreflightError: it is for another kind of machine.
        FactError: an unfinished build is in its place, or an entry that cannot be read.
    """
    manifest = _manifest(source)
    if not force:
        _check_machine(manifest, here, source)
    name = manifest.name
    stamp = Stamp(store.path(name) / ARRIVED, source.sha256)
    before = store.entry(name) if store.manifest(name).exists() else None
    there = before is not None and before.status == "ready"
    if before and before.status == "unreadable":
        raise FactError(
            "an entry of that name is there, and cannot be read",
            where=store.manifest(name),
            why=before.problem,
            hints=[
                f"its owner can open it to others: chmod -R g+rX {shlex.quote(str(store.path(name)))}*",
                "for all that come: umask 002, as docs/store.md says of stores that are shared",
                f"or delete it: `invoke store.gc --name {name}`",
            ],
        )
    if not there and not stamp.holds() and store.path(name).exists():
        raise FactError(
            "an unfinished build is in the place of this archive",
            where=store.path(name),
            hints=["finish it: `invoke setup-mlir`", f"or delete it: `invoke store.gc --name {name}`"],
        )
    scratch = store.root / f"{store_entry.INCOMING}{name}"
    steps = (
        RemoveLeftovers(store.root, store.owner, must=False, phase=PHASE_UNPACK),
        Remove((scratch,), store.owner, phase=PHASE_UNPACK),  # the sweep passes over what is held
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
    """As the entry's will be."""
    head = pack.peek(source.archive)
    try:
        manifest = entries.parse_table(head["manifest"])
    except ValueError as error:
        raise DownloadError("this is no archive of a store", where=source.archive, why=str(error)) from error
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
                "one that was exported on the oldest system of the team runs on all of them",
                "--force imports it all the same",
            ],
        )
