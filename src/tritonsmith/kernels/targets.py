"""What a kernel is compiled for, by Triton's own spelling or by the name of a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tritonsmith import configs
from tritonsmith.errors import UsageError, did_you_mean

ALL = "all"


@dataclass(frozen=True)
class Target:
    """What a kernel is compiled for: Triton's GPUTarget.

    Attributes:
        backend: `cuda` or `hip`.
        arch: an int for CUDA (90), a name for HIP (`gfx942`).
        warp_size: threads per warp: 32, or 64 on CDNA.
    """

    backend: str
    arch: int | str
    warp_size: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"


def parse(text: str) -> Target:
    """A target from `cuda:90`, `sm_90`, `hip:gfx942:64`, `gfx942` or the name of a GPU (`h100`).

    Raises:
        UsageError: none of these.
    """
    names = known()
    word = text.strip().lower()
    if word.startswith("sm_"):
        word = f"cuda:{word.removeprefix('sm_').rstrip('af')}"  # 90a: Triton adds the letter by itself
    elif word.startswith("gfx"):
        word = f"hip:{word}"
    backend, _, rest = names.get(word, word).partition(":")
    arch, _, warp = rest.partition(":")
    size = int(warp or 0) if not warp or (warp.isascii() and warp.isdecimal()) else None
    if backend == "cuda" and arch.isascii() and arch.isdecimal() and size in (0, 32):
        return Target(backend, int(arch), 32)
    waves = (64,) if arch.startswith("gfx9") else (32, 64)  # GCN and CDNA have waves of 64 only
    if backend == "hip" and arch.startswith("gfx") and arch != "gfx" and size in (0, *waves):
        return Target(backend, arch, size or waves[0])
    raise UsageError(
        f"{text!r} is no target", hints=["write cuda:90 or hip:gfx942", *did_you_mean(word, [*names, ALL])]
    )


def parse_all(texts: Iterable[str]) -> tuple[Target, ...]:
    """Targets in the order in which they are named, each once; `all` stands for every one that is known.

    Raises:
        UsageError: one of them is no target.
    """
    found: dict[Target, None] = {}
    for text in texts:
        every = known().values() if text.strip().lower() == ALL else (text,)
        found |= {parse(one): None for one in every}
    return tuple(found)


def known() -> dict[str, str]:
    """Names of GPUs to targets (`configs/gpu-targets.toml`); treat it as read-only."""
    names: dict[str, str] = configs.load("gpu-targets")["targets"]
    return names


def default() -> tuple[Target, ...]:
    """One NVIDIA and one AMD target."""
    table = configs.load("gpu-targets")["up"]
    return parse(table["nvidia"]), parse(table["amd"])


def proof(backends: tuple[str, ...]) -> tuple[Target, ...]:
    """One target that shows that a build works: NVIDIA's, because AMD's wants ROCm's linker before 3.5.

    Args:
        backends: that were built.
    """
    table = configs.load("gpu-targets")["proof"]
    return tuple(parse(table[name]) for name in ("nvidia", "amd") if name in backends)[:1]
