"""The entries of a store: the manifest of an LLVM, and the search for one that meets a Triton's needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tritonsmith.core import configs, redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.settings import Scope
from tritonsmith.core.plan import digest
from tritonsmith.core.text import version_key
from tritonsmith.facts import git
from tritonsmith.facts.llvm_tree import same_commit

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
        debug_info: `none`, `lines`, `mlir`, `split` or `full`.
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
        # The URL of an archive may hold a password, and a shared store is read by others.
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


def parse_table(table: Any) -> StoreManifest:
    """Build a manifest from parsed JSON.

    Raises:
        ValueError: the data is not a manifest, or has an unknown schema.
    """
    # The store is shared between versions of the tool: another schema is refused, and never guessed at.
    if not isinstance(table, dict) or table.get("schema") != SCHEMA:
        raise ValueError(f"not a manifest of schema {SCHEMA}")
    try:
        manifest: StoreManifest = untrusted.typed(StoreManifest, table)
    except ValueError as error:
        raise ValueError(f"a damaged manifest: {error}") from error
    # The name becomes a path below the store, and manifests are also imported from other machines.
    if not is_name(manifest.name):
        raise ValueError(f"a damaged manifest: invalid name {manifest.name[:80]!r}")
    return manifest


@dataclass(frozen=True)
class LlvmNeeds:
    """Requirements on an LLVM. Empty values do not matter.

    Attributes:
        commit: LLVM's commit.
        any_commit: accept another commit if no entry has that one.
        build_type: CMake build type.
        assertions: with or without assertions.
        debug_info: at least this much, if the build type has any.
        targets: code generators; `Native` is the host's.
        packages: CMake packages: `mlir`, `lld`, `clang`.
        tools: programs in `bin` that the build of Triton runs.
        scope: the part that must be built.
        triton: the Triton of the closure: its commit and options.
        shared: with shared libraries, or with archives.
        machine: the machine where it must link and run.
        build: upstream's build number for that commit; its other prebuilt archives do not match.
        key: digest of the key, if known: an entry with this key is preferred.
    """

    commit: str = ""
    any_commit: bool = False
    build_type: str = ""
    assertions: bool | None = None
    debug_info: str = "none"
    targets: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    scope: Scope = "closure"
    triton: str = ""
    shared: bool | None = None
    machine: Abi = field(default_factory=Abi)
    build: int | None = None
    key: str = ""


@dataclass(frozen=True)
class StoreMatch:
    """The result of a search.

    Attributes:
        entry: the best suitable one; None if there is none.
        complete: everything required is built; otherwise Ninja has to build the difference first.
        refused: the other entries, with the reason why each was not chosen.
    """

    entry: StoreEntry | None = None
    complete: bool = False
    refused: tuple[tuple[str, str], ...] = ()


def lacks(entry: StoreEntry, needs: LlvmNeeds) -> list[str]:
    """Return the unmet requirements of an entry, in words; empty if it is suitable.

    A build tree with its sources serves any scope: Ninja builds the difference.
    """
    if entry.manifest is None or entry.status != "ready":
        return [entry.problem or entry.status]
    have = entry.manifest
    missing = [*_identity(have, needs), *incompatible(have.abi, needs.machine), *_parts(have, needs)]
    if not covers(have, needs) and not can_grow(entry):
        missing.append(_scope_in_words(have, needs))
    if problem := lost_sources(have):
        missing.append(problem)
    # Last, because git checks every file of the sources.
    if not missing and have.kind == "adopted" and have.source:
        problem = moved_sources(have)
        missing += [f"{problem}: `{command('store --adopt', entry.path)}` checks it again"] if problem else []
    return missing


def covers(have: StoreManifest, needs: LlvmNeeds) -> bool:
    """Report whether everything required is built already, including tools."""
    if needs.tools - set(have.tools):
        return False
    if have.scope == "all":
        return True
    # A closure holds all that the Python module needs, but not the other way round.
    enough = {"all": (), "closure": ("closure",), "python-module": ("closure", "python-module")}
    fit = (closure for closure in have.closures if closure.scope in enough[needs.scope])
    # A Triton whose closure is not known (changed sources) may need more than any
    # closure has: Ninja decides.
    return bool(needs.triton) and any(closure.triton == needs.triton for closure in fit)


def can_grow(entry: StoreEntry) -> bool:
    """Report whether Ninja can build more of it: a build tree of the tool's own, with its sources."""
    have = entry.manifest
    if have is None or have.kind != "built" or not have.source:
        return False
    return (entry.path / "build.ninja").is_file() and not lost_sources(have)


def lost_sources(have: StoreManifest) -> str:
    """Return why a build tree is unusable without its sources, which hold half of its headers; else empty."""
    if not have.source:
        return ""
    try:
        # A build tree has only the generated half of LLVM's headers; the others are in its sources.
        there = (Path(have.source) / "llvm").is_dir()
    except OSError:  # in a home directory that this user cannot read
        there = False
    return "" if there else f"its sources, and thus its headers, are no longer in {have.source}"


def moved_sources(have: StoreManifest) -> str:
    """Return why no more of a build can be built from its sources; empty if they are unchanged."""
    if not have.source:
        return "not a build tree"
    head = git.head(Path(have.source))
    if head.problem:
        return f"its sources in {have.source} have no readable commit: {head.problem}"
    if head.commit and not same_commit(head.commit, have.commit):
        return f"its sources in {have.source} are now at {head.commit[:12]}"
    return f"its sources in {have.source} have been modified" if head.dirty else ""


def choose_entry(entries: Iterable[StoreEntry], needs: LlvmNeeds) -> StoreMatch:
    """Choose the best suitable entry: same key, then nothing left to build, then most similar."""
    serving: list[StoreEntry] = []
    refused: list[tuple[str, str]] = []
    for entry in entries:
        if missing := lacks(entry, needs):
            refused.append((entry.name, "; ".join(missing)))
        else:
            serving.append(entry)
    if not serving:
        return StoreMatch(refused=tuple(refused))
    serving.sort(key=lambda entry: _merit(entry, needs), reverse=True)
    best, *others = serving
    refused += [(other.name, f"suitable, but {best.name} is better") for other in others]
    return StoreMatch(best, best.manifest is not None and covers(best.manifest, needs), tuple(refused))


def _merit(entry: StoreEntry, needs: LlvmNeeds) -> tuple[bool, bool, bool, bool, bool, str]:
    have = entry.manifest
    assert have is not None  # noqa: S101 - it serves
    return (
        same_commit(have.commit, needs.commit),
        bool(needs.key) and have.key == needs.key,
        covers(have, needs),
        have.build_type == needs.build_type,
        have.debug_info == needs.debug_info,
        # The newest of those that are alike: times in UTC, in ISO 8601, sort as text.
        have.made,
    )


def native(targets: Iterable[str], arch: str) -> frozenset[str]:
    """Return code generators by LLVM's names: `Native` is the host's."""
    names = configs.load("store")["native"]
    return frozenset(names.get(arch, target) if target == "Native" else target for target in targets)


def incompatible(have: Abi, here: Abi) -> list[str]:
    """Return why binaries do not run on a machine; empty if they do. Unknown values are ignored."""
    missing = []
    if _differ(have.system, here.system) or _differ(have.arch, here.arch):
        missing.append(f"it is for {have.system} on {have.arch}")
    for name, theirs, ours in (("glibc ", have.glibc, here.glibc), ("GLIBCXX_", have.glibcxx, here.glibcxx)):
        # Older libraries are fine: glibc and libstdc++ keep what they once
        # exported, and add symbol versions.
        if theirs and ours and version_key(theirs) > version_key(ours):
            missing.append(f"it was built with {name}{theirs}, this machine has {name}{ours}")
    # The two std::strings are different types with different mangled names: such libraries do not link.
    if have.cxx11 is not None and here.cxx11 is not None and have.cxx11 != here.cxx11:
        missing.append(f"its std::string is libstdc++'s {'newer' if have.cxx11 else 'older'} one")
    return missing


def _identity(have: StoreManifest, needs: LlvmNeeds) -> Iterator[str]:
    if needs.commit and not needs.any_commit and not same_commit(have.commit, needs.commit):
        known = f"it is at {have.commit[:12]}" if have.commit else "its commit is unknown"
        yield f"{known}; required: {needs.commit[:12]}"
    elif needs.build is not None and _is_another_build(have, needs.build):
        yield f"it is upstream's build {have.build or 'of an unknown number'}; required: build {needs.build}"
    # Whoever modifies sources names them, and rebuilds in place; nobody else wants that LLVM.
    if have.diff:
        yield "its sources were modified"
    # A Triton of any build type links an optimised LLVM, too: the configuration says which serves which.
    serving = configs.load("store")["serves"].get(needs.build_type, [needs.build_type])
    if needs.build_type and have.build_type not in serving:
        yield f"it is {have.build_type or 'without a build type'}; required: {needs.build_type}"
    if needs.assertions is not None and have.assertions != needs.assertions:
        yield "it has assertions" if have.assertions else "it has no assertions"
    # Instrumented libraries need the sanitizer's runtime in every process that loads them.
    if have.sanitizer:
        yield f"it is instrumented by the sanitizer {have.sanitizer}"
    if needs.shared is not None and have.shared != needs.shared:
        yield "it has shared libraries only" if have.shared else "it has no shared libraries"


def _parts(have: StoreManifest, needs: LlvmNeeds) -> Iterator[str]:
    table = configs.load("llvm-options")["debug-info"]
    rank = table["rank"]
    if needs.build_type in table["types"] and rank.get(have.debug_info, 0) < rank[needs.debug_info]:
        yield f"its debug information is {have.debug_info!r}; required: {needs.debug_info!r}"
    arch = needs.machine.arch or have.abi.arch
    if missing := native(needs.targets, arch) - native(have.targets, arch):
        yield f"code generators {', '.join(sorted(missing))}"
    if gone := needs.packages - set(have.packages):
        yield f"CMake packages {', '.join(sorted(gone))}"


def _is_another_build(have: StoreManifest, number: int) -> bool:
    """Report whether an entry is another build of upstream's; older entries did not record the number."""
    return have.build != number and (have.kind == "prebuilt" or have.build is not None)


def _differ(have: str, here: str) -> bool:
    return bool(have and here) and have != here


def _scope_in_words(have: StoreManifest, needs: LlvmNeeds) -> str:
    if tools := needs.tools - set(have.tools):
        return f"programs {', '.join(sorted(tools))}"
    if have.kind == "adopted":
        return "its build is incomplete (run `ninja` in it, then `invoke store --adopt` again)"
    what = "all of LLVM" if needs.scope == "all" else f"the {needs.scope} of Triton {needs.triton[:12]}"
    built = ", ".join(f"{closure.scope} of {closure.triton[:12]}" for closure in have.closures)
    return f"{what} is not built in it (built: {built or 'unknown'})"
