"""`passes.replay -- COMMAND`: run a program whose kernels are compiled without some passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.kernel_options import SurgeryOptions
from tritonsmith.cli.tasks.option_fields import again
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, PYTHON
from tritonsmith.cli.tasks.task import task


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

    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import changed_program as program
    from tritonsmith.compiler import watched_program
    from tritonsmith.core.command_line import command
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console

    surgery = what.surgery()
    if surgery is None:
        example = command("passes.replay", set_llvm="disable-lsr")
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
        if row.passes:
            console.note(f"{row.kernel}: {row.unmet or ', '.join(program.changed(row, surgery))}")
    if made.code:
        raise Exit(code=made.code)
    program.check(made)
