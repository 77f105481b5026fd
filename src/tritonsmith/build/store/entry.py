"""The manifest of one LLVM in the store: its build and its contents."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tritonsmith.core import redact, untrusted
from tritonsmith.core.envs.schema import Scope
from tritonsmith.core.plan import digest

SCHEMA = 1
Kind = Literal["built", "prebuilt", "imported", "adopted"]
Status = Literal["ready", "unfinished", "gone", "changed", "unreadable"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")  # `.import-NAME.lock.holder` is a file name, too
_TAKEN = re.compile(r"users|.*\.(json|lock|used|holder)", re.IGNORECASE)  # names of files beside entries
_SHORT = 12  # digits of a commit in a name
_DIGEST = 8  # digits of the key's digest in a name


@dataclass(frozen=True)
class Compiler:
    """The compiler of an LLVM.

    Attributes:
        path: path of the C++ compiler, on the machine where it ran.
        id: CMake's name for it: `Clang`, `GNU`; or the program's name.
        version: dotted.
    """

    path: str = ""
    id: str = ""
    version: str = ""


@dataclass(frozen=True)
class Abi:
    """The requirements of the binaries on a machine.

    Attributes:
        system: `Linux` or `Darwin`.
        arch: `x86_64`, `aarch64`, `arm64`.
        glibc: glibc of the machine that built them; empty if unknown, or if there is none.
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
    """The part of LLVM that was built for one Triton.

    Attributes:
        triton: commit of that Triton, and a digest of the options that determine the part.
        scope: `closure`, or the smaller `python-module`.
    """

    triton: str
    scope: Scope


@dataclass(frozen=True)
class Key:
    """The identity of a build. It does not include the scope, because a tree grows in place.

    Attributes:
        source: commit, or the name of sources that have none.
        diff: digest of what a dirty source tree changes; empty if it is clean.
        build_type: CMake build type.
        assertions: built with assertions.
        options: CMake variables that change what is built, name to value; not those that only affect speed.
        compiler: the compiler, without its path.
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
        """The digest of the key, as 16 hex digits."""
        # Not its path: the same compiler lies elsewhere on another machine, and links there all the same.
        compiler = (self.compiler.id, self.compiler.version)
        plain = (self.source, self.diff, self.build_type, self.assertions, sorted(self.options))
        return digest(*plain, compiler, self.libstdcxx, self.linker)

    @property
    def name(self) -> str:
        """The name of the entry: readable, and unique for the key."""
        commit = re.fullmatch(r"[0-9a-f]{40}", self.source)
        # The name is read by people; the digest at its end is what makes it unique.
        source = self.source[:_SHORT] if commit else re.sub(r"[^A-Za-z0-9._+]+", "-", self.source).strip("-.")
        asserts = "-asserts" if self.assertions else ""
        build_type = f"-{self.build_type}" if self.build_type else ""
        return f"{source or 'llvm'}{build_type}{asserts}-{self.digest[:_DIGEST]}"


@dataclass(frozen=True)
class StoreManifest:
    """The manifest of an entry, written beside the tree once it is complete.

    Attributes:
        name: name of the entry.
        kind: origin of the entry; an adopted tree belongs to its owner and is never deleted.
        tree: name of the folder in the store, or the absolute path of an adopted one.
        commit: LLVM's commit; empty if unknown.
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
        packages: CMake packages besides LLVM's own: `mlir`, `lld`, `clang`.
        tools: programs in its `bin` that Triton's build or tests need.
        libraries: the contents of its `lib` when it was published.
        scope: `all`, or the scope requested first.
        closures: parts that are built, if not all.
        shared: has only shared libraries: one per component, or one for all.
        sanitizer: the sanitizer that instruments it: `address`, ...
        compiler: the compiler that built it.
        linker: the linker that built it.
        abi: its requirements on a machine.
        key: digest of the key; empty for a tree that the tool did not build.
        source: the source tree of a build tree: it has headers, and Ninja needs it to build more.
        origin: URL or path of the original archive.
        made: time of creation, UTC, ISO 8601.
        tool: version of tritonsmith.
        bytes: size on disk when it was published; None if not measured.
        build: upstream's number of a prebuilt archive, as one commit may have several; None for others.
        looks: digest of an adopted tree that changes when it is rebuilt or reinstalled.
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
        """Return the text of the manifest's file."""
        return json.dumps(redact.data({"schema": SCHEMA, **asdict(self)}), indent=2) + "\n"


@dataclass(frozen=True)
class StoreEntry:
    """An LLVM in the store.

    Attributes:
        name: name of its folder and its manifest.
        path: path of the tree.
        status: ready; unfinished (no manifest); gone (no tree); changed (an adopted tree that no longer
            matches its description); unreadable (a damaged or newer manifest).
        manifest: None unless it is ready, gone or changed.
        problem: the reason why it is not ready, in words.
    """

    name: str
    path: Path
    status: Status
    manifest: StoreManifest | None = None
    problem: str = ""


def is_name(name: str) -> bool:
    """Report whether an entry may have this name: not a path, not hidden, nothing special to a shell."""
    return bool(_NAME.fullmatch(name)) and not _TAKEN.fullmatch(name)


def parse(text: str) -> StoreManifest:
    """Parse a manifest. Keys that a later version added are ignored.

    Raises:
        ValueError: the text is not a manifest, or has an unknown schema.
    """
    return parse_table(untrusted.json_of(text))


def parse_table(seen: Any) -> StoreManifest:
    """Build a manifest from parsed JSON.

    Raises:
        ValueError: the data is not a manifest, or has an unknown schema.
    """
    # The store is shared between versions of the tool: another schema is refused, and never guessed at.
    if not isinstance(seen, dict) or seen.get("schema") != SCHEMA:
        raise ValueError(f"not a manifest of schema {SCHEMA}")
    try:
        manifest: StoreManifest = untrusted.typed(StoreManifest, seen)
    except ValueError as error:
        raise ValueError(f"a damaged manifest: {error}") from error
    # The name becomes a path below the store, and manifests are also imported from other machines.
    if not is_name(manifest.name):
        raise ValueError(f"a damaged manifest: invalid name {manifest.name[:80]!r}")
    return manifest
