"""The provider `system`: an LLVM that is installed."""

from __future__ import annotations

from tritonsmith.build.llvm.providers.interface import ProviderChoice, ProviderInputs, RefusedError
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.core.plan import Plan
from tritonsmith.facts.llvm_tree import LlvmTree


def provide(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
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
