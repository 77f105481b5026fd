"""Show kernels in the process that compiled them: `tritonsmith.live`, for notebooks and scripts.

from tritonsmith.live import resources, show

show(kernel[grid](x, y, n, BLOCK=1024))            # all stages; show(..., "ptx") for one
resources(compiled)["registers_per_thread"]
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tritonsmith.live import stages
from tritonsmith.live.stages import KernelView, ResourcesView

__all__ = ["resources", "show"]


def show(compiled: Any, stage: str = "") -> None:
    """Show a compiled kernel: in a notebook its resources and all stages, elsewhere their sizes.

    Args:
        compiled: the result of `kernel[grid](...)`, `kernel.warmup(...)` or `triton.compile(...)`.
        stage: print only this stage: ttgir, ptx, sass ...

    Raises:
        TypeError: it is not a compiled kernel.
        UsageError: it has no such stage.
    """
    kernel = stages.of_compiled(compiled)
    if stage:
        print(kernel.text(stage), end="")
    else:
        display(KernelView(kernel))


def resources(compiled: Any) -> ResourcesView:
    """Return the resources of a compiled kernel: a table that shows itself, and a mapping of its values.

    Raises:
        TypeError: it is not a compiled kernel.
    """
    return ResourcesView(stages.of_compiled(compiled).resources)


def display(view: KernelView) -> None:
    """Show a view in a notebook, or print it."""
    # sys.modules, since a script's Python may have IPython, too, and importing it is slow.
    # A library may import IPython without a shell: get_ipython() returns None then.
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        import_module("IPython.display").display(view)
    else:
        print(view)
