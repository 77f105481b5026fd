"""Compile targets, in Triton's own notation or by the name of a GPU, and facts about their GPUs.

Code that queries the GPU gets these facts from the worker, since there is only a target. Properties that all
GPUs of a target share are known; the others are those of one model, and reported as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.ui import console
from tritonsmith.facts import gpus, variables
from tritonsmith.facts.gpus import Gpus

ALL = "all"
NATIVE = "native"
_NUMBER = re.compile(r"[0-9]+")
_MEANT = re.compile(r"(cuda|hip):|sm_\d|gfx\d")
# The suffix is for modes that only Triton knows, such as gfx1250-strict.
_GFX = re.compile(r"gfx[0-9]{1,2}[0-9a-f]{2}(-[a-z]+)*")
_KIB = 1024


@dataclass(frozen=True)
class Target:
    """A compile target: Triton's GPUTarget.

    Attributes:
        backend: `cuda` or `hip`.
        arch: an int for CUDA (90), a name for HIP (`gfx942`).
        warp_size: threads per warp: 32, or 64 on CDNA.
        gpu: the GPU name that the user gave; empty if none. A kernel's file that queries more than the target
            sees this GPU. It does not count in comparisons.
    """

    backend: str
    arch: int | str
    warp_size: int
    gpu: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"

    def spelling(self) -> str:
        """Return text that parses to this target: a GPU's name only if the bare target means another GPU."""
        # GPUs of one target differ in what a kernel's file may query: memory, number of SMs.
        first = next((name for name, text in known().items() if text == str(self)), "")
        return self.gpu if self.gpu not in ("", first) else str(self)


def parse(text: str) -> Target:
    """Parse a target: `cuda:90`, `sm_90`, `hip:gfx942:64`, `gfx942` or the name of a GPU (`h100`).

    Raises:
        UsageError: none of these.
    """
    names = known()
    word = text.strip().lower()
    if word.startswith("sm_"):
        # `sm_90a`: Triton's `sm_arch_from_capability` adds the letter by itself, so a target has none.
        word = f"cuda:{word.removeprefix('sm_').rstrip('af')}"
    elif word.startswith("gfx"):
        word = f"hip:{word}"
    backend, _, rest = names.get(word, word).partition(":")
    arch, _, warp = rest.partition(":")
    # Triton wants CUDA's architecture as a number and AMD's as a name.
    number = backend == "cuda" and _NUMBER.fullmatch(arch)
    if _NUMBER.fullmatch(warp or "0") and (number or (backend == "hip" and _GFX.fullmatch(arch))):
        family, sizes = ("NVIDIA", (32,)) if number else _waves(arch)
        if warp and int(warp) not in sizes:
            raise _no_such_wave(text, f"{backend}:{arch}", family, sizes)
        gpu = word if word in names else ""
        return Target(backend, int(arch) if number else arch, int(warp or sizes[0]), gpu)
    hints = ["use cuda:90 or hip:gfx942", *did_you_mean(word, [*names, ALL, NATIVE])]
    raise UsageError(f"{text!r} is not a target", hints=hints)


def parse_all(texts: Iterable[str]) -> tuple[Target, ...]:
    """Parse targets, in order, each once.

    `all` stands for every known target, `native` for the GPUs of this machine.

    Raises:
        UsageError: one of them is not a target.
        FactError: `native` is among them, and this machine has no GPU.
    """
    targets: dict[Target, None] = {}
    for text in texts:
        word = text.strip().lower()
        if word == NATIVE:
            here = of_gpus(gpus.read())
            console.note(f"native: {', '.join(f'{target} ({name})' for target, name in here.items())}")
            targets |= dict.fromkeys(here)
        else:
            targets |= {parse(each): None for each in (known().values() if word == ALL else (text,))}
    return tuple(targets)


def known() -> dict[str, str]:
    """Return the names of GPUs with their targets (`configs/gpu-targets.toml`); treat it as read-only."""
    names: dict[str, str] = configs.load("gpu-targets")["targets"]
    return names


def default() -> tuple[Target, ...]:
    """Return one NVIDIA and one AMD target."""
    table = configs.load("gpu-targets")["up"]
    return parse(table["nvidia"]), parse(table["amd"])


def proof(backends: tuple[str, ...]) -> tuple[Target, ...]:
    """Return one target to test a build with.

    Args:
        backends: the backends that were built.
    """
    # NVIDIA's comes first, because AMD's backend needs ROCm's linker before 3.5.
    table = configs.load("gpu-targets")["proof"]
    return tuple(parse(table[name]) for name in ("nvidia", "amd") if name in backends)[:1]


def of_gpus(here: Gpus) -> dict[Target, str]:
    """Return the targets of a machine's GPUs, each with the name of the first such GPU.

    Raises:
        FactError: there are none, or their drivers do not report their architecture.
    """
    targets: dict[Target, str] = {}
    for gpu in here.all:
        if gpu.arch:
            word = f"cuda:{gpu.arch.replace('.', '')}" if gpu.vendor == "nvidia" else f"hip:{gpu.arch}"
            targets.setdefault(parse(word), gpu.name)
    if targets:
        return targets
    silent = "".join(f"the driver of {gpu.name} does not report its architecture\n" for gpu in here.all)
    problems = [driver.problem for driver in (here.nvidia, here.amd) if driver and driver.problem]
    hints = ["give a target: --target h100", "invoke doctor --only gpu checks the drivers"]
    why = silent + "\n".join(problems)
    raise FactError("native needs a GPU in this machine, and none was found", why=why or None, hints=hints)


def mistaken(text: str) -> UsageError | None:
    """Return the error for a word that looks like a target but is not; None for other words."""
    if not _MEANT.match(text.strip().lower()):
        return None
    try:
        parse(text)
    except UsageError as error:
        return error
    return None


def explained(error: str, target: Target, triton: str) -> str:
    """Put the cause before a compiler's message if this Triton does not support the AMD GPU.

    Args:
        error: the message.
        target: the target of the compile.
        triton: the version of Triton.
    """
    if target.backend != "hip" or configs.load("gpus")["amd"]["unknown"] not in error:
        return error
    rows = configs.load("gpus")["amd"]["family"]
    names = [
        arch.replace("?", "x")
        for row in rows
        if variables.covers(triton, row["since"], row.get("until", ""))
        for arch in row["arch"]
    ]
    near, *_ = did_you_mean(str(target.arch), names)
    hint = f"; {near}" if near.startswith("did you mean") else ""
    what = f"Triton {triton} does not support {target.arch}, only {', '.join(names)}{hint}"
    return f"{what}\n{error}"


def all_gpu_facts(targets: Iterable[Target]) -> dict[str, dict[str, Any]]:
    """Return facts about GPUs, by target as the worker spells it."""
    return {str(target): gpu_facts(target) for target in targets}


def gpu_facts(target: Target) -> dict[str, Any]:
    """Return facts about the GPU of a target.

    Args:
        target: its model is the one by whose name the user asked for it, or else the first of its GPUs in
            `configs/gpu-targets.toml` that `configs/gpu-properties.toml` describes.

    Returns:
        `known`: properties of every GPU of the target; `of_model`: those of one model; `names`: the names
        that Triton's driver and torch use; `environment`: variables for packages, by package name.
    """
    table = configs.load("gpu-properties")
    known = {"warp": target.warp_size, **_known_facts(target)}
    of_model = {name: value for name, value in _model_facts(target).items() if name != "gpu"}
    names = table["names"][target.backend]
    return {"known": known, "of_model": of_model, "names": names, "environment": environment(target)}


def environment(target: Target) -> dict[str, dict[str, str]]:
    """Return variables that tell packages which vendor's GPU is present, by package name."""
    packages = configs.load("gpu-properties")["environment"]
    return {name: by_backend[target.backend] for name, by_backend in packages.items()}


def _known_facts(target: Target) -> dict[str, Any]:
    table = configs.load("gpu-properties")[target.backend]
    limits = configs.load("gpu-limits")
    # Numbers and texts are facts of every GPU of the vendor; tables and lists depend on the architecture.
    known_facts: dict[str, Any] = {
        name: value for name, value in table.items() if isinstance(value, (int, str))
    }
    if target.backend == "cuda":
        row = limits["nvidia"]["arch"].get(str(target.arch))
        # Even what all other GPUs have in common may differ in one that is not listed.
        if row is None:
            return {}
        return {
            **known_facts,
            "integrated": int(target.arch in table["soc"]),
            "shared": row["shared"] * _KIB,
            "block-shared": row["shared-block"] * _KIB,
            "threads": row["warps"] * target.warp_size,
        }
    # ROCm's gcnArchName carries the target's features (`gfx942:sramecc+:xnack-`), and kernels compare with
    # it.
    arch = str(target.arch)
    features = table["features"].get(arch)
    known_facts["arch"] = f"{arch}:{features}" if features else arch
    family = next((name for begin, name in limits["amd"]["families"] if arch.startswith(begin)), "")
    if not family:
        return known_facts
    row = limits["amd"]["family"][family]
    known_facts["block-shared"] = row["shared-block"] * _KIB
    # RDNA pairs compute units in work-group processors, for which HIP counts otherwise.
    if arch.startswith("gfx9"):
        known_facts["threads"] = row["waves"] * row["simds"] * target.warp_size
        known_facts["shared"] = row["shared"] * _KIB
    return known_facts


def _model_facts(target: Target) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {row["gpu"]: row for row in configs.load("gpu-properties")["model"]}
    same = [name for name, text in known().items() if text == str(target)]
    return next((rows[name] for name in (target.gpu, *same) if name in rows), {})


def _waves(arch: str) -> tuple[str, tuple[int, ...]]:
    """Return the family of an AMD GPU, and the possible lanes of its waves, the default first."""
    if row := _family(arch):
        return row["name"], tuple(row["waves"])
    # For a GPU that came after the table: all of gfx9 so far, GCN and CDNA, has waves of 64 only.
    return arch, (64,) if arch.startswith("gfx9") else (32, 64)


def _family(arch: str) -> Mapping[str, Any] | None:
    rows = configs.load("gpus")["amd"]["family"]
    return next((row for row in rows if any(fnmatchcase(arch, pattern) for pattern in row["arch"])), None)


def _no_such_wave(text: str, target: str, family: str, sizes: tuple[int, ...]) -> UsageError:
    nvidia = target.startswith("cuda")
    what = f"warps of {family} GPUs" if nvidia else f"waves of {family} GPUs"
    lanes = f"{' or '.join(map(str, sizes))} {'threads' if nvidia else 'lanes'}"
    hints = [f"use {target}"]
    if 32 not in sizes:  # noqa: PLR2004 - lanes
        hints.append("only RDNA has waves of 32: gfx10, gfx11 and gfx12")
    return UsageError(f"{text!r} is not a target: {what} have {lanes}", hints=hints)
