"""`passes.dump --print-env`: the debug variables of one version of Triton, for a shell or for a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, again, flag, word
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import ANY_ENV, JSON, OUT, PYTHON
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError


@task(tables=True, name="ir-env")
def ir_env(
    context: Any,
    profile: CommaList = word("sets of variables: nvidia,timing (none: list them)", ()),
    kernel: str = flag("only this kernel (Triton 3.2 and later)", ""),
    out: Path = again(OUT, default="triton-ir"),
    env: str = again(ANY_ENV, "current Triton, or wheel"),
    python: Path | None = PYTHON,
    triton: str = flag("version of Triton, instead of an environment's", ""),
    unset: bool = flag("print commands that unset the variables", default=False),
    json: bool = JSON,
) -> None:
    """Print Triton's debug variables for `eval`, or set them for a command."""
    from tritonsmith.compiler import env_profiles
    from tritonsmith.core.plan import files, programs
    from tritonsmith.core.ui import console

    _, command = command_line()
    if sum(map(bool, (command, json, unset))) > 1:
        raise UsageError("--unset, --json and a command contradict each other", hints=["give one of them"])
    if sum(map(bool, (env, python, triton))) > 1:
        raise UsageError("--env, --python and --triton contradict each other", hints=["give one of them"])
    if not profile:
        _list(json=json, idle=not command)
        return
    chosen = env_profiles.chosen(profile)
    version = env_profiles.version_of(triton) if triton else _version(env, python)
    made = env_profiles.environment(chosen, version, kernel=kernel, out=out)
    for text in made.notes:
        console.note(text)
    if command:
        for folder in made.folders:
            try:
                files.make_folder(folder)
            except OSError as error:
                raise UsageError("cannot create --out", where=folder, why=error.strerror) from None
        programs.exec_(command, made.set)
    elif json:
        content = {"schema": 1, "triton": version, "set": dict(made.set), "notes": list(made.notes)}
        output.json(content)
    else:
        console.write("".join(f"unset {name}\n" for name in made.set) if unset else made.exports(), end="")


def _list(*, json: bool, idle: bool) -> None:
    from tritonsmith.compiler import env_profiles
    from tritonsmith.core.ui import console, tables

    if not idle:
        hints = [
            "invoke passes.dump --print-env nvidia -- python script.py",
            "invoke passes.dump --print-env lists them",
        ]
        raise UsageError("no profile is given", hints=hints)
    every = env_profiles.known().values()
    if json:
        rows = [{"name": one.name, "what": one.what, "set": dict(one.set)} for one in every]
        output.json({"schema": 1, "profiles": rows})
        return
    lines = [[one.name, one.what, " ".join(one.set)] for one in every]
    console.out().print(tables.plain("sets of debug variables", ["name", "shows", "sets"], lines))


def _version(env: str, python: Path | None) -> str:
    """Return the version of the selected Triton; without one, the newest release, and print a note."""
    import os

    from tritonsmith.core.envs import settings, workspace
    from tritonsmith.core.errors import FactError
    from tritonsmith.core.ui import console
    from tritonsmith.facts import eras, installed_tritons

    space = workspace.default()
    hints = ["--triton 3.9.0 names a version"]
    if python:
        found = installed_tritons.of_python(python)
        if not found:
            raise FactError("this Python has no Triton", where=python, hints=hints)
    elif env:
        found = installed_tritons.of_env(space.env(settings.load(env).name))
        if not found:
            raise FactError(
                f"the environment {env} has no Triton yet", where=space.env(env).path, hints=hints
            )
    else:
        found = installed_tritons.here(os.environ) or installed_tritons.of_env(space.env("wheel"))
    if not found:
        newest = eras.releases()[-1].version
        console.note(f"no Triton is installed: these are the variables of {newest}, the newest known version")
        return newest
    console.note(f"for Triton {found.version} in {found.where}")
    return found.version
