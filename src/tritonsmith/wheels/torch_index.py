"""What pip installs PyTorch for the CPU from."""

from __future__ import annotations

import re

from tritonsmith import configs
from tritonsmith.errors import ConfigError

_CPU = re.compile(r"\d+(\.\d+)+\+cpu")


def requirement(wanted: str) -> tuple[str, ...]:
    """What pip installs PyTorch for the CPU from; of its own index, since PyPI has those for CUDA.

    Raises:
        ConfigError: another one is wanted.
    """
    if wanted != "cpu" and not _CPU.fullmatch(wanted):
        hints = ['torch = "cpu", or torch = "2.13.0+cpu"', "PyTorch for CUDA brings a Triton of its own"]
        raise ConfigError(f"[python] torch cannot be {wanted!r}", hints=hints)
    requirement = "torch" if wanted == "cpu" else f"torch=={wanted}"
    return requirement, "--index-url", configs.load("capture")["torch-index"]["cpu"]
