"""`install-triton`: install the checkout into the environment, editable, and test it."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.build_triton import build_settings
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, FORCE, BuildOptions
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.ui import console


@task(tables=True, name="install-triton")
def install_triton(
    context: Any, how: BuildOptions, env: str = ENV, dry_run: bool = DRY_RUN, force: bool = FORCE
) -> None:
    """Install the checkout into the environment, editable, and test it."""
    from tritonsmith.build.triton import commands
    from tritonsmith.compiler import interpreter, smoke_test, targets
    from tritonsmith.core.envs import session, settings
    from tritonsmith.core.ui import tables

    chosen = settings.load(env, build_settings(how), commands.last_build(env))
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    commands.bring_sources(chosen, located)
    if dry_run and (first := commands.plan_before_llvm(chosen, space, located)):
        output.plan(first, rest=f"the LLVM: `{command('setup-mlir', env=output.unusual(env))}` provides it")
        return
    wanted, programs = targets.proof(chosen.triton.backends), interpreter.locate_programs(space)
    place = space.env(chosen.name)
    proof = smoke_test.plan(place.path, place.python, wanted, programs)
    prepared = commands.prepare_install(chosen, space, located, proof, force=force)
    output.warnings(prepared.warnings)
    if chosen.llvm.debug_libraries:
        from tritonsmith.build.debug_library import command as debug_libraries

        output.warnings(debug_libraries.missing(chosen, space, located))
    if dry_run:
        output.plan(prepared.plan, about=output.time_of(prepared.plan, place.receipt("install-triton")))
        return
    with session.opened("install-triton", chosen.name) as running:
        commands.execute(prepared, running)
    if smoke_test.PHASE in prepared.plan.phases:
        console.out().print(tables.stages(smoke_test.read_response(running.env.path)))
    following = command("link-compile-commands", env=output.unusual(env))
    output.done(f"import triton works in {running.env.python}", running, following)
