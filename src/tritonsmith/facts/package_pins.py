"""What releases of packages require and contain (`configs/package-pins.toml`): torch, and so their Triton."""

from __future__ import annotations

from dataclasses import dataclass

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class PackageRelease:
    """A release.

    Attributes:
        package: `vllm`.
        version: of the package.
        torch: the release of PyTorch that it requires, exactly.
        source: where that stands.
        triton_kernels: the tag of Triton whose `triton_kernels` it has in it; empty if none, or unknown.
    """

    package: str
    version: str
    torch: str
    source: str
    triton_kernels: str = ""


def names() -> tuple[str, ...]:
    """The packages of the table."""
    return tuple(configs.load("package-pins")["package"])


def find(text: str) -> tuple[PackageRelease, ...]:
    """The releases of a package, newest first, or one of them: `vllm`, `vllm==0.26.0`.

    Raises:
        UsageError: the table has no such package or release.
    """
    name, _, version = text.partition("==")
    table = configs.load("package-pins")["package"]
    if name not in table:
        raise UsageError(f"the table has no package {name!r}", hints=did_you_mean(name, table))
    row = table[name]
    kernels = row.get("triton-kernels", {})
    every = tuple(
        PackageRelease(name, key, torch, row["source"], kernels.get(key, ""))
        for key, torch in row["torch"].items()
    )
    found = tuple(one for one in every if version in ("", one.version))
    if not found:
        hints = did_you_mean(version, [one.version for one in every])
        raise UsageError(f"the table has no {name} {version}", hints=hints)
    return found
