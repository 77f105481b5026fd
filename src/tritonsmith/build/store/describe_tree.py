"""The manifest of a tree, from its CMake packages, headers and caches, and what the caller knows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tritonsmith import __version__
from tritonsmith.build.store.entry import Abi, Closure, Compiler, Key, Kind, StoreManifest, native
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import Scope
from tritonsmith.core.plan import archive, digest
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
    kept = before.closures if before else ()
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
    """Return a cheap digest that changes when a tree is configured, built or installed."""
    states = []
    for name in _TELLING:
        try:
            about = (prefix / name).stat()
        except OSError:
            continue
        states.append((name, about.st_size, about.st_mtime_ns))
    return digest(states)


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
    if tree.build_type not in configs.load("store")["debug-info"]["types"]:
        return "none"
    # Distributions put it into separate packages.
    if cache is None:
        return "none"
    if _on(values.get("LLVM_USE_SPLIT_DWARF", "")):
        return "split"
    flags = cache.get("CMAKE_CXX_FLAGS")
    return "none" if "-g0" in flags else "lines" if "-gline-tables-only" in flags else "full"


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1", "TRUE", "YES"}
