"""`explain`: what a thing of Triton is, and the pipeline of passes for a target."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.atlas import command
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import BackendOptions
from tritonsmith.cli.tasks.option_fields import CommaLists, again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, JSON, LLVM_DIR, PYTHON, SOURCE, TARGET
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.replay import bindings
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import programs
from tritonsmith.core.ui import console
from tritonsmith.inspect import override, pipeline_table

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
    place = facts.first
    if place is None:
        raise FactError("no place to open")
    # `+LINE` is the form that vi, emacs and nano share.
    words = override.editor(os.environ)
    programs.run_attached((*words, *([f"+{place.line}"] if place.line else []), str(root / place.file)))


@task(tables=True)
def pipeline(
    context: Context,
    options: BackendOptions,
    target: CommaLists = TARGET,
    backend: str = flag("nvidia or amd, for its usual target instead of --target", ""),
    triton: CommaLists = flag("Tritons side by side: versions, environments, interpreters (repeatable)", ()),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    taken: bool = flag("only passes that run for a target", default=False),
    json: bool = JSON,
) -> None:
    """Show the passes of all stages, when they run, and which a target uses."""
    usual = dict(zip(("nvidia", "amd"), targets.default(), strict=True))
    if backend and (target or backend not in usual):
        why = "--target names a GPU already" if target else f"--backend {backend}: nvidia or amd"
        raise UsageError(why, hints=["--backend amd", "--target mi300x"])
    targets_shown = targets.parse_all(target) if target else (usual[backend or "nvidia"],)
    if triton and (env or python):
        raise UsageError("--triton names all of them", hints=["omit --env and --python"])
    # One column without --triton: an environment or an interpreter is a name of a Triton as well.
    chosen = str(python) if python else env or "wheel"
    compilers = [tritons.parse(text) for text in triton or (chosen,)]
    sides, columns = [], []
    for compiler in compilers:
        if compiler.targets or compiler.options or compiler.folder:
            hints = ["--triton 3.4.0,3.9.0 --target h100,a100"]
            raise UsageError(f"--triton {compiler.label} must name a Triton, and nothing else", hints=hints)
        where = tritons.place_of(compiler)
        known = bindings.known_bindings(where.python, where.space)
        for shown in targets_shown:
            # The stages run on a nearly empty module, and one may end early where it looks for more.
            calls, ended = bindings.backend_calls(where.python, where.space, shown, options.of_backend())
            output.notes(
                f"{compiler.label}, {shown}: {stage} is incomplete, as it ended early: {why}"
                for stage, why in ended.items()
            )
            columns.append(pipeline_table.target_passes(calls, known))
            # The title of a column names only what differs between the columns.
            names = [compiler.label] if len(compilers) > 1 else []
            sides.append(" ".join([*names, *([str(shown)] if len(targets_shown) > 1 or not names else [])]))
    rows = pipeline_table.side_by_side(columns)
    if taken:
        rows = [row for row in rows if any(step and step.calls for step in row)]
    if json:
        output.json(pipeline_table.target_as_json(rows, sides))
        return
    console.out().print(pipeline_table.target_table(rows, sides))
