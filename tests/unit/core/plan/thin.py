"""Thin archives of objects, written by hand: what `ar T` means depends on the version of binutils."""

from __future__ import annotations

import struct
from pathlib import Path


def header(name: str, size: int) -> bytes:
    return f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'644':<8}{size:<10}`\n".encode()


def even(content: bytes) -> bytes:
    return content + b"\n" * (len(content) % 2)


def write(path: Path, objects: dict[str, bytes], *, wide: bool = False) -> Path:
    """A thin archive beside its objects, with an index that names one symbol of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, content in objects.items():
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).write_bytes(content)
    number, width = ("Q", 8) if wide else ("I", 4)
    symbols = b"".join(f"_Z{index}NSt7__cxx11\0".encode() for index in range(len(objects)))
    size = width * (1 + len(objects)) + len(symbols)
    table = even(b"".join(f"{name}/\n".encode() for name in objects))
    offset = 8 + 60 + size + size % 2 + 60 + len(table)
    offsets = [offset + 60 * index for index in range(len(objects))]
    index = struct.pack(f">{len(objects) + 1}{number}", len(objects), *offsets) + symbols
    content = b"!<thin>\n" + header("/SYM64/" if wide else "/", len(index)) + even(index)
    content += header("//", len(table)) + table
    place = 0
    for name, data in objects.items():
        content += header(f"/{place}", len(data))
        place += len(name) + 2
    path.write_bytes(content)
    return path
