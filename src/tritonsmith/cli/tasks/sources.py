"""Commands on the sources of Triton: explain what is in them, and write or check a new pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.atlas import command
from tritonsmith.build import new_pass, plugins, worktree_add
from tritonsmith.build.new_pass import PluginRequest
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, ENV, JSON, LLVM_DIR, LOADER, OUT, PYTHON, SOURCE
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import tritons
from tritonsmith.compiler.replay import replayer
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import installed_tritons, machine

if TYPE_CHECKING:
    from tritonsmith.atlas.answer import AtlasFacts
    from tritonsmith.build.new_pass import NewPass
    from tritonsmith.core.ui.tables import Grid


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
    llvms = commands.llvms_to_read(llvm_dir, env)
    index = command.index_of(root, llvms)
    if not (env or python):
        command.note_origins(index, commands.files_behind_choice(source, llvms))
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
    override.open_at(root / place.file, place.line)


@task(tables=True, name="check")
def check_(
    context: Context,
    plugin: Path = word("the plugin: a shared library"),
    wheel: str = LOADER,
    json: bool = JSON,
) -> None:
    """Check whether a plugin is compatible with a Triton."""
    compiler = tritons.parse(wheel)
    # `tritons.parse` reads sides of `compare`, which may also be a target, an option or a folder.
    if compiler.targets or compiler.options or compiler.folder:
        raise UsageError(
            f"--wheel {wheel} must name a Triton, and nothing else", hints=["--wheel 3.9.0", "--wheel dev"]
        )
    place = tritons.place_of(compiler)
    library = replayer.library(place.python)
    triton = installed_tritons.of_python(place.python)
    version = triton.version if triton else ""
    checked = plugins.check(plugin, library, place.python, version, machine.read(), place.space)
    if json:
        output.json(checked.as_json())
    else:
        console.out().print(plugins.rows_table(checked))
    if checked.misfits:
        raise SmithError(
            f"this plugin is not compatible with Triton {checked.version}",
            where=plugin,
            why="\n".join(
                f"{row.what}: {row.why or f'{row.plugin}, not {row.triton}'}" for row in checked.misfits
            ),
            hints=["compile it with clang against the headers of that release, and link it to its libtriton"],
        )


@task(tables=True)
def new(
    context: Context,
    name: str = word("name of the pass, without its family's prefix: hoist-loads"),
    family: str = flag("family of the pass: ttir, ttgpu, ttnvgpu or amd", "ttgpu"),
    source: str = SOURCE,
    env: str = ENV,
    plugin: bool = flag("write a plugin into a folder, not into Triton", default=False),
    wheel: str = again(LOADER, default=""),
    out: Path | None = again(OUT, "./NAME"),
    here: bool = flag("write into the checkout itself, not into a new worktree", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a new pass into Triton: TableGen, C++, CMake, binding, lit test."""
    space = workspace.default()
    if plugin:
        _write_plugin(name, family, wheel or "wheel", out or Path.cwd() / name, source, dry_run=dry_run)
        return
    if wheel or out:
        raise UsageError("--wheel and --out are for plugins", hints=["add --plugin"])
    chosen = settings.load(env, {"triton.source": source or None})
    prepared = new_pass.prepare(name, family, chosen, space, Path.cwd(), env=env, here=here)
    if dry_run:
        output.plan(prepared.plan)
        return
    with receipts.open_session("pass.new", prepared.env) as running:
        # Again under the lock: the files that are changed may be others by now.
        prepared = new_pass.prepare(name, family, chosen, space, Path.cwd(), env=env, here=here)
        running.run(prepared.plan)
        # A new worktree has no LLVM yet; with one that fits, the next command is a build.
        has_llvm = not prepared.worktree or worktree_add.take_llvm(prepared.worktree, running)
        design = prepared.design
        console.out().print(table(prepared.root, design))
        output.done(f"{design.argument}, in Python {design.binding}(pm)", running)
    _print_next(new_pass.following(prepared, space, llvm=has_llvm))


def _write_plugin(name: str, family: str, wheel: str, folder: Path, source: str, *, dry_run: bool) -> None:
    new_pass.family_of(family)
    side, space = tritons.parse(wheel), workspace.default()
    python = tritons.python_of(side) if side.version or side.python else space.env(side.env or wheel).python
    where = Path(source).expanduser().absolute() if source else None
    # A plugin's pass runs behind one stage of the compiler, and all families but ttir work on TTGIR.
    request = PluginRequest(name, "ttir" if family == "ttir" else "ttgir", side.version, python, where)
    plan = new_pass.prepare_plugin(request, folder)
    if dry_run:
        output.plan(plan)
        return
    space.claim()
    space.run(plan, "pass.new")
    console.out().print(str(folder), markup=False)
    _print_next(new_pass.after_plugin(request, folder))


def _print_next(commands: tuple[tuple[str, str], ...]) -> None:
    console.write("next:")
    for purpose, typed in commands:
        console.write(f"  {purpose:7} {console.typed(typed)}")


def table(root: Path, design: NewPass) -> Grid:
    """Return the table of a pass's files, new and changed."""
    rows = [["new", file] for file, _ in design.written]
    rows += [["changed", file] for file, _, _ in design.changed]
    return tables.plain(str(root), ["", "file"], rows)
