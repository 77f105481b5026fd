"""`editor`: settings of editors, a development container, and compile_commands.json for clangd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.editors import command, merged_files
from tritonsmith.build.editors import container as containers
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, OUT, SOURCE
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.ui import console, tables

if TYPE_CHECKING:
    from tritonsmith.build.editors.merged_files import MergedFile
    from tritonsmith.core.ui.tables import Grid


@task(tables=True, name="editor")
def editor_(
    context: Context,
    editor: str = word("vscode, neovim, emacs or clion"),
    env: str = ENV,
    pass_: str = flag("pass in which the debugger stops", "tritongpu-coalesce"),
    force: bool = flag("replace settings that have different values", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write editor settings: language servers, debuggers, tasks."""
    space = workspace.default()
    prepared = command.prepare(editor, env, space, pass_, force=force)
    project = prepared.project
    if dry_run:
        output.plan(prepared.plan)
    else:
        with receipts.open_session("editor", project.env.name) as running:
            # Again under the lock: the user's editor may have saved its settings since the first time.
            prepared = command.prepare(editor, env, space, pass_, force=force)
            running.run(prepared.plan)
        console.out().print(table(str(project.root), prepared.files))
        if excluded := merged_files.excluded(project.root):
            console.note(f"git ignores these files: {excluded} lists them")
    # Also after a dry run: a setting of the user's that stays may keep the debugger from finding this build.
    for file in prepared.files:
        for conflict in file.conflicts:
            console.warn(
                f"{file.name}: {conflict.path} stays {conflict.value!r}; "
                f"for this build: {conflict.ours!r} (--force)"
            )
    for name, how in project.missing.items():
        console.warn(f"no {name}: {how}")


def table(root: str, files: tuple[MergedFile, ...]) -> Grid:
    """Return the table of what happens to each file."""
    return tables.plain(root, ["", "file"], [[file.change, file.name] for file in files])


@task()
def container(
    context: Context,
    env: str = ENV,
    out: Path | None = again(OUT, ".devcontainer in the current folder"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a Dockerfile that builds an environment's Triton."""
    space = workspace.default()
    folder = out or Path.cwd() / ".devcontainer"
    plan, missing = containers.prepare(env, space, Path.cwd(), folder)
    if missing:
        console.warn(f"the container lacks what this checkout has: {missing}")
    if dry_run:
        output.plan(plan)
        return
    space.claim()
    space.run(plan, "container", quiet=True)
    console.out().print(f"docker build {folder}", markup=False)


@task(tables=True, name="link-compile-commands")
def link_compile_commands(
    context: Context, env: str = ENV, source: str = SOURCE, dry_run: bool = DRY_RUN
) -> None:
    """Link one compile_commands.json of Triton and LLVM for clangd."""
    chosen = settings.load(env, {"triton.source": source or None})
    space, located = commands.find_triton(chosen)
    prepared = commands.link_compile_commands(chosen, space, located)
    if dry_run:
        output.plan(prepared.plan)
        return
    with receipts.open_session("link-compile-commands", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"clangd reads {located.root / 'compile_commands.json'}", running)
