"""GPU properties for the worker to report to code that asks for the GPU, when there is only a target.

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
    """Facts about GPUs, by target as the worker spells it."""
    return {str(one): facts(one) for one in wanted}


def facts(target: Target) -> dict[str, Any]:
    """Facts about the GPU of a target.

    Args:
        target: the model is the one by whose name it was asked for, or the first of its GPUs in
            `configs/gpu-targets.toml` of which something is known.

    Returns:
        `known`: what every GPU of the target has; `of_model`: what one of them has, with its name; `names`:
        how Triton's driver and torch call them; `environment`: variables for packages, by their names.
    """
    table = configs.load("gpu-models")
    known = {"warp": target.warp_size, **_known(target)}
    row = _model(target)
    of_model = {name: value for name, value in row.items() if name != "gpu"}
    names = table["names"][target.backend]
    return {"known": known, "of_model": of_model, "names": names, "environment": environment(target)}


def environment(target: Target) -> dict[str, dict[str, str]]:
    """Variables that tell packages whose GPU is here, by the packages' names."""
    packages = configs.load("gpu-models")["environment"]
    return {name: by_backend[target.backend] for name, by_backend in packages.items()}


def _known(target: Target) -> dict[str, Any]:
    table = configs.load("gpu-models")[target.backend]
    limits = configs.load("gpu-limits")
    found: dict[str, Any] = {name: value for name, value in table.items() if isinstance(value, (int, str))}
    if target.backend == "cuda":
        row = limits["nvidia"]["arch"].get(str(target.arch))
        if row is None:  # a GPU that nobody here knows: even what all others have in common may differ
            return {}
        shared, block = row["shared"] * _KIB, row["shared-block"] * _KIB
        found["integrated"] = int(target.arch in table["soc"])
        return {**found, "shared": shared, "block-shared": block, "threads": row["warps"] * target.warp_size}
    arch = str(target.arch)
    features = table["features"].get(arch)
    found["arch"] = f"{arch}:{features}" if features else arch
    family = next((name for begin, name in limits["amd"]["families"] if arch.startswith(begin)), "")
    if not family:
        return found
    row = limits["amd"]["family"][family]
    found["block-shared"] = row["shared-block"] * _KIB
    if arch.startswith("gfx9"):  # RDNA's work-group processors are counted otherwise
        found["threads"] = row["waves"] * row["simds"] * target.warp_size
        found["shared"] = row["shared"] * _KIB
    return found


def _model(target: Target) -> dict[str, Any]:
    rows = {row["gpu"]: row for row in configs.load("gpu-models")["model"]}
    same = [name for name, text in targets.known().items() if text == str(target)]
    found: dict[str, Any] = next((rows[name] for name in (target.gpu, *same) if name in rows), {})
    return found
