"""`setup-mlir` and the store: the entry that is requested, and the manifest written for a new LLVM."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import SourceTree
from tritonsmith.build.store import describe_tree, leases
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import Abi, Closure, Key, StoreManifest
from tritonsmith.build.store.leases import User
from tritonsmith.build.store.matching import LlvmNeeds
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.schema import Scope
from tritonsmith.core.plan import Step
from tritonsmith.facts import git, llvm_tree
from tritonsmith.facts.machine import Machine


@dataclass(frozen=True)
class StoreEntryUpdate:
    """The changes of one run to the store: `user` uses an entry that is built, extended or already complete.

    `describe` reads the finished tree; None for an entry that stays as it is.
    """

    store: Store
    entry: str
    user: User
    describe: Callable[[], StoreManifest] | None = None

    def hold(self, purpose: str) -> AbstractContextManager[None]:
        """Lock the entry if the run changes something in it."""
        return self.store.hold(self.entry, purpose=purpose) if self.describe else nullcontext()

    def announce(self) -> tuple[Step, ...]:
        """Register the user of an entry that is about to be built, which may take several runs."""
        return leases.announce(self.store, self.user) if self.describe else ()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps that publish the entry and register its user; none in a read-only store."""
        if not self.store.writable:
            return ()
        published = self.store.publish(self.describe()) if self.describe else ()
        return (*published, *leases.register(self.store, self.user))


def wanted(request: LlvmRequest, machine: Machine, triton: str) -> LlvmNeeds:
    """Return this Triton's requirements on an entry; `triton` is the `closure.key` of its closure."""
    settings = request.settings
    return LlvmNeeds(
        commit=request.pin.commit if request.pin else "",
        any_commit=settings.any_commit,
        build_type=settings.build_type,
        assertions=settings.assertions,
        debug_info=settings.debug_info,
        targets=frozenset(settings.targets),
        packages=frozenset(request.projects) & {"mlir", "lld", "clang"},
        tools=frozenset(request.tools),
        scope=settings.scope,
        triton=triton,
        shared=settings.shared,
        build=request.pin.build if request.pin and not settings.any_commit else None,
        machine=Abi(machine.system, machine.arch, machine.glibc, machine.glibcxx),
    )


def built(
    store: Store, key: Key, request: LlvmRequest, machine: Machine, triton: str, tree: SourceTree
) -> Callable[[], StoreManifest]:
    """Return a function that describes the build tree of a key once it is built."""

    def describe_it() -> StoreManifest:
        known = Known(
            commit=tree.commit,
            diff=(git.changes(tree.path) or "unknown") if tree.dirty else "",
            debug_info=request.settings.debug_info,
            projects=request.projects,
            scope=_scope(request),
            closures=_closures(request, triton),
            source=str(tree.path),
        )
        # Closures of an earlier run count only if its manifest still exists: it is removed if flags or
        # sources change, and then only what this run requested is rebuilt.
        before = store.entry(key.name).manifest
        return describe_tree.built(
            key, llvm_tree.read(store.path(key.name)), machine, known=known, before=before
        )

    return describe_it


def grown(
    store: Store, manifest: StoreManifest, request: LlvmRequest, triton: str
) -> Callable[[], StoreManifest]:
    """Return a function that updates an entry's description once more of it is built."""

    def describe_it() -> StoreManifest:
        # Another environment may have extended the entry while this one was building.
        now = store.entry(manifest.name).manifest or manifest
        prefix = store.path(now.name)
        tree = llvm_tree.read(prefix)
        return replace(
            now,
            tools=tuple(sorted(tree.tools)),
            libraries=tuple(path.name for path in describe_tree.libraries(prefix)),
            scope="all" if "all" in (now.scope, _scope(request)) else now.scope,
            closures=tuple(dict.fromkeys((*now.closures, *_closures(request, triton)))),
        )

    return describe_it


def _scope(request: LlvmRequest) -> Scope:
    """Return the requested scope; single targets are less than any scope."""
    return "python-module" if request.settings.ninja_targets else request.settings.scope


def _closures(request: LlvmRequest, triton: str) -> tuple[Closure, ...]:
    settings = request.settings
    part = settings.scope != "all" and not settings.ninja_targets
    return (Closure(triton, settings.scope),) if part and triton else ()
