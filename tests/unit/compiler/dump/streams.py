"""Streams as compilers print them, small."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.dump.splitter import Splitter

HEAD = 'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {'


def banner(
    name: str, argument: str, operation: str = "'builtin.module' operation", *, when: str = "Before"
) -> str:
    """As LLVM 22 prints it."""
    return f"// -----// IR Dump {when} {name}: {argument} ({operation}) //----- //\n"


def old_banner(name: str, argument: str, operation: str = "'builtin.module' operation") -> str:
    """As LLVM 19 prints it."""
    return f"// -----// IR Dump Before {name} ({argument}) ({operation}) //----- //\n"


def module(*lines: str, kernel: str = "add", head: str = "module {", location: int = 1) -> str:
    """A module of Triton's dialect, with locations."""
    body = "".join(f"    {line} loc(#loc{location})\n" for line in lines)
    return (
        f'#loc = loc("/somewhere/add.py":5:0)\n{head}\n'
        f'  tt.func public @{kernel}(%arg0: !tt.ptr<f32> loc("/somewhere/add.py":5:0)) {{\n'
        f"{body}    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n"
        f'#loc{location} = loc("/somewhere/add.py":6:4)\n\n\n'
    )


def split(stream: bytes | str, out: Path, *, chunk: int = 1 << 20, **about: str) -> DumpIndex:
    """Take a stream apart."""
    raw = stream.encode() if isinstance(stream, str) else stream
    out.mkdir(parents=True, exist_ok=True)
    splitter = Splitter(out)
    for begin in range(0, len(raw), chunk):
        splitter.feed(raw[begin : begin + chunk])
    return splitter.close(**about)


def texts(index: DumpIndex) -> list[str]:
    """The IR of each dump."""
    return [index.path(dump).read_bytes().decode() for dump in index.dumps]
