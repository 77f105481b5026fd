"""`editor`: write the files of an editor, or of a development container."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.editors import command, merged_files
from tritonsmith.build.editors import project as containers
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, OUT
from tritonsmith.cli.tasks.output import task
from tritonsmith.core.envs import receipts, workspace
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
            prepared = command.prepare(editor, env, space, pass_, force=force)
            running.run(prepared.plan)
        console.out().print(table(str(project.root), prepared.files))
        excluded = merged_files.excluded(project.root)
        if excluded:
            console.note(f"git ignores these files: {excluded} lists them")
    for file in prepared.files:
        for one in file.conflicts:
            console.warn(
                f"{file.name}: {one.path} stays {one.value!r}; for this build: {one.wanted!r} (--force)"
            )
    for name, how in project.missing.items():
        console.warn(f"no {name}: {how}")


def table(root: str, files: tuple[MergedFile, ...]) -> Grid:
    """Return the table of what happens to each file."""
    return tables.plain(root, ["", "file"], [[one.change, one.name] for one in files])


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
