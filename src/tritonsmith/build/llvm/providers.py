"""The places that an LLVM may come from, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.prebuilt import Consumer
from tritonsmith.build.llvm.source import BuildTools, LlvmSource, SourceTree
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import (
    StoreEntry,
    StoreManifest,
    can_grow,
    choose_entry,
    covers,
    lost_sources,
    moved_sources,
)
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Step
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree

_OTHER_PROVIDERS = (
    "omit --provider: tritonsmith then also looks in its store, and downloads or builds an LLVM at the pin",
)


@dataclass(frozen=True)
class ProviderInputs:
    """Everything that the choice of a provider depends on.

    Attributes:
        workspace: workspace for builds and archives.
        means: the machine and the tools of a build.
        installed: installed LLVMs, the one named by flag or variable first.
        source: origin of LLVM's sources.
        reachable: returns why a URL cannot be fetched from here, or None if it can.
        store: the store of LLVMs.
        entries: entries of the store.
        consumer: the Triton that needs the LLVM; None if its sources are not available.
        again: configure even if nothing changed.
    """

    workspace: Workspace
    means: BuildTools
    installed: tuple[LlvmTree, ...]
    source: LlvmSource
    reachable: Callable[[str], str | None]
    store: Store
    entries: tuple[StoreEntry, ...] = ()
    consumer: Consumer | None = None
    again: bool = False

    @property
    def triton(self) -> str:
        """The key of the closure of the consuming Triton; empty if it is unknown."""
        return self.consumer.closure if self.consumer else ""


@dataclass(frozen=True)
class ProviderChoice:
    """The LLVM that exists once the plan has run.

    Attributes:
        provider: name of the provider.
        prefix: value for `LLVM_SYSPATH`.
        commit: its commit, as far as it is known.
        plan: plan that builds or fetches it.
        warnings: problems that may occur later.
        refused: provider to the reason for its refusal.
        entry: name in the store; empty for an installed one.
        describe: reads the finished tree for its manifest; None if nothing is built.
        kind: kind of the entry: built, prebuilt ...; empty for an installed one.
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


# Not a SmithError: with `auto` a refusal is a reason to try the next provider, and only `choose` knows
# whether all of them refused.
class RefusedError(Exception):
    """A provider does not fit; the message has the reason."""


def choose(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Choose a provider: the one in the settings, or the first that fits; a named folder excludes all others.

    Raises:
        FactError: no provider fits, or the named folder does not.
        UsageError: the request contradicts itself.
    """
    provider = request.settings.provider
    if request.settings.dir:
        _check_named(request, inputs)
        provider = "system"
    refused: dict[str, str] = {}
    for name in PROVIDERS if provider == "auto" else (provider,):
        try:
            choice = PROVIDERS[name](request, inputs)
        except RefusedError as reason:
            refused[name] = str(reason)
            continue
        # The flag asks for a configure of our own, and these two have none.
        if inputs.again and name in ("system", "prebuilt"):
            nothing = f"--reconfigure has no effect: the LLVM in {choice.prefix} is not built here"
            choice = replace(choice, warnings=(*choice.warnings, nothing))
        return replace(choice, refused=tuple(refused.items()))
    installed = provider == "system"
    raise FactError(
        "no installed LLVM fits this Triton"
        if installed
        else f"no LLVM matches the pin {request.describe_pin()}",
        why="\n".join(f"{name}: {reason}" for name, reason in refused.items()),
        hints=[*_packages(request, inputs), *(_hints(refused) if not installed else _OTHER_PROVIDERS)],
    )


def _check_named(request: LlvmRequest, inputs: ProviderInputs) -> None:
    """Check that the LLVM of a folder named by the user is usable.

    Raises:
        UsageError: the settings name another provider too.
        FactError: it lacks something, or is not at the pin and no other commit was accepted.
    """
    # A folder that is named is the only LLVM on offer.
    provider, (tree,) = request.settings.provider, inputs.installed
    if provider not in ("auto", "system"):
        raise UsageError(
            f"the provider {provider!r} and the installed LLVM in {tree.prefix} contradict each other",
            hints=["omit --provider or --llvm-dir (in an env file: provider or dir under [llvm])"],
        )
    elsewhere = "or omit --llvm-dir: tritonsmith then finds, downloads or builds an LLVM at the pin"
    if missing := request.lacks(tree):
        raise FactError(
            f"this LLVM {tree.version} cannot build this Triton",
            where=tree.prefix,
            why="\n".join(f"it lacks {part}" for part in missing),
            hints=[*request.remedy(tree), "name another: --llvm-dir DIR", elsewhere],
        )
    # `--provider system` accepts another commit as `--any-commit` does: it names an installed LLVM, and those
    # are rarely at the pin.
    if provider == "auto" and not request.settings.any_commit and request.fit(tree.commit) != "pin":
        about = f"it is at {tree.commit[:12]}" if tree.commit else "it does not record its commit"
        raise FactError(
            f"this LLVM {tree.version} is not known to be at the pin",
            where=tree.prefix,
            why=f"{about}; Triton wants {request.describe_pin()}",
            hints=[
                "accept it: --any-commit (files that use an API that changed will not compile)",
                elsewhere,
            ],
        )


def _packages(request: LlvmRequest, inputs: ProviderInputs) -> list[str]:
    """Return hints to complete an installed LLVM: the newest that has any."""
    return next((hints for tree in inputs.installed if (hints := request.remedy(tree))), [])


def _hints(refused: Collection[str]) -> list[str]:
    hints = ["an installed LLVM near the pin may work: --provider system --llvm-dir /usr/lib/llvm-NN"]
    if "prebuilt" in refused or "source" in refused:
        hints.append(
            "use LLVM sources or a mirror that you have: --provider source --llvm-source PATH_OR_URL"
        )
    if "source" not in refused:
        hints.append("let tritonsmith fetch and build LLVM: --provider source")
    return hints


def require_writable(store: Store) -> None:
    """Check that the store is writable, for a provider that builds or extracts something.

    Raises:
        RefusedError: the store is read-only.
    """
    if not store.writable:
        raise RefusedError(f"{store.root} is read-only: set another `store` under [llvm], or none")


def take_entry(
    entry: StoreEntry, manifest: StoreManifest, provider: str, warnings: tuple[str, ...]
) -> ProviderChoice:
    """Return the choice of an entry as it is."""
    plan = Plan(f"LLVM {manifest.version} from the store in {entry.path}")
    return ProviderChoice(
        provider, entry.path, manifest.commit, plan, warnings, entry=entry.name, kind=manifest.kind
    )


def grow_entry(
    entry: StoreEntry,
    manifest: StoreManifest,
    provider: str,
    warnings: tuple[str, ...],
    steps: tuple[Step, ...],
    describe_it: Callable[[], StoreManifest],
) -> ProviderChoice:
    """Return the choice of an entry in which more will be built, with its existing configuration."""
    plan = Plan(f"the rest of LLVM {manifest.version} in {entry.path}", steps)
    return replace(take_entry(entry, manifest, provider, warnings), plan=plan, describe=describe_it)


def provide_system(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Use an LLVM that is installed.

    Raises:
        RefusedError: none fits.
    """
    explicit = request.settings.provider == "system"
    if not inputs.installed:
        raise RefusedError("no installed LLVM found under the usual prefixes")
    reasons: list[str] = []
    for tree in inputs.installed:
        if missing := request.lacks(tree):
            reasons.append(f"{tree.prefix} ({tree.version}) lacks {'; '.join(missing)}")
            continue
        fit = request.fit(tree.commit)
        # An LLVM beside the pin is taken only on demand: the sources may not compile with it.
        if fit == "pin" or explicit or request.settings.any_commit:
            warnings = () if fit == "pin" else (_near_the_pin(request, tree),)
            plan = Plan(f"installed LLVM {tree.version} in {tree.prefix}")
            return ProviderChoice("system", tree.prefix, tree.commit, plan, warnings)
        about = f"is at {tree.commit[:12]}" if tree.commit else "does not record its commit"
        reasons.append(f"{tree.prefix} ({tree.version}) {about}; the pin is {request.describe_pin()}")
    raise RefusedError("\n  ".join(reasons))


def _near_the_pin(request: LlvmRequest, tree: LlvmTree) -> str:
    about = f"commit {tree.commit[:12]}" if tree.commit else "its commit is not recorded"
    return (
        f"LLVM {tree.version} in {tree.prefix} is not the pin: {about}, "
        f"Triton wants {request.describe_pin()}. Files that use an API that changed will not compile."
    )


def provide_prebuilt(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Download upstream's archive.

    Raises:
        RefusedError: there is no archive, or it cannot be reached.
    """
    archive = prebuilt.archive_for(request, inputs.means.machine, request.settings.prebuilt_url)
    if request.pin is None:
        raise RefusedError("the wanted commit is unknown")
    if archive is None:
        raise RefusedError(
            f"upstream provides no build for {inputs.means.machine.system} on {inputs.means.machine.arch}"
        )
    # Nothing is unpacked that cannot be verified.
    if not archive.sha256:
        raise RefusedError(
            f"{request.pin.file} has no checksum for {archive.suffix}: give it with --sha256 HEX"
        )
    # The server is asked only if it is needed: an archive that is unpacked serves offline, too.
    if not prebuilt.at_hand(archive, inputs.workspace, inputs.store) and (
        problem := inputs.reachable(archive.url)
    ):
        raise RefusedError(f"cannot reach {archive.url}: {problem}")
    name, machine = archive.name, inputs.means.machine
    plan = prebuilt.plan(archive, inputs.workspace, inputs.store)
    require_writable(inputs.store)
    prefix, commit, build = inputs.store.path(name), request.pin.commit, request.pin.build

    def describe_it() -> StoreManifest:
        known = Known(commit=commit, origin=archive.url, build=build)
        return describe_tree.manifest(name, "prebuilt", llvm_tree.read(prefix), machine, known)

    return ProviderChoice("prebuilt", prefix, commit, plan, entry=name, describe=describe_it, kind="prebuilt")


def provide_source(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Build LLVM, or continue a build of the same sources and options.

    Raises:
        RefusedError: the sources cannot be obtained.
        UsageError: the same, where no other provider is allowed.
    """
    try:
        tree = llvm_source.obtain(inputs.source, request, inputs.workspace)
    except UsageError as error:
        # With `auto` the sources are one way of several, so what is wrong with them is a refusal; a user who
        # asked for them has to correct it.
        if request.settings.provider == "source":
            raise
        raise RefusedError(error.what) from error
    warnings: tuple[str, ...] = ()
    if request.fit(tree.commit) != "pin":
        known = tree.commit[:12] or "unknown"
        warnings = (f"the sources' commit is {known}; Triton wants {request.describe_pin()}",)
    there = None if inputs.again else _built_before(tree, request, inputs, warnings)
    return there or configured(tree, request, inputs, "source", warnings)


def _built_before(
    tree: SourceTree, request: LlvmRequest, inputs: ProviderInputs, warnings: tuple[str, ...]
) -> ProviderChoice | None:
    """Return the entry of this exact build if it is finished: as it is, or with more built in it."""
    means, store = inputs.means, inputs.store
    key = llvm_source.key(tree, request, means)
    entry = next(
        (
            candidate
            for candidate in inputs.entries
            if candidate.name == key.name and candidate.status == "ready"
        ),
        None,
    )
    manifest = entry.manifest if entry else None
    if entry is None or manifest is None or manifest.key != key.digest:
        return None
    # A run that was fetching its sources anew, and was interrupted, leaves an entry that looks finished.
    whole = all(step.stamp and step.stamp.holds() for step in tree.steps)
    if manifest.source == str(tree.path) and not whole:
        return None
    settled, named = _settled(tree), request.settings.ninja_targets
    required = prebuilt.wanted(request, means.machine, inputs.triton)
    # Settings outside the key (jobs, caches and other accelerations) do not configure an entry again: two
    # environments that differ in these would undo each other's configure in every run.
    if settled and not named and covers(manifest, required) and not lost_sources(manifest):
        return take_entry(entry, manifest, "source", warnings)
    if not can_grow(entry) or (settled and moved_sources(manifest)):
        return None
    require_writable(store)
    steps = prebuilt.build(entry.path, request, means, inputs.consumer)
    if settled:
        describe_it = prebuilt.grown(store, manifest, request, inputs.triton)
        return grow_entry(entry, manifest, "source", warnings, steps, describe_it)
    steps = (*store.retract(key.name), *steps)  # nobody may use the entry while it changes
    describe_it = prebuilt.built(store, key, request, means.machine, inputs.triton, tree)
    return grow_entry(entry, manifest, "source", warnings, steps, describe_it)


def _settled(tree: SourceTree) -> bool:
    """Report whether sources are unchanged: they are at a commit, or the tool unpacked them itself."""
    return bool(tree.steps) or (bool(tree.commit) and not tree.dirty)


def configured(
    tree: SourceTree,
    request: LlvmRequest,
    inputs: ProviderInputs,
    provider: str,
    warnings: tuple[str, ...],
) -> ProviderChoice:
    """Return a build of the tool's own, configured if needed."""
    means, store = inputs.means, inputs.store
    require_writable(store)
    key = llvm_source.key(tree, request, means)
    prefix = store.path(key.name)
    configure = llvm_source.configure(tree, request, prefix, means, root=store.owner, again=inputs.again)
    steps = (*configure, *prebuilt.build(prefix, request, means, inputs.consumer))
    stamps = [step.stamp for step in configure if step.stamp]
    if not _settled(tree) or not all(stamp.holds() for stamp in stamps):
        steps = (*store.retract(key.name), *steps)  # nobody may use the entry while it changes
    plan = Plan(f"LLVM/MLIR from source in {prefix}", steps)
    describe_it = prebuilt.built(store, key, request, means.machine, inputs.triton, tree)
    choice = ProviderChoice(provider, prefix, tree.commit, plan, warnings, entry=key.name)
    return replace(choice, describe=describe_it, kind="built")


def provide_stored(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Use an LLVM of the store, and build in it what it lacks.

    Raises:
        RefusedError: no entry fits, or the one that fits cannot grow.
    """
    # Whoever names changed sources wants those, and no entry was built from them.
    if inputs.source.dirty and request.settings.source:
        raise RefusedError(f"the given sources have local changes: {inputs.source.location}")
    required = prebuilt.wanted(request, inputs.means.machine, inputs.triton)
    if request.pin:
        # An entry that this very build would make is preferred to others that fit.
        same = llvm_source.key(SourceTree(Path(), request.pin.commit, ()), request, inputs.means)
        required = replace(required, key=same.digest)
    chosen = choose_entry(inputs.entries, required)
    if chosen.entry is None or chosen.entry.manifest is None:
        reasons = [f"{name}: {why}" for name, why in chosen.refused]
        raise RefusedError("\n  ".join(reasons) or f"{inputs.store.root} is empty")
    entry, manifest = chosen.entry, chosen.entry.manifest
    named = request.settings.ninja_targets
    warnings = () if request.fit(manifest.commit) == "pin" else (_stored_elsewhere(request, manifest),)
    if inputs.again:
        tree = SourceTree(Path(manifest.source), manifest.commit, ())
        reason = _why_not_configured(manifest, tree, request, inputs)
        if not reason:
            return configured(tree, request, inputs, "store", warnings)
        warnings = (*warnings, f"{entry.name} is not reconfigured: {reason}")
    # A manifest says what a scope needs, not whether a target that the user names is built. Ninja finds out.
    if chosen.complete and not named:
        return take_entry(entry, manifest, "store", warnings)
    if problem := moved_sources(manifest):
        raise RefusedError(f"{entry.name} is incomplete, and {problem}")
    if inputs.consumer is None and request.settings.scope != "all" and not named:
        raise RefusedError(f"finding out what {entry.name} lacks needs Triton's sources")
    require_writable(inputs.store)
    steps = prebuilt.build(entry.path, request, inputs.means, inputs.consumer)
    describe_it = prebuilt.grown(inputs.store, manifest, request, inputs.triton)
    return grow_entry(entry, manifest, "store", warnings, steps, describe_it)


def _why_not_configured(
    manifest: StoreManifest, tree: SourceTree, request: LlvmRequest, inputs: ProviderInputs
) -> str:
    """Return the reason why `--reconfigure` leaves an entry as it is; empty if it does not."""
    if manifest.kind != "built":
        return f"the entry is {manifest.kind} and was configured where it was built"
    if not inputs.store.writable:
        return "the store is read-only"
    if not manifest.commit:
        return "the commit of its sources is unknown; use --provider source with the same sources"
    if moved := moved_sources(manifest):
        return moved
    if llvm_source.key(tree, request, inputs.means).digest != manifest.key:
        return "built with another compiler or other options; --provider source creates a separate entry"
    return ""


def _stored_elsewhere(request: LlvmRequest, manifest: StoreManifest) -> str:
    about = f"is at {manifest.commit[:12]}" if manifest.commit else "does not record its commit"
    return f"{manifest.name} {about}; Triton wants {request.describe_pin()}"


# `auto` tries them in this order, that of what they cost: nothing, at most the rest of a build, a download of
# a gigabyte, hours of compiling.
PROVIDERS: dict[str, Callable[[LlvmRequest, ProviderInputs], ProviderChoice]] = {
    "system": provide_system,
    "store": provide_stored,
    "prebuilt": provide_prebuilt,
    "source": provide_source,
}
