"""`explain`: what a thing of Triton is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.atlas import command
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, JSON, LLVM_DIR, PYTHON, SOURCE
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import programs
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.atlas.answer import AtlasFacts


@task(tables=True, name="explain")
def explain_(
    context: Context,
    thing: str = word("pass, op, class, function, variable, option, stage, error or file", ""),
    kind: str = flag("kind to choose if several fit: pass, op, function or another", ""),
    list_: str = flag("list all passes, mlir-passes, ops, debug-types or variables", ""),
    source: str = SOURCE,
    env: str = ANY_ENV,
    python: Path | None = PYTHON,
    llvm_dir: str = LLVM_DIR,
    all_: bool = flag("print every place and the whole description", default=False),
    open_: bool = flag("open the place in $EDITOR", default=False),
    json: bool = JSON,
) -> None:
    """Explain a pass, op, function, variable, option or error of Triton."""
    if bool(thing) == bool(list_):
        hints = ["invoke explain tritongpu-coalesce", "invoke explain --list passes"]
        raise UsageError("give either a thing or --list", hints=hints)
    if source and (env or python):
        raise UsageError("--source contradicts --env and --python", hints=["give one of them"])
    root = commands.sources_to_read(source, env, python)
    index = command.index_of(root, commands.llvms_to_read(llvm_dir, env))
    if list_:
        _list(command.listing(index, list_), list_, root, json=json)
        return
    facts = command.explain(index, thing, kind)
    if json:
        output.json({"schema": 1, "root": str(root), **facts.as_json()})
    else:
        console.note(f"reading {root}")
        output.notes(facts.notes)
        output.blocks(command.blocks(facts, everything=all_))
    if open_:
        _open(facts, root)


def _list(rows: list[AtlasFacts], what: str, root: Path, *, json: bool) -> None:
    if json:
        output.json({"schema": 1, "root": str(root), what: [row.as_json() for row in rows]})
        return
    console.out().print(command.table(rows, what, root))


def _open(facts: AtlasFacts, root: Path) -> None:
    from tritonsmith.inspect import override

    place = facts.first
    if place is None:
        raise FactError("no place to open")
    # `+LINE` is the form that vi, emacs and nano share.
    words = override.editor(os.environ)
    programs.run_attached((*words, *([f"+{place.line}"] if place.line else []), str(root / place.file)))
