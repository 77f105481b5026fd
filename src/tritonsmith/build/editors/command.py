"""`editor`: write the files of an editor for a build."""

from __future__ import annotations

from dataclasses import dataclass

from tritonsmith.build.editors import clion, emacs, merged_files, neovim, project, vscode
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import EditorProject
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan

EDITORS = {"vscode": vscode.files, "neovim": neovim.files, "emacs": emacs.files, "clion": clion.files}


@dataclass(frozen=True)
class PreparedEditor:
    """The files of an editor and the plan that writes them.

    Attributes:
        project: the build that they describe.
        files: files of the editor.
        plan: plan that writes them.
    """

    project: EditorProject
    files: tuple[MergedFile, ...]
    plan: Plan


def prepare(editor: str, env: str, space: Workspace, stop_in: str, *, force: bool) -> PreparedEditor:
    """Prepare the files of an editor.

    Args:
        editor: one of `EDITORS`.
        env: name or file of an environment.
        space: the workspace.
        stop_in: pass in which debuggers stop; empty for none.
        force: replace settings that have other values.

    Raises:
        UsageError: the editor is unknown.
        FactError: nothing was built, or a file of the editor cannot be read.
        OwnershipError: a file of the editor is a link.
    """
    if editor not in EDITORS:
        raise UsageError(f"unknown editor: {editor!r}", hints=did_you_mean(editor, EDITORS))
    editor_project = project.read(env, space, stop_in)
    files = EDITORS[editor](editor_project, force=force)
    title = f"files of {editor} in {editor_project.root}"
    return PreparedEditor(editor_project, files, Plan(title, merged_files.steps(editor_project.root, files)))
