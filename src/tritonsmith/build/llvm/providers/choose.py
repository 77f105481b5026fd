"""The providers of an LLVM, one file each, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from tritonsmith.build.llvm.providers import prebuilt, source, store, system
from tritonsmith.build.llvm.providers.interface import ProviderChoice, ProviderInputs, RefusedError
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.core.errors import FactError, UsageError

PROVIDERS: dict[str, Callable[[LlvmRequest, ProviderInputs], ProviderChoice]] = {
    "system": system.provide,  # `auto`: quickest first
    "store": store.provide,
    "prebuilt": prebuilt.provide,
    "source": source.provide,
}


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


_OTHER_PROVIDERS = (
    "omit --provider: tritonsmith then also looks in its store, and downloads or builds an LLVM at the pin",
)


def _check_named(request: LlvmRequest, inputs: ProviderInputs) -> None:
    """Check that the LLVM of a folder named by the user is usable.

    Raises:
        UsageError: the settings name another provider too.
        FactError: it lacks something, or is not at the pin and no other commit was accepted.
    """
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
