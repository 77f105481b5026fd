"""`editor`: write the files that an editor reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.build.editors.merged_files import MergedFile
    from tritonsmith.core.ui.tables import Grid


@task(tables=True, name="editor")
def editor_(
    context: Any,
    editor: str = word("vscode, neovim, emacs or clion"),
    env: str = ENV,
    pass_: str = flag("pass in which the debugger stops", "tritongpu-coalesce"),
    force: bool = flag("replace settings that have other values", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write an editor's files: language servers, debuggers, tasks."""
    from tritonsmith.build.editors import command, merged_files
    from tritonsmith.core.envs import session, workspace
    from tritonsmith.core.ui import console

    space = workspace.default()
    prepared = command.prepare(editor, env, space, pass_, force=force)
    project = prepared.project
    if dry_run:
        output.plan(prepared.plan)
    else:
        with session.opened("editor", project.env.name) as running:
            prepared = command.prepare(editor, env, space, pass_, force=force)
            running.run(prepared.plan)
        console.out().print(table(str(project.root), prepared.files))
        excluded = merged_files.excluded(project.root)
        if excluded:
            console.note(f"git passes over these files: {excluded} names them")
    for file in prepared.files:
        for one in file.conflicts:
            console.warn(
                f"{file.name}: {one.path} stays {one.value!r}; for this build: {one.wanted!r} (--force)"
            )
    for name, how in project.missing.items():
        console.warn(f"no {name}: {how}")


def table(root: str, files: tuple[MergedFile, ...]) -> Grid:
    """Return the table of what happens to each file."""
    from tritonsmith.core.ui import tables

    return tables.plain(root, ["", "file"], [[one.change, one.name] for one in files])
