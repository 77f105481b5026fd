"""Which dumps were made here: only those name something that may be run.

An index.json of somebody else names an interpreter and a kernel's file, too. What a dump that was made here
names is recorded in the workspace, outside of the dump.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Step, Write, digest


def record(made_by: str, python: str, space: Workspace, phase: str) -> Step:
    """Remember that a dump is made here, by the command and the interpreter of its index."""
    return Write(_record(made_by, python, space), f"{python}\n{made_by}\n", phase=phase)


def require_own(index: DumpIndex, space: Workspace) -> None:
    """Check that what a dump names may be run.

    Raises:
        FactError: it was not made here.
    """
    if not _record(index.command, index.python, space).is_file():
        raise FactError(
            "this dump was not made here: what it names is not run",
            where=index.folder,
            why=f"it comes from: {index.command}",
            hints=["dump the kernel here: invoke passes.dump FILE:KERNEL --signature ... --target ..."],
        )


def interpreter(index: DumpIndex, space: Workspace) -> Path | None:
    """The interpreter that a dump names; None if there is none, or if it may not be run.

    It may be one of an environment's, or the one that printed the dump, if that was made here.
    """
    named = Path(index.python)
    ours = named.is_relative_to(space.root / "envs") and ".." not in named.parts
    known = index.python and (ours or _record(index.command, index.python, space).is_file())
    return named if known else None


def no_interpreter(index: DumpIndex) -> FactError:
    """What to say where a dump names none that may be run."""
    named, what = index.python, "the dump does not record which Triton printed it"
    if named:
        what = "this dump was not made here: the interpreter that it names is not run"
    hints = [f"if you trust it: --python {shlex.quote(named)}"] if named else []
    return FactError(
        what,
        where=index.folder,
        hints=[
            *hints,
            "give an interpreter with that Triton: --python PATH",
            "or use a build: --triton-opt PATH, --env NAME",
        ],
    )


def _record(made_by: str, python: str, space: Workspace) -> Path:
    return space.root / "dumped" / digest(python, made_by)
