"""Precompiled headers that the tool injects into the builds of LLVM and of Triton.

Their sources stay as they are: `llvm/precompiled_headers.cmake`, included after `project()`, gives each
target the header of its level, if its flags agree. The configuration lists LLVM's headers, for releases
without their own; Triton's depend on what the sources of the checkout include, read as text.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import version_key
from tritonsmith.facts.tools import Compilers

SLOPPINESS = ("pch_defines", "time_macros")  # without these, ccache caches no such compile (its manual, PCH)
PREFIX = "TRITONSMITH_PCH"
RETRY = ("sh", str(Path(__file__).with_name("retry_without_header.sh")))  # launcher for compiles
_CMAKE = Path(__file__).parent / "llvm" / "precompiled_headers.cmake"
_USES = re.compile(r"^\s*using namespace (?:::)?(llvm|mlir);", re.MULTILINE)
_OLDEST_SHARED = (15,)  # the first clang with `-Xclang=`, one word that ccache can leave out of the key
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_SUFFIXES = (".cc", ".cpp")
_TESTS = "unittest"  # Triton's unit tests are built with googletest, and by default not at all
_LIMIT = 4 << 20  # bytes of a source


def objection(settings: Settings, compilers: Compilers) -> str | None:
    """Return the reason why precompiled headers would hurt here, or None.

    Args:
        settings: settings of the env.
        compilers: the compilers of the build.
    """
    if compilers.cxx is None or "clang" not in compilers.cxx.path.name:
        return "the compiler is not clang: GCC's precompiled headers cost more to read than they save"
    if settings.cache.remote:
        return "precompiled headers contain absolute paths: a remote cache would hit only where these agree"
    if settings.cache.distribute:
        return f"{settings.cache.distribute} does not send precompiled headers"
    if settings.cache.launcher in ("sccache", "recc"):
        return f"{settings.cache.launcher} does not cache compiles that use them"
    return None


def used_for_llvm(settings: Settings, compilers: Compilers) -> bool:
    """Report whether this build injects them.

    Raises:
        UsageError: the env requires them (`on`) where they would hurt.
    """
    # Only `on` is an error where they would hurt: `auto` is the default, and a build without them is slower,
    # not wrong.
    mode = settings.llvm.precompiled_headers
    reason = objection(settings, compilers)
    if mode == "on" and reason:
        raise UsageError(
            'precompiled-headers = "on" does not work here',
            why=reason,
            hints=['set precompiled-headers = "auto" under [llvm], or remove the remote cache'],
        )
    return mode != "off" and reason is None


def llvm_variables() -> dict[str, str]:
    """Return the CMake variables that inject them into LLVM's targets (`precompiled_headers.cmake`)."""
    table = configs.load("precompiled-headers")
    variables = {
        "CMAKE_PROJECT_LLVM_INCLUDE": str(_CMAKE),
        PREFIX: ";".join(level["name"] for level in table["level"]),
        f"{PREFIX}_WITHOUT": ";".join(table["without"]),
    }
    for level in table["level"]:
        prefix = f"{PREFIX}_{level['name']}"
        variables[f"{prefix}_OF"] = level["of"]
        variables[f"{prefix}_WAITS"] = level.get("waits", "")
        variables[f"{prefix}_HEADERS"] = ";".join(map(_spelled, level["headers"]))
        variables[f"{prefix}_FOLDERS"] = ";".join(level["folders"])
    return variables


def _spelled(header: str) -> str:
    """Spell a header as `#include` takes it; CMake would look for a bare name in the current folder."""
    return header if header.startswith("<") else f'"{header}"'


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


def used_for_triton(settings: Settings, compilers: Compilers, *, shared: bool) -> bool:
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


def choose_headers(root: Path, backends: Iterable[str], recorded: Mapping[str, str]) -> dict[str, str]:
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
    # The choice of the last configure stays, even if the sources' includes have shifted a little since: a
    # new one would recompile everything.
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
        # A header takes as long to compile as several sources.
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


def triton_variables(chosen: Mapping[str, str], options: Iterable[str]) -> dict[str, str]:
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
    # `using namespace llvm` and `mlir` together are fine as long as LLVM's IR headers are not seen: with
    # them, `Value`, `Type` and others are ambiguous.
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
    # A header that another one includes comes with it.
    inner = {path for header in own for path in scan.reached(root / header).own if path != header}
    # Headers that include each other leave none: then all of them stay.
    return tuple(sorted(path.relative_to("include").as_posix() for path in own - inner or own))


def _all_there(root: Path, kept: Mapping[str, str]) -> bool:
    # A header that was renamed or deleted would break each compile that uses the old choice.
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


@dataclass(frozen=True)
class ReachedHeaders:
    """The headers that a source includes, itself or through headers of the checkout.

    Attributes:
        own: headers of the checkout, relative to it.
        others: names that are no file of the checkout, as written: LLVM's, generated and system headers.
    """

    own: frozenset[Path]
    others: frozenset[str]


class IncludeScan:
    """The includes of one checkout; each file is read once."""

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        """Record the folders to search.

        Args:
            root: the checkout.
            folders: its include folders.
        """
        self._root = root
        self._folders = tuple(folders)
        self._direct: dict[Path, tuple[frozenset[Path], frozenset[str]]] = {}

    def reached(self, source: Path) -> ReachedHeaders:
        """Return the headers that a source reaches."""
        own: set[Path] = set()
        others: set[str] = set()
        todo = [source]
        while todo:
            headers, names = self._read(todo.pop())
            others |= names
            todo += headers - own
            own |= headers
        return ReachedHeaders(frozenset(path.relative_to(self._root) for path in own), frozenset(others))

    def _read(self, file: Path) -> tuple[frozenset[Path], frozenset[str]]:
        if file not in self._direct:
            try:
                includes = _INCLUDE.findall(untrusted.read_text(file, _LIMIT))
            except OSError:
                includes = []
            places = {quoted or angled: self._find(file, quoted, angled) for quoted, angled in includes}
            own = frozenset(path for path in places.values() if path)
            self._direct[file] = own, frozenset(name for name, path in places.items() if not path)
        return self._direct[file]

    def _find(self, file: Path, quoted: str, angled: str) -> Path | None:
        above = [folder for folder in file.parents if folder.is_relative_to(self._root)] if quoted else []
        # The order of the compiler: the including file's own folder first, for quotes; the folders above it
        # last, as a target may add its own top folder.
        for folder in (*above[:1], *self._folders, *above[1:]):
            path = Path(os.path.normpath(folder / (quoted or angled)))
            if path.is_relative_to(self._root) and untrusted.is_file(path):
                return path
        return None


def sources(root: Path, folders: Mapping[str, Iterable[str]]) -> dict[str, tuple[Path, ...]]:
    """Return the sources of named groups of folders; a file in two groups belongs to the longest folder.

    Args:
        root: the checkout.
        folders: name of a group to its folders, relative to the checkout.
    """
    owners = {root / folder: name for name, group in folders.items() for folder in group}
    by_group: dict[str, set[Path]] = {name: set() for name in folders}
    for start in owners:
        for path in start.rglob("*"):
            if path.suffix in _SUFFIXES and _TESTS not in path.parts and untrusted.is_file(path):
                by_group[owners[next(parent for parent in path.parents if parent in owners)]].add(path)
    return {name: tuple(sorted(paths)) for name, paths in by_group.items()}
