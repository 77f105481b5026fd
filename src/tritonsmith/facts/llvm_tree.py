"""Read an LLVM, built or installed, from its CMake packages and headers; tell what a Triton needs of one."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import LlvmSettings
from tritonsmith.core.errors import FactError
from tritonsmith.core.text import version_key
from tritonsmith.facts import build_folder, git
from tritonsmith.facts.checkout import LlvmPin

_BUILDING = ("FileCheck", "clang++", "mlir-tblgen")
_TESTING = ("mlir-translate", "opt", "llc", "not", "split-file", "llvm-lit")
CONFIGURED = (
    "lib/cmake/llvm/LLVMConfig.cmake",
    "lib/cmake/mlir/MLIRConfig.cmake",
    "include/llvm/Config/abi-breaking.h",
    "include/llvm/Config/llvm-config.h",
)
_PREFIXES = ("/usr/lib/llvm-*", "/opt/homebrew/opt/llvm*", "/usr/local/opt/llvm*", "/opt/llvm*", "/usr/local")
Fit = Literal["pin", "unknown", "other"]
_DEBIAN = re.compile(r"/usr/lib/llvm-\d+")  # where Debian and Ubuntu install an LLVM
_PACKAGES = {
    "mlir": "MLIR's CMake package (lib/cmake/mlir)",
    "lld": "lld's CMake package (lib/cmake/lld)",
}
# Tool to the feature of the Tritons whose build runs it (empty for all), and its description.
_TOOLS = {
    "clang++": ("needs-clang", "clang++ (bin/clang++), which compiles Triton's gsan runtime"),
    "FileCheck": ("needs-filecheck", "FileCheck (bin/FileCheck)"),
    "mlir-tblgen": ("", "mlir-tblgen (bin/mlir-tblgen)"),
}


@dataclass(frozen=True)
class LlvmTree:
    """An LLVM that can be built against.

    Attributes:
        prefix: build folder or install prefix: the value for `LLVM_SYSPATH`.
        version: `19.1.7`.
        commit: 40 hex digits; empty if unknown (distributions strip it).
        build_type: CMake build type; may be empty.
        assertions: built with assertions.
        rtti: built with RTTI.
        targets: code generators.
        packages: its CMake packages: `mlir`, `lld`, `clang`.
        tools: programs in its `bin` that Triton's build or tests need.
        static: component libraries are there as archives, and built.
        build_tree: it is a build folder, not an install prefix.
        dylib: its own libraries, MLIR's among them, link the shared libLLVM.
        shared: component libraries are there as shared ones (`BUILD_SHARED_LIBS`), and built.
        configuration: a digest of the files that hold all of its options.
    """

    prefix: Path
    version: str
    commit: str
    build_type: str
    assertions: bool
    rtti: bool
    targets: frozenset[str]
    packages: frozenset[str]
    tools: frozenset[str]
    static: bool
    build_tree: bool
    dylib: bool = False
    shared: bool = False
    configuration: str = ""

    @property
    def in_words(self) -> str:
        """The version, commit and options in one line, which differs for another LLVM at the same path."""
        flags = (("assertions", self.assertions), ("RTTI", self.rtti), ("shared libLLVM", self.dylib))
        parts = (
            self.version or "version unknown",
            f"commit {self.commit}" if self.commit else "commit unknown",
            self.build_type or "build type unknown",
            *(f"{name} {'ON' if on else 'OFF'}" for name, on in flags),
            f"targets {' '.join(sorted(self.targets))}",
            f"configuration {self.configuration}",
        )
        return ", ".join(parts)

    @property
    def major(self) -> int:
        """The first number of the version."""
        return next(iter(version_key(self.version)), 0)  # 0: its package names none

    @property
    def bin(self) -> Path:
        """The folder of its programs."""
        return self.prefix / "bin"

    def cmake_dir(self, package: str) -> Path:
        """Return the folder of the CMake package `llvm`, `mlir`, `lld` or `clang`."""
        return self.prefix / "lib" / "cmake" / package


def is_tree(prefix: Path) -> bool:
    """Return whether a folder has an LLVM to build against."""
    return _config(prefix).is_file()


def _readable(prefix: Path) -> bool:
    """Return whether an LLVM is there, and this user may read it."""
    # In a folder that is closed to this user even the look for a file raises an error.
    try:
        return is_tree(prefix) and os.access(_config(prefix), os.R_OK)
    except OSError:
        return False


def _config(prefix: Path) -> Path:
    return prefix / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"


def read(prefix: Path) -> LlvmTree:
    """Read an LLVM by its build folder or install prefix.

    Raises:
        FactError: no LLVM there, or an unreadable one.
    """
    try:
        return _read(prefix.expanduser().absolute())
    except OSError as error:
        raise FactError(
            "cannot read this LLVM", where=error.filename or prefix, why=error.strerror or str(error)
        ) from error
    except RuntimeError as error:  # `~` of a user whom nobody knows
        raise FactError("no such folder", where=prefix, why=str(error)) from error


def _read(prefix: Path) -> LlvmTree:
    config = _config(prefix)
    if not config.is_file():
        raise FactError(
            "no LLVM to build against in this folder",
            where=prefix,
            why=f"{config.relative_to(prefix)} is missing",
            hints=[
                "give the prefix that has lib/cmake/llvm: --llvm-dir /usr/lib/llvm-19",
                "on Debian: apt install llvm-19-dev",
            ],
        )
    values = config_values(prefix)
    cmake = prefix / "lib" / "cmake"
    build_tree = (prefix / "CMakeCache.txt").is_file()
    return LlvmTree(
        prefix=prefix,
        version=values.get("LLVM_PACKAGE_VERSION", ""),
        commit=_commit(prefix),
        build_type=values.get("LLVM_BUILD_TYPE", ""),
        assertions=_on(values.get("LLVM_ENABLE_ASSERTIONS")),
        rtti=_on(values.get("LLVM_ENABLE_RTTI")),
        targets=frozenset(filter(None, values.get("LLVM_TARGETS_TO_BUILD", "").split(";"))),
        packages=frozenset(name for name in ("mlir", "lld", "clang") if (cmake / name).is_dir()),
        tools=frozenset(name for name in (*_BUILDING, *_TESTING) if (prefix / "bin" / name).exists()),
        static=_components(prefix, ".a"),
        build_tree=build_tree,
        dylib=_on(values.get("LLVM_LINK_LLVM_DYLIB")),
        shared=_components(prefix, ".so") or _components(prefix, ".dylib"),
        configuration=_configuration(prefix),
    )


def _components(prefix: Path, ending: str) -> bool:
    """Return whether there is one library for each component, by two that every Triton links."""
    # Two are enough: a tree that is configured but not built has neither.
    return all((prefix / "lib" / f"{name}{ending}").is_file() for name in ("libLLVMSupport", "libMLIRIR"))


def _configuration(prefix: Path) -> str:
    """Return a digest of the files that LLVM's and MLIR's configure wrote, with all of their options."""
    state = hashlib.sha256()
    # Not CMakeCache.txt: it changes with every configure, and an installed LLVM has none.
    for name in CONFIGURED:
        with suppress(OSError):
            state.update(untrusted.read_bytes(prefix / name))
    return state.hexdigest()[:12]


def installed(
    environ: dict[str, str] | None = None, patterns: Iterable[str] = _PREFIXES
) -> tuple[LlvmTree, ...]:
    """Return the LLVMs under `LLVM_SYSPATH` and the usual prefixes: the variable's first, then by version."""
    environ = dict(os.environ) if environ is None else environ
    named = [Path(environ["LLVM_SYSPATH"])] if environ.get("LLVM_SYSPATH") else []
    prefixes = [path for pattern in patterns for path in Path("/").glob(pattern.lstrip("/"))]
    # Unreadable candidates are passed over; only the one that the variable names is an error.
    trees = [read(path) for path in prefixes if _readable(path)]
    trees.sort(key=lambda tree: version_key(tree.version), reverse=True)
    return (*map(read, named), *trees)


def files_behind(patterns: Iterable[str] = _PREFIXES) -> tuple[Path, ...]:
    """Return the files and folders that decide which LLVMs `installed` returns, and in which order."""
    prefixes = [path for pattern in patterns for path in Path("/").glob(pattern.lstrip("/"))]
    named = [Path(os.environ["LLVM_SYSPATH"])] if os.environ.get("LLVM_SYSPATH") else []
    # A new LLVM is a new name in one of these folders.
    parents = [Path(pattern).parent for pattern in patterns]
    return *parents, *(place for prefix in (*named, *prefixes) for place in (prefix, _config(prefix)))


def same_commit(commit: str, other: str) -> bool:
    """Return whether two commits agree as far as both are known; unknown ones agree with nothing."""
    # A pin of an old setup.py has 12 digits, VCSRevision.h has 40.
    length = min(len(commit), len(other))
    return length >= 7 and commit[:length].lower() == other[:length].lower()  # noqa: PLR2004 - git's short form


def config_values(prefix: Path) -> dict[str, str]:
    """Return the `LLVM_` variables of an LLVM's CMake package, name to value."""
    # By their text: the package sets them by plain commands, and CMake would have to be started otherwise.
    text = untrusted.read_text(_config(prefix))
    pairs = re.findall(r"^\s*set\((LLVM_\w+)\s+\"?([^\")]*)\"?\)", text, flags=re.MULTILINE)
    return {name: value.strip() for name, value in pairs}


def _on(value: str | None) -> bool:
    return (value or "").upper() in {"ON", "1", "TRUE", "YES"}


def _commit(prefix: Path) -> str:
    # Distributions build from tarballs without git, so the header names no commit. In a build folder the
    # checkout's HEAD stands in: the header is generated when LLVMSupport is built.
    header = prefix / "include" / "llvm" / "Support" / "VCSRevision.h"
    if header.is_file():
        match = re.search(r'#define LLVM_REVISION "([0-9a-f]{7,40})"', untrusted.read_text(header))
        if match:
            return match[1]
    source = source_of(prefix)
    return source_commit(source) if source else ""


def source_of(prefix: Path) -> Path | None:
    """Return the source tree that a build folder was configured from; None for an installed LLVM."""
    cache = build_folder.read_cmake_cache(prefix)
    home = cache.get("CMAKE_HOME_DIRECTORY") if cache else ""
    return Path(home).parent if home else None


def source_commit(source: Path) -> str:
    """Return HEAD of an LLVM checkout; empty if it is not under git."""
    return git.head(source, dirt=False).commit


@dataclass(frozen=True)
class LlvmRequest:
    """The LLVM that `setup-mlir` looks for: `[llvm]` of the env, for a Triton with a version and features.

    `pin` is None if nothing names a commit; the features are those of `configs/triton-eras.toml`.
    """

    pin: LlvmPin | None
    features: frozenset[str]
    version: str
    settings: LlvmSettings

    @property
    def projects(self) -> tuple[str, ...]:
        """The value of `LLVM_ENABLE_PROJECTS`."""
        table = configs.load("triton-eras")["llvm-projects"]
        return ("mlir", *(project for feature, project in table.items() if feature in self.features))

    def fit(self, commit: str) -> Fit:
        """Compare an LLVM's commit with the pin."""
        if self.pin is None or not commit:
            return "unknown"
        return "pin" if same_commit(commit, self.pin.commit) else "other"

    @property
    def tools(self) -> tuple[str, ...]:
        """The programs that this Triton's build runs."""
        return tuple(name for name, (feature, _) in _TOOLS.items() if not feature or feature in self.features)

    def lacks(self, tree: LlvmTree) -> list[str]:
        """List what this Triton's build needs and an LLVM lacks, in words; empty if nothing is missing."""
        missing = [
            words for name, words in _PACKAGES.items() if name in self.projects and name not in tree.packages
        ]
        missing += [_TOOLS[name][1] for name in self.tools if name not in tree.tools]
        shared = self.settings.shared
        if not tree.static and not (shared and tree.shared):
            missing.append(
                ("shared or " if shared else "")
                + "static component libraries (lib/libLLVMSupport.a, lib/libMLIRIR.a): "
                + _why_not_static(tree)
            )
        # Triton links the code generators of both vendors, whatever `--backends` says.
        backends = {name for name in self.settings.targets if name != "Native"} & {"NVPTX", "AMDGPU"}
        missing += [f"code generator {name}" for name in sorted(backends - tree.targets)]
        return missing

    def remedy(self, tree: LlvmTree) -> list[str]:
        """Return hints to install the packages that complete a distribution's LLVM; none for another LLVM."""
        # Only of Debian's prefixes is it known which package has which part.
        if not _DEBIAN.fullmatch(str(tree.prefix)):
            return []
        words = "; ".join(self.lacks(tree))
        parts = configs.load("system-packages")["llvm-part"]
        packages = dict.fromkeys(row["apt"] for row in parts if row["part"] in words)
        names = " ".join(packages).replace("NN", str(tree.major))
        return [f"install what is missing (Debian, Ubuntu): apt install {names}"] if names else []

    def describe_pin(self) -> str:
        """Describe the pin in words."""
        return f"{self.pin.commit[:12]} ({self.pin.file})" if self.pin else "unknown"


def _why_not_static(tree: LlvmTree) -> str:
    if tree.shared:
        return "only shared ones exist (`shared = true` under [llvm] allows them)"
    return "not built yet" if tree.build_tree else "linking only the dylib registers options twice"
