"""The arguments with which pip installs PyTorch for the CPU."""

from __future__ import annotations

from tritonsmith.core import configs


def requirement(wanted: str) -> tuple[str, ...]:
    """Return pip's arguments for a CPU build of PyTorch, from its own index: PyPI has those for CUDA.

    `wanted` is `cpu` or a CPU version, which `core/envs/settings.py` has checked.
    """
    requirement = "torch" if wanted == "cpu" else f"torch=={wanted}"
    return requirement, "--index-url", configs.load("capture")["torch-index"]["cpu"]
