"""`up`: install the newest Triton in its own environment, and compile a kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.core.envs.schema import Settings


@task(tables=True)
def up(
    context: Any,
    env: str = again(ANY_ENV, "wheel, or like-REPORT"),
    like: Path | None = flag("make the environment of a report of `invoke doctor --json`", None),
    dry_run: bool = DRY_RUN,
) -> None:
    """Install a released Triton, and compile a kernel without a GPU."""
    from tritonsmith.compiler import interpreter
    from tritonsmith.compiler import up as use_case
    from tritonsmith.core.envs import session, settings, workspace
    from tritonsmith.core.ui import tables
    from tritonsmith.doctor import report, run

    chosen, written = _like(like, env) if like else (settings.load(env or "wheel"), None)
    _need_wheel(chosen)
    space = workspace.default()
    prepared = use_case.prepare(chosen, space.env(chosen.name), interpreter.locate_programs(space))
    if written:
        prepared = replace(prepared, plan=written + prepared.plan)
        output.notes(() if dry_run else written.notes)
    if dry_run:
        about = output.time_of(prepared.plan, space.env(chosen.name).receipt("up"))
        output.plan(prepared.plan, about=about)
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


def _need_wheel(chosen: Settings) -> None:
    from tritonsmith.core.errors import UsageError

    if not chosen.triton.wheel:
        raise UsageError(
            f"environment {chosen.name!r} builds Triton from sources; `up` installs a released wheel",
            hints=[
                "invoke up (the environment `wheel`)",
                f"{command('setup-mlir', env=chosen.name)}, then {command('build-triton', env=chosen.name)}",
            ],
        )


def _like(path: Path, env: str) -> tuple[Settings, Plan]:
    """Return the settings of a report's environment, and a plan that writes them as an env file."""
    from tritonsmith.core.envs import settings, workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.plan import Write
    from tritonsmith.doctor import run, saved_report

    report = saved_report.read(path)
    found = saved_report.resolve(report, run.subject("wheel"))
    name, folder = env or found.name, workspace.default().like
    taken = next((file for known, file, _ in settings.available() if known == name), None)
    if not re.fullmatch(r"\w[\w.+-]*", name) or (taken and taken.parent != folder):
        raise UsageError(
            f"--like makes an environment of its own, and {name!r} is another one, or not a name",
            where=taken,
            hints=[command("up", like=path), command("up", like=path, env=found.name)],
        )
    write = Write(folder / f"{name}.toml", found.env_file(report), phase="env file")
    chosen = settings.resolve(name, [(str(path), found.values)])
    return chosen, Plan(f"an environment like {report.title}", (write,), found.differs)
