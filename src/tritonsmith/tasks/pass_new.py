"""`pass.new`: write the files of a new pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks import output
from tritonsmith.tasks.option_fields import flag, word
from tritonsmith.tasks.options import DRY_RUN, ENV, SOURCE
from tritonsmith.tasks.task import task
from tritonsmith.ui import console

if TYPE_CHECKING:
    from tritonsmith.scaffold.in_tree import NewPass
    from tritonsmith.ui.tables import Grid


@task(tables=True)
def new(
    context: Any,
    name: str = word("name of the pass, without that of its family: hoist-loads"),
    family: str = flag("passes that it belongs to: ttir, ttgpu, ttnvgpu or amd", "ttgpu"),
    source: str = SOURCE,
    env: str = ENV,
    here: bool = flag("write into the checkout itself, not into a new worktree", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a new pass into Triton: TableGen, C++, CMake, binding, lit test."""
    from tritonsmith.envs import session, settings, workspace
    from tritonsmith.scaffold import new_pass
    from tritonsmith.worktrees import llvm

    chosen = settings.load(env, {"triton.source": source or None})
    space = workspace.default()
    prepared = new_pass.prepare(name, family, chosen, space, Path.cwd(), env=env, here=here)
    if dry_run:
        output.plan(prepared.plan)
        return
    with session.opened("pass.new", prepared.env) as running:
        prepared = new_pass.prepare(name, family, chosen, space, Path.cwd(), env=env, here=here)
        running.run(prepared.plan)
        if prepared.worktree:
            llvm.take_from_store(prepared.worktree, running)
        design = prepared.design
        console.out().print(table(prepared.root, design))
        output.done(f"{design.argument}, in Python {design.binding}(pm)", running)
    console.write("next:")
    for purpose, typed in new_pass.following(prepared, space):
        console.write(f"  {purpose:7} {console.typed(typed)}")


def table(root: Path, design: NewPass) -> Grid:
    """The files of a pass, new ones and changed ones."""
    from tritonsmith.ui import tables

    rows = [["new", file] for file, _ in design.written]
    rows += [["changed", file] for file, _, _ in design.changed]
    return tables.plain(str(root), ["", "file"], rows)
