"""`link-compile-commands`: link one compile_commands.json of Triton and LLVM for clangd."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, SOURCE
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="link-compile-commands")
def link_compile_commands(
    context: Any, env: str = ENV, source: str = SOURCE, dry_run: bool = DRY_RUN
) -> None:
    """Link one compile_commands.json of Triton and LLVM for clangd."""
    from tritonsmith.build.triton import commands
    from tritonsmith.core.envs import session, settings

    chosen = settings.load(env, {"triton.source": source or None})
    space, located = commands.find_triton(chosen)
    prepared = commands.link_compile_commands(chosen, space, located)
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("link-compile-commands", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"clangd reads {located.root / 'compile_commands.json'}", running)
