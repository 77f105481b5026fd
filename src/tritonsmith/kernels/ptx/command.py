"""`kernel.inline-ptx`: a compiled kernel in, the text of inline assembly out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonsmith import configs
from tritonsmith.envs import workspace
from tritonsmith.errors import SmithError
from tritonsmith.kernels.compile import run
from tritonsmith.kernels.compile.request import CompileRequest
from tritonsmith.kernels.compile.run import Toolchain
from tritonsmith.kernels.ptx import compiled_kernel, cuda, elementwise, parser
from tritonsmith.kernels.ptx.compiled_kernel import CompiledKernel
from tritonsmith.plan import Plan, Write

_PHASE = "inline PTX"


def is_compiled(source: str) -> bool:
    """Whether it is a folder or a `.ptx` file, and not a kernel that is still to be compiled."""
    return Path(source).expanduser().is_dir() or source.endswith(".ptx")


def default_target() -> str:
    """The default target."""
    target: str = configs.load("gpu-targets")["up"]["nvidia"]
    return target


def compile_one(asked: CompileRequest, where: Toolchain, point: str | None) -> CompiledKernel:
    """Compile a kernel, and select the point.

    Raises:
        SmithError: it does not compile, or several points have PTX and none is named.
    """
    found = run.compile_all(replace(asked, stages=()), where)
    broken = [one for one in found.points if one.status != "ok" and one.backend == "cuda"]
    if broken and len(broken) == sum(one.backend == "cuda" for one in found.points):
        raise SmithError(f"{found.kernel} did not compile", where=found.folder, why=broken[0].error or None)
    return compiled_kernel.from_folder(found, compiled_kernel.choose(found, point))


def function(made: CompiledKernel) -> str:
    """The function of inline assembly, alone.

    Raises:
        RefusedError: no inline assembly can hold the kernel.
    """
    return cuda.inline(made).function


def header(made: CompiledKernel) -> str:
    """A `.cuh` that compiles.

    Raises:
        RefusedError: no inline assembly can hold the kernel.
    """
    return cuda.header(cuda.inline(made))


def triton(path: Path, name: str | None) -> str:
    """The string for `tl.inline_asm_elementwise`, as Python source.

    Args:
        path: of the PTX.
        name: of the function in it; None for the only one.

    Raises:
        RefusedError: its shape does not allow it.
    """
    return elementwise.convert(parser.read(path), path, name).python()


def writing(text: str, out: Path) -> Plan:
    """The steps that put it into a file."""
    return Plan(f"write {out.name}", (Write(out, text, phase=_PHASE),))


def write(plan: Plan) -> None:
    """Run these steps.

    Raises:
        SmithError: the file cannot be written.
    """
    space = workspace.default()
    space.claim()
    space.run(plan, "kernel.inline-ptx", quiet=True)
