"""`env` and `env-triton`: the environments, and the Triton that a PyTorch requires."""

from __future__ import annotations

from json import dumps

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, ENV_WORD, JSON, PYTORCH, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import consent, session, settings, workspace
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor.pins import install
from tritonsmith.facts import machine, pytorch_pins
from tritonsmith.wheels import purge, venv


@task(tables=True)
def explain(context: Context, env: str = ENV_WORD, json: bool = JSON) -> None:
    """Show every setting of an environment, and where its value comes from."""
    env = env or ENV.default
    chosen = settings.load(env, only_shown=True)
    if json:
        settled = {key: {"value": value, "from": source} for key, value, source in settings.explain(chosen)}
        console.out().print_json(data={"schema": 1, "environment": chosen.name, "settings": settled})
        return
    rows = [[key, dumps(value), source] for key, value, source in settings.explain(chosen)]
    console.out().print(tables.plain(f"environment {env}", ["key", "value", "from"], rows))


@task()
def allow(context: Context, file: str = word("path of an env file"), json: bool = JSON) -> None:
    """Allow an env file in a source tree to name what to run."""
    if not file.endswith(".toml"):
        raise UsageError("only env files that are named by path need consent", hints=["./my.toml"])
    path, wanted = settings.wanted(file)
    if wanted:
        consent.allow(path, wanted, workspace.default())
    if json:
        console.out().print_json(data={"schema": 1, "file": str(path), "allowed": dict(wanted)})
        return
    if not wanted:
        console.out().print(f"{path} names nothing that needs consent", markup=False)
        return
    console.out().print(f"{path} is allowed to name these, until they change:", markup=False)
    for key, value in wanted.items():
        console.out().print(f"  {key} = {dumps(value)}", markup=False)


@task(tables=True, name="list")
def listing(context: Context, json: bool = JSON) -> None:
    """List the environments that have an env file."""
    if json:
        found = [
            {"name": name, "purpose": about, "file": str(path)} for name, path, about in settings.available()
        ]
        console.out().print_json(data={"schema": 1, "environments": found})
        return
    rows = [[name, about, str(path)] for name, path, about in settings.available()]
    console.out().print(tables.plain("environments", ["name", "purpose", "file"], rows))


@task(tables=True, name="env-triton")
def env_triton(
    context: Context,
    pytorch: str = again(PYTORCH, "the installed one"),
    env: str = ENV,
    channel: str = flag("build of PyTorch: cuda, rocm or xpu", "cuda"),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install the Triton that a PyTorch requires, or name its commit."""
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
