"""`setup-mlir`: use the first provider that fits, and record why each other one does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.builder.llvm import closure, prebuilt, store_entry
from tritonsmith.builder.llvm import source as llvm_source
from tritonsmith.builder.llvm.closure import Consumer
from tritonsmith.builder.llvm.request import LlvmRequest
from tritonsmith.builder.llvm.source import BuildTools, SourceTree
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.plan import Plan, Step
from tritonsmith.store import describe_tree, matching
from tritonsmith.store.describe_tree import Known
from tritonsmith.store.entry import StoreEntry, StoreManifest
from tritonsmith.store.store import Store

ORDER = ("system", "store", "prebuilt", "source")  # `auto`: quickest first


@dataclass(frozen=True)
class ProviderInputs:
    """Everything that the choice of a provider depends on.

    Attributes:
        means: what a build would be made with, and the machine.
        installed: LLVMs that are there, the one named by flag or variable first.
        source: where LLVM's sources come from.
        reachable: why a URL cannot be fetched from here, or None if it can.
        store: where LLVMs are kept.
        entries: what is in it.
        consumer: the Triton that it is for; None where its sources are not at hand.
    """

    means: BuildTools
    installed: tuple[LlvmTree, ...]
    source: llvm_source.LlvmSource
    reachable: Callable[[str], str | None]
    store: Store
    entries: tuple[StoreEntry, ...] = ()
    consumer: Consumer | None = None

    @property
    def triton(self) -> str:
        """What the closure of the Triton that it is for follows from; empty if that is not known."""
        return self.consumer.closure if self.consumer else ""


@dataclass(frozen=True)
class ProviderChoice:
    """The LLVM that exists once the plan has run.

    Attributes:
        provider: that gives it.
        prefix: what `LLVM_SYSPATH` wants.
        commit: as far as it is known.
        plan: what brings it there.
        warnings: what may hurt later.
        refused: provider to the reason why it was not taken.
        entry: name in the store; empty for an installed one.
        describe: reads the finished tree for its manifest; None where nothing is made.
        kind: of the entry: built, prebuilt ...; empty for an installed one.
    """

    provider: str
    prefix: Path
    commit: str
    plan: Plan
    warnings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    entry: str = ""
    describe: Callable[[], StoreManifest] | None = None
    kind: str = ""


class _RefusedError(Exception):
    """A provider does not fit; the message says why."""


def choose(
    request: LlvmRequest, facts: ProviderInputs, workspace: Workspace, *, again: bool = False
) -> ProviderChoice:
    """Choose a provider: the one in the settings, or the first that fits.

    Args:
        request: what is asked for.
        facts: what there is.
        workspace: where builds and archives go.
        again: configure even if nothing changed.

    Raises:
        FactError: none fits.
        UsageError: the request contradicts itself.
    """
    providers: dict[str, Callable[[], ProviderChoice]] = {
        "system": lambda: _system(request, facts),
        "store": lambda: _stored(request, facts, again=again),
        "prebuilt": lambda: _prebuilt(request, facts, workspace),
        "source": lambda: _source(request, facts, workspace, again=again),
    }
    wanted = request.settings.provider
    names = ORDER if wanted == "auto" else (wanted,)
    refused: list[tuple[str, str]] = []
    for name in names:
        try:
            choice = providers[name]()
        except _RefusedError as reason:
            refused.append((name, str(reason)))
            continue
        if again and name in ("system", "prebuilt"):
            nothing = f"--reconfigure has no effect: the LLVM in {choice.prefix} is not built here"
            choice = replace(choice, warnings=(*choice.warnings, nothing))
        return replace(choice, refused=tuple(refused))
    raise FactError(
        f"no LLVM matches the pin {request.describe_pin()}",
        why="\n".join(f"{name}: {reason}" for name, reason in refused),
        hints=_hints(refused),
    )


def _system(request: LlvmRequest, facts: ProviderInputs) -> ProviderChoice:
    explicit = request.settings.provider == "system"
    if not facts.installed:
        raise _RefusedError("no installed LLVM found under the usual prefixes")
    reasons: list[str] = []
    for tree in facts.installed:
        if missing := request.lacks(tree):
            reasons.append(f"{tree.prefix} ({tree.version}) lacks {'; '.join(missing)}")
            continue
        fit = request.fit(tree.commit)
        if fit == "pin" or explicit or request.settings.any_commit:
            warnings = () if fit == "pin" else (_near_the_pin(request, tree),)
            plan = Plan(f"installed LLVM {tree.version} in {tree.prefix}")
            return ProviderChoice("system", tree.prefix, tree.commit, plan, warnings)
        about = f"is at {tree.commit[:12]}" if tree.commit else "does not record its commit"
        reasons.append(f"{tree.prefix} ({tree.version}) {about}; the pin is {request.describe_pin()}")
    raise _RefusedError("\n  ".join(reasons))


def _near_the_pin(request: LlvmRequest, tree: LlvmTree) -> str:
    about = f"commit {tree.commit[:12]}" if tree.commit else "its commit is not recorded"
    return (
        f"LLVM {tree.version} in {tree.prefix} is not the pin: {about}, "
        f"Triton wants {request.describe_pin()}. Files that use an API that changed will not compile."
    )


def _prebuilt(request: LlvmRequest, facts: ProviderInputs, workspace: Workspace) -> ProviderChoice:
    archive = prebuilt.archive_for(request, facts.means.machine, request.settings.prebuilt_url)
    if request.pin is None:
        raise _RefusedError("the wanted commit is unknown")
    if archive is None:
        raise _RefusedError(
            f"upstream provides no build for {facts.means.machine.system} on {facts.means.machine.arch}"
        )
    if not archive.sha256:
        raise _RefusedError(
            f"{request.pin.file} has no checksum for {archive.suffix}: give it with --sha256 HEX"
        )
    if not prebuilt.at_hand(archive, workspace, facts.store) and (problem := facts.reachable(archive.url)):
        raise _RefusedError(f"cannot reach {archive.url}: {problem}")
    name, machine = archive.name, facts.means.machine
    plan = prebuilt.plan(archive, workspace, facts.store)
    _refuse_read_only(facts.store)
    prefix, commit, build = facts.store.path(name), request.pin.commit, request.pin.build

    def describe_it() -> StoreManifest:
        known = Known(commit=commit, origin=archive.url, build=build)
        return describe_tree.manifest(name, "prebuilt", llvm_tree.read(prefix), machine, known)

    return ProviderChoice("prebuilt", prefix, commit, plan, entry=name, describe=describe_it, kind="prebuilt")


def _stored(request: LlvmRequest, facts: ProviderInputs, *, again: bool) -> ProviderChoice:
    if facts.source.dirty and request.settings.source:
        raise _RefusedError(f"the given sources have local changes: {facts.source.location}")
    wanted = store_entry.wanted(request, facts.means.machine, facts.triton)
    if request.pin:
        same = llvm_source.key(SourceTree(Path(), request.pin.commit, ()), request, facts.means)
        wanted = replace(wanted, key=same.digest)
    found = matching.choose(facts.entries, wanted)
    if found.entry is None or found.entry.manifest is None:
        reasons = [f"{name}: {why}" for name, why in found.refused]
        raise _RefusedError("\n  ".join(reasons) or f"{facts.store.root} is empty")
    entry, manifest = found.entry, found.entry.manifest
    named = request.settings.ninja_targets
    warnings = () if request.fit(manifest.commit) == "pin" else (_stored_elsewhere(request, manifest),)
    if again:
        tree = SourceTree(Path(manifest.source), manifest.commit, ())
        reason = _why_not_configured(manifest, tree, request, facts)
        if not reason:
            return _configured(tree, request, facts, "store", warnings, again=True)
        warnings = (*warnings, f"{entry.name} is not reconfigured: {reason}")
    if found.complete and not named:
        return _taken(entry, manifest, "store", warnings)
    if problem := matching.moved(manifest):
        raise _RefusedError(f"{entry.name} is incomplete, and {problem}")
    if facts.consumer is None and request.settings.scope != "all" and not named:
        raise _RefusedError(f"finding out what {entry.name} lacks needs Triton's sources")
    _refuse_read_only(facts.store)
    steps = closure.build(entry.path, request, facts.means, facts.consumer)
    describe_it = store_entry.grown(facts.store, manifest, request, facts.triton)
    return _grown(entry, manifest, "store", warnings, steps, describe_it)


def _taken(
    entry: StoreEntry, manifest: StoreManifest, provider: str, warnings: tuple[str, ...]
) -> ProviderChoice:
    """An entry as it is."""
    plan = Plan(f"LLVM {manifest.version} from the store in {entry.path}")
    return ProviderChoice(
        provider, entry.path, manifest.commit, plan, warnings, entry=entry.name, kind=manifest.kind
    )


def _grown(
    entry: StoreEntry,
    manifest: StoreManifest,
    provider: str,
    warnings: tuple[str, ...],
    steps: tuple[Step, ...],
    describe_it: Callable[[], StoreManifest],
) -> ProviderChoice:
    """An entry in which more is built, as it was configured once."""
    plan = Plan(f"the rest of LLVM {manifest.version} in {entry.path}", steps)
    taken = _taken(entry, manifest, provider, warnings)
    return replace(taken, plan=plan, describe=describe_it)


def _why_not_configured(
    manifest: StoreManifest, tree: SourceTree, request: LlvmRequest, facts: ProviderInputs
) -> str:
    """Why `--reconfigure` leaves an entry as it is; empty if it does not."""
    if manifest.kind != "built":
        return f"the entry is {manifest.kind} and was configured where it was built"
    if not facts.store.writable:
        return "the store is read-only"
    if not manifest.commit:
        return "the commit of its sources is unknown; use --provider source with the same sources"
    if moved := matching.moved(manifest):
        return moved
    if llvm_source.key(tree, request, facts.means).digest != manifest.key:
        return "built with another compiler or other options; --provider source creates a separate entry"
    return ""


def _stored_elsewhere(request: LlvmRequest, manifest: StoreManifest) -> str:
    about = f"is at {manifest.commit[:12]}" if manifest.commit else "does not record its commit"
    return f"{manifest.name} {about}; Triton wants {request.describe_pin()}"


def _refuse_read_only(store: Store) -> None:
    if not store.writable:
        raise _RefusedError(f"{store.root} is read-only: set another `store` under [llvm], or none")


def _source(
    request: LlvmRequest, facts: ProviderInputs, workspace: Workspace, *, again: bool
) -> ProviderChoice:
    try:
        tree = llvm_source.obtain(facts.source, request, workspace)
    except UsageError as error:
        if request.settings.provider == "source":
            raise
        raise _RefusedError(error.what) from error
    warnings: tuple[str, ...] = ()
    if request.fit(tree.commit) != "pin":
        known = tree.commit[:12] or "unknown"
        warnings = (f"the sources' commit is {known}; Triton wants {request.describe_pin()}",)
    there = None if again else _built_before(tree, request, facts, warnings)
    return there or _configured(tree, request, facts, "source", warnings, again=again)


def _built_before(
    tree: SourceTree, request: LlvmRequest, facts: ProviderInputs, warnings: tuple[str, ...]
) -> ProviderChoice | None:
    """The entry of this very build, if it is finished: as it is, or with more built in it.

    It is not reconfigured for what is not in its key: jobs, caches and what makes it quicker. Two
    environments that differ in these would otherwise undo each other's configure at every run.
    """
    means, store = facts.means, facts.store
    key = llvm_source.key(tree, request, means)
    entry = next((one for one in facts.entries if one.name == key.name and one.status == "ready"), None)
    manifest = entry.manifest if entry else None
    if entry is None or manifest is None or manifest.key != key.digest:
        return None
    whole = all(step.stamp and step.stamp.holds() for step in tree.steps)
    if manifest.source == str(tree.path) and not whole:
        return None  # a run that was to fetch its sources again was stopped
    settled, named = _settled(tree), request.settings.ninja_targets
    wanted = store_entry.wanted(request, means.machine, facts.triton)
    if settled and not named and matching.covers(manifest, wanted) and not matching.homeless(manifest):
        return _taken(entry, manifest, "source", warnings)
    if not matching.grows(entry) or (settled and matching.moved(manifest)):
        return None
    _refuse_read_only(store)
    steps = closure.build(entry.path, request, means, facts.consumer)
    if settled:
        describe_it = store_entry.grown(store, manifest, request, facts.triton)
        return _grown(entry, manifest, "source", warnings, steps, describe_it)
    steps = (*store.retract(key.name), *steps)  # not to be used while it changes
    describe_it = store_entry.built(store, key, request, means.machine, facts.triton, tree)
    return _grown(entry, manifest, "source", warnings, steps, describe_it)


def _settled(tree: SourceTree) -> bool:
    """Whether sources are what they were: they are at a commit, or the tool unpacked them itself."""
    return bool(tree.steps) or (bool(tree.commit) and not tree.dirty)


def _configured(
    tree: SourceTree,
    request: LlvmRequest,
    facts: ProviderInputs,
    provider: str,
    warnings: tuple[str, ...],
    *,
    again: bool,
) -> ProviderChoice:
    """A build of the tool's own, configured if need be."""
    means, store = facts.means, facts.store
    _refuse_read_only(store)
    key = llvm_source.key(tree, request, means)
    prefix = store.path(key.name)
    configure = llvm_source.configure(tree, request, prefix, means, root=store.owner, again=again)
    steps = (*configure, *closure.build(prefix, request, means, facts.consumer))
    stamps = [step.stamp for step in configure if step.stamp]
    if not _settled(tree) or not all(stamp.holds() for stamp in stamps):
        steps = (*store.retract(key.name), *steps)  # not to be used while it changes
    plan = Plan(f"LLVM/MLIR from source in {prefix}", steps)
    describe_it = store_entry.built(store, key, request, means.machine, facts.triton, tree)
    made = ProviderChoice(provider, prefix, tree.commit, plan, warnings, entry=key.name)
    return replace(made, describe=describe_it, kind="built")


def _hints(refused: list[tuple[str, str]]) -> list[str]:
    names = {name for name, _ in refused}
    hints = ["an installed LLVM near the pin may work: --provider system --llvm-dir /usr/lib/llvm-NN"]
    if "prebuilt" in names or "source" in names:
        hints.append(
            "use LLVM sources or a mirror that you have: --provider source --llvm-source PATH_OR_URL"
        )
    if "source" not in names:
        hints.append("let tritonsmith fetch and build LLVM: --provider source")
    return hints
