"""The provider `source`: an LLVM that the tool builds."""

from __future__ import annotations

from dataclasses import replace

from tritonsmith.build.llvm import closure, store_entry
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.providers.interface import (
    ProviderChoice,
    ProviderInputs,
    RefusedError,
    grown,
    require_writable,
    taken,
)
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import SourceTree
from tritonsmith.build.store import matching
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Plan


def provide(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Build LLVM, or continue a build of the same sources and options.

    Raises:
        RefusedError: the sources cannot be obtained.
        UsageError: the same, where no other provider is allowed.
    """
    try:
        tree = llvm_source.obtain(inputs.source, request, inputs.workspace)
    except UsageError as error:
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
    """Return the entry of this exact build if it is finished: as it is, or with more built in it.

    It is not reconfigured for settings outside its key (jobs, caches and other accelerations): two
    environments that differ in these would otherwise undo each other's configure in every run.
    """
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
    whole = all(step.stamp and step.stamp.holds() for step in tree.steps)
    if manifest.source == str(tree.path) and not whole:
        return None  # a run that was refetching its sources was interrupted
    settled, named = _settled(tree), request.settings.ninja_targets
    required = store_entry.wanted(request, means.machine, inputs.triton)
    if settled and not named and matching.covers(manifest, required) and not matching.homeless(manifest):
        return taken(entry, manifest, "source", warnings)
    if not matching.grows(entry) or (settled and matching.moved(manifest)):
        return None
    require_writable(store)
    steps = closure.build(entry.path, request, means, inputs.consumer)
    if settled:
        describe_it = store_entry.grown(store, manifest, request, inputs.triton)
        return grown(entry, manifest, "source", warnings, steps, describe_it)
    steps = (*store.retract(key.name), *steps)  # nobody may use the entry while it changes
    describe_it = store_entry.built(store, key, request, means.machine, inputs.triton, tree)
    return grown(entry, manifest, "source", warnings, steps, describe_it)


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
    steps = (*configure, *closure.build(prefix, request, means, inputs.consumer))
    stamps = [step.stamp for step in configure if step.stamp]
    if not _settled(tree) or not all(stamp.holds() for stamp in stamps):
        steps = (*store.retract(key.name), *steps)  # nobody may use the entry while it changes
    plan = Plan(f"LLVM/MLIR from source in {prefix}", steps)
    describe_it = store_entry.built(store, key, request, means.machine, inputs.triton, tree)
    choice = ProviderChoice(provider, prefix, tree.commit, plan, warnings, entry=key.name)
    return replace(choice, describe=describe_it, kind="built")
