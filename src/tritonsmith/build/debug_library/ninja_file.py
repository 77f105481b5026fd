"""The build.ninja of one library: its generated headers, its objects at `-O0 -g`, its archive."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.debug_library.abi_check import LlvmOptions, LlvmSources, Traits
from tritonsmith.build.debug_library.resolve import Library, Table
from tritonsmith.core import configs
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.tools import Compilers

_C = (".c",)
# No time stamps: the compiler cache identifies the header by its content. Templates that the headers
# instantiate are instantiated once, which saves half as much time again as the parsing.
_PRECOMPILE = ("-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates", "-x", "c++-header")
_FIRST = "first.a"  # an archive, because Triton hides the symbols of archives, not those of objects
_COMPARE = "tritonsmith.build.debug_library.abi_check"


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


def render(made: Compilation) -> str:
    """Return the text of the Ninja file, which must lie in the folder in which it is run."""
    objects = [(source, object_of(source, made.library)) for source in made.library.sources]
    extracted = [f"kept/{path}" for path in _extracted(made)]
    kept = [*extracted, *(str(path) for path in made.kept if path.is_absolute())]
    lines = [
        "# Written by tritonsmith; `invoke debug-library` overwrites this file.",
        "ninja_required_version = 1.5",
        *_rules(made),
    ]
    for table in made.tables:
        lines += [
            f"build {_path(table.output)}: table {_path(table.definitions)} | {_path(_program(made, table))}",
            f"  arguments = {_command(_table_arguments(made, table))}",
        ]
    first = f" || {' '.join(_path(table.output) for table in made.tables)}" if made.tables else ""
    if made.header:
        lines.append(f"build {COMPILED}: header {HEADER}{first}")
    for source, output in objects:
        rule = "cc" if source.suffix in _C else "cxx"
        if made.header and source in made.header.sources:
            lines += [
                f"build {_path(output)}: {rule} {_path(source)} | {COMPILED}{first}",
                f"  header = -include-pch {COMPILED}",
            ]
        else:
            lines.append(f"build {_path(output)}: {rule} {_path(source)}{first}")
    archive = _archive_of(made)
    if extracted:
        lines.append(f"build {' '.join(map(_path, extracted))}: take {_path(archive)}")
    new = " ".join(_path(output) for _, output in objects)
    lines += [
        f"build {archive_name(made.library.name)}: archive {' '.join((new, *map(_path, kept)))}",
        f"default {archive_name(made.library.name)}",
        *((f"build {_FIRST}: first {new}", f"default {_FIRST}") if made.some else ()),
    ]
    return "\n".join(lines) + "\n"


def flags(made: Compilation) -> tuple[str, ...]:
    """Return the flags of every file: as in the LLVM's build, but unoptimised and with debug information."""
    library, options = made.library, made.options
    folders = dict.fromkeys((*library.includes, *made.headers, *options.includes))
    cxx, string = made.compilers.cxx, None if made.old.libcxx else made.old.cxx11
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
        *(() if made.tree.assertions else ("-DNDEBUG",)),
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


# The precompiled header of a debug library: what most of its files include, parsed once for all of them.

HEADER = "precompiled.h"
COMPILED = f"{HEADER}.pch"


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
    if level is None or len(sources) < table["pays-from"]:
        return None
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
