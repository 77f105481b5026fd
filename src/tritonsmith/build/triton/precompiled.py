"""Precompiled headers for Triton: the headers, the sources that use them, and CMake's variables.

Triton's sources stay as they are: `build/llvm/precompiled_headers.cmake`, included after `project()`, gives
each target the header of its level, if its flags agree. The content of a header depends on what the sources
include, read as text. Once chosen, it stays with the build folder: an edit that moves a share over its limit
must not recompile everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from tritonsmith.build.llvm.precompiled_headers import objection
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.errors import UsageError
from tritonsmith.core.versions import version_key
from tritonsmith.facts.include_scan import IncludeScan, ReachedHeaders, sources
from tritonsmith.facts.tools import Compilers

PREFIX = "TRITONSMITH_PCH"
RETRY = ("sh", str(Path(__file__).parents[1] / "retry_without_header.sh"))  # launcher for compiles
_CMAKE = Path(__file__).parents[1] / "llvm" / "precompiled_headers.cmake"
_USES = re.compile(r"^\s*using namespace (?:::)?(llvm|mlir);", re.MULTILINE)
_OLDEST_SHARED = (15,)  # the first clang with `-Xclang=`, one word that ccache can leave out of the key


def objection_for_triton(settings: Settings, compilers: Compilers, *, shared: bool) -> str | None:
    """Return the reason why precompiled headers would hurt or fail here, or None.

    Args:
        settings: settings of the env.
        compilers: the compilers of the build.
        shared: worktrees share compiles (`compiler_cache.shared`).
    """
    version = version_key(compilers.cxx.version) if compilers.cxx else ()
    if reason := objection(settings, compilers):
        return reason
    if shared and version and version < _OLDEST_SHARED:
        return "clang before 15 makes none that worktrees can share through the compiler cache"
    return None


def used(settings: Settings, compilers: Compilers, *, shared: bool) -> bool:
    """Report whether this build injects them.

    Raises:
        UsageError: the env requires them (`on`) where they would hurt.
    """
    mode = settings.triton.precompiled_headers
    reason = objection_for_triton(settings, compilers, shared=shared)
    if mode == "on" and reason:
        raise UsageError(
            'precompiled-headers = "on" under [triton] does not work here',
            why=reason,
            hints=['set precompiled-headers = "auto" under [triton]'],
        )
    return mode != "off" and reason is None


def choose(root: Path, backends: Iterable[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Choose headers: those that the build folder has, if they still exist; else by the sources' includes.

    Args:
        root: the checkout.
        backends: the backends that are built.
        recorded: CMake's variables of the last configure; none for a new choice.

    Returns:
        CMake's variables; none if there are too few sources to pay for a header.
    """
    folders = _folders(tuple(backends))
    kept = {name: value for name, value in recorded.items() if name.startswith(PREFIX)}
    if kept and folders.items() <= kept.items() and _all_there(root, kept):
        return kept
    table = configs.load("precompiled-headers")
    scan = IncludeScan(root, _include_folders(root))
    groups = {name: folders[_name(name, "FOLDERS")].split(";") for name in _levels()}
    chosen: dict[str, str] = {}
    without: list[str] = []
    for name, paths in sources(root, groups).items():
        reached = {path.relative_to(root).as_posix(): scan.reached(path) for path in paths}
        others = _in_most(table["triton"], reached.values())
        own = _in_nearly_all(table["triton"], reached.values())
        if len(paths) < table["pays-from"] or not (others or own):
            continue
        headers = (*others, *_outermost(scan, root, own))
        chosen[_name(name, "HEADERS")] = ";".join(f'"{header}"' for header in headers)
        without += [
            path
            for path, reach in reached.items()
            if not (reach.own & own if own else reach.others)
            or _ambiguous(root / path, reach, table["triton"])
        ]
    if not chosen:
        return {}
    used_levels = [name for name in groups if _name(name, "HEADERS") in chosen]
    return {PREFIX: ";".join(used_levels), **folders, **chosen, f"{PREFIX}_WITHOUT": ";".join(without)}


def cache_variables(chosen: Mapping[str, str], options: Iterable[str]) -> dict[str, str]:
    """Return CMake's variables that inject the chosen headers.

    Args:
        chosen: result of `choose`; none for no headers.
        options: compiler options for making or using a header (`compiler_cache.relocatable`).
    """
    if not chosen:
        return {}
    return {"CMAKE_PROJECT_INCLUDE": str(_CMAKE), **chosen, f"{PREFIX}_OPTIONS": ";".join(options)}


def _ambiguous(source: Path, reached: ReachedHeaders, table: Mapping[str, Any]) -> bool:
    """Report whether names of LLVM's IR and of MLIR would clash in a source that only includes MLIR's."""
    if any(name.startswith(tuple(table["llvm-ir"])) for name in reached.others):
        return False
    return {"llvm", "mlir"} <= {*_USES.findall(untrusted.read_text(source))}


def _in_most(table: Mapping[str, Any], reached: Collection[ReachedHeaders]) -> tuple[str, ...]:
    """Return foreign headers that enough sources reach."""
    counts = Counter(name for headers in reached for name in headers.others)
    prefixes = tuple(table["prefixes"])
    return tuple(
        sorted(
            name
            for name, count in counts.items()
            if count >= table["others-from"] * len(reached)
            and name.startswith(prefixes)
            and name.endswith(".h")
        )
    )


def _in_nearly_all(table: Mapping[str, Any], reached: Collection[ReachedHeaders]) -> frozenset[Path]:
    """Return the checkout's own headers that nearly all sources reach."""
    counts = Counter(path for headers in reached for path in headers.own if path.parts[0] == "include")
    return frozenset(path for path, count in counts.items() if count >= table["own-from"] * len(reached))


def _outermost(scan: IncludeScan, root: Path, own: frozenset[Path]) -> tuple[str, ...]:
    """Return the headers that none of the others includes, as `#include` names them."""
    inner = {path for header in own for path in scan.reached(root / header).own if path != header}
    return tuple(sorted(path.relative_to("include").as_posix() for path in own - inner or own))


def _all_there(root: Path, kept: Mapping[str, str]) -> bool:
    prefixes = tuple(configs.load("precompiled-headers")["triton"]["prefixes"])
    names = (
        word.strip('"')
        for name, value in kept.items()
        if name.endswith("_HEADERS")
        for word in value.split(";")
    )
    return all(untrusted.is_file(root / "include" / name) for name in names if not name.startswith(prefixes))


def _levels() -> tuple[str, ...]:
    return tuple(level["name"] for level in configs.load("precompiled-headers")["triton"]["level"])


def _folders(backends: tuple[str, ...]) -> dict[str, str]:
    """Return CMake's variables with the folders of each level."""
    variables = {}
    for level in configs.load("precompiled-headers")["triton"]["level"]:
        names = {name.format(backend=backend) for name in level["folders"] for backend in backends}
        names |= {name for name in level["folders"] if "{" not in name}
        variables[_name(level["name"], "FOLDERS")] = ";".join(sorted(names))
    return variables


def _include_folders(root: Path) -> tuple[Path, ...]:
    """Return the include folders of Triton's CMake."""
    return (root / "include", root / "third_party", root, *sorted(root.glob("third_party/*/include")))


def _name(level: str, what: str) -> str:
    return f"{PREFIX}_{level}_{what}"
