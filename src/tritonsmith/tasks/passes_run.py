"""`passes.run`: run a program whose kernels are compiled without some passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.tasks.kernel_options import SurgeryOptions
from tritonsmith.tasks.option_fields import again
from tritonsmith.tasks.option_task import command_line
from tritonsmith.tasks.options import ANY_ENV, DRY_RUN, PYTHON
from tritonsmith.tasks.task import task


@task(name="run")
def run(
    context: Any,
    what: SurgeryOptions,
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program whose kernels skip, repeat or stop after passes."""
    from invoke.exceptions import Exit

    from tritonsmith.command_line import command
    from tritonsmith.envs import workspace
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.compile import watched_program
    from tritonsmith.passes.surgery import program
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    surgery = what.surgery()
    if surgery is None:
        example = command("passes.run", set_llvm="disable-lsr")
        hints = [f"{example}{watched_program.EXAMPLE}"]
        raise UsageError("nothing of the compile is to be changed", hints=hints)
    _, argv = command_line()
    space = workspace.default()
    prepared = program.prepare(argv, surgery, watched_program.interpreter(env, python, space), space)
    if dry_run:
        output.plan(prepared.plan)
        return
    made = program.execute(prepared, space)
    for row in made.compiles:
        if row["passes"]:
            console.note(f"{row['kernel']}: {row['unmet'] or ', '.join(program.changed(row, surgery))}")
    if made.code:
        raise Exit(code=made.code)
    program.check(made)
