"""`passes.dump`: record the IR before every pass, also from a log or with variables that Triton reads."""

from __future__ import annotations

import os
from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, ToolchainOptions, target_of
from tritonsmith.cli.tasks.option_fields import CommaList, again, flag, word
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, FROM_CACHE, JSON, OUT, PYTHON
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import env_profiles
from tritonsmith.compiler.dump import import_log, pass_runs, run
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.core.command_line import command, flag_of
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import eras, installed_tritons


@task(tables=True, name="dump")
def dump(
    context: Context,
    what: CompileOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or after the flags: -- python script.py", ""),
    from_cache: str = FROM_CACHE,
    llvm: bool = flag("also dump LLVM's passes", default=False),
    backend: bool = flag("also dump PTX and AMD's assembly", default=False),
    no_line_info: bool = flag("omit locations, for smaller dumps", default=False),
    reproducers: bool = flag("write a reproducer of each pipeline, in the folder reproducers", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Record the IR before every pass: one file per pass, plus an index."""
    choices = Choices(llvm, backend, not no_line_info, reproducers)
    _, program = command_line()
    if program:
        if kernel or from_cache:
            raise UsageError("give either a kernel or a command", hints=["omit one of them"])
        if wrong := [flag_of(name) for name, value in vars(what).items() if value not in (None, "", ())]:
            hints = ["omit them", f"{command('passes.replay')} skips passes in a command"]
            raise UsageError(f"{', '.join(wrong)}: for a kernel, not for a command", hints=hints)
        space = workspace.default()
        prepared, step = run.of_program(program, space, choices, out)
        if dry_run:
            output.plan(prepared.plan)
            return
        with import_log.full_disk_told(prepared.out):
            index, code = run.dump_program(prepared, step, space)
        pass_runs.show_summary(index, json=json, aside=True)
        if code:
            raise Exit(code=code)
        run.check(index)
        return
    target = target_of("ttgir")
    asked = what.request(kernel, target=target, from_cache=from_cache, by=by)
    made = run.of_kernel(asked, by.toolchain(asked, dry_run=dry_run), choices, out)
    if dry_run:
        output.plan(made.prepared.plan)
        return
    with import_log.full_disk_told(made.prepared.out):
        index, manifest = run.dump_kernel(made)
    pass_runs.show_summary(index, json=json)
    bad = [point for point in manifest.points if point.status != "ok"]
    if bad:
        again = command("passes.show", index.folder, "last")
        raise SmithError(
            f"{len(bad)} of {len(manifest.points)} compiles failed",
            where=index.folder,
            why="\n".join(run.failures(index)) or bad[0].error,
            hints=[f"{again} prints the input of the failing pass"] if index.dumps else [],
        )
    run.check(index)


@task(tables=True, name="import")
def import_(
    context: Context,
    file: str = word("log: plain, gzip or zstd; - for standard input"),
    out: Path | None = OUT,
    python: Path | None = flag("interpreter with the Triton that printed it, for passes.replay", None),
    json: bool = JSON,
) -> None:
    """Import a saved MLIR_ENABLE_DUMP log."""
    index = import_log.shown(file, out or import_log.place(file), python=str(python or ""))
    pass_runs.show_summary(index, json=json)
    import_log.check(index)


@task(tables=True, name="ir-env")
def ir_env(
    context: Context,
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
