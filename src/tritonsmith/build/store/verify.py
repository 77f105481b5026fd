"""`store --verify`: check that a tree matches its manifest and is undamaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.entry import StoreEntry, StoreManifest
from tritonsmith.build.store.matching import native
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import ar_archive, download
from tritonsmith.core.plan.steps.pack import CHECKSUMS
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree


def problems(entry: StoreEntry, *, quick: bool = False) -> tuple[str, ...]:
    """Return the problems of an entry, in words; empty if there are none.

    `quick` skips checksums, which read every file of an imported tree.
    """
    if entry.manifest is None or entry.status != "ready":
        return (entry.problem or entry.status,)
    try:
        tree = llvm_tree.read(entry.path)
    except (FactError, OSError) as error:
        return (f"cannot read its CMake packages: {error}",)
    return (
        *_says_otherwise(entry.manifest, tree),
        *_archives(entry.path),
        *(() if quick else _checksums(entry.path)),
    )


def _says_otherwise(have: StoreManifest, tree: LlvmTree) -> Iterator[str]:
    """Yield differences between a tree and its manifest: the tree was reconfigured or replaced."""
    arch = have.abi.arch
    pairs = (
        ("version", have.version, tree.version),
        ("build type", have.build_type, tree.build_type),
        ("assertions", have.assertions, tree.assertions),
        ("RTTI", have.rtti, tree.rtti),
        ("code generators", sorted(native(have.targets, arch)), sorted(native(tree.targets, arch))),
        ("CMake packages", sorted(have.packages), sorted(tree.packages)),
    )
    for what, written, actual in pairs:
        if written != actual:
            yield f"{what}: the manifest says {_words(written)}, the tree {_words(actual)}"
    if gone := sorted(set(have.tools) - tree.tools):
        yield f"programs in the manifest, but missing: {', '.join(gone)}"
    there = {path.name for path in describe_tree.libraries(tree.prefix)}
    yield from (f"lib/{name} is missing" for name in have.libraries if name not in there)
    if have.commit and tree.commit and not llvm_tree.same_commit(have.commit, tree.commit):
        yield f"commit: the manifest says {have.commit[:12]}, the tree {tree.commit[:12]}"


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def _archives(prefix: Path) -> Iterator[str]:
    """Yield archives that are damaged or name missing objects."""
    for path in describe_tree.libraries(prefix):
        if path.suffix != ".a" or not ar_archive.is_archive(path):
            if path.suffix == ".a":
                yield f"lib/{path.name} is not an archive"
            continue
        try:
            # A build was interrupted, or cleaned with `ninja -t clean`: thin archives
            # stay, their objects do not.
            if missing := ar_archive.read(path).missing():
                yield f"lib/{path.name} names an object that is missing or was changed: {missing}"
        except (ValueError, OSError) as error:
            yield f"lib/{path.name}: {error}"


def _checksums(prefix: Path) -> Iterator[str]:
    """Yield files of an imported tree that have changed."""
    file = prefix / CHECKSUMS
    if not file.is_file():
        return
    try:
        sums = dict(untrusted.read_json(file, untrusted.OURS)["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"cannot read {CHECKSUMS}: {error}"
        return
    for name, sha256 in sums.items():
        path = prefix / str(name)
        if not untrusted.fits(path):
            yield f"{CHECKSUMS} names {str(name)[:80]!r}, which is not a valid file name"
            continue
        # Reading a device or a pipe would never end.
        if untrusted.exists(path) and not untrusted.is_file(path):
            yield f"{name} is no longer a file"
            continue
        try:
            if download.sha256_of(path) != sha256:
                yield f"{name} was changed since it was imported"
        except OSError as error:
            yield f"{name}: {error.strerror}"
