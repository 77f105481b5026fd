"""`kernel.inline-ptx`: a kernel's PTX as inline assembly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import file_of, given, task

if TYPE_CHECKING:
    from tritonsmith.kernels.ptx.compiled_kernel import CompiledKernel


@task(
    name="inline-ptx",
    iterable=list(REPEATED),
    help={
        **ASKING,
        "source": "folder of kernel.compile, a .ptx file, FILE[:KERNEL] or MODULE:KERNEL",
        "point": "which of several compiled points: its id",
        "metadata": "of a .ptx file: Triton's NAME.json (default: the one beside it)",
        "header": "a whole .cuh: comment, launch bounds, and a kernel that calls the function",
        "elementwise": "a Python string for tl.inline_asm_elementwise, of a function of registers only",
        "function": "which function of the PTX, with --elementwise",
        "out": "file to write, or a folder for it (default: print it)",
        "dry_run": "print the plan as a shell script, and do nothing",
    },
)
def inline_ptx(
    context: Any,
    source: str,
    point: str = "",
    metadata: str = "",
    header: bool = False,
    elementwise: bool = False,
    function: str = "",
    out: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    env: str = "wheel",
    python: str = "",
    jobs: str = "",
    timeout: str = "",
    dry_run: bool = False,
) -> None:
    """Write a kernel as a function of inline PTX, for CUDA C++ or Triton."""
    from pathlib import Path

    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.compile import run
    from tritonsmith.kernels.ptx import command, compiled_kernel
    from tritonsmith.tasks import options, output
    from tritonsmith.ui import console

    if header and elementwise:
        raise UsageError(
            "--header is for CUDA C++ and --elementwise for Triton", hints=["leave one of them out"]
        )
    if function and not elementwise:
        raise UsageError("--function goes with --elementwise", hints=["a whole kernel needs no --function"])
    if command.is_compiled(source):
        options.compiled_already(
            {
                "--signature": signature,
                "--target": target,
                "--option": option,
                "--sweep": sweep,
                "--num-warps": num_warps,
                "--num-stages": num_stages,
            }
        )
        described = Path(metadata).expanduser() if given(metadata) else None
        made = compiled_kernel.load(Path(source).expanduser(), point=given(point), metadata=described)
    else:
        if metadata:
            raise UsageError("--metadata goes with a .ptx file", hints=["leave it out"])
        asked = options.parse_request(
            source,
            signature,
            list(target or ()) or [command.default_target()],
            option,
            sweep,
            num_warps=num_warps,
            num_stages=num_stages,
            env=env,
            python=python,
        )
        where = options.toolchain(env, python, jobs, timeout, asked)
        if dry_run:
            output.compile_of(run.prepare(asked, where))
            output.warnings(("what is written afterwards depends on what that compiles",))
            return
        made = command.compile_one(asked, where, given(point))
    text = _text(made, given(function), header=header, elementwise=elementwise)
    if not out:
        console.write(text, end="")
        return
    place = file_of(out, f"{made.entry.name}{'.py' if elementwise else '.cuh'}")
    plan = command.writing(text, place)
    if dry_run:
        output.plan(plan)
        return
    command.write(plan)
    console.note(f"written: {place}")


def _text(made: CompiledKernel, function: str | None, *, header: bool, elementwise: bool) -> str:
    from tritonsmith.kernels.ptx import command

    if elementwise:
        return command.triton(made.path, function)
    return command.header(made) if header else command.function(made)
