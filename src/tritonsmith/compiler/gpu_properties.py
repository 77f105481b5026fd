"""GPU properties that the worker reports to code that queries the GPU, when there is only a target.

Properties common to a target are known; the others are taken from one model, and reported as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritonsmith.compiler import targets
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs

_KIB = 1024


def all_facts(wanted: Iterable[Target]) -> dict[str, dict[str, Any]]:
    """Return facts about GPUs, by target as the worker spells it."""
    return {str(target): facts(target) for target in wanted}


def facts(target: Target) -> dict[str, Any]:
    """Return facts about the GPU of a target.

    Args:
        target: its model is the one by whose name the user asked for it, or else the first of its GPUs in
            `configs/gpu-targets.toml` that `configs/gpu-properties.toml` describes.

    Returns:
        `known`: properties of every GPU of the target; `of_model`: those of one model; `names`: the names
        that Triton's driver and torch use; `environment`: variables for packages, by package name.
    """
    table = configs.load("gpu-properties")
    known = {"warp": target.warp_size, **_known(target)}
    row = _model(target)
    of_model = {name: value for name, value in row.items() if name != "gpu"}
    names = table["names"][target.backend]
    return {"known": known, "of_model": of_model, "names": names, "environment": environment(target)}


def environment(target: Target) -> dict[str, dict[str, str]]:
    """Return variables that tell packages which vendor's GPU is present, by package name."""
    packages = configs.load("gpu-properties")["environment"]
    return {name: by_backend[target.backend] for name, by_backend in packages.items()}


def _known(target: Target) -> dict[str, Any]:
    table = configs.load("gpu-properties")[target.backend]
    limits = configs.load("gpu-limits")
    facts: dict[str, Any] = {name: value for name, value in table.items() if isinstance(value, (int, str))}
    if target.backend == "cuda":
        row = limits["nvidia"]["arch"].get(str(target.arch))
        # Even what all other GPUs have in common may differ in one that is not listed.
        if row is None:
            return {}
        shared, block = row["shared"] * _KIB, row["shared-block"] * _KIB
        facts["integrated"] = int(target.arch in table["soc"])
        return {**facts, "shared": shared, "block-shared": block, "threads": row["warps"] * target.warp_size}
    arch = str(target.arch)
    features = table["features"].get(arch)
    facts["arch"] = f"{arch}:{features}" if features else arch
    family = next((name for begin, name in limits["amd"]["families"] if arch.startswith(begin)), "")
    if not family:
        return facts
    row = limits["amd"]["family"][family]
    facts["block-shared"] = row["shared-block"] * _KIB
    if arch.startswith("gfx9"):  # RDNA's work-group processors are counted otherwise
        facts["threads"] = row["waves"] * row["simds"] * target.warp_size
        facts["shared"] = row["shared"] * _KIB
    return facts


def _model(target: Target) -> dict[str, Any]:
    rows = {row["gpu"]: row for row in configs.load("gpu-properties")["model"]}
    same = [name for name, text in targets.known().items() if text == str(target)]
    model: dict[str, Any] = next((rows[name] for name in (target.gpu, *same) if name in rows), {})
    return model
