"""`link-compile-commands`: one merged database of Triton's and LLVM's, linked at the checkout's root.

clangd reads one database per tree; with LLVM's commands in Triton's, it jumps from a Triton pass into MLIR.
The plan runs the merge as a program: `python -m tritonsmith.build.compile_commands --output OUT IN...`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Link, Move, Plan, Run, files
from tritonsmith.facts import machine

PHASE = "compile commands"
COMPILE_COMMANDS = "compile_commands.json"

_PATH = r"""("[^"]*"|(?:\\.|[^\s\\])+)"""
_PRECOMPILED = re.compile(rf" -Winvalid-pch -Xclang -include-pch -Xclang {_PATH}")
_INCLUDED = re.compile(rf" -Xclang -include -Xclang {_PATH}")
_INJECTED = "/tritonsmith_pch_"


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
    merge = (sys.executable, "-m", "tritonsmith.build.compile_commands", "--output", str(merged))
    steps = [Run((*merge, *map(str, databases)), cwd=env.path, phase=PHASE)]
    backup = machine.free_name(place.path, ".backup")
    # A plain file may be the work of another tool, such as bear, and is not in git.
    moved = (Move(place.path, backup, phase=PHASE),) if place.state == "file" else ()
    return Plan(f"link {place.path}", (*steps, *moved, Link(place.path, merged, phase=PHASE)))


def merge(databases: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Merge parsed `compile_commands.json` files; the first entry of a file wins."""
    merged: dict[str, list[dict[str, Any]]] = {}
    for database in databases:
        fresh: dict[str, list[dict[str, Any]]] = {}
        for entry in database:
            # The first database is Triton's own: its flags for a source win over LLVM's.
            path = os.path.normpath(Path(entry["directory"], entry["file"]))
            if path not in merged:
                fresh.setdefault(path, []).append(_readable(entry))
        merged |= fresh
    return [entry for entries in merged.values() for entry in entries]


def _readable(entry: dict[str, Any]) -> dict[str, Any]:
    # clangd reads only precompiled headers of its own version. The headers that make up a project's own one
    # are included one by one instead; those of an injected one are not, so that missing includes show.
    command = entry.get("command", "")
    plain = _INCLUDED.sub(
        lambda match: "" if _INJECTED in match[1] else match[0], _PRECOMPILED.sub("", command)
    )
    return entry if plain == command else {**entry, "command": plain}


def main(argv: list[str] | None = None) -> int:
    """Run the command line: print how many entries were written."""
    parser = argparse.ArgumentParser(
        description="Merge compile_commands.json files; the first entry of a source wins."
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("databases", type=Path, nargs="+")
    arguments = parser.parse_args(argv)
    parsed = [json.loads(path.read_text(encoding="utf-8")) for path in arguments.databases]
    merged = merge(parsed)
    files.write_atomically(arguments.output, json.dumps(merged, indent=1) + "\n")
    print(f"{len(merged)} commands from {len(parsed)} databases")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
