"""Group `builds`: builds, compared with the current state of their sources and LLVM."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.build import compile_commands
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Link, Move, locks
from tritonsmith.doctor.check import (
    DoctorContext,
    Finding,
    NotApplicableError,
    Status,
    check,
    error,
    note,
    ok,
    skipped,
    warning,
)
from tritonsmith.facts import build_folder, llvm_tree, machine
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import libtriton as libtriton_file
from tritonsmith.facts.build_folder import CmakeCache
from tritonsmith.facts.checkout import TritonCheckout

_PACKAGES = ("LLVM_DIR", "MLIR_DIR", "LLD_DIR", "LLVM_SYSPATH")
_LINKED = ("backends", "language/extra", "tools/extra", "profiler")
_LINES = 4  # lines of a failed build's reason
_AFTER = 60.0  # maximum seconds between the end of a link and its receipt


@check("builds.llvm", "the LLVM that was set up or last built against")
def llvm(subject: DoctorContext) -> Iterator[Finding]:
    """Check that the LLVM still exists, and still matches the receipt."""
    receipt, built = subject.receipt("setup-mlir") or {}, subject.receipt("build-triton") or {}
    prefix = _text(receipt, "prefix") or _text(built, "llvm")
    if not prefix:
        raise NotApplicableError("no LLVM was set up in this environment")
    mend: dict[str, Any] = {"commands": (command("setup-mlir", env=subject.named),)}
    try:
        tree = llvm_tree.read(Path(prefix))
    except FactError as failure:
        text = f"the LLVM no longer exists: {failure.why or failure.what}"
        yield error(text, prefix, affects="Triton cannot be built", **mend)
        return
    # An env with `--llvm-dir` never ran setup-mlir: only the build's own receipt tells which LLVM it had.
    was = _text(receipt, "commit") if receipt else _text(built, "llvm_commit")
    if was and not llvm_tree.same_commit(tree.commit, was):
        text = f"set up at {_short(was)}, now at {_short(tree.commit)}"
        affects = "builds against the old LLVM no longer match"
        yield warning(text, str(tree.prefix), affects=affects, **mend)
    else:
        kind = tree.build_type or "build type unknown"
        source = _text(receipt, "provider") or "--llvm-dir"
        yield ok(f"LLVM {tree.version} ({kind}), from {source}", tree.prefix)


@check("builds.triton", "the built Triton against its sources")
def triton(subject: DoctorContext) -> Iterator[Finding]:
    """Compare the receipt's commit and pin with the checkout's."""
    receipt = subject.receipt("build-triton") or {}
    source = _text(receipt, "source")
    if not source:
        raise NotApplicableError("no Triton was built in this environment")
    mend: dict[str, Any] = {"commands": (command("build-triton", env=subject.named, source=source),)}
    try:
        tree = _checkout_at(Path(source), subject)
    except SmithError as failure:
        yield error(
            f"the sources cannot be read: {failure.why or failure.what}",
            source,
            affects="Triton cannot be rebuilt",
        )
        return
    kind = _text(receipt, "build_type") or "build type unknown"
    text = f"Triton {_text(receipt, 'version') or tree.version} ({kind})"
    commit, pin = _text(receipt, "commit"), _text(receipt, "pin")
    if tree.commit and tree.commit != commit:
        difference = f"{text} was built at {_short(commit)}, the checkout is at {_short(tree.commit)}"
        yield warning(
            difference, source, affects="the code that runs is not the code in the checkout", **mend
        )
    # The commit is the same, and the pin is not: the pin file is edited and not committed.
    elif tree.pin and not llvm_tree.same_commit(tree.pin.commit, pin):
        difference = f"{text} was built for LLVM {_short(pin)}, the checkout pins {_short(tree.pin.commit)}"
        yield warning(difference, source, affects="the next build may not compile", **mend)
    else:
        yield ok(text, source)


@check("builds.last", "how the last build of Triton ended")
def last(subject: DoctorContext) -> Iterator[Finding]:
    """Report a build that failed or was stopped: where, and why."""
    attempt = receipts.unfinished(subject.env)
    if attempt is None:
        built = receipts.succeeded(subject.env)
        yield ok("it succeeded", _text(built, "source")) if built else skipped("nothing was built here")
        return
    # The record of a build is written when it begins: one that is running looks like one that was killed.
    if holder := locks.holder(subject.env.lock):
        raise NotApplicableError(f"a build is running now: {holder}")
    kind = _text(dict(attempt.content), "build_type")
    backends = [str(name) for name in attempt.content.get("backends") or ()]
    again = command(
        attempt.task,
        env=subject.named,
        source=_text(dict(attempt.content), "source"),
        build_type=kind,
        backends=",".join(backends) if backends != list(subject.settings.triton.backends) else None,
    )
    mend: dict[str, Any] = {
        "affects": "the build is incomplete, or older than requested",
        "commands": (again,),
    }
    attempted = f"{attempt.task} ({kind}) of {attempt.when[:16].replace('T', ' ')} UTC"
    if attempt.interrupted or not attempt.what:
        how = "was stopped by ^C" if attempt.interrupted else "was killed before it finished"
        yield warning(f"{attempted} {how}", attempt.log, remedy="run the same command to continue", **mend)
        return
    reason = " / ".join(line.strip() for line in attempt.why.splitlines()[:_LINES])
    where = attempt.where if attempt.where != attempt.log else ""
    text = (
        f"{attempted}: {attempt.what}" + (f"; {where}" if where else "") + (f": {reason}" if reason else "")
    )
    remedy = f"the full error is in the log: {attempt.log}"
    yield error(text, attempt.log, remedy=remedy, **mend)


def _text(receipt: dict[str, Any], key: str) -> str:
    """Return a receipt's value; empty if the receipt predates the key."""
    return str(receipt.get(key) or "")


def _short(commit: str) -> str:
    return commit[:12] or "an unknown commit"


def _checkout_at(root: Path, subject: DoctorContext) -> TritonCheckout:
    """Return the sources of a build, without reading the doctor's own checkout again."""
    at_hand = subject.checkout
    return at_hand if at_hand and at_hand.root == root else checkouts.read(root)


@check("builds.cmake-paths", "folders and programs named in CMake's cache")
def cmake_paths(subject: DoctorContext) -> Iterator[Finding]:
    """Report folders and programs in CMake's cache that no longer exist."""
    caches = list(_caches(subject))
    if not caches:
        raise NotApplicableError("nothing is configured")
    broken = [_gone(cache, gone) for cache in caches if (gone := list(cache.gone()))]
    yield from broken or [ok(f"all exist, in {len(caches)} caches", caches[0].file)]


def _gone(cache: CmakeCache, gone: list[tuple[str, Path]]) -> Finding:
    # With build isolation, pip installs CMake and Ninja in a temporary environment and deletes it after the
    # build, while CMake's cache goes on naming them.
    isolated = any("pip-build-env" in str(path) for _, path in gone)
    name, path = gone[0]
    more = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
    return error(
        f"{name} is {path}, which no longer exists{more}",
        str(cache.file),
        affects="Ninja reconfigures and fails",
        remedy="pip's isolated build environment had it: install with --no-build-isolation (triton#5076)"
        if isolated
        else "reconfigure: the cache is moved aside, and the next build writes a new one",
        commands=("invoke build-triton --reconfigure",),
        fix=_aside(cache),
    )


@check("builds.cmake-llvm", "the LLVM that CMake's cache points to")
def cmake_llvm(subject: DoctorContext) -> Iterator[Finding]:
    """Check the LLVM in CMake's cache."""
    # A cached `LLVM_DIR`, or an earlier `-D`, outlives the variable that set it (Triton 3.7 and later).
    caches, prefix = list(_caches(subject)), subject.llvm_prefix
    if not caches or prefix is None:
        raise NotApplicableError("nothing is configured" if not caches else "no LLVM is set up")
    mixed = [finding for cache in caches for finding in _other_llvm(cache, prefix)]
    yield from mixed or [ok(f"the one in {prefix}", caches[0].file)]


def _other_llvm(cache: CmakeCache, prefix: Path) -> Iterator[Finding]:
    for name in _PACKAGES:
        value = cache.get(name)
        # CMake writes `LLVM_DIR-NOTFOUND` where it found none, which is no other LLVM.
        if value.startswith("/") and not _below(Path(value), prefix):
            yield error(
                f"{name} is {value}; expected the LLVM in {prefix}",
                str(cache.file),
                affects="the build mixes two LLVMs, or silently uses the old one",
                remedy="reconfigure: the cache is moved aside, and the next build writes a new one",
                commands=("invoke build-triton --reconfigure",),
                fix=_aside(cache),
            )
            return


def _below(path: Path, prefix: Path) -> bool:
    """Report whether a path lies below a prefix, by name or after links are followed."""
    # CMake records some paths with links followed, and others as given.
    return path.is_relative_to(prefix) or path.resolve().is_relative_to(prefix.resolve())


def _aside(cache: CmakeCache) -> tuple[Move, ...]:
    """Return the step that moves CMake's cache away, so that the next configure starts from scratch."""
    # Not a removal: moving the file back undoes the fix.
    beside = machine.free_name(cache.file, ".stale")
    return (Move(cache.file, beside, phase="stale CMake caches"),)


def _caches(subject: DoctorContext) -> Iterator[CmakeCache]:
    """Yield the caches of the env's CMake build folder, and of those that pip created in the checkout."""
    folders = [subject.env.build]
    if subject.checkout:
        folders += sorted(subject.checkout.setup_dir.glob("build/cmake.*"))
    # The same folder may come twice, as install-triton links pip's to that of the build. Read backwards, the
    # first name wins, which is the one that the user knows.
    folder_of = {folder.resolve(): folder for folder in reversed(folders)}
    for folder in reversed(folder_of.values()):
        if cache := build_folder.read_cmake_cache(folder):
            yield cache


@check("builds.libtriton", "the libtriton.so in the checkout, and who built it")
def libtriton(subject: DoctorContext) -> Iterator[Finding]:
    """Find the libtriton.so of the checkout: one file, whichever env, Python or build type built it last."""
    tree = subject.need_checkout()
    folder = tree.root / "python" / "triton" / "_C"
    # Not libtriton_amd_codegen.so (triton#11485).
    libraries = sorted(folder.glob("libtriton.*so"))
    if not libraries:
        yield skipped(f"no libtriton.so in {folder}")
    elif len(libraries) > 1:
        yield error(
            f"{len(libraries)} of them: {', '.join(path.name for path in libraries)}",
            str(folder),
            affects="which one is imported depends on the Python version; the others are stale (triton#4995)",
            remedy="keep the one for your Python, and move the others away",
        )
    else:
        yield _built_by(libraries[0], subject)


def _built_by(library: Path, subject: DoctorContext) -> Finding:
    """Return the first difference from the last build of this environment."""
    name, checkout = subject.settings.name, library.parents[3]
    receipt = subject.receipt("build-triton") or {}
    mend: dict[str, Any] = {
        "affects": "the build that runs is not the one you expect (triton#4272)",
        "commands": (command("install-triton", env=subject.named, source=checkout),),
    }
    if Path(_text(receipt, "source")) != library.parents[3]:
        return note(f"not built in environment {name!r}", str(library), **mend)
    # Only the first: one foreign build differs in several ways, and one command repairs them all.
    for grave, difference in _differences(library, receipt, subject):
        return Finding(grave, difference, str(library), **mend)
    return ok(f"{_text(receipt, 'build_type') or 'build type unknown'}, by environment {name!r}", library)


def _differences(
    library: Path, receipt: dict[str, Any], subject: DoctorContext
) -> Iterator[tuple[Status, str]]:
    # Never empty: this environment's own receipt names these sources, as the caller has checked.
    newest, last = max(_builders(subject, _text(receipt, "source")))
    if newest != _finished(receipt) and last != subject.settings.name:
        yield "warning", f"environment {last!r} was the last to build it"
    # The receipt is written a moment after the link.
    if newest and library.stat().st_mtime > newest + _AFTER:
        yield "warning", "it is newer than this environment's last build: something else built it"
    python, was = subject.packages, _text(receipt, "python")
    if python and was and not was.startswith(python.minor + "."):
        yield "error", f"built for Python {was}, the environment has {python.version}"
    holds, meant = libtriton_file.read(library).llvm_commit, _text(receipt, "llvm_commit")
    if holds and meant and not llvm_tree.same_commit(holds, meant):
        yield "warning", f"it contains LLVM {_short(holds)}, the last build used {_short(meant)}"
    cache = build_folder.read_cmake_cache(subject.env.build)
    kind, built = cache.get("CMAKE_BUILD_TYPE") if cache else "", _text(receipt, "build_type")
    if kind and built and kind != built:
        yield "warning", f"configured as {kind}, built as {built}"


def _builders(subject: DoctorContext, source: str) -> Iterator[tuple[float, str]]:
    """Yield the environments that built these sources, with the time in seconds since the epoch."""
    for path in subject.space.root.glob("envs/*/receipts/*-triton.json"):
        receipt = receipts.read(path)
        if receipt and receipt.get("source") == source:
            yield _finished(receipt), path.parents[1].name


def _finished(receipt: dict[str, Any]) -> float:
    """Return the time in seconds since the epoch; 0 if the receipt does not record it."""
    try:
        return datetime.fromisoformat(_text(receipt, "finished")).timestamp()
    except ValueError:
        return 0.0


@check("builds.backends", "links from python/triton into third_party")
def backends(subject: DoctorContext) -> Iterator[Finding]:
    """Find dangling links into third_party."""
    # Triton takes whatever is in `backends` for a backend, so a dangling link is not merely useless
    # (triton#5570).
    tree = subject.need_checkout()
    package = tree.root / "python" / "triton"
    places = [package / name for name in _LINKED]
    links = [path for place in places for path in (place, *sorted(place.glob("*"))) if path.is_symlink()]
    dangling = [path for path in links if not path.exists()]
    for path in dangling:
        text = f"{path.name} points to {path.readlink()}, which no longer exists"
        if path.parent.name == "backends" and path.name not in subject.settings.triton.backends:
            remedy = "not a backend of this environment: the link can be deleted"
            yield note(text, str(path), remedy=remedy, commands=(shlex.join(("rm", str(path))),))
            continue
        yield error(
            text,
            str(path),
            affects="`0 active drivers`, or an import error (triton#5570)",
            remedy="reinstall: upstream's setup.py creates the links it needs; delete any that still dangle",
            commands=(command("install-triton", env=subject.named),),
        )
    if not dangling:
        yield ok(f"{len(links)} links, none dangling", package)


@check("builds.compile-commands", "compile_commands.json at the checkout's root")
def database(subject: DoctorContext) -> Iterator[Finding]:
    """Check the file that clangd reads, and that can make upstream's setup.py fail."""
    tree = subject.need_checkout()
    place = compile_commands.database_link(tree.root)
    merged = subject.env.path / compile_commands.COMPILE_COMMANDS
    mend: dict[str, Any] = {"commands": (command("link-compile-commands", env=subject.named),)}
    if place.state == "absent":
        yield skipped("none; `invoke link-compile-commands` creates it")
    elif place.state == "link" and not place.path.exists():
        text = f"a link to {place.path.readlink()}, which no longer exists"
        fix = (Link(place.path, merged, phase="compile commands"),) if merged.is_file() else ()
        yield warning(text, str(place.path), affects="clangd finds no commands", fix=fix, **mend)
    elif place.state in ("file", "folder"):
        # setup.py removes what is in the way of its link: a folder goes with all of its contents, while a
        # file makes it fail.
        grave: Any = "error" if place.state == "folder" else "note"
        does = "delete it" if place.state == "folder" else "fail on it"
        affects = f"setup.py of Triton 3.5 and later would {does}"
        yield Finding(grave, f"a {place.state}, not a link", str(place.path), affects=affects, **mend)
    else:
        yield ok(f"a link to {place.path.resolve()}", place.path)
