"""The provider `store`: an LLVM that was built or extracted before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
from tritonsmith.build.llvm.providers.source import configured
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import SourceTree
from tritonsmith.build.store import matching
from tritonsmith.build.store.entry import StoreManifest


def provide(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Use an LLVM of the store, and build in it what it lacks.

    Raises:
        RefusedError: no entry fits, or the one that fits cannot grow.
    """
    if inputs.source.dirty and request.settings.source:
        raise RefusedError(f"the given sources have local changes: {inputs.source.location}")
    required = store_entry.wanted(request, inputs.means.machine, inputs.triton)
    if request.pin:
        same = llvm_source.key(SourceTree(Path(), request.pin.commit, ()), request, inputs.means)
        required = replace(required, key=same.digest)
    chosen = matching.choose(inputs.entries, required)
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
    if chosen.complete and not named:
        return taken(entry, manifest, "store", warnings)
    if problem := matching.moved(manifest):
        raise RefusedError(f"{entry.name} is incomplete, and {problem}")
    if inputs.consumer is None and request.settings.scope != "all" and not named:
        raise RefusedError(f"finding out what {entry.name} lacks needs Triton's sources")
    require_writable(inputs.store)
    steps = closure.build(entry.path, request, inputs.means, inputs.consumer)
    describe_it = store_entry.grown(inputs.store, manifest, request, inputs.triton)
    return grown(entry, manifest, "store", warnings, steps, describe_it)


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
    if moved := matching.moved(manifest):
        return moved
    if llvm_source.key(tree, request, inputs.means).digest != manifest.key:
        return "built with another compiler or other options; --provider source creates a separate entry"
    return ""


def _stored_elsewhere(request: LlvmRequest, manifest: StoreManifest) -> str:
    about = f"is at {manifest.commit[:12]}" if manifest.commit else "does not record its commit"
    return f"{manifest.name} {about}; Triton wants {request.describe_pin()}"
