"""`kernel.profile`: what a program's kernels take on a GPU, by line of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.option_fields import again, flag
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, JSON, PYTHON
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="profile")
def profile(
    context: Any,
    by: str = flag("profiler: proton, ncu or rocprofv3", "", unset="the first that is there"),
    kernel: str = flag("kernels to look at: names, with commas", ""),
    times: bool = flag("the time of each kernel only, without samples", default=False),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Profile a program's kernels on a GPU, per line of Python."""
    from invoke.exceptions import Exit

    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import watched_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.ui import console
    from tritonsmith.facts import gpus
    from tritonsmith.inspect.profile import profilers, report, run

    _, program = command_line()
    space = workspace.default()
    interpreter = watched_program.interpreter(env, python, space)
    used = profilers.interpreter_of(program, interpreter)
    profiler = profilers.choose(by, used, gpus.read())
    prepared = run.prepare(program, profiler, interpreter, space, kernels=kernel, times=times, quiet=json)
    if dry_run:
        output.plan(prepared.plan)
        return
    made = run.execute(prepared, space, silent=json)
    if json:
        output.json(report.as_json(made, profiler.name))
    else:
        for block in report.blocks(made):
            console.out().print(block)
    session = f" ({' '.join(filter(None, made.session.values()))})" if made.session else ""
    console.note(f"measured by {profiler.name}{session}")
    for text in made.notes:
        console.note(text)
    if made.code:
        raise Exit(code=made.code)
