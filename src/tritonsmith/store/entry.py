"""The manifest of one LLVM in the store: how it was made, and what it provides."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tritonsmith import outside
from tritonsmith.envs.schema import Scope
from tritonsmith.plan.steps import digest
from tritonsmith.ui import redact

SCHEMA = 1
Kind = Literal["built", "prebuilt", "imported", "adopted"]
Status = Literal["ready", "unfinished", "gone", "changed", "unreadable"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")  # `.import-NAME.lock.holder` is a file name, too
_TAKEN = re.compile(r"users|.*\.(json|lock|used|holder)", re.IGNORECASE)  # by what lies beside entries
_SHORT = 12  # digits of a commit in a name
_DIGEST = 8  # digits of the key's digest in a name


@dataclass(frozen=True)
class Compiler:
    """What compiled it.

    Attributes:
        path: of the C++ compiler, on the machine that it ran on.
        id: as CMake calls it: `Clang`, `GNU`; or the program's name.
        version: dotted.
    """

    path: str = ""
    id: str = ""
    version: str = ""


@dataclass(frozen=True)
class Abi:
    """What its binaries want of a machine.

    Attributes:
        system: `Linux` or `Darwin`.
        arch: `x86_64`, `aarch64`, `arm64`.
        glibc: of the machine that made it; empty if unknown, or where there is none.
        glibcxx: newest `GLIBCXX_` tag of that machine's libstdc++.
        cxx11: libstdc++'s newer `std::string` (`_GLIBCXX_USE_CXX11_ABI`); None if unknown.
    """

    system: str = ""
    arch: str = ""
    glibc: str = ""
    glibcxx: str = ""
    cxx11: bool | None = None


@dataclass(frozen=True)
class Closure:
    """A part of LLVM that was built because one Triton needs it.

    Attributes:
        triton: commit of that Triton, and a digest of the options that decide what it takes.
        scope: `closure`, or the smaller `python-module`.
    """

    triton: str
    scope: Scope


@dataclass(frozen=True)
class Key:
    """What must agree for two builds to be the same one. The scope is not in it: a tree grows in place.

    Attributes:
        source: commit, or the name of sources that have none.
        diff: digest of what a dirty source tree changes; empty if it is clean.
        build_type: CMake build type.
        assertions: built with assertions.
        options: CMake variables that change what is built, name to value; none of how quickly.
        compiler: its path does not count.
        libstdcxx: newest `GLIBCXX_` tag.
        linker: name and version.
    """

    source: str
    diff: str = ""
    build_type: str = ""
    assertions: bool = False
    options: tuple[tuple[str, str], ...] = ()
    compiler: Compiler = field(default_factory=Compiler)
    libstdcxx: str = ""
    linker: str = ""

    @property
    def digest(self) -> str:
        """16 hex digits."""
        compiler = (self.compiler.id, self.compiler.version)
        plain = (self.source, self.diff, self.build_type, self.assertions, sorted(self.options))
        return digest(*plain, compiler, self.libstdcxx, self.linker)

    @property
    def name(self) -> str:
        """Of the entry: readable, and different where the key is."""
        commit = re.fullmatch(r"[0-9a-f]{40}", self.source)
        source = self.source[:_SHORT] if commit else re.sub(r"[^A-Za-z0-9._+]+", "-", self.source).strip("-.")
        asserts = "-asserts" if self.assertions else ""
        build_type = f"-{self.build_type}" if self.build_type else ""
        return f"{source or 'llvm'}{build_type}{asserts}-{self.digest[:_DIGEST]}"


@dataclass(frozen=True)
class StoreManifest:
    """Everything that is written down about an entry, beside it, once it is complete.

    Attributes:
        name: of the entry.
        kind: how it came here; an adopted tree is somebody else's, and never deleted.
        tree: name of the folder in the store, or the absolute path of an adopted one.
        commit: of LLVM; empty if nobody knows.
        diff: digest of what a dirty source tree changed; empty if it was clean.
        version: `19.1.7`.
        build_type: CMake build type; may be empty.
        assertions: built with assertions.
        abi_breaking_checks: `LLVM_ENABLE_ABI_BREAKING_CHECKS`; None if unknown.
        rtti: built with RTTI.
        exceptions: built with exceptions.
        debug_info: `none`, `lines`, `split` or `full`.
        targets: code generators.
        projects: `LLVM_ENABLE_PROJECTS`, as far as it is known.
        packages: CMake packages beside LLVM's own: `mlir`, `lld`, `clang`.
        tools: programs in its `bin` that Triton's build or tests want.
        libraries: what was in its `lib` when it was published.
        scope: `all`, or what was asked for first.
        closures: what is built, where it is not all.
        shared: it has shared libraries only: one for each component, or one for all.
        sanitizer: it is instrumented: `address`, ...
        compiler: what compiled it.
        linker: what linked it.
        abi: what it wants of a machine.
        key: digest of the key; empty for a tree that the tool did not build.
        source: the source tree of a build tree: it has headers, and Ninja needs it to build more.
        origin: URL or path of the archive that it came from.
        made: UTC, ISO 8601.
        tool: version of tritonsmith.
        bytes: on disk when it was published; None if nobody counted.
        build: upstream's number of a prebuilt archive, of which one commit may have several; None for others.
        looks: of an adopted tree: a digest of what tells that somebody built or installed it anew.
    """

    name: str
    kind: Kind
    tree: str
    commit: str = ""
    diff: str = ""
    version: str = ""
    build_type: str = ""
    assertions: bool = False
    abi_breaking_checks: bool | None = None
    rtti: bool = False
    exceptions: bool = False
    debug_info: str = "none"
    targets: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    scope: Scope = "all"
    closures: tuple[Closure, ...] = ()
    shared: bool = False
    sanitizer: str = ""
    compiler: Compiler = field(default_factory=Compiler)
    linker: str = ""
    abi: Abi = field(default_factory=Abi)
    key: str = ""
    source: str = ""
    origin: str = ""
    made: str = ""
    tool: str = ""
    bytes: int | None = None
    build: int | None = None
    looks: str = ""

    def render(self) -> str:
        """The text of the manifest's file."""
        return json.dumps(redact.data({"schema": SCHEMA, **asdict(self)}), indent=2) + "\n"


@dataclass(frozen=True)
class StoreEntry:
    """An LLVM in the store.

    Attributes:
        name: of its folder and its manifest.
        path: of the tree.
        status: ready; unfinished (no manifest); gone (no tree); changed (an adopted tree, since it was
            described); unreadable (a damaged or newer manifest).
        manifest: None unless it is ready, gone or changed.
        problem: why it is not ready, in words.
    """

    name: str
    path: Path
    status: Status
    manifest: StoreManifest | None = None
    problem: str = ""


def is_name(name: str) -> bool:
    """Whether an entry may be called so: no folder, not hidden, nothing that a shell would take apart."""
    return bool(_NAME.fullmatch(name)) and not _TAKEN.fullmatch(name)


def parse(text: str) -> StoreManifest:
    """A manifest from its text. What a later version added is passed over.

    Raises:
        ValueError: it is not one, or of a schema that this version does not know.
    """
    return parse_table(outside.json_of(text))


def parse_table(seen: Any) -> StoreManifest:
    """A manifest from its parsed JSON.

    Raises:
        ValueError: it is not one, or of a schema that this version does not know.
    """
    if not isinstance(seen, dict) or seen.get("schema") != SCHEMA:
        raise ValueError(f"no manifest of schema {SCHEMA}")
    try:
        manifest: StoreManifest = outside.typed(StoreManifest, seen)
    except ValueError as error:
        raise ValueError(f"a damaged manifest: {error}") from error
    if not is_name(manifest.name):
        raise ValueError(f"a damaged manifest: its name cannot be {manifest.name[:80]!r}")
    return manifest
