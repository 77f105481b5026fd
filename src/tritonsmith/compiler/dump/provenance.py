"""Recognise dumps that were made here: only those name something that may be run.

The index.json of a foreign dump names an interpreter and a kernel's file, too. Those of a dump made here are
recorded in the workspace, outside of the dump.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Step, Write, digest


def record(made_by: str, python: str, space: Workspace, phase: str) -> Step:
    """Return a step that records a dump as made here, by the command and the interpreter of its index."""
    return Write(_record(made_by, python, space), f"{python}\n{made_by}\n", phase=phase)


def require_own(index: DumpIndex, space: Workspace) -> None:
    """Check that the programs which a dump names may be run.

    Raises:
        FactError: the dump was not made here.
    """
    if not _record(index.command, index.python, space).is_file():
        raise FactError(
            "this dump was not made here: what it names is not run",
            where=index.folder,
            why=f"it comes from: {index.command}",
            hints=["dump the kernel here: invoke passes.dump FILE:KERNEL --signature ... --target ..."],
        )


def interpreter(index: DumpIndex, space: Workspace) -> Path | None:
    """Return the interpreter that a dump names; None if it names none, or one that may not be run.

    Only an interpreter of an environment may be run, or the one of a dump that was made here.
    """
    named = Path(index.python)
    ours = named.is_relative_to(space.root / "envs") and ".." not in named.parts
    known = index.python and (ours or _record(index.command, index.python, space).is_file())
    return named if known else None


def no_interpreter(index: DumpIndex) -> FactError:
    """Return the error for a dump that names no interpreter that may be run."""
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
