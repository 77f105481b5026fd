"""Describe a tree by a manifest, and check later that the two still agree.

A manifest is read from the CMake packages, headers and caches of the tree; the caller adds what these lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tritonsmith import __version__
from tritonsmith.build.store.entry import Abi, Closure, Compiler, Key, Kind, StoreEntry, StoreManifest, native
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import Scope
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import archive, digest, download, files
from tritonsmith.core.plan.steps.pack import CHECKSUMS
from tritonsmith.facts import build_folder, llvm_tree
from tritonsmith.facts.build_folder import CmakeCache
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine

# Files that show changes to an adopted LLVM: Ninja's log grows with each build, the others are installed.
_TELLING = (
    "CMakeCache.txt",
    ".ninja_log",
    "lib/cmake/llvm/LLVMConfig.cmake",
    "lib/cmake/mlir/MLIRConfig.cmake",
    *(f"lib/lib{name}.{ending}" for name in ("LLVMSupport", "MLIRIR") for ending in ("a", "so", "dylib")),
    "bin/mlir-tblgen",
)
_LEVEL = re.compile(r"-g(|[0-3]|line-tables-only|mlt)")  # -ggdb, -gdwarf-4 and others alone are full
_KINDS = {"-g0": "none", "-g1": "lines", "-gline-tables-only": "lines", "-gmlt": "lines"}
_OLD_STRING, _NEW_STRING, _LIBCXX = b"Ss", b"__cxx11", b"NSt3__1"  # in mangled names


@dataclass(frozen=True)
class Known:
    """The caller's values for a manifest (`StoreManifest`); empty ones are read from the tree."""

    commit: str = ""
    diff: str = ""
    debug_info: str = ""
    projects: tuple[str, ...] = ()
    scope: Scope = "all"
    closures: tuple[Closure, ...] = ()
    key: str = ""
    compiler: Compiler | None = None
    linker: str = ""
    source: str = ""
    origin: str = ""
    build: int | None = None


def manifest(
    name: str, kind: Kind, tree: LlvmTree, machine: Machine, known: Known | None = None, tree_name: str = ""
) -> StoreManifest:
    """Describe a tree; its folder is `tree_name`, or has the entry's name.

    A prebuilt LLVM was built on another machine, with unknown libraries.
    """
    known = known or Known()
    cache = build_folder.read_cmake_cache(tree.prefix)
    cached = cache.get if cache else lambda _: ""
    values = llvm_tree.config_values(tree.prefix)
    here = Abi(machine.system, machine.arch, machine.glibc, machine.glibcxx, cxx11(tree.prefix))
    source = llvm_tree.source_of(tree.prefix)
    return StoreManifest(
        name=name,
        kind=kind,
        tree=tree_name or name,
        commit=known.commit or tree.commit,
        diff=known.diff,
        version=tree.version,
        build_type=tree.build_type,
        assertions=tree.assertions,
        abi_breaking_checks=_abi_breaking_checks(tree.prefix),
        rtti=tree.rtti,
        exceptions=_on(values.get("LLVM_ENABLE_EH", "")),
        debug_info=known.debug_info or _debug_info(tree, values, cache),
        targets=tuple(sorted(native(tree.targets, machine.arch))),
        projects=known.projects or tuple(filter(None, cached("LLVM_ENABLE_PROJECTS").split(";"))),
        packages=tuple(sorted(tree.packages)),
        tools=tuple(sorted(tree.tools)),
        libraries=tuple(path.name for path in libraries(tree.prefix)),
        scope=known.scope,
        closures=known.closures,
        shared=_on(cached("BUILD_SHARED_LIBS")) if cache else not tree.static,
        sanitizer=cached("LLVM_USE_SANITIZER").lower(),
        compiler=known.compiler or Compiler(cached("CMAKE_CXX_COMPILER")),
        linker=known.linker or cached("LLVM_USE_LINKER"),
        # Upstream's archive was built on another machine, whose libraries are not known.
        abi=replace(here, glibc="", glibcxx="") if kind == "prebuilt" else here,
        key=known.key,
        source=known.source or (str(source) if source and kind == "built" else ""),
        origin=known.origin,
        build=known.build,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=__version__,
    )


def built(
    key: Key, tree: LlvmTree, machine: Machine, *, known: Known, before: StoreManifest | None = None
) -> StoreManifest:
    """Return the manifest of a build tree in the store.

    `known` describes what this run built. `before` is the manifest of an earlier run in the same tree, whose
    closures still exist.
    """
    # Ninja leaves in place what it built for others.
    kept = before.closures if before else ()
    # A complete tree stays complete when a part of it is built again.
    all_of_it: Scope = "all" if before and before.scope == "all" else known.scope
    known = replace(
        known,
        key=key.digest,
        compiler=known.compiler or key.compiler,
        linker=known.linker or key.linker,
        scope=all_of_it,
        closures=tuple(dict.fromkeys((*kept, *known.closures))),
    )
    return manifest(key.name, "built", tree, machine, known)


def cxx11(prefix: Path) -> bool | None:
    """Report whether a tree's archives use libstdc++'s newer `std::string`; None if unknown."""
    library = prefix / "lib" / "libLLVMSupport.a"
    try:
        # The symbol index is enough: mangled names tell which std::string is in the interfaces.
        names = archive.ar_symbols(library)
    except (OSError, ValueError):
        return None
    if _LIBCXX in names or not names:
        return None
    if _NEW_STRING in names:
        return True
    return False if _OLD_STRING in names else None


def looks(prefix: Path) -> str:
    """Return a digest that changes when a tree is configured, built or installed."""
    states = []
    # Sizes and times of a few files: each search looks at each adopted tree, and checksums of gigabytes
    # would take minutes.
    for name in _TELLING:
        try:
            about = (prefix / name).stat()
        except OSError:
            continue
        states.append((name, about.st_size, about.st_mtime_ns))
    return digest(states)


def state(prefix: Path) -> str:
    """Return a digest that changes when a tree's libraries do, or when it is configured otherwise."""
    # Unlike `looks`, without the log of Ninja: a program more in a build folder changes no library.
    telling = (*libraries(prefix), *(prefix / name for name in llvm_tree.CONFIGURED))
    return digest([(path.name, *files.size_and_time(path)) for path in telling])


def libraries(prefix: Path) -> tuple[Path, ...]:
    """Return the libraries in a tree's `lib`, without those that archives omit."""
    patterns: Iterable[str] = configs.load("store")["export"]["libraries"]
    paths = {path for pattern in patterns for path in (prefix / "lib").glob(pattern)}
    return tuple(sorted(path for path in paths if path.is_file()))


def _abi_breaking_checks(prefix: Path) -> bool | None:
    header = prefix / "include" / "llvm" / "Config" / "abi-breaking.h"
    try:
        text = untrusted.read_text(header)
    except OSError:
        return None
    match = re.search(r"^#define LLVM_ENABLE_ABI_BREAKING_CHECKS\s+([01])", text, re.MULTILINE)
    return match[1] == "1" if match else None


def _debug_info(tree: LlvmTree, values: dict[str, str], cache: CmakeCache | None) -> str:
    """Return the kind of debug information, from the flags that the tool's own recipe sets."""
    if tree.build_type not in configs.load("llvm-options")["debug-info"]["types"]:
        return "none"
    # Distributions put it into separate packages.
    if cache is None:
        return "none"
    # The last option counts: the build type's come after the user's, and the tool's come last.
    own = cache.get(f"CMAKE_CXX_FLAGS_{tree.build_type.upper()}")
    rules = cache.get("TRITONSMITH_OPTIONS").split(";")  # others in the cache are of an earlier configure
    rest = cache.get("TRITONSMITH_OPTIONS_rest") if "rest" in rules else ""
    words = [word for word in re.split(r"[\s;]+", f"{cache.get('CMAKE_CXX_FLAGS')} {own} {rest}") if word]
    levels = [word for word in words if _LEVEL.fullmatch(word)]
    if not levels:
        kind = "full" if not own or any(word.startswith("-g") for word in words) else "none"
    else:
        kind = _KINDS.get(levels[-1], "full")
    if kind == "lines" and "whole" in rules:
        return "mlir"
    return "split" if kind == "full" and _on(values.get("LLVM_USE_SPLIT_DWARF", "")) else kind


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1", "TRUE", "YES"}


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
    there = {path.name for path in libraries(tree.prefix)}
    yield from (f"lib/{name} is missing" for name in have.libraries if name not in there)
    if have.commit and tree.commit and not llvm_tree.same_commit(have.commit, tree.commit):
        yield f"commit: the manifest says {have.commit[:12]}, the tree {tree.commit[:12]}"


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) if isinstance(value, list) else str(value)) or "none"


def _archives(prefix: Path) -> Iterator[str]:
    """Yield archives that are damaged or name missing objects."""
    for path in libraries(prefix):
        if path.suffix != ".a" or not archive.ar_kind(path):
            if path.suffix == ".a":
                yield f"lib/{path.name} is not an archive"
            continue
        try:
            # A build was interrupted, or cleaned with `ninja -t clean`: thin archives
            # stay, their objects do not.
            if missing := archive.read_ar(path).missing():
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
