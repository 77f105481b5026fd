"""Requirements on an LLVM in the store, and what an entry lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.build.store.entry import Abi, StoreEntry, StoreManifest
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.schema import Scope
from tritonsmith.core.versions import version_key
from tritonsmith.facts import git
from tritonsmith.facts.llvm_tree import same_commit


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


def lacks(entry: StoreEntry, wanted: LlvmNeeds) -> list[str]:
    """Return the unmet requirements of an entry, in words; empty if it is suitable.

    A build tree with its sources serves any scope: Ninja builds the difference.
    """
    if entry.manifest is None or entry.status != "ready":
        return [entry.problem or entry.status]
    have = entry.manifest
    missing = [*_identity(have, wanted), *foreign(have.abi, wanted.machine), *_parts(have, wanted)]
    if not covers(have, wanted) and not grows(entry):
        missing.append(_scope_in_words(have, wanted))
    if problem := homeless(have):
        missing.append(problem)
    # Last, because git checks every file of the sources.
    if not missing and have.kind == "adopted" and have.source:
        problem = moved(have)
        missing += (
            [f"{problem}: `{command('store.import --in-place', entry.path)}` checks it again"]
            if problem
            else []
        )
    return missing


def covers(have: StoreManifest, wanted: LlvmNeeds) -> bool:
    """Report whether everything required is built already, including tools."""
    if wanted.tools - set(have.tools):
        return False
    if have.scope == "all":
        return True
    enough = {"all": (), "closure": ("closure",), "python-module": ("closure", "python-module")}
    fit = (closure for closure in have.closures if closure.scope in enough[wanted.scope])
    # A Triton whose closure is not known (changed sources) may need more than any
    # closure has: Ninja decides.
    return bool(wanted.triton) and any(closure.triton == wanted.triton for closure in fit)


def grows(entry: StoreEntry) -> bool:
    """Report whether Ninja can build more of it: a build tree of the tool's own, with its sources."""
    have = entry.manifest
    if have is None or have.kind != "built" or not have.source:
        return False
    return (entry.path / "build.ninja").is_file() and not homeless(have)


def homeless(have: StoreManifest) -> str:
    """Return why a build tree is unusable without its sources, which hold half of its headers; else empty."""
    if not have.source:
        return ""
    try:
        # A build tree has only the generated half of LLVM's headers; the others are in its sources.
        there = (Path(have.source) / "llvm").is_dir()
    except OSError:  # in a home directory that this user cannot read
        there = False
    return "" if there else f"its sources, and thus its headers, are no longer in {have.source}"


def moved(have: StoreManifest) -> str:
    """Return why no more of a build can be built from its sources; empty if they are unchanged."""
    if not have.source:
        return "not a build tree"
    head = git.head(Path(have.source))
    if head.problem:
        return f"its sources in {have.source} have no readable commit: {head.problem}"
    if head.commit and not same_commit(head.commit, have.commit):
        return f"its sources in {have.source} are now at {head.commit[:12]}"
    return f"its sources in {have.source} have been modified" if head.dirty else ""


def choose(entries: Iterable[StoreEntry], wanted: LlvmNeeds) -> StoreMatch:
    """Choose the best suitable entry: same key, then nothing left to build, then most similar."""
    serving: list[StoreEntry] = []
    refused: list[tuple[str, str]] = []
    for entry in entries:
        if missing := lacks(entry, wanted):
            refused.append((entry.name, "; ".join(missing)))
        else:
            serving.append(entry)
    if not serving:
        return StoreMatch(refused=tuple(refused))
    serving.sort(key=lambda entry: _merit(entry, wanted), reverse=True)
    best, *others = serving
    refused += [(other.name, f"suitable, but {best.name} is better") for other in others]
    return StoreMatch(best, best.manifest is not None and covers(best.manifest, wanted), tuple(refused))


def _merit(entry: StoreEntry, needs: LlvmNeeds) -> tuple[bool, bool, bool, bool, bool, str]:
    have = entry.manifest
    assert have is not None  # noqa: S101 - it serves
    return (
        same_commit(have.commit, needs.commit),
        bool(needs.key) and have.key == needs.key,
        covers(have, needs),
        have.build_type == needs.build_type,
        have.debug_info == needs.debug_info,
        have.made,
    )


def native(targets: Iterable[str], arch: str) -> frozenset[str]:
    """Return code generators by LLVM's names: `Native` is the host's."""
    names = configs.load("store")["native"]
    return frozenset(names.get(arch, target) if target == "Native" else target for target in targets)


def foreign(have: Abi, here: Abi) -> list[str]:
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
    table = configs.load("store")["debug-info"]
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


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other


def _scope_in_words(have: StoreManifest, needs: LlvmNeeds) -> str:
    if tools := needs.tools - set(have.tools):
        return f"programs {', '.join(sorted(tools))}"
    if have.kind == "adopted":
        return "its build is incomplete (run `ninja` in it, then `invoke store.import --in-place` again)"
    what = "all of LLVM" if needs.scope == "all" else f"the {needs.scope} of Triton {needs.triton[:12]}"
    built = ", ".join(f"{closure.scope} of {closure.triton[:12]}" for closure in have.closures)
    return f"{what} is not built in it (built: {built or 'unknown'})"
