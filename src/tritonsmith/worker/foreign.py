"""Other people's objects and code: names for types of Triton and torch, and whose code a frame runs.

The names are `Any` for the type checker, as neither package is installed where types are checked; they tell
a reader which class an object has. The functions tell the user's code from Triton, the standard library and
the worker, which are all on the stack where a stand-in is used.
"""

from __future__ import annotations

import opcode
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, Protocol

# torch
Torch = Any  # the module: attributes of it are replaced, and classes inherit from its classes
Tensor = Any  # torch.Tensor, or a subclass that carries another device
Operator = Any  # torch._ops.OpOverload
DType = Any  # torch.dtype, or NumPy's
Inductor = Any  # an object of torch._inductor or torch._dynamo, whose classes change from release to release

# Triton's Python; fields of these classes differ between 3.0 and main
AstSource = Any  # triton.compiler.ASTSource
Compiled = Any  # triton.compiler.CompiledKernel
CacheManager = Any  # triton.runtime.cache.FileCacheManager
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


_HERE = os.path.dirname(__file__)  # of the worker, whose frames are nobody's use
_LIBRARY = os.path.dirname(os.__file__)
INSTALLED = ("site-packages", "dist-packages")
_ASKS = ("hasattr", "getattr")
# Parts of the standard library that inspect any object: annotations, fields, bases.
_LOOKERS = ("typing", "typing_extensions", "dataclasses", "abc", "enum", "inspect", "functools", "copyreg")


def where() -> str:
    """Return FILE:LINE of the responsible code, outside of the standard library, Triton and this tool."""
    # A kernel has no frame, as Triton compiles its AST: then Triton's own line is better than none.
    innermost = ""
    for frame in frames():
        if _is_ours(frame) or is_library(frame):
            continue
        place = f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"
        if package_name(frame) != "triton":
            return place
        innermost = innermost or place
    return innermost


def shown(path: str) -> str:
    """Return a file's path relative to the folder that Python imports it from."""
    # Folders of `sys.path` may be nested, as a checkout in a site-packages is: the longest one is meant.
    roots = [os.path.join(os.path.abspath(part), "") for part in sys.path if part]
    inside = [root for root in roots if path.startswith(root)]
    return path[len(max(inside, key=len)) :] if inside else path


def frames() -> Iterator[types.FrameType]:
    """Yield the frames of the caller, innermost first."""
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way to them
    while frame:
        yield frame
        frame = frame.f_back


def user_frame() -> types.FrameType | None:
    """Return the first frame outside of this tool and the standard library."""
    return next((frame for frame in frames() if not _is_ours(frame) and not is_library(frame)), None)


def _is_ours(frame: types.FrameType) -> bool:
    return os.path.dirname(frame.f_code.co_filename) == _HERE


def is_library(frame: types.FrameType) -> bool:
    """Report whether a frame runs code of the standard library."""
    path = frame.f_code.co_filename
    # `importlib._bootstrap` is frozen into the interpreter, and stands below each `import`.
    if path.startswith("<frozen"):
        return True
    return path.startswith(_LIBRARY) and not any(part in path for part in INSTALLED)


def package_name(frame: types.FrameType | None) -> str:
    """Return the top-level package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame else ""


def only_looks(frame: types.FrameType) -> bool:
    """Report whether a frame runs code that inspects any object, and decides nothing by the result."""
    return package_name(frame) in _LOOKERS or is_jit(frame)


def is_jit(frame: types.FrameType) -> bool:
    """Report whether a frame runs Triton's check of annotations and of a kernel's dependencies."""
    return frame.f_globals.get("__name__") == "triton.runtime.jit"


def asks_whether(frame: types.FrameType) -> bool:
    """Report whether an attribute is read by `hasattr`, or `getattr` with a default, and not by a dot."""
    if is_library(frame) or not set(_ASKS) & set(frame.f_code.co_names):
        return False
    # Builtins have no frame. The instruction that the caller is at tells them apart: a call, or LOAD_ATTR.
    return "CALL" in opcode.opname[frame.f_code.co_code[frame.f_lasti]]
