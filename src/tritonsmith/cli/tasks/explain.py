"""`explain`: what a thing of Triton is, and the pipeline of passes for a target."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.atlas import command, tablegen
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import BackendOptions
from tritonsmith.cli.tasks.option_fields import CommaLists, again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, JSON, LLVM_DIR, PYTHON, SOURCE, TARGET
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.replay import bindings
from tritonsmith.core import command_line
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import programs
from tritonsmith.core.ui import console
from tritonsmith.facts import checkout, installed_tritons, llvm_tree
from tritonsmith.inspect import override
from tritonsmith.inspect.passes import pipeline_table

if TYPE_CHECKING:
    from tritonsmith.atlas.answer import AtlasFacts


@task(tables=True, name="explain")
def explain_(
    context: Context,
    thing: str = word("pass, op, class, function, variable, option, stage, error or file", ""),
    kind: str = flag("pass, op, type, function, variable, option ...: if several fit", ""),
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
    root = _root(source, env, python)
    index = command.index_of(root, _llvms(llvm_dir, env))
    if list_:
        _list(command.listing(index, list_), list_, root, json=json)
        return
    found = command.explain(index, thing, kind)
    if json:
        output.json({"schema": 1, "root": str(root), **found.as_json()})
    else:
        _print(found, root, everything=all_)
    if open_:
        _open(found, root)


def _print(found: AtlasFacts, root: Path, *, everything: bool) -> None:
    console.note(f"reading {root}")
    output.notes(found.notes)
    for block in command.blocks(found, everything=everything):
        console.out().print(block)


def _list(rows: list[AtlasFacts], what: str, root: Path, *, json: bool) -> None:
    if json:
        output.json({"schema": 1, "root": str(root), what: [one.as_json() for one in rows]})
        return
    console.out().print(command.table(rows, what, root))


def _root(source: str, env: str, python: Path | None) -> Path:
    """Return the checkout; with --env or --python, or without a checkout, the installed Triton."""
    space = workspace.default()
    if python:
        found = installed_tritons.of_python(python)
        if not found:
            raise FactError("this Python has no Triton", where=python, hints=["--source CHECKOUT"])
        return _of_installed(found.where)
    if source:
        chosen = settings.load("dev", {"triton.source": source})
        sources = commands.find_triton(chosen)[1]
        root = sources.root
        if not root.is_dir() or sources.fetch.steps:  # a fetch that failed leaves an empty clone
            raise FactError(
                "no checkout of Triton here", where=root, hints=["clone it first", "--source PATH"]
            )
        return root
    around = None if env else checkout.enclosing(Path.cwd())
    if around:
        return around
    name = settings.load(env or "dev").name
    built = commands.last_build(env or "dev")
    built_from = str((built[1] if built else {}).get("triton.source") or "")
    if built_from and Path(built_from).is_dir():
        return Path(built_from)
    installed = installed_tritons.of_env(space.env(name)) if env else installed_tritons.here(os.environ)
    installed = installed or (None if env else installed_tritons.newest(space))
    if installed:
        return _of_installed(installed.where)
    raise FactError(
        "no sources of Triton, and no installed one",
        where=space.env(name).path if env else Path.cwd(),
        hints=[
            f"get the sources: git clone {settings.load('dev').triton.source}, then --source triton",
            f"or a released Triton, which takes a minute: {command_line.command('up')}",
        ],
    )


def _of_installed(site: Path) -> Path:
    package = (site / "triton").resolve()
    return checkout.enclosing(package) or package


def _llvms(named: str, env: str) -> list[Path]:
    """Yield the LLVM that is named; else the environment's and the system's."""
    if named:
        path = Path(named).expanduser().absolute()
        if not tablegen.program(path):
            raise FactError("this LLVM has no llvm-tblgen beside MLIR's .td files", where=path)
        return [path]
    receipt = receipts.read(workspace.default().env(settings.load(env or "dev").name).receipt("setup-mlir"))
    own = [Path(str(receipt["prefix"]))] if receipt and receipt.get("prefix") else []
    return [*own, *(tree.prefix for tree in llvm_tree.installed())]


def _open(found: AtlasFacts, root: Path) -> None:
    place = found.first
    if place is None:
        raise FactError("no place to open")
    words = override.editor(os.environ)
    programs.run_attached((*words, *([f"+{place.line}"] if place.line else []), str(root / place.file)))


@task(tables=True)
def pipeline(
    context: Context,
    options: BackendOptions,
    target: CommaLists = TARGET,
    backend: str = flag("nvidia or amd: its usual target, where --target is not given", ""),
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
    wanted = targets.parse_all(target) if target else (usual[backend or "nvidia"],)
    if triton and (env or python):
        raise UsageError("--triton names all of them", hints=["omit --env and --python"])
    chosen = str(python) if python else env or "wheel"
    compilers = [tritons.parse(one) for one in triton or (chosen,)]
    sides, columns = [], []
    for compiler in compilers:
        if compiler.targets or compiler.options or compiler.folder:
            hints = ["--triton 3.4.0,3.9.0 --target h100,a100"]
            raise UsageError(f"--triton {compiler.label} must name a Triton, and nothing else", hints=hints)
        where = tritons.place_of(compiler)
        known = bindings.known_bindings(where.python, where.space)
        for one in wanted:
            calls, ended = bindings.backend_calls(where.python, where.space, one, options.of_backend())
            for stage, why in ended.items():
                console.note(f"{compiler.label}, {one}: {stage} is known up to where it ended: {why}")
            columns.append(pipeline_table.target_passes(calls, known))
            names = [compiler.label] if len(compilers) > 1 else []
            sides.append(" ".join([*names, *([str(one)] if len(wanted) > 1 or not names else [])]))
    rows = pipeline_table.side_by_side(columns)
    if taken:
        rows = [row for row in rows if any(entry and entry.calls for entry in row)]
    if json:
        output.json(pipeline_table.target_as_json(rows, sides))
        return
    console.out().print(pipeline_table.target_table(rows, sides))
