"""The recipe of one debug library: what is checked before a compile, and the Ninja file that builds it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonsmith.build.debug_library import abi_check, relink, resolve
from tritonsmith.build.debug_library.abi_check import AbiRow, LlvmOptions, LlvmSources, Traits
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.build.debug_library.resolve import Library, Table
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Run, Stamp, Step, Write, digest
from tritonsmith.facts import tools
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.tools import Compilers

_C = (".c",)
# No time stamps: the compiler cache identifies the header by its content. Templates that the headers
# instantiate are instantiated once, which saves half as much time again as the parsing.
_PRECOMPILE = ("-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates", "-x", "c++-header")
_FIRST = "first.a"  # an archive, because Triton hides the symbols of archives, not those of objects
_COMPARE = "tritonsmith.build.debug_library.abi_check"
HEADER = "precompiled.h"
COMPILED = f"{HEADER}.pch"
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


def prepare_library(name: str, objects: tuple[str, ...], bench: DebugLibraryContext) -> Operation:
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
    own = tree.prefix / "lib" / archive_name(name)
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
        header=choose_header(library, bench.sources.path, bench.options.includes)
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
    # Objects from LLVM's build know the old layout of a class that such a header declares.
    since = archive.stat().st_mtime_ns if archive.is_file() else None
    return tuple(sorted(path for path in headers if since and path.stat().st_mtime_ns > since))


def _archiver(bench: DebugLibraryContext) -> Path:
    # The LLVM's own reads every archive that it wrote, thin ones included.
    tool = tools.find("llvm-ar", folders=[bench.inputs.llvm.bin], names=["ar"])
    if tool is None:
        raise FactError("neither llvm-ar nor ar was found", hints=["install binutils"])
    return tool.path


def _compile(compilation: Compilation, bench: DebugLibraryContext, folder: Path) -> tuple[Step, ...]:
    phase = f"compile {compilation.library.name}"
    inputs = bench.inputs
    argv = (str(inputs.tools.ninja), "-C", str(folder), f"-j{bench.jobs}")
    header = (Write(folder / HEADER, compilation.header.text, phase=phase),) if compilation.header else ()
    return (
        *header,
        Write(folder / "build.ninja", render(compilation), phase=phase),
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
    # A project of a few lines that includes LLVM's checks: a configure of all of LLVM takes minutes.
    source = Path(__file__).with_name("config_header")
    argv = (
        str(inputs.tools.cmake),
        "--fresh",
        *(f"-D{name}={value}" for name, value in values.items()),
        *("-G", "Ninja", "-S", str(source), "-B", str(build)),
    )
    stamp = Stamp(build / ".done", digest(argv), result=build / "include" / _CONFIG_HEADER)
    return (Run(argv, cwd=bench.folder.parent, phase="LLVM's config.h", stamp=stamp),)


@dataclass(frozen=True)
class Header:
    """The header that is parsed once.

    Attributes:
        text: content of the header.
        sources: files that are compiled with it.
    """

    text: str
    sources: frozenset[Path]


def choose_header(library: Library, project: Path, includes: Iterable[Path]) -> Header | None:
    """Choose the header for a library, by the level that the configuration gives to its folder.

    Args:
        library: the library to compile.
        project: folder of llvm-project.
        includes: folders of the LLVM's own headers; headers that this LLVM lacks are left out.

    Returns:
        None if the header costs more than it saves, as it does for a few files.
    """
    table = configs.load("precompiled-headers")
    without = tuple(f"/{name}" for name in table["without"])
    sources = frozenset(
        source
        for source in library.sources
        if source.suffix != ".c" and not source.as_posix().endswith(without)
    )
    level = _level(table["level"], library.folder, project / "llvm")
    if level is None or len(sources) < level.get("pays-from", table["pays-from"]):
        return None
    # One header that this LLVM does not have would break every compile of the library.
    folders, lines = tuple(includes), []
    for name in level["headers"]:
        if name.startswith("<"):
            lines.append(f"#include {name}\n")
        elif any((folder / name).is_file() for folder in folders):
            lines.append(f'#include "{name}"\n')
    return Header("".join(lines), sources)


def _level(levels: list[dict[str, Any]], folder: Path, llvm: Path) -> dict[str, Any] | None:
    """Return the level with the longest folder that contains this one."""
    here = folder.resolve()
    matches = [
        (len(start.parts), level)
        for level in levels
        for start in ((llvm / name).resolve() for name in level["folders"])
        if here.is_relative_to(start)
    ]
    return max(matches, key=lambda pair: pair[0])[1] if matches else None


@dataclass(frozen=True)
class Compilation:
    """Everything that the Ninja file depends on.

    Attributes:
        library: the library to compile, with all of its sources or some.
        tree: the LLVM that it is compiled against.
        options: the build options of that LLVM.
        sources: the llvm-project that the library comes from.
        old: traits of the LLVM's own archive of it.
        kept: objects of that archive that come from none of these sources. They are reused, and follow the
            new ones. An absolute path is the location of an object; others are extracted.
        tables: generated headers that it needs.
        headers: additional include folders.
        compilers: the compilers.
        launcher: words before each compile: the compiler cache.
        archiver: `llvm-ar` or `ar`.
        header: the header to precompile, if that pays; `precompiled.HEADER` in the folder has its text.
        some: only part of the library is compiled; `relink.cmake` puts that part first in each link.
    """

    library: Library
    tree: LlvmTree
    options: LlvmOptions
    sources: LlvmSources
    old: Traits
    kept: tuple[Path, ...]
    tables: tuple[Table, ...]
    headers: tuple[Path, ...]
    compilers: Compilers
    launcher: tuple[str, ...]
    archiver: Path
    header: Header | None = None
    some: bool = False


def archive_name(name: str) -> str:
    """Return the file name of a library's archive."""
    return f"lib{name}.a"


def object_of(source: Path, library: Library) -> str:
    """Return the path of a source's object, relative to the Ninja file."""
    relative = os.path.relpath(source, library.folder)
    return f"objects/{relative.replace('..', '__')}.o"


def render(compilation: Compilation) -> str:
    """Return the text of the Ninja file, which must lie in the folder in which it is run."""
    objects = [(source, object_of(source, compilation.library)) for source in compilation.library.sources]
    extracted = [f"kept/{path}" for path in _extracted(compilation)]
    # The members of a thin archive are paths into LLVM's build folder, which need no extraction.
    kept = [*extracted, *(str(path) for path in compilation.kept if path.is_absolute())]
    lines = [
        "# Written by tritonsmith; `invoke debug-library` overwrites this file.",
        "ninja_required_version = 1.5",
        *_rules(compilation),
    ]
    for table in compilation.tables:
        program = _path(_program(compilation, table))
        lines += [
            f"build {_path(table.output)}: table {_path(table.definitions)} | {program}",
            f"  arguments = {_command(_table_arguments(compilation, table))}",
        ]
    first = (
        f" || {' '.join(_path(table.output) for table in compilation.tables)}" if compilation.tables else ""
    )
    if compilation.header:
        lines.append(f"build {COMPILED}: header {HEADER}{first}")
    for source, output in objects:
        rule = "cc" if source.suffix in _C else "cxx"
        if compilation.header and source in compilation.header.sources:
            lines += [
                f"build {_path(output)}: {rule} {_path(source)} | {COMPILED}{first}",
                f"  header = -include-pch {COMPILED}",
            ]
        else:
            lines.append(f"build {_path(output)}: {rule} {_path(source)}{first}")
    archive = _archive_of(compilation)
    if extracted:
        lines.append(f"build {' '.join(map(_path, extracted))}: take {_path(archive)}")
    new = " ".join(_path(output) for _, output in objects)
    lines += [
        f"build {archive_name(compilation.library.name)}: archive {' '.join((new, *map(_path, kept)))}",
        f"default {archive_name(compilation.library.name)}",
        *((f"build {_FIRST}: first {new}", f"default {_FIRST}") if compilation.some else ()),
    ]
    return "\n".join(lines) + "\n"


def _without_assertions(compilation: Compilation) -> bool:
    """Report whether this library is of a table generator that was built without assertions."""
    targets = "|".join(configs.load("llvm-options")["table-generators"]["tables"]["targets"])
    return bool(re.fullmatch(targets, compilation.library.name)) and not compilation.old.assertions


def flags(compilation: Compilation) -> tuple[str, ...]:
    """Return the flags of every file: as in the LLVM's build, but unoptimised and with debug information."""
    library, options = compilation.library, compilation.options
    folders = dict.fromkeys((*library.includes, *compilation.headers, *options.includes))
    cxx, string = compilation.compilers.cxx, None if compilation.old.libcxx else compilation.old.cxx11
    return (
        "-O0",
        "-g",
        # Triton's link makes gdb's index from these names: gdb cannot find what is missing there.
        "-ggnu-pubnames",
        # Only this library has debug information, so none of it may be left to the objects of another.
        *(("-fstandalone-debug",) if cxx is None or "clang" in cxx.path.name else ()),
        *(("-fPIC",) if options.pic else ()),
        *(("-fvisibility=hidden",) if library.hidden else ()),
        # With other assertions than the rest of LLVM, classes have other members (ABI-breaking checks).
        *(() if compilation.tree.assertions and not _without_assertions(compilation) else ("-DNDEBUG",)),
        *options.definitions,
        *library.definitions,
        *(() if string is None else (f"-D_GLIBCXX_USE_CXX11_ABI={int(string)}",)),
        *(f"-I{folder}" for folder in folders),
        # The warnings are LLVM's business, and a newer compiler has more of them.
        "-w",
    )


def _cxx_flags(compilation: Compilation) -> tuple[str, ...]:
    exceptions = () if compilation.options.exceptions else ("-fno-exceptions", "-funwind-tables")
    return (
        f"-std=c++{compilation.sources.standard}",
        "-fvisibility-inlines-hidden",
        *exceptions,
        *(() if compilation.tree.rtti else ("-fno-rtti",)),
    )


def _rules(compilation: Compilation) -> list[str]:
    compilers = compilation.compilers
    depends = "-MD -MT $out -MF $out.d"
    lines = []
    for rule, tool, own, action in (
        ("cc", compilers.cc, (), "-c $in"),
        ("cxx", compilers.cxx, _cxx_flags(compilation), "$header -c $in"),
        (
            "header",
            compilers.cxx if compilation.header else None,
            (*_cxx_flags(compilation), *_PRECOMPILE),
            "$in",
        ),
    ):
        if tool is not None:
            command = _command((*compilation.launcher, str(tool.path), *own, *flags(compilation)))
            compile_ = f"{command} {depends} {action} -o $out"
            lines += _rule(rule, compile_, "compile $in", "deps = gcc", "depfile = $out.d")
    table = ("deps = gcc", "depfile = $out.d", "restat = 1")
    lines += _rule("table", "$arguments -o $out -d $out.d", "generate $out", *table)
    archiver = _command((str(compilation.archiver),))
    # Rebuilt from scratch: appending to an archive keeps objects whose sources are gone. It is renamed after
    # the comparison, because Triton's build links whatever has the final name. The shell's process id in the
    # temporary name keeps it apart from that of a killed run, whose commands may still be running.
    fresh = "$out.new.$$$$"
    compare = _command(
        (sys.executable, "-m", _COMPARE, str(compilation.tree.prefix), str(_archive_of(compilation)))
    )
    archive = (
        f"rm -f $out.new.* && {archiver} qcs {fresh} @$out.rsp && {compare} {fresh} && mv -f {fresh} $out"
    )
    content = ("rspfile = $out.rsp", "rspfile_content = $in")
    lines += _rule("archive", archive, "archive $out and compare its symbols", *content)
    first = f"rm -f $out.new && {archiver} qcs $out.new $in && mv -f $out.new $out"
    lines += _rule("first", first, "archive $out")
    names = _command(tuple(map(str, _extracted(compilation))))
    lines += _rule(
        "take", f"mkdir -p kept && cd kept && {archiver} x $in {names}", "extract the objects that are reused"
    )
    return lines


def _rule(name: str, command: str, title: str, *more: str) -> list[str]:
    return [
        f"rule {name}",
        f"  command = {command}",
        f"  description = {title}",
        *(f"  {line}" for line in more),
    ]


def _program(compilation: Compilation, table: Table) -> Path:
    return compilation.tree.bin / {"LLVM": "llvm-tblgen", "MLIR": "mlir-tblgen"}[table.project]


def _table_arguments(compilation: Compilation, table: Table) -> tuple[str, ...]:
    """Return the command that LLVM's `tablegen()` uses."""
    # An installed LLVM may lack the `.td` files.
    project = compilation.sources.path
    folders = (
        table.folder,
        *compilation.options.includes,
        project / "llvm/include",
        project / "mlir/include",
    )
    program = str(_program(compilation, table))
    includes = [f"-I{folder}" for folder in folders]
    return (program, *table.arguments, *includes, str(table.definitions), "--write-if-changed")


def _archive_of(compilation: Compilation) -> Path:
    return compilation.tree.prefix / "lib" / archive_name(compilation.library.name)


def _extracted(compilation: Compilation) -> list[Path]:
    return [path for path in compilation.kept if not path.is_absolute()]


def _command(argv: tuple[str, ...]) -> str:
    return shlex.join(argv).replace("$", "$$")


def _path(path: Path | str) -> str:
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
