"""`up`: install the newest Triton in its own environment, and compile a kernel."""

from __future__ import annotations

from typing import Any

from tritonsmith.command_line import command
from tritonsmith.tasks import output
from tritonsmith.tasks.options import DRY_RUN, WHEEL_ENV
from tritonsmith.tasks.task import task
from tritonsmith.ui import console


@task(tables=True)
def up(context: Any, env: str = WHEEL_ENV, dry_run: bool = DRY_RUN) -> None:
    """Install a released Triton, and compile a kernel without a GPU."""
    from tritonsmith.doctor import report, run
    from tritonsmith.envs import session, settings, workspace
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels import up as use_case
    from tritonsmith.kernels.compile import disassemblers
    from tritonsmith.ui import tables

    chosen = settings.load(env)
    if not chosen.triton.wheel:
        raise UsageError(
            f"environment {env!r} builds Triton from sources; `up` installs a released wheel",
            hints=[
                "invoke up (the environment `wheel`)",
                f"{command('setup-mlir', env=env)}, then {command('build-triton', env=env)}",
            ],
        )
    space = workspace.default()
    prepared = use_case.prepare(chosen, space.env(chosen.name), disassemblers.locate(space))
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("up", chosen.name) as running:
        answer = use_case.execute(prepared, running)
        python = running.env.python
    console.out().print(tables.stages(answer))
    console.out().print(report.summary(run.examine(chosen)), markup=False)
    console.out().print(f"\nThe files are in {python.parents[2] / 'kernels'}. What next:", markup=False)
    for line, what in (
        ("invoke doctor", "check this machine and its environments"),
        ("invoke setup-mlir", "an LLVM/MLIR for a Triton checkout"),
        ("invoke build-triton --debug", "a debug build of Triton, to change and step through"),
        ("invoke --list", "everything else"),
    ):
        console.out().print(f"  {console.typed(line):<34} {what}", markup=False)
