"""Read ELF files as far as cubins and code objects need it: 64 bits, little-endian, sections by name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOTE = struct.Struct("<III")
_NOBITS = 8  # a section that takes no room in the file

MACHINES = {190: "cuda", 224: "hip"}  # EM_CUDA, EM_AMDGPU: llvm/BinaryFormat/ELF.h


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        name: `.text.matmul`.
        flags: as in the file.
        size: in bytes, also of one that takes no room in the file.
        data: its content; empty for one that takes no room.
    """

    name: str
    flags: int
    size: int
    data: bytes


@dataclass(frozen=True)
class Elf:
    """An ELF file.

    Attributes:
        backend: `cuda` or `hip`.
        sections: by name; if a name repeats, the first one.
    """

    backend: str
    sections: dict[str, Section]


def load(path: Path) -> Elf:
    """Read a file.

    Raises:
        FactError: it cannot be read, or is not a GPU binary.
    """
    try:
        return parse(untrusted.read_bytes(path, untrusted.OURS))
    except OSError as error:
        raise FactError("cannot read this binary", where=path, why=error.strerror) from error


def parse(content: bytes) -> Elf:
    """Parse the sections of a cubin or a code object.

    Raises:
        FactError: it is neither, or is truncated.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise _wrong("it does not start with the ELF magic number")
    try:
        head = _HEADER.unpack_from(content)
        backend = MACHINES.get(head[2])
        if backend is None:
            raise _wrong(f"it is for a different architecture (e_machine {head[2]})")
        offset, entry, count, names_at = head[6], head[11], head[12], head[13]
        rows = [_SECTION.unpack_from(content, offset + number * entry) for number in range(count)]
        names = _data(content, rows[names_at])
    except (struct.error, IndexError, OverflowError) as error:
        raise _wrong(f"truncated: {error}") from error
    sections: dict[str, Section] = {}
    for row in rows:
        name = names[row[0] : names.find(b"\0", row[0])].decode("utf-8", errors="replace")
        sections.setdefault(name, Section(name, row[2], row[5], _data(content, row)))
    return Elf(backend, sections)


def notes(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield owner, type and content of each note of a section.

    Raises:
        FactError: a note is truncated.
    """
    at = 0
    while at < len(data):
        try:
            owner_size, size, kind = _NOTE.unpack_from(data, at)
        except struct.error as error:
            raise _wrong(f"truncated note: {error}") from error
        owner_at = at + _NOTE.size
        content_at = owner_at + _aligned(owner_size)
        at = content_at + _aligned(size)
        if content_at + size > len(data):
            raise _wrong("a note is longer than its section")
        owner = data[owner_at : owner_at + owner_size].rstrip(b"\0").decode("utf-8", errors="replace")
        yield owner, kind, data[content_at : content_at + size]


def _data(content: bytes, row: tuple[int, ...]) -> bytes:
    kind, offset, size = row[1], row[4], row[5]
    if kind in (0, _NOBITS):
        return b""
    if offset + size > len(content):
        raise _wrong("a section extends past the end of the file")
    return content[offset : offset + size]


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _wrong(why: str) -> FactError:
    return FactError(
        "this file is neither a cubin nor a code object",
        why=why,
        hints=["compile the kernel again: invoke kernel.compile"],
    )
