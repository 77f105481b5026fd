"""`pass.new`: write the files of a pass in a worktree with its own branch, or in the checkout itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.scaffold import in_tree, template
from tritonsmith.build.scaffold.in_tree import NewPass
from tritonsmith.build.triton import commands, source
from tritonsmith.build.worktrees import add
from tritonsmith.build.worktrees.add import WorktreeRequest
from tritonsmith.build.worktrees.record import WorktreeRecord
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan
from tritonsmith.facts import git


@dataclass(frozen=True)
class PreparedPass:
    """A pass and the plan that writes it.

    Attributes:
        design: its files.
        root: the checkout to write to.
        plan: plan that adds the worktree, if any, and writes the files.
        env: the environment that builds that checkout.
        worktree: the worktree; None for the checkout itself.
    """

    design: NewPass
    root: Path
    plan: Plan
    env: str
    worktree: WorktreeRecord | None


def prepare(
    name: str, family: str, settings: Settings, space: Workspace, cwd: Path, *, env: str, here: bool
) -> PreparedPass:
    """Prepare a pass for the checkout of an environment.

    Args:
        name: name of the pass.
        family: family of passes that it belongs to.
        settings: settings of the environment, which name the checkout.
        space: the workspace.
        cwd: the current folder.
        env: the environment, as named on the command line.
        here: write into the checkout itself.

    Raises:
        FactError: there is no checkout under git, or the pass cannot be written in it.
        UsageError: the name of the pass, of its branch or of its worktree is taken.
    """
    root = source.locate(settings, space, cwd).root
    if not root.is_dir():
        raise FactError(
            "no checkout of Triton here", where=root, hints=["clone it first", "give one: --source PATH"]
        )
    design = in_tree.design(root, name, family)
    clone = add.clone_of(settings, space, cwd)
    in_tree.check_unchanged(root, design)
    title = f"the pass {design.argument}"
    if here:
        return PreparedPass(design, root, Plan(title, design.steps(root)), settings.name, None)
    own = f"pass-{name}"
    request = WorktreeRequest(git.head(root, dirt=False).commit, own, branch=own, env=env)
    worktree = add.prepare(request, clone, space)
    where = worktree.record.folder
    template.refuse_to_overwrite({where / name: text for name, text in design.written})
    plan = Plan(title, (*worktree.plan.steps, *design.steps(where)))
    return PreparedPass(design, where, plan, own, worktree.record)


def following(made: PreparedPass, space: Workspace, *, llvm: bool) -> tuple[tuple[str, str], ...]:
    """Return the next commands, each with its purpose; `llvm` tells whether the environment has an LLVM."""
    tool, test = (
        shlex.quote(str(path))
        for path in (space.env(made.env).build / "bin" / "triton-opt", made.root / made.design.test)
    )
    argument = made.design.argument
    # In the checkout itself the environment stays: without its flags, another build type would be built.
    kind = None if made.worktree else commands.flags_of_last_build(made.env).get("triton.build-type")
    dump = f"{argument}-dump"
    return (
        *(() if llvm else (("LLVM", command("setup-mlir", env=made.env)),)),
        ("build", command("build-triton", env=made.env, build_type=kind)),
        ("test", command("test-triton", made.design.test, env=made.env)),
        (
            "print",
            f"{tool} {test} -{argument} -cse --mlir-print-ir-before-all -o /dev/null 2> {argument}.log",
        ),
        ("record", command("passes.dump --from-log", f"{argument}.log", out=dump)),
        ("replay", command("passes.replay", dump, argument, env=made.env)),
    )
