"""Developer environments and build orchestration for people who hack on the Triton GPU compiler."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tritonsmith`: the cell magic `%%triton_stages`, for IPython and Jupyter."""
    import_module("tritonsmith.live.magic").register(shell)  # above all others, which import this package
