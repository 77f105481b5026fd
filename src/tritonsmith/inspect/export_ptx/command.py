"""Export a compiled kernel as inline assembly: `kernel.export --as ptx`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.inspect.export_ptx import compiled_kernel, cuda
from tritonsmith.inspect.export_ptx import elementwise as triton_elementwise
from tritonsmith.inspect.export_ptx.compiled_kernel import CompiledKernel


def compile_one(request: CompileRequest, where: Interpreter, point: str | None) -> CompiledKernel:
    """Compile a kernel, and select the point.

    Raises:
        SmithError: it does not compile, or several points have PTX and none is named.
    """
    manifest = run.compile_all(replace(request, stages=()), where)
    broken = [
        candidate for candidate in manifest.points if candidate.status != "ok" and candidate.backend == "cuda"
    ]
    if broken and len(broken) == sum(candidate.backend == "cuda" for candidate in manifest.points):
        raise SmithError(
            f"{manifest.kernel} did not compile", where=manifest.folder, why=broken[0].error or None
        )
    return compiled_kernel.from_folder(manifest, compiled_kernel.choose(manifest, point))


def text_of(made: CompiledKernel, function: str, *, header: bool, elementwise: bool) -> str:
    """Return the function of inline assembly, alone or in a `.cuh` that compiles; or the string for Triton.

    Args:
        made: the kernel.
        function: with `elementwise`, the function to convert; empty for the only one.
        header: make a complete `.cuh`.
        elementwise: make the string for `tl.inline_asm_elementwise`.

    Raises:
        UnsupportedPtxError: no inline assembly can hold the kernel or the function.
    """
    if elementwise:
        return triton_elementwise.convert(made.module, made.path, function or None).python()
    inlined = cuda.inline(made)
    return cuda.header(inlined) if header else inlined.function


def plan(text: str, out: Path) -> Plan:
    """Return a plan that writes the text into a file."""
    return Plan(f"write {out.name}", (Write(out, text, phase="inline PTX"),))
