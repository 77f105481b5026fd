"""The torch that releases of packages require (`configs/package-pins.toml`), and so their Triton."""

from __future__ import annotations

from dataclasses import dataclass

from tritonsmith import configs
from tritonsmith.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class PackageRelease:
    """A release.

    Attributes:
        package: `vllm`.
        version: of the package.
        torch: the release of PyTorch that it requires, exactly.
        source: where that stands.
    """

    package: str
    version: str
    torch: str
    source: str


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
    every = tuple(PackageRelease(name, key, torch, row["source"]) for key, torch in row["torch"].items())
    found = tuple(one for one in every if version in ("", one.version))
    if not found:
        hints = did_you_mean(version, [one.version for one in every])
        raise UsageError(f"the table has no {name} {version}", hints=hints)
    return found
