"""The build.ninja of one library: its generated headers, its objects at `-O0 -g`, its archive."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.debug_library.archive import Traits
from tritonsmith.build.debug_library.lists import Library, Table
from tritonsmith.build.debug_library.options import Options, Sources
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.tools import Compilers

_C = (".c",)
_COMPARE = "tritonsmith.build.debug_library.compare"


@dataclass(frozen=True)
class Compilation:
    """Everything that the file depends on.

    Attributes:
        library: what is compiled.
        tree: the LLVM that it is compiled against.
        options: how that was built.
        sources: where it comes from.
        old: what the LLVM's own archive of it shows.
        kept: objects of that archive that come from no source of the library's: they are taken as they are.
        tables: generated headers that it needs.
        headers: more include folders.
        compilers: what compiles.
        launcher: words before each compile: the compiler cache.
        archiver: `llvm-ar` or `ar`.
    """

    library: Library
    tree: LlvmTree
    options: Options
    sources: Sources
    old: Traits
    kept: tuple[str, ...]
    tables: tuple[Table, ...]
    headers: tuple[Path, ...]
    compilers: Compilers
    launcher: tuple[str, ...]
    archiver: Path


def archive_name(name: str) -> str:
    """Name of a library's archive."""
    return f"lib{name}.a"


def render(made: Compilation) -> str:
    """The text of the file; it lies in the folder that it is run in."""
    objects = [(source, _object(source, made.library.folder)) for source in made.library.sources]
    kept = [f"kept/{name}" for name in made.kept]
    lines = [
        "# Written by tritonsmith; a new run of `invoke debug-library` writes it again.",
        "ninja_required_version = 1.5",
        *_rules(made),
    ]
    for table in made.tables:
        lines += [
            f"build {_path(table.output)}: table {_path(table.definitions)} | {_path(_program(made, table))}",
            f"  arguments = {_command(_table_arguments(made, table))}",
        ]
    first = f" || {' '.join(_path(table.output) for table in made.tables)}" if made.tables else ""
    for source, output in objects:
        rule = "cc" if source.suffix in _C else "cxx"
        lines.append(f"build {_path(output)}: {rule} {_path(source)}{first}")
    archive = _archive_of(made)
    if kept:
        lines.append(f"build {' '.join(map(_path, kept))}: take {_path(archive)}")
    inputs = " ".join(_path(name) for name in (*(output for _, output in objects), *kept))
    lines += [
        f"build {archive_name(made.library.name)}: archive {inputs}",
        f"default {archive_name(made.library.name)}",
    ]
    return "\n".join(lines) + "\n"


def flags(made: Compilation) -> tuple[str, ...]:
    """How every file is compiled: as the LLVM was, but unoptimised and with debug information."""
    library, options = made.library, made.options
    folders = dict.fromkeys((*library.includes, *made.headers, *options.includes))
    cxx = made.compilers.cxx
    return (
        "-O0",
        "-g",
        # This library is the only one with debug information: nothing of it may be left to another's objects.
        *(("-fstandalone-debug",) if cxx is None or "clang" in cxx.path.name else ()),
        *(("-fPIC",) if options.pic else ()),
        *(("-fvisibility=hidden",) if library.hidden else ()),
        *(() if made.tree.assertions else ("-DNDEBUG",)),
        *options.definitions,
        *library.definitions,
        *_abi(made),
        *(f"-I{folder}" for folder in folders),
        "-w",  # LLVM's code, and perhaps a newer compiler
    )


def _cxx_flags(made: Compilation) -> tuple[str, ...]:
    exceptions = () if made.options.exceptions else ("-fno-exceptions", "-funwind-tables")
    return (
        f"-std=c++{made.sources.standard}",
        "-fvisibility-inlines-hidden",
        *exceptions,
        *(() if made.tree.rtti else ("-fno-rtti",)),
    )


def _abi(made: Compilation) -> tuple[str, ...]:
    if made.old.libcxx or made.old.cxx11 is None:
        return ()
    return (f"-D_GLIBCXX_USE_CXX11_ABI={int(made.old.cxx11)}",)


def _rules(made: Compilation) -> list[str]:
    compilers = made.compilers
    depends = "-MD -MT $out -MF $out.d -c $in -o $out"
    lines = []
    for rule, tool, own in (("cc", compilers.cc, ()), ("cxx", compilers.cxx, _cxx_flags(made))):
        if tool is not None:
            command = _command((*made.launcher, str(tool.path), *own, *flags(made)))
            lines += _rule(rule, f"{command} {depends}", "compile $in", "deps = gcc", "depfile = $out.d")
    table = ("deps = gcc", "depfile = $out.d", "restat = 1")
    lines += _rule("table", "$arguments -o $out -d $out.d", "generate $out", *table)
    archiver = _command((str(made.archiver),))
    # Made anew, because an archive that is added to keeps objects whose sources are gone. It gets its name
    # after the comparison, because Triton's build links what has that name.
    fresh = "$out.new"
    compare = _command((sys.executable, "-m", _COMPARE, str(made.tree.prefix), str(_archive_of(made))))
    archive = f"rm -f {fresh} && {archiver} qcs {fresh} @$out.rsp && {compare} {fresh} && mv -f {fresh} $out"
    content = ("rspfile = $out.rsp", "rspfile_content = $in")
    lines += _rule("archive", archive, "archive $out, and compare its symbols", *content)
    names = _command(made.kept)
    lines += _rule("take", f"mkdir -p kept && cd kept && {archiver} x $in {names}", "take what is kept")
    return lines


def _rule(name: str, command: str, title: str, *more: str) -> list[str]:
    return [
        f"rule {name}",
        f"  command = {command}",
        f"  description = {title}",
        *(f"  {line}" for line in more),
    ]


def _program(made: Compilation, table: Table) -> Path:
    return made.tree.bin / {"LLVM": "llvm-tblgen", "MLIR": "mlir-tblgen"}[table.project]


def _table_arguments(made: Compilation, table: Table) -> tuple[str, ...]:
    """As LLVM's `tablegen()` calls it: the folder of the lists first, then LLVM's own headers."""
    project = made.sources.path  # whose `.td` files an installed LLVM need not have
    folders = (table.folder, *made.options.includes, project / "llvm/include", project / "mlir/include")
    program = str(_program(made, table))
    includes = [f"-I{folder}" for folder in folders]
    return (program, *table.arguments, *includes, str(table.definitions), "--write-if-changed")


def _archive_of(made: Compilation) -> Path:
    return made.tree.prefix / "lib" / archive_name(made.library.name)


def _object(source: Path, folder: Path) -> str:
    relative = os.path.relpath(source, folder)
    return f"objects/{relative.replace('..', '__')}.o"


def _command(argv: tuple[str, ...]) -> str:
    return shlex.join(argv).replace("$", "$$")


def _path(path: Path | str) -> str:
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
