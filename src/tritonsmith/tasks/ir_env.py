"""`ir-env`: debug variables that one version of Triton knows, for a shell or for a command."""

from __future__ import annotations

from typing import Any

from tritonsmith.errors import UsageError
from tritonsmith.tasks.task import Words, command_line, split, task


@task(
    tables=True,
    name="ir-env",
    klass=Words,
    positional=["profile"],
    help={
        "profile": "name of a set, or several: nvidia,timing (none: list them)",
        "kernel": "dump this kernel only (Triton 3.2 and later)",
        "out": "folder for what is written (default: triton-ir, here)",
        "env": "environment whose Triton is meant (default: the Triton that python has here, or else wheel)",
        "python": "or an interpreter that has Triton",
        "triton": "or a version",
        "unset": "print what takes the variables away again",
        "json": "print JSON",
    },
)
def ir_env(
    context: Any,
    profile: str = "",
    kernel: str = "",
    out: str = "triton-ir",
    env: str = "",
    python: str = "",
    triton: str = "",
    unset: bool = False,
    json: bool = False,
) -> None:
    """Print Triton's debug variables for `eval`, or set them for a command."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.passes import env_profiles
    from tritonsmith.plan import process
    from tritonsmith.ui import console

    _, command = command_line()
    if sum(map(bool, (command, json, unset))) > 1:
        raise UsageError("--unset, --json and a command contradict each other", hints=["give one of them"])
    if sum(map(bool, (env, python, triton))) > 1:
        raise UsageError("--env, --python and --triton contradict each other", hints=["give one of them"])
    wanted = split(profile) or ()
    if not wanted:
        _list(json=json, idle=not command)
        return
    chosen = env_profiles.chosen(wanted)
    version = env_profiles.version_of(triton) if triton else _version(env, python)
    made = env_profiles.environment(chosen, version, kernel=kernel, out=Path(out).expanduser().absolute())
    for text in made.notes:
        console.note(text)
    if command:
        for folder in made.folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError("--out cannot be made", where=folder, why=error.strerror) from None
        process.exec_(command, made.set)
    elif json:
        content = {"schema": 1, "triton": version, "set": dict(made.set), "notes": list(made.notes)}
        console.write(dumps(content, indent=2))
    else:
        console.write("".join(f"unset {name}\n" for name in made.set) if unset else made.exports(), end="")


def _list(*, json: bool, idle: bool) -> None:
    from json import dumps

    from tritonsmith.passes import env_profiles
    from tritonsmith.ui import console, tables

    if not idle:
        hints = ["invoke ir-env nvidia -- python script.py; invoke ir-env lists them"]
        raise UsageError("no profile is named", hints=hints)
    every = env_profiles.known().values()
    if json:
        rows = [{"name": one.name, "what": one.what, "set": dict(one.set)} for one in every]
        console.write(dumps({"schema": 1, "profiles": rows}, indent=2))
        return
    lines = [[one.name, one.what, " ".join(one.set)] for one in every]
    console.out().print(tables.plain("sets of debug variables", ["name", "what it shows", "sets"], lines))


def _version(env: str, python: str) -> str:
    """Version of the Triton that is meant; the newest release where none is here, with a note."""
    import os
    from pathlib import Path

    from tritonsmith.envs import settings, workspace
    from tritonsmith.errors import FactError
    from tritonsmith.facts import eras, installed_tritons
    from tritonsmith.ui import console

    space = workspace.default()
    hints = ["--triton 3.9.0 names a version"]
    if python:
        found = installed_tritons.of_python(Path(python).expanduser().absolute())
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
        console.note(f"no Triton is here: this is for {newest}, the newest that is known")
        return newest
    console.note(f"for Triton {found.version} in {found.where}")
    return found.version
