"""Group `caches`: the compile caches of Triton and TorchInductor.

A cache may hold 100,000 entries, and the doctor should be quick: it checks as many of them, and reads
as many files, as `configs/triton-cache.toml` allows, and reports when that is only a part.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.core import configs, redact
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan.steps.cache_entries import RemoveEntries
from tritonsmith.core.text import byte_size, entry_count, short_age
from tritonsmith.core.untrusted import SeenEntry
from tritonsmith.doctor import cache_clear
from tritonsmith.doctor.check import (
    DoctorContext,
    Finding,
    NotApplicableError,
    check,
    note,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import installed_tritons, machine, triton_cache
from tritonsmith.facts.installed_tritons import InstalledTriton
from tritonsmith.facts.triton_cache import CacheEntry, Content

if TYPE_CHECKING:
    from tritonsmith.worker.messages import Fill, FillHead

_GIB = float(1 << 30)
_NANOSECONDS = 1_000_000_000
_HOUR = 3600.0
_PHASE = "remove leftovers"
_NOTHING = "no cache yet"
_NOT_FILLED = "no cache was filled"


@check("caches.size", "size and age of Triton's caches")
def size(subject: DoctorContext) -> Iterator[Finding]:
    """Report the size of all caches together, and name the current one."""
    contents = [content for content in subject.caches if content.total]
    entries = _looked_at(contents)
    if not entries:
        raise NotApplicableError(_NOTHING)
    limits = _limits()
    total = sum(content.total for content in contents)
    about = sum(_whole_size(content) for content in contents)
    # Of the entries looked at only: with more than the limit allows, an older one
    # may exist, as `part` says.
    oldest = short_age(time.time() - min(entry.changed for entry in entries) / _NANOSECONDS)
    part = _part(entries, total)
    many = "1 cache" if len(contents) == 1 else f"{len(contents)} caches"
    text = f"{entry_count(total)} in {many}, {byte_size(about)}, the oldest {oldest} old{part}"
    where = str(max(contents, key=_whole_size).root.path)
    if about > limits["size-gib"] * _GIB or total > limits["count"]:
        yield note(
            text,
            where,
            affects="disk space; Triton never removes entries, and every rebuild orphans all of them",
            remedy="clear old entries, or those that no installed Triton made",
            commands=("invoke clear-cache --older-than 30d", "invoke clear-cache --stale"),
        )
    else:
        yield ok(text, where)


@check("caches.stale", "entries made by another Triton")
def stale(subject: DoctorContext) -> Iterator[Finding]:
    """Count stale entries by the version in the metadata, or, if there is none, by the form of the name."""
    contents = subject.caches
    entries = _newest(_looked_at(contents))
    installed = installed_tritons.find(subject.environ, subject.space, subject.packages)
    if not entries:
        raise NotApplicableError(_NOTHING)
    total = sum(content.total for content in contents)
    spellings = Counter(entry.era for entry in entries if entry.era)
    known = {era.name: era.versions for era in triton_cache.eras()}
    eras = ", ".join(f"{count} {era} ({known[era]})" for era, count in spellings.most_common())
    part = _part(entries, total)
    if not installed:
        raise NotApplicableError(f"no Triton installed to compare with; entry names: {eras}{part}")
    verdicts = Counter(cache_clear.staleness(entry, installed) for entry in entries)
    versions = ", ".join(sorted({triton.version for triton in installed}))
    unknown = f", {verdicts['unknown']} undecided" if verdicts["unknown"] else ""
    text = f"{verdicts['stale']} of {len(entries)} by a Triton other than {versions}{unknown}; {eras}{part}"
    where = str(max(contents, key=lambda content: content.total).root.path)
    if verdicts["stale"]:
        yield note(
            text,
            where,
            affects="disk space only: no installed Triton will use them",
            remedy="clear them",
            commands=("invoke clear-cache --stale --all",),
        )
    else:
        yield ok(text, where)


@check("caches.leftovers", "leftovers of killed compiles")
def leftovers(subject: DoctorContext) -> Iterator[Finding]:
    """Find unfinished writes of dead processes, empty files, and leftovers of this tool's own runs."""
    contents = subject.caches
    entries = _looked_at(contents)
    steps = [step for content in contents if (step := _removal(content, time.time()))]
    if not entries and not steps:
        raise NotApplicableError(_NOTHING)
    part = _part(entries, sum(content.total for content in contents))
    if not steps:
        yield ok(f"none in {entry_count(len(entries))}{part}")
        return
    # The name of an entry has no `tmp.`; that of an unfinished write, or of a bundle, always has.
    names = [leftover.name for step in steps for leftover in step.entries]
    empty = sum("tmp." not in name for name in names)
    what = [f"{empty} with empty files"] if empty else []
    what += [f"{len(names) - empty} unfinished"] if len(names) > empty else []
    what += (
        ["files that an interrupted run of this tool has left"]
        if any(content.trash for content in contents)
        else []
    )
    example = f", such as {names[0]}" if names else ""
    yield warning(
        f"{' and '.join(what)}{example}{part}",
        str(steps[0].root),
        affects="an empty file fails to load every time" if empty else "disk space",
        remedy="remove them",
        commands=("invoke doctor --fix --only caches.leftovers",),
        fix=tuple(steps),
    )


@check("caches.dangling", "indexes that name missing files")
def dangling(subject: DoctorContext) -> Iterator[Finding]:
    """Find kernels whose index names missing files."""
    contents = subject.caches
    everything = _looked_at(contents)
    kernels = [entry for entry in everything if entry.kind == "kernel"]
    entries = _newest(kernels)
    if not entries:
        raise NotApplicableError("no compiled kernel yet")
    # Since 3.0 an index names absolute paths, which dangle once the cache is moved, copied or swept.
    broken = [(entry, gone[0]) for entry in entries if (gone := triton_cache.dangling_stages(entry))]
    others = len(everything) - len(kernels)
    # Groups and autotuner results have no index, so they are not among what could have been checked.
    part = _part(entries, sum(content.total for content in contents) - others)
    if not broken:
        yield ok(f"all files of {len(entries)} kernels exist{part}")
        return
    entry, path = broken[0]
    where = entry.root.path
    yield warning(
        f"{len(broken)} of {len(entries)} kernels name missing files, such as {path}{part}",
        entry.path,
        affects="before 3.8 such a kernel may fail to load (triton#10411); later versions recompile it",
        remedy="clear this cache: it was moved, copied or swept, and is unusable in its current place",
        commands=(command("clear-cache", root=where),),
    )


@check("caches.filled", "caches filled by cache.fill")
def filled(subject: DoctorContext) -> Iterator[Finding]:
    """Find filled caches that no installed Triton uses any more, and tell why."""
    roots = [content.root for content in subject.caches]
    roots = [root for root in roots if os.path.lexists(root.real / triton_cache.RECORD)]
    if not roots:
        raise NotApplicableError(_NOT_FILLED)
    # Only here, since few machines have such a cache, and the doctor is quick without a compiler.
    from tritonsmith.compiler import fill  # noqa: PLC0415

    fills = []
    unreadable = []
    for root in roots:
        try:
            record = fill.read_record(root.real)
        except FactError as error:
            unreadable.append((root, error))
        else:
            fills += [(root, each) for each in record.fills] if record else []
    if not fills and not unreadable:
        raise NotApplicableError(_NOT_FILLED)
    for root, problem in unreadable:
        yield warning(
            _one_line("; ".join(filter(None, (problem.what, problem.why)))),
            str(root.path),
            affects="nothing tells whether an installed Triton uses the cache; cache.fill adds nothing to it",
            remedy="use the version of tritonsmith that has written it, or restore or remove the record",
        )
    installed = installed_tritons.find(subject.environ, subject.space, subject.packages)
    here = _Here(subject)
    useful = 0
    for root, each in fills:
        reasons = _reasons(root.real, each, installed, here)
        useful += not reasons
        if reasons:
            # The record may come from anywhere: what it says must not move the cursor.
            text = f"useless for Triton {each.head.triton}, {each.target}: {'; '.join(reasons)}"
            yield warning(
                _one_line(text),
                str(root.path),
                affects="programs compile the kernels again that the cache was filled with",
                remedy="fill it again, with the Triton and in the place where it will be used",
                commands=(command("cache.fill", "captured.toml", into=root.path),),
            )
    if useful:
        yield ok(f"{useful} of {len(fills)} fills are of use to an installed Triton", str(fills[0][0].path))


def _one_line(text: str) -> str:
    return redact.printable(text).replace("\n", "\\n")


class _Here:
    """Asks each interpreter once for each target what it would fill a cache for."""

    def __init__(self, subject: DoctorContext) -> None:
        self._space = subject.space
        self._known: dict[tuple[Path, str], FillHead | None] = {}

    def facts(self, python: Path, target: str) -> FillHead | None:
        """Return the answer of an interpreter; None if it has none."""
        from tritonsmith.compiler import fill  # noqa: PLC0415 - as in `filled`

        key = (python, target)
        if key not in self._known:
            try:
                self._known[key] = fill.facts_of(python, target, self._space)
            except SmithError:  # the target of a record may be one that this version does not know
                self._known[key] = None
        return self._known[key]


def _reasons(
    cache: Path, filled: Fill, installed: Sequence[InstalledTriton], known: _Here
) -> tuple[str, ...]:
    """Return why no installed Triton uses what was filled; nothing if one does."""
    from tritonsmith.compiler import tritons  # noqa: PLC0415 - as in `filled`
    from tritonsmith.worker.fill import unfit  # noqa: PLC0415

    same = [triton for triton in installed if triton.version == filled.head.triton]
    if not same:
        versions = ", ".join(sorted({triton.version for triton in installed})) or "none"
        return (f"installed: {versions}",)
    reasons: list[tuple[str, ...]] = []
    for triton in same:
        pythons = [path for path in tritons.pythons_of(triton.where) if os.access(path, os.X_OK)]
        here = known.facts(pythons[0], filled.target) if pythons else None
        reasons.append(tuple(unfit(filled, str(cache), here)) if here else ("its Triton does not answer",))
    return min(reasons, key=len)


@check("caches.filesystem", "caches on a network file system")
def filesystem(subject: DoctorContext) -> Iterator[Finding]:
    """Find caches on network file systems, which lack guarantees that Triton's cache relies on."""
    far = []
    kinds = set()
    for content in subject.caches:
        system = machine.file_system_of(content.root.path)
        if system is None:
            continue
        kinds.add(system.kind)
        if system.network:
            far.append((content.root, system))
    if not kinds:
        yield skipped("the system does not report its mounts")
    for root, system in far:
        yield warning(
            f"{system.kind} ({system.mount}) holds the cache {root.label}",
            str(root.path),
            affects="concurrent ranks fail with EBUSY, ESTALE or FileNotFoundError (triton#11512)",
            remedy="put the cache on a local disk of each machine",
            commands=(f"export {_variable(root.kind)}=/tmp/triton-cache-$USER",),
        )
    if kinds and not far:
        yield ok(f"local: {', '.join(sorted(kinds))}")


@check("caches.inductor", "TorchInductor's cache")
def inductor(subject: DoctorContext) -> Iterator[Finding]:
    """Check TorchInductor's cache, which clearing Triton's does not touch."""
    # A link to nowhere exists, too: torch.compile would fail on it.
    folder = triton_cache.inductor_folder(subject.environ)
    if not os.path.lexists(folder):
        raise NotApplicableError("TorchInductor has no cache here")
    if problem := _unusable(folder):
        yield warning(
            problem,
            str(folder),
            affects="torch.compile fails when it writes there",
            remedy="give TorchInductor its own folder",
            commands=("export TORCHINDUCTOR_CACHE_DIR=$HOME/.cache/torchinductor",),
        )
        return
    kernels = sum(content.total for content in subject.caches if content.root.kind == "inductor")
    text = f"including {entry_count(kernels)} of Triton's"
    # TorchInductor sets TRITON_CACHE_DIR to a folder of its own unless the user has set it.
    if kernels and subject.environ.get("TRITON_CACHE_DIR"):
        yield note(
            f"{text}, none in use: TRITON_CACHE_DIR is set, and TorchInductor follows it",
            str(folder),
            affects="disk space only",
            remedy="clear them, or unset TRITON_CACHE_DIR",
            commands=("invoke clear-cache --inductor",),
        )
    else:
        yield ok(f"{text}; `invoke clear-cache --inductor` clears them", folder)


def _limits() -> dict[str, Any]:
    table: dict[str, Any] = configs.load("triton-cache")["doctor"]
    return table


def _looked_at(contents: list[Content] | tuple[Content, ...]) -> list[CacheEntry]:
    return [entry for content in contents for entry in content.entries]


def _newest(entries: list[CacheEntry]) -> list[CacheEntry]:
    """Return the newest entries, as many as the limit on files allows."""
    # The newest: they are what is in use, and what a fault of today has touched.
    return sorted(entries, key=lambda entry: -entry.changed)[: _limits()["files"]]


def _part(entries: list[CacheEntry], total: int) -> str:
    return f" (checked {len(entries)} of {total})" if len(entries) < total else ""


def _whole_size(content: Content) -> int:
    """Return the size in bytes, extrapolated from the entries that were checked."""
    # Names are hashes, so their order in the folder says nothing about the sizes of the entries.
    return round(content.bytes * content.total / len(content.entries)) if content.entries else 0


def _removal(content: Content, now: float) -> RemoveEntries | None:
    """Return the step that removes a cache's leftovers, and nothing that is still of use."""
    abandoned = [leftover for entry in content.entries for leftover in _leftovers(entry, now)]
    if not abandoned and not content.trash:
        return None
    return RemoveEntries(content.root.real, tuple(abandoned), triton_cache.index(), phase=_PHASE)


def _leftovers(entry: CacheEntry, now: float) -> Iterator[SeenEntry]:
    """Yield the whole entry if it has an empty file or is an unfinished bundle; else its temporary files."""
    # An empty file is a hit for Triton, and fails to load each time: the whole entry goes. Of others only
    # what was left unfinished does.
    if (entry.empty or not entry.era) and not cache_clear.reason_to_keep(entry, None, now):
        yield SeenEntry(entry.name, entry.changed)
        return
    old = now - _limits()["leftover-hours"] * _HOUR
    for name, pid in entry.temporary:
        try:
            changed = os.lstat(f"{entry.path}/{name}").st_mtime_ns
        except OSError:  # finished meanwhile
            continue
        if changed / _NANOSECONDS < old or cache_clear.is_abandoned(pid, changed, now):
            yield SeenEntry(f"{entry.name}/{name}", changed)


def _unusable(folder: Path) -> str:
    if not folder.is_dir():
        return "not a folder"
    return "" if os.access(folder, os.W_OK) else f"not writable, owned by user {folder.stat().st_uid}"


def _variable(kind: triton_cache.RootKind) -> str:
    return {
        "inductor": "TORCHINDUCTOR_CACHE_DIR",
        "dump": "TRITON_DUMP_DIR",
        "override": "TRITON_OVERRIDE_DIR",
        "env": "TRITONSMITH_HOME",
    }.get(kind, "TRITON_CACHE_DIR")
