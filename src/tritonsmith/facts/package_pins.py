"""Look up requirements of package releases (`configs/package-pins.toml`): torch, and so their Triton."""

from __future__ import annotations

from dataclasses import dataclass

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class PackageRelease:
    """A release of a package.

    Attributes:
        package: `vllm`.
        version: its version.
        torch: the release of PyTorch that it requires, exactly.
        source: the source of that requirement.
        triton_kernels: the tag of Triton whose `triton_kernels` it contains; empty if none, or unknown.
    """

    package: str
    version: str
    torch: str
    source: str
    triton_kernels: str = ""


def names() -> tuple[str, ...]:
    """Return the packages of the table."""
    return tuple(configs.load("package-pins")["package"])


def find(text: str) -> tuple[PackageRelease, ...]:
    """Return the releases of a package, newest first, or one of them: `vllm`, `vllm==0.26.0`.

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
    fitting = tuple(release for release in every if version in ("", release.version))
    if not fitting:
        hints = did_you_mean(version, [release.version for release in every])
        raise UsageError(f"the table has no {name} {version}", hints=hints)
    return fitting
