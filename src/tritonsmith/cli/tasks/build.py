"""`setup-mlir`, `build-triton`, `install-triton`, `debug-library`: build LLVM and Triton. `run`: sanitizers.

`debug-library` rebuilds single libraries of LLVM and MLIR at `-O0 -g`; the LLVM itself stays unchanged.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.build import explain as rebuilds
from tritonsmith.build import sanitized_run
from tritonsmith.build.debug_library import command as debug_libraries
from tritonsmith.build.debug_library import resolve
from tritonsmith.build.llvm import setup_mlir as llvm_setup_mlir
from tritonsmith.build.triton import check_includes as includes
from tritonsmith.build.triton import commands, install
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    BUILD_FOR,
    DRY_RUN,
    ENV,
    FORCE,
    JOBS,
    JSON,
    LLVM_DIR,
    LLVM_SOURCE,
    NINJA_TARGET,
    RECONFIGURE,
    SHA256,
    SOURCE,
    BuildOptions,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import interpreter, up
from tritonsmith.compiler import targets as compiler_targets
from tritonsmith.compiler.debugger_init import GDB
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import tools

if TYPE_CHECKING:
    from tritonsmith.build.debug_library.command import LibraryRequest, ListedLibrary, PreparedDebugLibrary
    from tritonsmith.build.preflight import PreparedBuild
    from tritonsmith.build.triton.check_includes import IncludeCheck
    from tritonsmith.core.envs.settings import Settings
    from tritonsmith.core.envs.workspace import Workspace


@task(tables=True, name="setup-mlir")
def setup_mlir(
    context: Context,
    env: str = ENV,
    source: str = SOURCE,
    provider: str = flag("provider of LLVM: auto, system, store, prebuilt or source", ""),
    llvm_dir: str = LLVM_DIR,
    llvm_source: str = LLVM_SOURCE,
    sha256: str = SHA256,
    any_commit: bool = flag("accept an LLVM that is not at the pin", default=False),
    build_type: str = flag("Debug, RelWithDebInfo, Release or MinSizeRel", ""),
    assertions: bool | None = flag("build LLVM with assertions", None),
    targets: CommaList = flag("code generators: Native,NVPTX,AMDGPU", ()),
    scope: str = flag("what to build: closure (what Triton links and tests), python-module, all", ""),
    target: tuple[str, ...] = NINJA_TARGET,
    jobs: int | None = JOBS,
    dry_run: bool = DRY_RUN,
    reconfigure: bool = RECONFIGURE,
    force: bool = FORCE,
) -> None:
    """Install or build the LLVM/MLIR that the Triton checkout pins."""
    flags = {
        # An empty flag is none: it must not override the env file.
        "triton.source": source or None,
        "llvm.provider": provider or None,
        "llvm.dir": llvm_dir or None,
        "llvm.source": llvm_source or None,
        "llvm.sha256": sha256 or None,
        "llvm.any-commit": any_commit or None,
        "llvm.build-type": build_type or None,
        "llvm.assertions": assertions,
        "llvm.targets": targets or None,
        "llvm.scope": scope or None,
        "llvm.ninja-targets": target or None,
        "toolchain.jobs": jobs,
    }
    chosen = settings.load(env, flags)
    space, located = commands.find_triton(chosen)
    # An LLVM that is downloaded needs the checkout's pin alone, not a clone of the whole of Triton.
    pin_will_do = not llvm_setup_mlir.wants_sources(chosen)
    if dry_run and located.fetch.steps and not pin_will_do:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    if not dry_run:
        commands.bring_sources(chosen, located, pin_will_do=pin_will_do)
    prepared, choice = llvm_setup_mlir.prepare(chosen, space, located, force=force, again=reconfigure)
    output.choice(choice)
    output.warnings(prepared.warnings)
    if dry_run:
        known = configs.load("resources")["cpu-seconds"]["llvm-closure"]
        # Other scopes were not measured, and what is downloaded is not built.
        built = choice.provider == "source" and chosen.llvm.scope == "closure"
        measured = known.get(chosen.llvm.build_type) if built else None
        receipt = space.env(chosen.name).receipt("setup-mlir")
        output.plan(prepared.plan, about=output.time_of(prepared.plan, receipt, measured))
        return
    # LLVM's sources and the store belong to all environments, so the workspace is locked as well.
    with receipts.open_session("setup-mlir", chosen.name, shared=True) as running:
        commands.execute(prepared, running)
    # The default environment does not say how Triton is built, so the next command has to; others do.
    unusual = output.unusual(env)
    following = command("build-triton", env=unusual) if unusual else command("build-triton", debug=True)
    output.done(f"LLVM for {chosen.name!r}: {choice.prefix}", running, following)


@task(tables=True, name="build-triton")
def build_triton(
    context: Context,
    how: BuildOptions,
    env: str = ENV,
    sanitizer: str = flag("sanitizer: address, undefined or thread", ""),
    for_: str = BUILD_FOR,
    target: tuple[str, ...] = NINJA_TARGET,
    cmake_arg: tuple[str, ...] = flag("-DNAME=VALUE, written --cmake-arg=-DNAME=VALUE (repeatable)", ()),
    dry_run: bool = DRY_RUN,
    reconfigure: bool = RECONFIGURE,
    precompiled_headers: str = flag("use precompiled headers: auto, on or off", ""),
    check_includes: bool = flag(
        "only compile what differs from a branch, without precompiled headers", default=False
    ),
    wheel: bool = flag("also build a wheel to share, with this build's libtriton", default=False),
    base: str = flag("with --check-includes: branch to compare with; empty for upstream's main", ""),
    force: bool = FORCE,
) -> None:
    """Configure and build Triton from a checkout."""
    flags = {
        **_build_settings(how),
        "triton.sanitizer": sanitizer or None,
        "triton.for": for_ or None,
        # --for stands for a list of targets, so targets of the env file would contradict it.
        "triton.targets": target or (() if for_ else None),
        "triton.cmake-args": cmake_arg or None,
        "triton.precompiled-headers": precompiled_headers or None,
    }
    _refuse_contradictions(base, check_includes=check_includes, wheel=wheel, part=bool(for_ or target))
    # The check compiles in the build that is there: other settings would configure that anew.
    chosen = settings.load(env, flags, commands.last_build(env) if check_includes else None)
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    commands.bring_sources(chosen, located)
    if dry_run and (first := commands.plan_before_llvm(chosen, space, located)):
        output.plan(first, rest=f"the LLVM: `{command('setup-mlir', env=output.unusual(env))}` provides it")
        return
    if check_includes:
        check = includes.prepare(chosen, space, located, base, force=force, again=reconfigure)
        _check_includes(check, chosen.name, dry_run=dry_run)
        return
    if wheel:
        _wheel(commands.prepare_wheel(chosen, space, located, force=force), chosen.name, dry_run=dry_run)
        return
    prepared = commands.prepare_build(chosen, space, located, force=force, again=reconfigure)
    if chosen.llvm.debug_libraries:
        prepared = debug_libraries.with_listed(prepared)
    _build(
        prepared, chosen, space, following=command("install-triton", env=output.unusual(env)), dry_run=dry_run
    )


def _refuse_contradictions(base: str, *, check_includes: bool, wheel: bool, part: bool) -> None:
    if base and not check_includes:
        raise UsageError("--base requires --check-includes")
    # It compiles the files that changed, whatever they would be linked into.
    if check_includes and part:
        raise UsageError(
            "--check-includes links nothing, so --for and --target have no meaning with it",
            hints=["it compiles the files that differ from a branch: --base BRANCH"],
        )
    if wheel and (part or check_includes):
        raise UsageError(
            "--wheel builds everything that setup.py does",
            why="--for, --target and --check-includes build less",
            hints=["omit them"],
        )


def _build(
    prepared: PreparedBuild, chosen: Settings, space: Workspace, *, following: str, dry_run: bool
) -> None:
    output.warnings(prepared.warnings)
    if dry_run:
        receipt = space.env(chosen.name).receipt("build-triton")
        known = configs.load("resources")["cpu-seconds"]["triton-build"]
        measured = known.get(chosen.triton.build_type)
        output.plan(prepared.plan, about=output.time_of(prepared.plan, receipt, measured))
        return
    output.notes(prepared.plan.notes)
    with receipts.open_session("build-triton", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"Triton for {chosen.name!r}: {running.env.build / 'bin'}", running, following)
    output.debuggers(running.env.build)


def _wheel(prepared: PreparedBuild, env: str, *, dry_run: bool) -> None:
    output.warnings(prepared.warnings)
    if dry_run:
        output.plan(prepared.plan)
        return
    output.notes(prepared.plan.notes)
    with receipts.open_session("build-triton", env) as running:
        commands.execute(prepared, running)
    output.done(f"wheel: {install.made_wheel(running.env)}", running)


def _check_includes(check: IncludeCheck, env: str, *, dry_run: bool) -> None:
    output.warnings(check.warnings)
    if dry_run:
        output.plan(check.plan)
        return
    if not check.changed:
        output.notes([f"nothing to check: no C++ file has changed since {check.base}"])
        return
    with receipts.open_session("build-triton", env) as running:
        unchecked = includes.execute(check, running)
    output.warnings(f"not checked, because this build does not compile it: {path}" for path in unchecked)
    count = len(check.changed) - len(unchecked)
    output.done(f"no missing include: {count} files checked, changed since {check.base}", running)


def _build_settings(how: BuildOptions) -> dict[str, Any]:
    """Return the settings by name; None for those that no flag overrides.

    Raises:
        UsageError: two flags contradict each other.
    """
    if how.debug and how.build_type not in ("", "Debug"):
        raise UsageError(
            f"--debug and --build-type {how.build_type} contradict each other", hints=["omit one of them"]
        )
    return {
        "triton.source": how.source or None,
        "llvm.dir": how.llvm_dir or None,
        "triton.build-type": "Debug" if how.debug else how.build_type or None,
        "triton.backends": how.backends or None,
        "triton.plugin-dirs": how.plugin_dir or None,
        "triton.proton": how.proton,
        "toolchain.jobs": how.jobs,
    }


@task(tables=True, name="install-triton")
def install_triton(
    context: Context, how: BuildOptions, env: str = ENV, dry_run: bool = DRY_RUN, force: bool = FORCE
) -> None:
    """Install the checkout into the environment, editable, and test it."""
    chosen = settings.load(env, _build_settings(how), commands.last_build(env))
    space, located = commands.find_triton(chosen)
    if dry_run and located.fetch.steps:
        output.plan(located.fetch, rest="the sources, which are not downloaded yet")
        return
    commands.bring_sources(chosen, located)
    if dry_run and (first := commands.plan_before_llvm(chosen, space, located)):
        output.plan(first, rest=f"the LLVM: `{command('setup-mlir', env=output.unusual(env))}` provides it")
        return
    targets, programs = compiler_targets.proof(chosen.triton.backends), interpreter.locate_programs(space)
    place = space.env(chosen.name)
    # An extension module that links does not necessarily load, so the installation ends with a compile.
    proof = up.smoke_test(place.path, place.python, targets, programs, unless_same=True)
    prepared = commands.prepare_install(chosen, space, located, proof, force=force)
    output.warnings(prepared.warnings)
    if chosen.llvm.debug_libraries:
        output.warnings(debug_libraries.missing(chosen, space, located))
    if dry_run:
        output.plan(prepared.plan, about=output.time_of(prepared.plan, place.receipt("install-triton")))
        return
    with receipts.open_session("install-triton", chosen.name) as running:
        commands.execute(prepared, running)
    # The compile is skipped with its stamp if nothing has changed since, and then has no result to show.
    if up.PHASE in prepared.plan.phases:
        console.out().print(tables.stages(up.read_response(running.env.path)))
    following = command("link-compile-commands", env=output.unusual(env))
    output.done(f"import triton works in {running.env.python}", running, following)


@task(name="explain")
def explain_build(
    context: Context,
    env: str = ENV,
    source: str = SOURCE,
    for_: str = BUILD_FOR,
    target: tuple[str, ...] = NINJA_TARGET,
    llvm: bool = flag("explain the LLVM that is built for the environment, not Triton", default=False),
    cache_debug: Path | None = flag("CCACHE_DEBUGDIR of a build: explain its cache misses", None),
    cache_before: Path | None = flag("CCACHE_DEBUGDIR of an earlier build, to compare with", None),
    json: bool = JSON,
) -> None:
    """Explain what the next build will rebuild, and why."""
    if cache_debug or cache_before:
        _explain_misses(cache_debug, cache_before, json=json)
        return
    flags: dict[str, Any] = {"triton.source": source or None, "triton.for": for_ or None}
    # The next build is one with the settings of the last; what the flags alone would build differs from it.
    chosen = settings.load(env, flags, commands.last_build(env))
    space, located = commands.find_triton(chosen)
    if llvm:
        explanation = rebuilds.of_llvm(space.env(chosen.name), target)
    else:
        explanation = rebuilds.of_triton(chosen, space, located, settings.load(env, flags), target)
    if json:
        console.out().print_json(data=explanation.as_json(), ensure_ascii=True)
        return
    output.notes(explanation.notes)
    output.lines(rebuilds.lines(explanation))


def _explain_misses(after: Path | None, before: Path | None, *, json: bool) -> None:
    # One log of ccache only shows that there was a miss; the difference of two shows which input caused it.
    if not (after and before):
        raise UsageError(
            "--cache-debug and --cache-before go together",
            hints=[
                "build before and after, each time with CCACHE_DEBUG=1 CCACHE_DEBUGDIR=/an/empty/folder",
            ],
        )
    misses = rebuilds.explain_misses(after, before)
    if json:
        console.out().print_json(data={"schema": 1, **asdict(misses)}, ensure_ascii=True)
        return
    output.lines(rebuilds.lines_of_misses(misses))


@task(name="run")
def run_(
    context: Context,
    sanitizer: str = flag("sanitizer: address, undefined or thread; memcheck etc. on a GPU", ""),
    env: str = ENV,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program under a sanitizer, for Triton's C++ or its kernels."""
    _, argv = command_line()
    space = workspace.default()
    place = space.env(settings.load(env).name)
    # `memcheck` and the like are tools of NVIDIA's compute-sanitizer: they need no build with a sanitizer.
    if sanitizer in tools.sanitizer_tools():
        prepared = sanitized_run.prepare_on_gpu(argv, sanitizer, place, space)
    else:
        prepared = sanitized_run.prepare(argv, sanitizer, place, space)
    if dry_run:
        output.plan(prepared.plan)
        return

    def show(data: bytes) -> None:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    code = sanitized_run.execute(prepared, space, show)
    # A report counts whatever the exit code is: undefined behaviour, for one, does not end a program.
    head, lines = sanitized_run.error_of(prepared)
    if head:
        raise SmithError(head, where=prepared.folder, why="\n".join(lines) or None)
    if code:
        raise Exit(code=code)
    console.note(f"the sanitizer {sanitizer} found nothing")


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
    request = debug_libraries.LibraryRequest(library, pass_, file, whole_library, narrow=not for_)
    _check(request, undo=undo, list_=list_, as_json=json, for_=for_, listed=chosen.llvm.debug_libraries)
    space, located = commands.find_triton(chosen)
    inputs = debug_libraries.gather(chosen, space, located)
    # To restore whole libraries takes LLVM's archives, and not its sources, which are large.
    if undo and not (request.passes or request.files):
        outcome = debug_libraries.undo(request, inputs)
    else:
        tree = resolve.sources_of(inputs)
        if tree.steps and dry_run:
            output.plan(resolve.steps_to_fetch(tree), rest="LLVM's sources, which are not downloaded yet")
            return
        if tree.steps:
            # `shared`: LLVM's sources are those of all environments.
            with receipts.open_session(debug_libraries.TASK, chosen.name, shared=True) as fetching:
                fetching.run(resolve.steps_to_fetch(tree))
        if list_:
            _list(debug_libraries.listing(inputs, tree), as_json=json)
            return
        outcome = (
            debug_libraries.undo(request, inputs, tree)
            if undo
            else debug_libraries.operate(request, inputs, tree, jobs)
        )
    _print_operations(outcome)
    if dry_run:
        output.plan(outcome.prepared.plan)
        return
    with receipts.open_session(debug_libraries.TASK, chosen.name) as running:
        commands.execute(outcome.prepared, running)
    build, triton = outcome.inputs.env.build, " and ".join(outcome.inputs.settings.triton.targets) or "Triton"
    # A breakpoint in a library that nothing links is never hit, and the debugger does not say why.
    output.warnings(f"{triton} does not link {name}: it contains none of it" for name in outcome.unused())
    links = (
        f"{debug_libraries.in_words(outcome.replaced)} at -O0 -g"
        if outcome.replaced
        else "LLVM's own libraries"
    )
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
