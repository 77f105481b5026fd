"""Read cubins and code objects: ELF files of GPUs, their sections by name, and notes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts import elf
from tritonsmith.facts.elf import DamagedElfError, SectionHeader

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
    if not content.startswith(elf.MAGIC):
        raise _wrong("it does not start with the ELF magic number")
    try:
        number = elf.machine_number(content)
        backend = MACHINES.get(number)
        if backend is None:
            raise _wrong(f"it is for a different architecture (e_machine {number})")
        headers = elf.sections(content)
    except DamagedElfError as error:
        raise _wrong(f"truncated: {error}") from error
    sections: dict[str, Section] = {}
    for header in headers:
        section = Section(header.name, header.flags, header.size, _data(content, header))
        sections.setdefault(header.name, section)
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
        # Both are padded to four bytes, in 64-bit files, too.
        content_at = owner_at + _aligned(owner_size)
        at = content_at + _aligned(size)
        if content_at + size > len(data):
            raise _wrong("a note is longer than its section")
        owner = data[owner_at : owner_at + owner_size].rstrip(b"\0").decode("utf-8", errors="replace")
        yield owner, kind, data[content_at : content_at + size]


def _data(content: bytes, header: SectionHeader) -> bytes:
    if header.kind in (0, _NOBITS):
        return b""
    end = header.offset + header.size
    if end > len(content):
        raise _wrong("a section extends past the end of the file")
    return content[header.offset : end]


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _wrong(why: str) -> FactError:
    return FactError(
        "this file is neither a cubin nor a code object",
        why=why,
        hints=["compile the kernel again: invoke kernel.compile"],
    )
