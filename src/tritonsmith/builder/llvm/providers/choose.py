"""The providers of an LLVM, one file each, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from tritonsmith.builder.llvm.providers import prebuilt, source, store, system
from tritonsmith.builder.llvm.providers.interface import ProviderChoice, ProviderInputs, RefusedError
from tritonsmith.builder.llvm.request import LlvmRequest
from tritonsmith.errors import FactError

PROVIDERS: dict[str, Callable[[LlvmRequest, ProviderInputs], ProviderChoice]] = {
    "system": system.provide,  # `auto`: quickest first
    "store": store.provide,
    "prebuilt": prebuilt.provide,
    "source": source.provide,
}


def choose(request: LlvmRequest, inputs: ProviderInputs) -> ProviderChoice:
    """Choose a provider: the one in the settings, or the first that fits.

    Raises:
        FactError: none fits.
        UsageError: the request contradicts itself.
    """
    wanted = request.settings.provider
    refused: dict[str, str] = {}
    for name in PROVIDERS if wanted == "auto" else (wanted,):
        try:
            choice = PROVIDERS[name](request, inputs)
        except RefusedError as reason:
            refused[name] = str(reason)
            continue
        if inputs.again and name in ("system", "prebuilt"):
            nothing = f"--reconfigure has no effect: the LLVM in {choice.prefix} is not built here"
            choice = replace(choice, warnings=(*choice.warnings, nothing))
        return replace(choice, refused=tuple(refused.items()))
    raise FactError(
        f"no LLVM matches the pin {request.describe_pin()}",
        why="\n".join(f"{name}: {reason}" for name, reason in refused.items()),
        hints=_hints(refused),
    )


def _hints(refused: Collection[str]) -> list[str]:
    hints = ["an installed LLVM near the pin may work: --provider system --llvm-dir /usr/lib/llvm-NN"]
    if "prebuilt" in refused or "source" in refused:
        hints.append(
            "use LLVM sources or a mirror that you have: --provider source --llvm-source PATH_OR_URL"
        )
    if "source" not in refused:
        hints.append("let tritonsmith fetch and build LLVM: --provider source")
    return hints
