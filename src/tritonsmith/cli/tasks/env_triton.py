"""`env-triton`: the Triton that a release of PyTorch requires, in an environment."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, PYTORCH, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.ui import console


@task(tables=True, name="env-triton")
def env_triton(
    context: Any,
    pytorch: str = again(PYTORCH, "the installed one"),
    env: str = ENV,
    channel: str = flag("build of PyTorch: cuda, rocm or xpu", "cuda"),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install the Triton that a PyTorch requires, or name its commit."""
    from tritonsmith.core.envs import session, settings, workspace
    from tritonsmith.core.plan import Plan
    from tritonsmith.doctor.pins import install
    from tritonsmith.facts import machine, pytorch_pins
    from tritonsmith.wheels import purge, venv

    if channel not in pytorch_pins.CHANNELS:
        raise UsageError(
            f"--channel cannot be {channel!r}", hints=did_you_mean(channel, pytorch_pins.CHANNELS)
        )
    chosen = settings.load(env)
    folder = workspace.default().env(chosen.name)
    match = install.release_of(pytorch, folder)
    if match.note:
        console.note(match.note)
    base = venv.base_interpreter(chosen.python.interpreter)
    now = install.current(folder, base)
    others = set(now.triton_owners) - {"triton"} if now else set()  # pip itself replaces another `triton`
    before = purge.survey(now).plan if now and others else Plan("nothing to purge")
    prepared = install.prepare(match.release, channel, folder, base, machine.read(), now, before)
    if dry_run:
        output.plan(prepared.plan)
        return
    if not prepared.plan.steps:
        console.out().print(prepared.plan.title, markup=False)
        return
    output.notes(f"replaces {one}" for one in prepared.replaces)
    question = f"Replace with {prepared.requirement} in {folder.venv}?"
    if prepared.replaces and not output.agreed(question, yes=yes):
        raise SmithError("nothing was replaced", hints=["--dry-run shows what would happen"])
    with session.opened("env-triton", chosen.name) as running:
        install.execute(prepared, match.release, running)
    output.done(
        f"{prepared.requirement}, as PyTorch {match.release.version} requires, in {folder.venv}", running
    )
