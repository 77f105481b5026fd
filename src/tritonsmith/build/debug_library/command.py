"""`debug-library`: select the libraries and their sources, and relink Triton with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.build import compiler_cache, precompiled_headers
from tritonsmith.build.debug_library import abi_check, relink, resolve
from tritonsmith.build.debug_library.recipe import (
    DebugLibraryContext,
    Operation,
    archive_name,
    object_of,
    prepare_library,
)
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.build.debug_library.resolve import Library, LibrarySource
from tritonsmith.build.llvm.source import SourceTree
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.triton import commands, recipe
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.settings import Purpose, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Remove, Step, Write
from tritonsmith.core.process import capture

TASK = "debug-library"
PHASE = "put into Triton's links"
PHASE_UNDO = "remove debug libraries"
_PURPOSES: dict[str, Purpose] = {"llvm": "python", "mlir": "opt"}  # programs that run a project's passes

Objects = dict[str, tuple[str, ...]]  # library to its selected objects; none for all of them


@dataclass(frozen=True)
class LibraryRequest:
    """The libraries, passes and files that the command line names.

    Attributes:
        libraries: names of libraries.
        passes: arguments of passes.
        files: names of source files.
        whole: select the whole libraries of the passes and files.
        narrow: link only the programs in which the passes and files run, if the env names none.
    """

    libraries: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    whole: bool = False
    narrow: bool = True

    def __bool__(self) -> bool:
        return bool(self.libraries or self.passes or self.files)


@dataclass(frozen=True)
class PreparedDebugLibrary:
    """The prepared operation and what it changes.

    Attributes:
        prepared: plan, warnings and receipt.
        operations: libraries that are compiled, or looked at again.
        fresh: names of the libraries that the command line selects.
        locations: location of each pass and file, in words.
        replaced: library to its replacement, after the plan has run.
        inputs: inputs of Triton's build, with the targets that are linked.
        places: sources that the command line named, or whose passes it named.
    """

    prepared: PreparedBuild
    operations: tuple[Operation, ...]
    fresh: tuple[str, ...]
    locations: tuple[str, ...]
    replaced: Mapping[str, Replacement]
    inputs: Inputs
    places: tuple[LibrarySource, ...] = ()

    def unused(self) -> tuple[str, ...]:
        """Return the libraries that the programs do not link, as Ninja reports after the run."""
        linked = _linked(self.inputs)
        return tuple(
            name for name, replacement in self.replaced.items() if str(replacement.archive) not in linked
        )


def gather(settings: Settings, space: Workspace, located: TritonSource) -> Inputs:
    """Read the facts about the env's Triton and its LLVM.

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


def bench(inputs: Inputs, tree: SourceTree, jobs: int | None = None) -> DebugLibraryContext:
    """Collect the context that all libraries of a run share; the sources must exist.

    Args:
        inputs: facts about the env's Triton.
        tree: LLVM's sources.
        jobs: number of parallel compiles; None for the env's own number.
    """
    settings, compilers = inputs.settings, inputs.compilers
    precompile = precompiled_headers.used_for_llvm(settings, compilers)
    return DebugLibraryContext(
        inputs=inputs,
        sources=abi_check.sources(tree.path),
        launcher=compiler_cache.launcher(settings.cache, compilers, precompiled_headers=precompile),
        folder=relink.folder(inputs.env),
        jobs=jobs or inputs.jobs.compile,
        precompile=precompile,
    )


def _named(
    request: LibraryRequest, table: DebugLibraryContext
) -> tuple[Objects, tuple[str, ...], tuple[LibrarySource, ...]]:
    """Return the selected objects, the reason for each pass and file, and their locations.

    Raises:
        UsageError: a name does not exist; the hints have the nearest ones.
    """
    project = table.sources.path
    resolve.check(request.libraries, table.folders)
    chosen: Objects = dict.fromkeys(request.libraries, ())
    words = []
    places = [(argument, resolve.by_pass(argument, project)) for argument in request.passes]
    places += [(file, resolve.by_file(file, project)) for file in request.files]
    for name, place in places:
        library = _library_of(place.file, table)
        objects = () if request.whole else (object_of(place.file, library),)
        chosen = _merged(chosen, {library.name: objects})
        words.append(f"{name}: {place.file.relative_to(project)} ({place.words}) is in {library.name}")
    return chosen, tuple(words), tuple(place for _, place in places)


def _merged(*selections: Objects) -> Objects:
    merged: Objects = {}
    for name, objects in (item for selection in selections for item in selection.items()):
        before = merged.get(name, objects)
        # No objects means the whole library, which includes any of its files.
        merged[name] = tuple(sorted({*before, *objects})) if before and objects else ()
    return merged


def _library_of(file: Path, table: DebugLibraryContext) -> Library:
    for name in resolve.candidates(file, table.folders):
        library = table.library(name)
        if file in library.sources:
            return library
    raise UsageError(
        "no LLVM library is built from this file",
        where=file,
        hints=["it may be a header, or a file for another platform: name the library itself"],
    )


def operate(
    request: LibraryRequest, inputs: Inputs, tree: SourceTree, jobs: int | None = None
) -> PreparedDebugLibrary:
    """Prepare debug builds of libraries, including those of earlier runs and of the env file.

    Args:
        request: selection of the command line.
        inputs: facts about the env's Triton.
        tree: the sources, which must exist.
        jobs: number of parallel compiles; not a setting of Triton's build, which would be reconfigured.

    Raises:
        UsageError: a name that does not exist.
        FactError: something does not agree.
    """
    table = bench(inputs, tree, jobs)
    fresh, explanations, places = _named(request, table)
    # A named file is debugged in one program, and each link with debug information takes long; whoever
    # names libraries or targets has decided otherwise.
    if (
        places
        and request.narrow
        and not (request.libraries or request.whole or inputs.settings.triton.targets)
    ):
        inputs = _narrowed(inputs, places, table.sources.path)
    operations = _operations(fresh, table)
    replaced = _replaced(operations)
    steps = [step for operation in operations for step in operation.steps]
    plan = relinked(inputs, replaced, steps, f"{in_words(replaced)} at -O0 -g")
    receipt = _receipt(inputs, replaced, str(table.sources.path)) | {
        "version": table.sources.version,
        "commit": table.sources.commit,
        "agreement": {operation.library.name: operation.rows for operation in operations},
    }
    warnings = tuple(_warnings(operations, inputs))
    prepared = PreparedBuild(plan, warnings, receipt)
    return PreparedDebugLibrary(prepared, operations, tuple(fresh), explanations, replaced, inputs, places)


def _operations(fresh: Objects, table: DebugLibraryContext) -> tuple[Operation, ...]:
    """Prepare every library: the new ones, those in the env file, and those of earlier runs."""
    inputs = table.inputs
    listed = inputs.settings.llvm.debug_libraries
    resolve.check(listed, table.folders)
    there = relink.read(inputs.env, inputs.llvm)
    earlier = {name: replacement.objects for name, replacement in there.items() if name in table.folders}
    # Libraries of earlier runs are looked at again: another LLVM or other sources would
    # make them wrong silently.
    chosen = _merged(fresh, dict.fromkeys(listed, ()), earlier)
    return tuple(prepare_library(name, objects, table) for name, objects in chosen.items())


def _replaced(operations: Iterable[Operation]) -> dict[str, Replacement]:
    return {operation.library.name: operation.replacement for operation in operations}


def _narrowed(inputs: Inputs, places: Iterable[LibrarySource], project: Path) -> Inputs:
    """Link only the programs that these sources are debugged in."""
    triton, targets = inputs.settings.triton, dict[str, None]()
    for purpose in {_PURPOSES[place.file.relative_to(project).parts[0]] for place in places}:
        targets |= dict.fromkeys(recipe.resolve_targets(replace(triton, for_=purpose), inputs.checkout.root))
    triton = replace(triton, targets=tuple(sorted(targets)))
    return replace(inputs, settings=replace(inputs.settings, triton=triton))


def in_words(replaced: Mapping[str, Replacement]) -> str:
    """Describe the libraries that are in debug: `LICM.cpp of LLVMScalarOpts, MLIRTransforms`."""
    return ", ".join(
        f"{' and '.join(Path(path).stem for path in replacement.objects)} of {name}"
        if replacement.objects
        else name
        for name, replacement in replaced.items()
    )


def undo(request: LibraryRequest, inputs: Inputs, tree: SourceTree | None = None) -> PreparedDebugLibrary:
    """Prepare the removal of debug libraries, or of files from them.

    Args:
        request: libraries and files to remove; everything if it names nothing.
        inputs: facts about the env's Triton.
        tree: the sources, which must exist; None if only libraries are named.

    Raises:
        UsageError: a library or file is not in debug, or the env file requests it.
        FactError: the sources no longer match the LLVM.
    """
    env = inputs.env
    table = bench(inputs, tree) if tree else None
    chosen: Objects = dict.fromkeys(request.libraries, ())
    explanations: tuple[str, ...] = ()
    if table:
        chosen, explanations, _ = _named(request, table)
    linked = relink.read(env, inputs.llvm)
    # What was built and is not linked counts, too: an interrupted run leaves it
    # behind, and `--undo` removes it.
    present = tuple(dict.fromkeys((*linked, *relink.made(env))))
    operations = []
    for name, objects in chosen.items():
        if name not in present:
            raise UsageError(
                f"{name} is not a debug library in this environment", hints=did_you_mean(name, present)
            )
        if objects and table and (others := _without(objects, name, linked)):
            operations.append(prepare_library(name, others, table))
    narrowed = _replaced(operations)
    listed = inputs.settings.llvm.debug_libraries
    # The next build would put these back: the env file decides, and only its owner changes it.
    if kept := sorted(set(chosen or linked) & set(listed)):
        raise UsageError(
            f"the env file lists {', '.join(kept)} in debug-libraries",
            hints=["remove them from debug-libraries under [llvm]"],
        )
    # A library from which only files were removed stays, with the others.
    gone = tuple(name for name in chosen or present if name not in (*listed, *narrowed))
    left = {name: replacement for name, replacement in linked.items() if name not in gone} | narrowed
    steps = [step for operation in operations for step in operation.steps]
    plan = relinked(inputs, left, steps, f"{', '.join(gone or explanations) or 'nothing'} as LLVM built it")
    folders = tuple(relink.folder(env) / name for name in gone)
    remove = (Remove(folders, env.root, phase=PHASE_UNDO),) if folders else ()
    receipt = _receipt(inputs, left, (receipts.read(env.receipt(TASK)) or {}).get("sources", ""))
    prepared = PreparedBuild(Plan(plan.title, (*plan.steps, *remove)), (), receipt)
    return PreparedDebugLibrary(prepared, tuple(operations), (), explanations, left, inputs)


def _without(objects: Iterable[str], name: str, linked: Mapping[str, Replacement]) -> tuple[str, ...]:
    """Return the objects of a library that stay in debug.

    Raises:
        UsageError: an object is not in debug, or the whole library is.
    """
    there = linked[name].objects if name in linked else ()
    if strange := sorted(set(objects).difference(there)):
        file = Path(strange[0]).stem
        now = in_words({name: linked[name]}) if name in linked else "nothing"
        raise UsageError(
            f"{file} is not in debug by itself; of {name} that is {now}",
            hints=[f"restore the whole library: {command('debug-library', name, undo=True)}"],
        )
    return tuple(path for path in there if path not in objects)


def with_listed(prepared: PreparedBuild) -> PreparedBuild:
    """Extend `commands.prepare_build` with the env file's debug libraries; unchanged if it lists none.

    Raises:
        FactError: LLVM's sources are not here yet, or something does not agree.
    """
    inputs = prepared.inputs
    if inputs is None or not inputs.settings.llvm.debug_libraries:
        return prepared
    tree = resolve.sources_of(inputs)
    # `build-triton` does not fetch a repository of gigabytes for an option in the env file;
    # it says which command does.
    if tree.steps:
        raise FactError(
            "LLVM's sources, which debug-libraries under [llvm] needs, are not fetched yet",
            where=tree.path,
            hints=[f"fetch the sources and build: {command('debug-library', env=inputs.settings.name)}"],
        )
    operations = _operations({}, bench(inputs, tree))
    steps = [step for operation in operations for step in operation.steps]
    steps += [_write(inputs, _replaced(operations)), *prepared.plan.steps]
    warnings = (*prepared.warnings, *_warnings(operations, inputs))
    return replace(prepared, plan=replace(prepared.plan, steps=tuple(steps)), warnings=warnings)


def missing(settings: Settings, space: Workspace, located: TritonSource) -> tuple[str, ...]:
    """Return the note of `install-triton` if debug libraries of the env file are not built yet.

    Raises:
        FactError: there is no Triton, or no LLVM.
    """
    if not settings.llvm.debug_libraries:
        return ()
    inputs = gather(settings, space, located)
    linked = relink.read(inputs.env, inputs.llvm)
    unbuilt = [name for name in settings.llvm.debug_libraries if name not in linked]
    if not unbuilt:
        return ()
    names_ = ", ".join(unbuilt)
    return (f"the env file lists {names_} in debug-libraries; run build-triton to build them",)


@dataclass(frozen=True)
class ListedLibrary:
    """A library that can be selected.

    Attributes:
        name: name of the library.
        state: `debug`, `linked` (Triton's build names it) or `there`.
        folder: folder of its sources, relative to llvm-project.
    """

    name: str
    state: str
    folder: Path


def listing(inputs: Inputs, tree: SourceTree) -> list[ListedLibrary]:
    """List every library that has both sources and an archive."""
    table, present = bench(inputs, tree), relink.read(inputs.env, inputs.llvm)
    linked = _linked(inputs)
    rows = []
    for name, place in sorted(table.folders.items()):
        own = inputs.llvm.prefix / "lib" / archive_name(name)
        # The sources have more libraries than an LLVM that was built in part.
        if own.is_file():
            state = "debug" if name in present else "linked" if str(own) in linked else "there"
            rows.append(ListedLibrary(name, state, place.relative_to(table.sources.path)))
    return rows


def relinked(
    inputs: Inputs, replaced: Mapping[str, Replacement], steps: Iterable[Step] = (), title: str = ""
) -> Plan:
    """Return the plan of Triton's build with these archives in its links, after the steps that build them."""
    build = recipe.plan(replace(inputs, after_project=relink.file(inputs.env)))
    return Plan(title, (*steps, _write(inputs, replaced), *build.steps))


def _write(inputs: Inputs, replaced: Mapping[str, Replacement]) -> Write:
    return Write(relink.file(inputs.env), relink.render(inputs.llvm, replaced), phase=PHASE)


def _receipt(inputs: Inputs, replaced: Mapping[str, Replacement], llvm: str) -> dict[str, Any]:
    return {
        "env": inputs.settings.name,
        "llvm": inputs.llvm.prefix,
        "llvm_version": inputs.llvm.version,
        "llvm_commit": inputs.llvm.commit,
        "sources": llvm,
        "libraries": {name: str(replacement.archive) for name, replacement in replaced.items()},
        "objects": {
            name: replacement.objects for name, replacement in replaced.items() if replacement.objects
        },
        "compiler": inputs.compilers.cxx,
        "build": inputs.env.build,
    }


def _warnings(operations: Iterable[Operation], inputs: Inputs) -> Iterable[str]:
    for operation in operations:
        if operation.kept and not operation.replacement.objects:
            count, name = len(operation.kept), operation.library.name
            yield f"{name}: {count} objects of other kinds (assembly) are reused as LLVM built them"
        if operation.edited:
            names, only = ", ".join(path.name for path in operation.edited), in_words(_replaced([operation]))
            yield (
                f"{names} changed since the last run, and only {only} is compiled with the change: "
                "the library's other files are as LLVM built them; --whole-library compiles all"
            )
    # Debian's LLVM, for example.
    if inputs.llvm.dylib and any(relink.of_llvm(operation.library.name) for operation in operations):
        yield (
            "all of LLVM is linked statically as long as one of its libraries is a debug library: "
            "the shared libLLVM contains the same code, and a process that loads both aborts"
        )


def _linked(inputs: Inputs) -> frozenset[str]:
    """Return the files that the targets of Triton's build depend on; none if Ninja does not know them yet."""
    targets = inputs.settings.triton.targets or ("all",)
    # -E: the paths as they are, not quoted for a shell.
    argv = (str(inputs.tools.ninja), "-C", str(inputs.env.build), "-t", "inputs", "-E", *targets)
    return frozenset((capture(argv) or "").splitlines())
