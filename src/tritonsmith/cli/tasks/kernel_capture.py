"""`kernel.capture`: record the kernels that a program launches, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, flag
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, JSON, OUT_FILE, PYTHON
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="capture")
def capture(
    context: Any,
    device: str = flag("GPU that the program is told of: h100, mi300x, cuda:90", "h100"),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    stand_in: CommaLists = flag(
        "module that the program imports and can do without (repeatable)", (), example="flash_attn_2_cuda"
    ),
    out: OutFile | None = again(OUT_FILE, "captured.toml"),
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Record the kernels that a program launches, without a GPU."""
    from invoke.exceptions import Exit

    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import targets, watched_program
    from tritonsmith.compiler.capture import run
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.ui import console

    _, program = command_line()
    space = workspace.default()
    target = targets.parse(device)
    to = (out or OutFile("captured.toml")).path("captured.toml")
    interpreter = watched_program.interpreter(env, python, space)
    prepared = run.prepare(program, target, device, to, interpreter, space, stand_in)
    if dry_run:
        output.plan(prepared.plan)
        return
    made = run.execute(prepared, space)
    notes = list(made.recording.notes)
    if json:
        output.json(run.as_json(made.kernels, notes, to, made.code))
    elif made.kernels:
        launches = sum(one.count for one in made.recording.kernels)
        console.out().print(run.launch_table(made.kernels, f"{launches} launches for {target}"))
        console.out().print(f"{to}", markup=False)
    for text in notes if made.kernels else ():  # without one, the error below has them
        console.note(text)
    if made.code == 0 or not made.kernels:
        run.check(made, prepared)
    if made.code:
        raise Exit(code=made.code)
