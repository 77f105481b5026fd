"""`debug-library`: select the libraries and their sources, and relink Triton with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.builder import compiler_cache
from tritonsmith.builder.debug_library import llvm_options, ninja_file, relink, resolve
from tritonsmith.builder.debug_library import plan as debug_library_plan
from tritonsmith.builder.debug_library.plan import DebugLibraryContext, Operation
from tritonsmith.builder.llvm import precompiled_headers
from tritonsmith.builder.llvm import source as llvm_source
from tritonsmith.builder.llvm.request import LlvmRequest
from tritonsmith.builder.llvm.source import SourceTree
from tritonsmith.builder.prepared_build import PreparedBuild
from tritonsmith.builder.triton import commands, recipe
from tritonsmith.builder.triton.recipe import Inputs
from tritonsmith.builder.triton.source import TritonSource
from tritonsmith.command_line import command
from tritonsmith.envs import receipts
from tritonsmith.envs.schema import Settings
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, UsageError, did_you_mean
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.plan import BuildObjects, Plan, Remove, Step, Write

TASK = "debug-library"
PHASE = "put into Triton's links"
PHASE_UNDO = "remove debug libraries"


@dataclass(frozen=True)
class LibraryRequest:
    """What the command line names.

    Attributes:
        libraries: by their names.
        passes: by the arguments of passes.
        files: by names of sources.
    """

    libraries: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.libraries or self.passes or self.files)


@dataclass(frozen=True)
class DebugLibraryOutcome:
    """What will be done.

    Attributes:
        prepared: plan, warnings and receipt.
        operations: libraries that are compiled, or looked at again.
        fresh: those of them that the command line named.
        found: for each pass and file, where it is, in words.
        replaced: library to its archive, after the plan.
        triton: Triton's build folder.
        files: sources that the command line named, or whose passes it named.
    """

    prepared: PreparedBuild
    operations: tuple[Operation, ...]
    fresh: tuple[str, ...]
    found: tuple[str, ...]
    replaced: Mapping[str, Path]
    triton: Path
    files: tuple[Path, ...] = ()

    def unused(self) -> tuple[str, ...]:
        """Libraries that Triton's build does not link, as its ninja file says after the run."""
        text = _ninja_text(self.triton)
        return tuple(name for name, path in self.replaced.items() if str(path) not in text)


def gather(settings: Settings, space: Workspace, located: TritonSource) -> Inputs:
    """Facts of the env's Triton and of its LLVM.

    Raises:
        FactError: there is no Triton, or no LLVM.
    """
    if located.fetch.steps:
        raise FactError(
            "Triton is not built yet",
            where=located.root,
            hints=[f"build Triton first: {command('build-triton', env=settings.name)}"],
        )
    inputs, _ = commands.gather(settings, space, located)
    return inputs


def sources_of(inputs: Inputs) -> SourceTree:
    """The LLVM's sources: the ones given, the ones it was built from, or the ones used last time.

    Raises:
        FactError: the sources cannot be located.
    """
    settings, tree, space = inputs.settings, inputs.llvm, inputs.workspace
    if settings.llvm.source:
        source = llvm_source.locate(settings.llvm.source)
        if source.kind == "checkout":
            return SourceTree(Path(source.location), source.commit, ())
        return _unstamped(llvm_source.obtain(source, _request(settings, tree), space))
    beside = llvm_tree.source_of(tree.prefix)
    if beside is not None and (beside / "llvm" / "CMakeLists.txt").is_file():
        return SourceTree(beside, llvm_tree.source_commit(beside), ())
    last = (receipts.read(inputs.env.receipt(TASK)) or {}).get("sources", "")
    if last and (Path(last) / "llvm" / "CMakeLists.txt").is_file():
        return SourceTree(Path(last), llvm_tree.source_commit(Path(last)), ())
    if tree.commit:
        return _unstamped(llvm_source.obtain(llvm_source.locate(""), _request(settings, tree), space))
    raise FactError(
        f"cannot locate the sources of LLVM {tree.version}",
        where=tree.prefix,
        why="this LLVM does not record its commit and was not built here",
        hints=[
            "give the sources: --llvm-source PATH_OR_URL (a checkout, or a tarball of that release)",
            f"Debian and Ubuntu: apt source llvm-toolchain-{tree.major}, then --llvm-source with that folder",
        ],
    )


def _request(settings: Settings, tree: LlvmTree) -> LlvmRequest:
    """The request to `llvm_source`, with the LLVM's own commit in place of Triton's pin."""
    pin = LlvmPin(tree.commit, str(tree.prefix)) if tree.commit else None
    return LlvmRequest(pin, frozenset(), "", replace(settings.llvm, any_commit=True))


def _unstamped(tree: SourceTree) -> SourceTree:
    """Without steps if all of them are done."""
    done = all(step.stamp and step.stamp.holds() for step in tree.steps)
    return replace(tree, steps=()) if done else tree


def fetching(tree: SourceTree) -> Plan:
    """Steps that fetch the sources."""
    return Plan("LLVM's sources", tree.steps)


def bench(inputs: Inputs, tree: SourceTree, jobs: int | None = None) -> DebugLibraryContext:
    """What all libraries of a run have in common; the sources are there.

    Args:
        inputs: of the env's Triton.
        tree: LLVM's sources.
        jobs: compiles at once; None for as many as the env has.
    """
    settings, compilers = inputs.settings, inputs.compilers
    precompile = precompiled_headers.used(settings, compilers)
    return DebugLibraryContext(
        inputs=inputs,
        sources=llvm_options.sources(tree.path),
        launcher=compiler_cache.launcher(settings.cache, compilers, precompiled_headers=precompile),
        folder=relink.folder(inputs.env),
        jobs=jobs or inputs.jobs.compile,
        precompile=precompile,
    )


def names(
    wanted: LibraryRequest, table: DebugLibraryContext
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Path, ...]]:
    """Libraries that are meant, for each pass and file the words that say why, and those files.

    Raises:
        UsageError: a name that does not exist, with the nearest ones.
    """
    project = table.sources.path
    resolve.check(wanted.libraries, table.folders)
    chosen, words = dict.fromkeys(wanted.libraries), []
    places = [(argument, resolve.by_pass(argument, project)) for argument in wanted.passes]
    places += [(file, resolve.by_file(file, project)) for file in wanted.files]
    for given, place in places:
        library = _library_of(place.file, table)
        chosen[library] = None
        words.append(f"{given}: {place.file.relative_to(project)} ({place.words}) is in {library}")
    return tuple(chosen), tuple(words), tuple(place.file for _, place in places)


def _library_of(file: Path, table: DebugLibraryContext) -> str:
    for name in resolve.candidates(file, table.folders):
        if file in table.library(name).sources:
            return name
    raise UsageError(
        "no LLVM library is built from this file",
        where=file,
        hints=["is it a header, or a file for another platform? Name the library itself"],
    )


def operate(
    wanted: LibraryRequest, inputs: Inputs, tree: SourceTree, jobs: int | None = None, *, again: bool = False
) -> DebugLibraryOutcome:
    """Prepare libraries in debug, those of earlier runs and of the env file included.

    Args:
        wanted: by the command line.
        inputs: of the env's Triton.
        tree: the sources, which are there.
        jobs: compiles at once; not a setting of Triton's build, which would be configured anew.
        again: configure Triton even if nothing changed.

    Raises:
        UsageError: a name that does not exist.
        FactError: something does not agree.
    """
    table, env = bench(inputs, tree, jobs), inputs.env
    fresh, found, files = names(wanted, table)
    listed = inputs.settings.llvm.debug_libraries
    resolve.check(listed, table.folders)
    earlier = [name for name in relink.read(env, inputs.llvm) if name in table.folders]
    operations = tuple(
        debug_library_plan.prepare(name, table) for name in dict.fromkeys((*fresh, *listed, *earlier))
    )
    archives = {operation.library.name: operation.archive for operation in operations}
    steps = [step for operation in operations for step in operation.steps]
    plan = relinked(inputs, archives, steps, f"{', '.join(archives)} at -O0 -g", again=again)
    receipt = _receipt(inputs, archives, str(table.sources.path)) | {
        "version": table.sources.version,
        "commit": table.sources.commit,
        "agreement": {operation.library.name: operation.rows for operation in operations},
    }
    warnings = tuple(_warnings(operations, inputs))
    return DebugLibraryOutcome(
        PreparedBuild(plan, warnings, receipt), operations, fresh, found, archives, env.build, files
    )


def undo(only: Iterable[str], inputs: Inputs) -> DebugLibraryOutcome:
    """Prepare the removal of some or all debug libraries.

    Args:
        only: their names; none for all.
        inputs: of the env's Triton.

    Raises:
        UsageError: a library that is not in debug, or that the env file wants so.
    """
    env = inputs.env
    linked, gone = relink.read(env, inputs.llvm), tuple(only)
    present = tuple(dict.fromkeys((*linked, *relink.made(env))))
    for name in gone:
        if name not in present:
            raise UsageError(
                f"{name} is not a debug library in this environment", hints=did_you_mean(name, present)
            )
    listed = inputs.settings.llvm.debug_libraries
    if kept := sorted(set(gone or linked) & set(listed)):
        raise UsageError(
            f"the env file lists {', '.join(kept)} in debug-libraries",
            hints=["remove them from debug-libraries under [llvm]"],
        )
    gone = gone or tuple(name for name in present if name not in listed)
    left = {name: path for name, path in linked.items() if name not in gone}
    plan = relinked(inputs, left, (), f"{', '.join(gone) or 'nothing'} as LLVM built it")
    folders = tuple(relink.folder(env) / name for name in gone)
    remove = (Remove(folders, env.root, phase=PHASE_UNDO),) if folders else ()
    sources = (receipts.read(env.receipt(TASK)) or {}).get("sources", "")
    prepared = PreparedBuild(Plan(plan.title, (*plan.steps, *remove)), (), _receipt(inputs, left, sources))
    return DebugLibraryOutcome(prepared, (), (), (), left, env.build)


def with_listed(
    prepared: PreparedBuild, settings: Settings, space: Workspace, located: TritonSource
) -> PreparedBuild:
    """Extend `build-triton` by the env file's debug libraries; unchanged where it lists none.

    Args:
        prepared: by `commands.prepare_build`.
        settings: the env.
        space: the workspace.
        located: the checkout.

    Raises:
        FactError: LLVM's sources are not here yet, or something does not agree.
    """
    if not settings.llvm.debug_libraries:
        return prepared
    first = (step.sources for step in prepared.plan.steps if isinstance(step, BuildObjects))
    inputs = replace(gather(settings, space, located), suspects=next(first, ()))
    tree = sources_of(inputs)
    if tree.steps:
        raise FactError(
            "LLVM's sources, which debug-libraries under [llvm] needs, are not fetched yet",
            where=tree.path,
            hints=[f"fetch the sources and build: {command('debug-library', env=settings.name)}"],
        )
    again = any(step.stamp.again for step in prepared.plan.steps if step.stamp)  # --reconfigure
    made = operate(LibraryRequest(), inputs, tree, again=again).prepared
    plan = replace(made.plan, notes=prepared.plan.notes)
    return replace(prepared, plan=plan, warnings=(*prepared.warnings, *made.warnings))


def missing(settings: Settings, space: Workspace, located: TritonSource) -> tuple[str, ...]:
    """The note of `install-triton` where debug libraries of the env file are not built yet.

    Args:
        settings: the env.
        space: the workspace.
        located: the checkout.

    Raises:
        FactError: there is no Triton, or no LLVM.
    """
    if not settings.llvm.debug_libraries:
        return ()
    inputs = gather(settings, space, located)
    linked = relink.read(inputs.env, inputs.llvm)
    wanted = [name for name in settings.llvm.debug_libraries if name not in linked]
    if not wanted:
        return ()
    names_ = ", ".join(wanted)
    return (f"the env file lists {names_} in debug-libraries; run build-triton to build them",)


@dataclass(frozen=True)
class ListedLibrary:
    """A library that can be selected.

    Attributes:
        name: of the library.
        state: `debug`, `linked` (Triton's build names it) or `there`.
        folder: of its sources, below llvm-project.
    """

    name: str
    state: str
    folder: Path


def listing(inputs: Inputs, tree: SourceTree) -> list[ListedLibrary]:
    """List every library that has both sources and an archive."""
    table, present = bench(inputs, tree), relink.read(inputs.env, inputs.llvm)
    ninja = _ninja_text(inputs.env.build)
    found = []
    for name, folder in sorted(table.folders.items()):
        own = inputs.llvm.prefix / "lib" / ninja_file.archive_name(name)
        if own.is_file():
            state = "debug" if name in present else "linked" if str(own) in ninja else "there"
            found.append(ListedLibrary(name, state, folder.relative_to(table.sources.path)))
    return found


def relinked(
    inputs: Inputs,
    archives: Mapping[str, Path],
    steps: Iterable[Step] = (),
    title: str = "",
    *,
    again: bool = False,
) -> Plan:
    """Triton's build with these archives in its links.

    Args:
        inputs: of the env's Triton.
        archives: library to its archive.
        steps: what makes them.
        title: of the plan.
        again: configure even if nothing changed.
    """
    path = relink.file(inputs.env)
    write = Write(path, relink.render(inputs.llvm, archives), phase=PHASE)
    build = recipe.plan(replace(inputs, after_project=path), again=again)
    return Plan(title, (*steps, write, *build.steps))


def _receipt(inputs: Inputs, archives: Mapping[str, Path], sources: str) -> dict[str, Any]:
    return {
        "env": inputs.settings.name,
        "llvm": inputs.llvm.prefix,
        "llvm_version": inputs.llvm.version,
        "llvm_commit": inputs.llvm.commit,
        "sources": sources,
        "libraries": {name: str(path) for name, path in archives.items()},
        "compiler": inputs.compilers.cxx,
        "build": inputs.env.build,
    }


def _warnings(operations: Iterable[Operation], inputs: Inputs) -> Iterable[str]:
    for operation in operations:
        if operation.kept:
            count, name = len(operation.kept), operation.library.name
            yield f"{name}: {count} objects of other kinds (assembly) are reused as LLVM built them"
    if inputs.llvm.dylib and any(relink.of_llvm(operation.library.name) for operation in operations):
        yield (
            "all of LLVM is linked statically as long as one of its libraries is a debug library: "
            "the shared libLLVM contains the same code, and a process that loads both aborts"
        )


def _ninja_text(build: Path) -> str:
    """Triton's ninja file, in which blanks of paths are escaped."""
    file = build / "build.ninja"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return text.replace("$ ", " ")
