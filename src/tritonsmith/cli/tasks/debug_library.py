"""`debug-library`: rebuild single libraries of LLVM and MLIR at `-O0 -g`; the LLVM stays unchanged."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.debug_library import command, resolve
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, flag, word
from tritonsmith.cli.tasks.options import (
    BUILD_FOR,
    DRY_RUN,
    ENV,
    JOBS,
    JSON,
    LLVM_DIR,
    LLVM_SOURCE,
    NINJA_TARGET,
    SHA256,
    SOURCE,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler.debugger_init import GDB
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.errors import UsageError
from tritonsmith.core.ui import console, tables

if TYPE_CHECKING:
    from tritonsmith.build.debug_library.command import LibraryRequest, ListedLibrary, PreparedDebugLibrary


@task(tables=True, name="debug-library")
def debug_library(
    context: Context,
    library: CommaList = word("libraries of LLVM or MLIR: MLIRTransforms,MLIRIR", ()),
    pass_: CommaList = flag("only the files of these passes: cse,early-cse,nvvm-reflect", ()),
    file: CommaList = flag("only these files: CSE.cpp, or the end of a path", ()),
    whole_library: bool = flag("with --pass and --file: all files of their libraries", default=False),
    undo: bool = flag("restore LLVM's own: all, or the named libraries, passes or files", default=False),
    list_: bool = flag("list the libraries and their state, and build nothing", default=False),
    env: str = ENV,
    source: str = SOURCE,
    llvm_dir: str = LLVM_DIR,
    for_: str = BUILD_FOR,
    target: tuple[str, ...] = NINJA_TARGET,
    llvm_source: str = LLVM_SOURCE,
    sha256: str = SHA256,
    jobs: int | None = JOBS,
    dry_run: bool = DRY_RUN,
    json: bool = JSON,
) -> None:
    """Rebuild single LLVM/MLIR libraries at -O0 -g, and relink Triton."""
    # On top of the settings of the last build: the libraries are linked into that.
    flags = {
        "triton.source": source or None,
        "llvm.dir": llvm_dir or None,
        "llvm.source": llvm_source or None,
        "llvm.sha256": sha256 or None,
        "triton.for": for_ or None,
        "triton.targets": target or (() if for_ else None),
    }
    chosen = settings.load(env, flags, commands.last_build(env))
    request = command.LibraryRequest(library, pass_, file, whole_library, narrow=not for_)
    _check(request, undo=undo, list_=list_, as_json=json, for_=for_, listed=chosen.llvm.debug_libraries)
    space, located = commands.find_triton(chosen)
    inputs = command.gather(chosen, space, located)
    # To restore whole libraries takes LLVM's archives, and not its sources, which are large.
    if undo and not (request.passes or request.files):
        outcome = command.undo(request, inputs)
    else:
        tree = resolve.sources_of(inputs)
        if tree.steps and dry_run:
            output.plan(resolve.steps_to_fetch(tree), rest="LLVM's sources, which are not downloaded yet")
            return
        if tree.steps:
            # `shared`: LLVM's sources are those of all environments.
            with receipts.open_session(command.TASK, chosen.name, shared=True) as fetching:
                fetching.run(resolve.steps_to_fetch(tree))
        if list_:
            _list(command.listing(inputs, tree), as_json=json)
            return
        outcome = (
            command.undo(request, inputs, tree) if undo else command.operate(request, inputs, tree, jobs)
        )
    _print_operations(outcome)
    if dry_run:
        output.plan(outcome.prepared.plan)
        return
    with receipts.open_session(command.TASK, chosen.name) as running:
        commands.execute(outcome.prepared, running)
    build, triton = outcome.inputs.env.build, " and ".join(outcome.inputs.settings.triton.targets) or "Triton"
    # A breakpoint in a library that nothing links is never hit, and the debugger does not say why.
    output.warnings(f"{triton} does not link {name}: it contains none of it" for name in outcome.unused())
    links = f"{command.in_words(outcome.replaced)} at -O0 -g" if outcome.replaced else "LLVM's own libraries"
    verb = "link" if " and " in triton else "links"
    output.done(f"{triton} in {build} {verb} {links}", running, next_words(outcome))


def _check(
    request: LibraryRequest, *, undo: bool, list_: bool, as_json: bool, for_: str, listed: tuple[str, ...]
) -> None:
    if list_ and (undo or request or for_):
        raise UsageError("--list lists all libraries and builds nothing", hints=["omit the other flags"])
    if request.whole and not (request.passes or request.files):
        raise UsageError("--whole-library requires --pass or --file")
    if as_json and not list_:
        raise UsageError("--json requires --list")
    if not (undo or list_ or request or listed):
        raise UsageError(
            "no library is named",
            hints=[
                "name one: invoke debug-library MLIRTransforms",
                "or a pass, or a file: --pass cse, --file CSE.cpp",
                "list all libraries: --list",
            ],
        )


def _print_operations(outcome: PreparedDebugLibrary) -> None:
    output.notes(outcome.locations)
    # Shown, as a library that differs from its LLVM in such a point would crash far from the cause.
    for operation in outcome.operations:
        name, sources = operation.library.name, operation.library.sources
        only = operation.replacement.objects
        files = f"only {', '.join(source.name for source in sources)}" if only else f"{len(sources)} files"
        tables_ = f", {len(operation.tables)} generated headers" if operation.tables else ""
        if name not in outcome.fresh:
            console.note(f"{name}: already a debug build, and up to date")
            continue
        rows = [[row.what, row.llvm, row.here] for row in operation.rows]
        title = f"{name}: {files}{tables_}"
        console.err().print(tables.plain(title, ["must agree", "the LLVM", "sources, objects"], rows))
    output.warnings(outcome.prepared.warnings)


def next_words(outcome: PreparedDebugLibrary) -> str:
    """Return a gdb command with a breakpoint in a requested file, else a requested library, else in any."""
    named = [op.library.sources for op in outcome.operations if op.library.name in outcome.fresh]
    others = [op.library.sources for op in outcome.operations if op.library.name not in outcome.fresh]
    # A pass that was named has a function to stop in; of a whole library, the user has to choose a LINE.
    stops = [(place.file.name, place.function or "LINE") for place in outcome.places]
    stops += [(source.name, "LINE") for library in (*named, *others) for source in library]
    if not stops:
        return ""
    program = f"{shlex.quote(str(outcome.inputs.env.build / 'bin' / 'triton-opt'))} FILE.mlir -PASS"
    if next(iter((*outcome.fresh, *outcome.replaced))).startswith("LLVM"):  # its passes run in Python
        program = f"{shlex.quote(str(outcome.inputs.env.python))} KERNEL.py"
    init = outcome.inputs.env.build / GDB  # which finds split debug information from any folder
    sources = f"-ix {shlex.quote(str(init))} " if init.is_file() else ""
    return f"gdb {sources}-ex 'set breakpoint pending on' -ex 'break {':'.join(stops[0])}' --args {program}"


def _list(rows: list[ListedLibrary], *, as_json: bool) -> None:
    if as_json:
        content = {"schema": 1, "libraries": [asdict(row) for row in rows]}
        console.out().print_json(data=content, default=str)
        return
    cells = [[row.name, row.state, str(row.folder)] for row in rows]
    console.out().print(tables.plain("libraries of LLVM and MLIR", ["library", "state", "folder"], cells))
