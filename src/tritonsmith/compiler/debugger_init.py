"""Start-up files for gdb and lldb: where a build's sources are, and how to print LLVM's types."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core.plan import Step, Write

GDB, LLDB = "gdbinit", "lldbinit"
# In LLVM's own tree: StringRef, SmallVector, DenseMap, Operation, Attribute ...
_GDB_PRINTERS = ("llvm/utils/gdb-scripts/prettyprinters.py", "mlir/utils/gdb-scripts/prettyprinters.py")
_LLDB_PRINTERS = ("llvm/utils/lldbDataFormatters.py", "mlir/utils/lldb-scripts/mlirDataFormatters.py")


def steps(build: Path, *, relative: bool, llvm: Path | None, phase: str) -> tuple[Step, ...]:
    """Return steps that write a command file for each debugger; none if there is nothing to configure.

    Args:
        build: the build folder, where the files go.
        relative: the debug info names files relative to the build folder, because compiles are shared with
            other folders.
        llvm: LLVM's sources, if they are on this machine.
        phase: phase of the steps.
    """
    gdb, lldb = [*_gdb(build, relative, llvm)], [*_lldb(build, relative, llvm)]
    if not gdb:
        return ()
    return (
        Write(build / GDB, "\n".join([*_usage("gdb -ix", build / GDB), *gdb, ""]), phase=phase),
        Write(build / LLDB, "\n".join([*_usage("lldb -S", build / LLDB), *lldb, ""]), phase=phase),
    )


def _usage(program: str, file: Path) -> tuple[str, ...]:
    return (
        f"# Written by tritonsmith. Use: {program} {shlex.quote(str(file))}, or `source` this file.",
        "# Symbols are searched when a program is loaded, so these commands come first.",
    )


def _gdb(build: Path, relative: bool, llvm: Path | None) -> Iterator[str]:
    # Split debug info (.dwo) is named relative to the build folder as well, and `directory` is for sources
    # only.
    if relative:
        folder = "gdb.parameter('debug-file-directory')"
        yield f"directory {_quoted(build)}"
        yield f"python gdb.execute('set debug-file-directory ' + {folder} + ':' + {str(build)!r})"
    yield from (f"source {path}" for path in _present(llvm, _GDB_PRINTERS))


def _lldb(build: Path, relative: bool, llvm: Path | None) -> Iterator[str]:
    if relative:
        yield f"settings append target.source-map . {_quoted(build)}"
        yield f"settings append target.debug-file-search-paths {_quoted(build)}"
    yield from (f"command script import {_quoted(path)}" for path in _present(llvm, _LLDB_PRINTERS))


def _present(llvm: Path | None, names: tuple[str, ...]) -> list[Path]:
    return [llvm / name for name in names if (llvm / name).is_file()] if llvm else []


def _quoted(path: Path) -> str:
    # Neither debugger's command language is a shell: `shlex.quote` would put the quotes into the path.
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
