"""ELF files with just the sections that are looked at."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

X86_64, AARCH64 = 0x3E, 0xB7


def write(path: Path, sections: Mapping[str, bytes], machine: int = X86_64) -> Path:
    """Write a 64-bit little-endian shared library.

    Args:
        path: the file.
        sections: name to content.
        machine: `e_machine`.
    """
    names, contents = b"\0", b""
    heads = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, content in (*sections.items(), (".shstrtab", b"")):
        offset = 64 + len(contents)
        start, names = len(names), names + name.encode() + b"\0"
        body = content or names
        heads.append(struct.pack("<IIQQQQIIQQ", start, 1, 0, 0, offset, len(body), 0, 0, 1, 0))
        contents += body
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    rest = struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 64 + len(contents), 0, 64, 0, 0, 64, len(heads), len(heads) - 1
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ident + rest + contents + b"".join(heads))
    return path


def libtriton(path: Path, llvm: str, machine: int = X86_64) -> Path:
    """A library with LLVM in it.

    Args:
        path: the file.
        llvm: as LLVM names itself: `23.0.0git 1f126a6d...`.
        machine: `e_machine`.
    """
    data = b"\0" * 64 + f"\x001.2.3\0\x00{llvm}\0".encode() + b"\0" * 64
    return write(path, {".data": data, ".rodata": b"\0" + b"f" * 40 + b"\0"}, machine)
