"""`ir-env`: debug variables that one version of Triton knows, for a shell or for a command."""

from __future__ import annotations

import re
from typing import Any

from tritonsmith.errors import UsageError
from tritonsmith.tasks.kit import Words, command_line, split, task


@task(
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
    """Print debug variables for `eval`, or set them for a command: ir-env nvidia -- python script.py."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.passes import profiles
    from tritonsmith.plan import process
    from tritonsmith.ui import console, tables

    _, command = command_line()
    if not profile:
        if command:
            raise UsageError(
                "no profile is named", hints=["ir-env nvidia -- python script.py; ir-env lists them"]
            )
        rows = [[one.name, one.what, " ".join(one.set)] for one in profiles.known().values()]
        console.out().print(tables.plain("sets of debug variables", ["name", "what it shows", "sets"], rows))
        return
    chosen = profiles.chosen(split(profile) or ())
    version = _checked(triton) if triton else _version(env, python)
    made = profiles.environment(chosen, version, kernel=kernel, out=Path(out).expanduser().absolute())
    for text in made.notes:
        console.note(text)
    if command:
        for folder in made.folders:
            folder.mkdir(parents=True, exist_ok=True)
        process.become(command, made.set)
    elif json:
        content = {"schema": 1, "triton": version, "set": dict(made.set), "notes": list(made.notes)}
        print(dumps(content, indent=2))
    else:
        print("".join(f"unset {name}\n" for name in made.set) if unset else made.exports(), end="")


def _checked(version: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)+\S*", version):
        raise UsageError(f"--triton cannot be {version!r}", hints=["a version: --triton 3.4.0"])
    return version


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
