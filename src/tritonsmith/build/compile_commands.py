"""`link-compile-commands`: one merged database of Triton's and LLVM's, linked at the checkout's root."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Link, Move, Plan, Run
from tritonsmith.facts import machine

PHASE = "compile commands"
COMPILE_COMMANDS = "compile_commands.json"


@dataclass(frozen=True)
class DatabaseLink:
    """The current state of the path where the link belongs.

    Attributes:
        path: the path in the checkout.
        state: nothing, a link (right, wrong or dangling alike), a plain file, or a folder.
    """

    path: Path
    state: Literal["absent", "link", "file", "folder"]


def database_link(checkout: Path) -> DatabaseLink:
    """Return what is at the checkout's root under the database's name."""
    path = checkout / COMPILE_COMMANDS
    # Before is_dir(), which follows links: a link is replaced wherever it points, and a folder never is.
    if path.is_symlink():
        return DatabaseLink(path, "link")
    if path.is_dir():
        return DatabaseLink(path, "folder")
    return DatabaseLink(path, "file" if path.exists() else "absent")


def link_plan(place: DatabaseLink, env: EnvDir, databases: tuple[Path, ...]) -> Plan:
    """Return the recipe: merge the databases, Triton's first, back up a plain file, and link.

    Raises:
        FactError: there is no database yet, or a folder lies in the way.
    """
    if not databases:
        raise FactError(
            "compile_commands.json does not exist yet",
            where=env.build,
            why="configuring Triton writes it",
            hints=["run `invoke build-triton` first"],
        )
    if place.state == "folder":
        raise FactError(
            "a folder is in the place of the link; nothing was changed",
            where=place.path,
            why="upstream's setup.py would delete that folder and its contents",
            hints=["move the folder away, then run the command again"],
        )
    merged = env.path / COMPILE_COMMANDS
    # A program instead of a function: the plan then prints the merge as a command, like all its steps.
    merge = (sys.executable, "-m", "tritonsmith.build.merge_compile_commands", "--output", str(merged))
    steps = [Run((*merge, *map(str, databases)), cwd=env.path, phase=PHASE)]
    backup = machine.free_name(place.path, ".backup")
    # A plain file may be the work of another tool, such as bear, and is not in git.
    moved = (Move(place.path, backup, phase=PHASE),) if place.state == "file" else ()
    return Plan(f"link {place.path}", (*steps, *moved, Link(place.path, merged, phase=PHASE)))
