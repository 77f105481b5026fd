"""The provider `prebuilt`: upstream's own archive for the pin."""

from __future__ import annotations

from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.llvm.providers.interface import (
    ProviderChoice,
    ProviderInputs,
    RefusedError,
    require_writable,
)
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import StoreManifest
from tritonsmith.facts import llvm_tree


def provide(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
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
    if not archive.sha256:
        raise RefusedError(
            f"{request.pin.file} has no checksum for {archive.suffix}: give it with --sha256 HEX"
        )
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
