"""What pip installs PyTorch for the CPU from."""

from __future__ import annotations

from tritonsmith.core import configs


def requirement(wanted: str) -> tuple[str, ...]:
    """What pip installs PyTorch for the CPU from; of its own index, since PyPI has those for CUDA.

    `wanted` is `cpu` or a version for the CPU, which `core/envs/settings.py` has checked.
    """
    requirement = "torch" if wanted == "cpu" else f"torch=={wanted}"
    return requirement, "--index-url", configs.load("capture")["torch-index"]["cpu"]
