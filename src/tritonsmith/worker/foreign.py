"""Names for objects of Triton and torch, which are not installed where types are checked.

Each is `Any` for the type checker, and tells a reader which class it is. Nothing imports this file at run
time: Python 3.8 cannot evaluate it.
"""

from __future__ import annotations

from typing import Any, Protocol

# torch
Torch = Any  # the module: attributes of it are replaced, and classes inherit from its classes
Tensor = Any  # torch.Tensor, or a subclass that carries another device
Operator = Any  # torch._ops.OpOverload
DType = Any  # torch.dtype, or NumPy's
Inductor = Any  # an object of torch._inductor or torch._dynamo, whose classes change from release to release

# Triton's Python; fields of these classes differ between 3.0 and main
AstSource = Any  # triton.compiler.ASTSource
JitFunction = Any  # triton.runtime.JITFunction, or a decorator around one
Autotuner = Any  # triton.runtime.Autotuner
Backend = Any  # triton.backends.compiler.BaseBackend
TritonValue = Any  # a value of a kernel: a number, a text, a tuple, a dtype, a constexpr

# libtriton, whose pybind11 and nanobind classes have no stubs
PassManager = Any  # libtriton.ir.pass_manager
MlirModule = Any  # libtriton.ir.module
Layout = Any  # a layout of triton.experimental.gluon.language

JsonValue = Any  # what JSON carries


class GpuTarget(Protocol):
    """The GPU of a compile: triton.backends.compiler.GPUTarget."""

    @property
    def backend(self) -> str:
        """The name: `cuda` or `hip`."""

    @property
    def arch(self) -> int | str:
        """The architecture: 90, `gfx942`."""

    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
