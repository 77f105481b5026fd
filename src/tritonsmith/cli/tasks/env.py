"""`up`, `env` and `purge-wheels`: environments with a released Triton or ptxas, and files to remove."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, ENV, ENV_WORD, JSON, PYTHON, WHEEL_ENV, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import interpreter
from tritonsmith.compiler import up as compiler_up
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import consent, receipts, settings, workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.ui import console, tables
from tritonsmith.doctor import report as doctor_report
from tritonsmith.doctor import run, saved_report
from tritonsmith.facts import installed_tritons, machine
from tritonsmith.wheels import ptxas as registry
from tritonsmith.wheels import purge

if TYPE_CHECKING:
    from tritonsmith.core.envs.settings import Settings
    from tritonsmith.facts.python_env import PythonEnv
    from tritonsmith.wheels.purge import Survey


@task(tables=True)
def up(
    context: Context,
    env: str = again(ANY_ENV, "wheel, or like-REPORT"),
    like: Path | None = flag("recreate the environment of a report of `invoke doctor --json`", None),
    dry_run: bool = DRY_RUN,
) -> None:
    """Install a released Triton, and compile a kernel without a GPU."""
    chosen, written = _like(like, env) if like else (settings.load(env or "wheel"), None)
    _require_wheel(chosen)
    space = workspace.default()
    prepared = compiler_up.prepare(chosen, space.env(chosen.name), interpreter.locate_programs(space))
    # The env file is written by the same plan, so that a dry run shows it, and a refused plan leaves none.
    if written:
        prepared = replace(prepared, plan=written + prepared.plan)
        output.notes(() if dry_run else written.notes)
    if dry_run:
        about = output.time_of(prepared.plan, space.env(chosen.name).receipt("up"))
        output.plan(prepared.plan, about=about)
        return
    with receipts.open_session("up", chosen.name) as running:
        answer = compiler_up.execute(prepared, running)
        python = running.env.python
    console.out().print(tables.stages(answer))
    # `up` is the first command of a new user, who does not know of `doctor` yet.
    console.out().print(doctor_report.summary(run.examine(chosen)), markup=False)
    console.out().print(f"\nThe files are in {python.parents[2] / 'kernels'}. What next:", markup=False)
    for line, what in (
        ("invoke doctor", "check this machine and its environments"),
        ("invoke setup-mlir", "an LLVM/MLIR for a Triton checkout"),
        ("invoke build-triton --debug", "a debug build of Triton, to change and step through"),
        ("invoke --list", "everything else"),
    ):
        console.out().print(f"  {console.typed(line):<34} {what}", markup=False)


def _require_wheel(chosen: Settings) -> None:
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
    report = saved_report.read(path)
    copied = saved_report.resolve(report, run.subject("wheel"))
    name, folder = env or copied.name, workspace.default().like
    existing = next((file for known, file, _ in settings.available() if known == name), None)
    # An env file that an earlier `--like` wrote may be replaced, but none that a user wrote.
    if not re.fullmatch(r"\w[\w.+-]*", name) or (existing and existing.parent != folder):
        raise UsageError(
            f"--like creates a new environment, but {name!r} exists already, or is not a valid name",
            where=existing,
            hints=[command("up", like=path), command("up", like=path, env=copied.name)],
        )
    write = Write(folder / f"{name}.toml", copied.env_file(report), phase="env file")
    chosen = settings.resolve(name, [(str(path), copied.values)])
    return chosen, Plan(f"an environment like {report.title}", (write,), copied.differs)


@task(name="ptxas")
def ptxas(
    context: Context,
    version: str = word("CUDA release: 12.9, 13.0 or 13.0.88; none with --list", ""),
    list_: bool = flag("list the versions of the package index and of this machine", default=False),
    env: str = WHEEL_ENV,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install another ptxas, and print the variables that make Triton use it."""
    space = workspace.default()
    folder = space.env(settings.load(env).name)
    # Any pip will do: the package holds a program, and nothing for a certain Python.
    python = registry.pip_python(folder.python)
    if list_:
        if version:
            raise UsageError("--list takes no version", hints=["omit one of them"])
        rows = registry.versions(python, space, machine.read())
        if json:
            output.json(rows)
        for row in () if json else rows:
            console.out().print(f"{row['version']}  {row['path']}".rstrip(), markup=False)
        return
    if not version:
        hints = ["invoke up --ptxas 13.0", "invoke up --ptxas --list"]
        raise UsageError("no version is given", hints=hints)
    prepared = registry.prepare(registry.resolve(version, python), space, machine.read(), python)
    if dry_run:
        output.plan(prepared.plan)
        return
    registry.install(prepared, space, silent=json)
    triton = installed_tritons.of_env(folder)
    variables = registry.variables(prepared.path, triton.version if triton else "")
    if json:
        about = {"version": prepared.version, "path": str(prepared.path), "package": prepared.requirement}
        output.json({**about, "variables": variables})
        return
    for name, value in variables.items():
        # Triton 3.3 reads a variable with a hyphen in its name, which no shell can export.
        how = "export" if name.isidentifier() else "env"
        console.out().print(f"{how} {name}={shlex.quote(value)}", markup=False)


@task(tables=True)
def explain(context: Context, env: str = ENV_WORD, json: bool = JSON) -> None:
    """Show every setting of an environment, and where its value comes from."""
    env = env or ENV.default
    # Without consent, as nothing is run: what the file names can be read before it is allowed.
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
    # Such a file comes with somebody's source tree, and its values name programs that we would run.
    path, programs = settings.values_needing_consent(file)
    if programs:
        consent.allow(path, programs, workspace.default())
    if json:
        console.out().print_json(data={"schema": 1, "file": str(path), "allowed": dict(programs)})
        return
    if not programs:
        console.out().print(f"{path} names nothing that needs consent", markup=False)
        return
    console.out().print(f"{path} is allowed to name these, until they change:", markup=False)
    for key, value in programs.items():
        console.out().print(f"  {key} = {dumps(value)}", markup=False)


@task(tables=True, name="list")
def environments(context: Context, json: bool = JSON) -> None:
    """List the environments that have an env file."""
    if json:
        content = [
            {"name": name, "purpose": about, "file": str(path)} for name, path, about in settings.available()
        ]
        console.out().print_json(data={"schema": 1, "environments": content})
        return
    rows = [[name, about, str(path)] for name, path, about in settings.available()]
    console.out().print(tables.plain("environments", ["name", "purpose", "file"], rows))


_MIB = float(1 << 20)
_SHOWN = 5  # refused paths
_DEFAULT = "dev"


@task(tables=True, name="purge-wheels")
def purge_wheels(
    context: Context,
    env: str = again(ANY_ENV, "dev, or the active one"),
    python: Path | None = PYTHON,
    system: bool = flag("allow an interpreter outside virtual environments", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove every distribution that owns files under triton/."""
    chosen = settings.load(env or _DEFAULT)
    # Without flags, a machine on which nothing was installed yet is no error: a script may purge to be sure.
    if not env and not python and (nothing := _nothing_built()):
        console.out().print(nothing, markup=False)
        return
    packages = _packages(env, python)
    # A removal that was stopped midway is undone first: what is left of it cannot be surveyed.
    recovery = purge.recovery(packages, system=system)
    if recovery.steps:
        console.note(recovery.title)
        if dry_run:
            output.plan(recovery, rest="the restored files")
            return
        with receipts.open_session("purge-wheels", chosen.name) as running:
            running.run(recovery)
        packages = _packages(env, python)
    survey = purge.survey(packages, system=system)
    if dry_run:
        output.plan(survey.plan, about=_summary(survey))
        _print_notes(survey)
        return
    if not survey.plan.steps:
        console.out().print(f"nothing to remove: nothing in {packages.prefix} owns triton/", markup=False)
        _print_notes(survey)
        return
    print_survey(survey)
    what = f"{sum(row.files for row in survey.rows)} files from {packages.prefix}"
    if not output.agreed(f"Remove {what}?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every file that would be removed"])
    with receipts.open_session("purge-wheels", chosen.name) as running:
        running.run(survey.plan)
    console.out().print(f"removed {what}", markup=False)
    # An import hook, a PYTHONPATH or a folder without a RECORD can provide `triton`, too.
    if still := purge.still_found(_packages(env, python)):
        console.warn(f"`import triton` still finds {still}, which no installed distribution owns")


def _nothing_built() -> str:
    """Explain why nothing can be removed: no virtual environment is active, and the default has none yet."""
    # A virtual environment that is active counts before `dev`, as for the doctor, so its packages have to be
    # looked for.
    subject = run.subject(_DEFAULT)
    if subject.packages is not None or os.path.lexists(subject.env.venv):
        return ""
    names = [path.parts[-4] for path in sorted(subject.space.root.glob("envs/*/venv/bin/python"))]
    others = f"; to purge another: {', '.join(f'--env {name}' for name in names)}" if names else ""
    where = f"environment {_DEFAULT} has no Python yet, and no virtual environment is active"
    return f"nothing to remove: {where}{others or '; --python PATH names an interpreter'}"


def _packages(env: str, python: Path | None) -> PythonEnv:
    """Return the packages of the interpreter that the flags select, or of the active one."""
    subject = run.subject(env or _DEFAULT, str(python or ""))
    # The doctor prefers an active virtual environment. Files are removed from the one that was named only.
    if env and not python:
        subject.python = subject.env.python
    if subject.packages is None:
        names = sorted(path.parts[-4] for path in subject.space.root.glob("envs/*/venv/bin/python"))
        raise FactError(
            "no working interpreter found",
            where=subject.interpreter or subject.env.python,
            hints=["give one: --python PATH", *(f"or an environment: --env {name}" for name in names)],
        )
    return subject.packages


def _summary(survey: Survey) -> Iterator[str]:
    """Yield a line for each distribution to remove, with its size, the largest first."""
    for row in sorted(survey.rows, key=lambda row: -row.size):
        yield f"removes {_printable(row.title)}: {row.files:,} files, {row.size / _MIB:,.0f} MiB"


def print_survey(survey: Survey) -> None:
    """Print the distributions to remove, by the folder that they are in, and the notes."""
    for site in dict.fromkeys(row.site for row in survey.rows):
        lines = [
            [_printable(row.title), _printable(row.what), str(row.files), f"{row.size / _MIB:.1f}"]
            for row in survey.rows
            if row.site == site
        ]
        heads = ["distribution", "what", "files", "MiB"]
        console.out().print(tables.plain(f"removed from {site}", heads, lines, right=heads[2:]))
    _print_notes(survey)


def _printable(text: str) -> str:
    # The names come from RECORD files, and may contain bytes that are not UTF-8.
    return text.encode(errors="backslashreplace").decode()


def _print_notes(survey: Survey) -> None:
    output.notes(survey.notes)
    why = "kept, although a RECORD lists it, because no wheel installs files there"
    output.warnings(f"{why}: {path}" for path in survey.refused[:_SHOWN])
    if len(survey.refused) > _SHOWN:
        console.warn(f"{len(survey.refused) - _SHOWN} more are kept")
