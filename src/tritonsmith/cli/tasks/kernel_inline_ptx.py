"""`kernel.export --as ptx`: a kernel's PTX as inline assembly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.kernel_options import CompileOptions, PoolOptions, folder_of, target_of
from tritonsmith.cli.tasks.option_fields import OutFile, again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, OUT_FILE
from tritonsmith.cli.tasks.task import task


@task(name="inline-ptx", reads_outputs=True)
def inline_ptx(
    context: Any,
    what: CompileOptions,
    by: PoolOptions,
    source: str = word("folder of kernel.compile, .ptx file, FILE[:KERNEL] or MODULE:KERNEL"),
    point: str = flag("compiled point, if there are several: its id", ""),
    metadata: Path | None = flag("Triton's NAME.json of a .ptx file", None, unset="the one beside it"),
    header: bool = flag("write a whole .cuh, with launch bounds and a calling kernel", default=False),
    elementwise: bool = flag("write a Python string for tl.inline_asm_elementwise", default=False),
    function: str = flag("with --elementwise: PTX function that uses only registers", ""),
    out: OutFile | None = again(OUT_FILE, "print it"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a kernel as a function of inline PTX, for CUDA C++ or Triton."""
    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import run
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.export_ptx import command, compiled_kernel

    if header and elementwise:
        raise UsageError("--header is for CUDA C++ and --elementwise for Triton", hints=["omit one of them"])
    if function and not elementwise:
        raise UsageError("--function requires --elementwise", hints=["omit --function for a whole kernel"])
    if folder_of(source) or source.endswith(".ptx"):
        what.refuse()
        made = compiled_kernel.load(Path(source).expanduser(), point=point or None, metadata=metadata)
    else:
        if metadata:
            raise UsageError("--metadata requires a .ptx file", hints=["omit it"])
        asked = what.request(source, target=target_of("ptx"), by=by)
        where = by.toolchain(asked, dry_run=dry_run)
        if dry_run:
            output.compile_of(run.prepare(asked, where))
            output.warnings(("the rest depends on the result of this compile",))
            return
        made = command.compile_one(asked, where, point or None)
    text = command.text_of(made, function, header=header, elementwise=elementwise)
    if not out:
        console.write(text, end="")
        return
    place = out.path(f"{made.entry.name}{'.py' if elementwise else '.cuh'}")
    plan = command.plan(text, place)
    if dry_run:
        output.plan(plan)
        return
    space = workspace.default()
    space.claim()
    space.run(plan, "kernel.inline-ptx", quiet=True)
    console.note(f"written: {place}")
