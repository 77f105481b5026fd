"""The recipe of one debug library: the facts that are checked first, and the build of its archive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tritonsmith.build.debug_library import abi_check, ninja_file, relink, resolve
from tritonsmith.build.debug_library.abi_check import AbiRow, LlvmOptions, LlvmSources
from tritonsmith.build.debug_library.ninja_file import Compilation, object_of
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.build.debug_library.resolve import Library, Table
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Run, Stamp, Step, Write, digest
from tritonsmith.facts import tools

_CONFIG_HEADER = "llvm/Config/config.h"  # LLVM's only header that it does not install


@dataclass(frozen=True)
class DebugLibraryContext:
    """The context that all libraries of one run share.

    Attributes:
        inputs: facts about the env's Triton and its LLVM.
        sources: the llvm-project that the libraries come from.
        launcher: words before each compile: the compiler cache.
        folder: folder of the env's debug libraries.
        jobs: number of parallel compiles.
        precompile: whether to precompile headers where that pays.
    """

    inputs: Inputs
    sources: LlvmSources
    launcher: tuple[str, ...]
    folder: Path
    jobs: int
    precompile: bool = False

    @cached_property
    def folders(self) -> dict[str, Path]:
        """Every library of these sources, with the folder of its CMakeLists.txt."""
        return resolve.index(self.sources.path)

    @cached_property
    def options(self) -> LlvmOptions:
        """The build options of the LLVM."""
        return abi_check.read(self.inputs.llvm)

    def library(self, name: str) -> Library:
        """Read a library's description from CMake's files."""
        generated = self.folder / name / "generated"
        tree, cmake = self.inputs.llvm, self.inputs.tools.cmake
        return resolve.read(name, self.folders[name], self.sources.path, tree, generated, cmake)


@dataclass(frozen=True)
class Operation:
    """One library, ready to be compiled.

    Attributes:
        library: its description; of its sources, those that are compiled.
        replacement: the archive that replaces the LLVM's own.
        rows: the compared properties.
        kept: objects taken from the LLVM's own archive, or from the paths that a thin archive names.
        tables: headers to generate.
        steps: steps that build the archive.
        edited: the library's own headers changed since then, if only some of its files are compiled.
    """

    library: Library
    replacement: Replacement
    rows: tuple[AbiRow, ...]
    kept: tuple[Path, ...]
    tables: tuple[Table, ...]
    steps: tuple[Step, ...]
    edited: tuple[Path, ...] = ()


def prepare(name: str, objects: tuple[str, ...], bench: DebugLibraryContext) -> Operation:
    """Read a library's sources and flags, check that it can be rebuilt, and plan the build.

    Args:
        name: name of the library, one of `bench.folders`.
        objects: objects to compile; empty for all.
        bench: context that all libraries of the run share.

    Raises:
        FactError: the LLVM has no archive of it, or one with two objects of the same name that are reused, or
            the sources are not those of the LLVM.
    """
    inputs, tree = bench.inputs, bench.inputs.llvm
    own = tree.prefix / "lib" / ninja_file.archive_name(name)
    if not own.is_file():
        raise FactError(
            f"this LLVM has no archive of {name}",
            where=own,
            hints=["only libraries that this LLVM was built with can be replaced"],
        )
    library = bench.library(name)
    if objects:
        sources = tuple(source for source in library.sources if object_of(source, library) in objects)
        library = replace(library, sources=sources)
    reached = resolve.follow_includes(library.sources, library.includes, bench.options.includes)
    old, members = abi_check.read_traits(own, tree), abi_check.archive_members(own)
    names = tuple(member.name for member in members)
    rows = abi_check.rows_before(tree, bench.options, bench.sources, library, reached, old, names)
    abi_check.enforce(
        rows,
        f"{name} in these sources does not match this LLVM; nothing was compiled",
        bench.sources.path,
        [
            f"give the sources that LLVM {tree.version} was built from: --llvm-source PATH_OR_URL",
            "for a distribution's LLVM, use the source package with its patches (Debian: apt source)",
        ],
    )
    # Only headers that this LLVM lacks: generated again, the others might differ from
    # those that it was built with.
    tables = tuple(table for table in library.tables if table.output.name in reached.missing)
    compiled = {f"{source.name}.o" for source in library.sources}
    kept = tuple(member for member in members if member.name not in compiled)
    # `ar x` extracts by name, so one of two objects with equal names would be lost.
    if len({member.name for member in kept}) != len(kept):
        raise FactError("two objects in this archive have the same name", where=own)
    folder = bench.folder / name
    compilation = Compilation(
        library=library,
        tree=tree,
        options=bench.options,
        sources=bench.sources,
        old=old,
        kept=kept,
        tables=tables,
        headers=(bench.folder / relink.CONFIG_HEADER / "include",)
        if _CONFIG_HEADER in reached.missing
        else (),
        compilers=inputs.compilers,
        launcher=bench.launcher,
        archiver=_archiver(bench),
        header=ninja_file.choose_header(library, bench.sources.path, bench.options.includes)
        if bench.precompile
        else None,
        some=bool(objects),
    )
    new = folder / own.name
    steps = (*(_configure(bench) if compilation.headers else ()), *_compile(compilation, bench, folder))
    edited = _edited(reached.private, new) if objects else ()
    return Operation(library, Replacement(new, objects), rows, kept, tables, steps, edited)


def _edited(headers: Iterable[Path], archive: Path) -> tuple[Path, ...]:
    """Return headers newer than an archive, whose other objects were compiled with the old contents."""
    since = archive.stat().st_mtime_ns if archive.is_file() else None
    return tuple(sorted(path for path in headers if since and path.stat().st_mtime_ns > since))


def _compile(compilation: Compilation, bench: DebugLibraryContext, folder: Path) -> tuple[Step, ...]:
    phase = f"compile {compilation.library.name}"
    inputs = bench.inputs
    argv = (str(inputs.tools.ninja), "-C", str(folder), f"-j{bench.jobs}")
    header = (
        (Write(folder / ninja_file.HEADER, compilation.header.text, phase=phase),)
        if compilation.header
        else ()
    )
    return (
        *header,
        Write(folder / "build.ninja", ninja_file.render(compilation), phase=phase),
        Run(argv, cwd=folder, env=(("NINJA_STATUS", "[%f/%t] "),), phase=phase),
    )


def _configure(bench: DebugLibraryContext) -> tuple[Step, ...]:
    """Run LLVM's own checks of this machine, for the one header that no LLVM installs."""
    build = bench.folder / relink.CONFIG_HEADER
    inputs, compilers = bench.inputs, bench.inputs.compilers
    values = {
        "CMAKE_MAKE_PROGRAM": inputs.tools.ninja,
        "CMAKE_C_COMPILER": compilers.cc.path if compilers.cc else "",
        "CMAKE_CXX_COMPILER": compilers.cxx.path if compilers.cxx else "",
        "SMITH_CONFIG": inputs.llvm.cmake_dir("llvm") / "LLVMConfig.cmake",
        "SMITH_PROJECT": bench.sources.path,
    }
    source = Path(__file__).with_name("config_header")
    argv = (
        str(inputs.tools.cmake),
        "--fresh",
        *(f"-D{name}={value}" for name, value in values.items()),
        *("-G", "Ninja", "-S", str(source), "-B", str(build)),
    )
    stamp = Stamp(build / ".done", digest(argv), result=build / "include" / _CONFIG_HEADER)
    return (Run(argv, cwd=bench.folder.parent, phase="LLVM's config.h", stamp=stamp),)


def _archiver(bench: DebugLibraryContext) -> Path:
    tool = tools.find("llvm-ar", folders=[bench.inputs.llvm.bin], names=["ar"])
    if tool is None:
        raise FactError("neither llvm-ar nor ar was found", hints=["install binutils"])
    return tool.path
