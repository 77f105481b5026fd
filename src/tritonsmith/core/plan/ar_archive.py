"""Archives of objects (`lib*.a`): reading them, and converting thin archives to regular ones.

A thin archive names its objects instead of holding them. The format (llvm/lib/Object/Archive.cpp): a
magic, then members with a header of 60 bytes. `/` is the index of symbols (the offset of a header for each),
`//` the table of long names; BSD's members have their names before their content.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

MAGIC = b"!<arch>\n"
THIN = b"!<thin>\n"
_HEADER = 60  # bytes
_END = b"`\n"
# Symbol indexes: System V's with 32 bits, and the 64 bits that LLVM writes for archives beyond 4 GiB. An
# index holds offsets of headers, which all move when a thin archive becomes a regular one.
_INDEXES = {b"/": ">I", b"/SYM64/": ">Q"}  # name to format of a number in it
_TABLES = (b"/", b"/SYM64/", b"//")  # held by thin archives too
_BSD_INDEX = "__.SYMDEF"
_CHUNK = 1 << 20


class BadArchiveError(ValueError):
    """A file is not an archive, or is damaged."""


@dataclass(frozen=True)
class ArMember:
    """A member of an archive.

    Attributes:
        name: of the object; of a thin archive's, its path relative to the archive. An index has its own: `/`.
        size: bytes of content.
        header: offset of its header.
        content: offset of its content; where the next header is, in a thin archive.
    """

    name: str
    size: int
    header: int
    content: int


@dataclass(frozen=True)
class ArArchive:
    """The headers of an archive, those of tables first; the objects of a thin one lie elsewhere."""

    path: Path
    thin: bool
    members: tuple[ArMember, ...]

    @property
    def objects(self) -> tuple[ArMember, ...]:
        """Members that are objects."""
        return tuple(
            member
            for member in self.members
            if member.name.encode() not in _TABLES and not member.name.startswith(_BSD_INDEX)
        )

    def object_path(self, member: ArMember) -> Path:
        """Return the path of an object of a thin archive."""
        return self.path.parent / member.name

    def missing(self) -> str:
        """Return the first object of a thin archive that is gone or has another size; empty if none is."""
        for member in self.objects if self.thin else ():
            try:
                if self.object_path(member).stat().st_size != member.size:
                    return member.name
            except OSError:
                return member.name
        return ""


def is_archive(path: Path) -> Literal["fat", "thin", ""]:
    """Return the kind of archive that a file is; empty if it is none."""
    with path.open("rb") as file:
        return {MAGIC: "fat", THIN: "thin"}.get(file.read(len(MAGIC)), "")  # type: ignore[return-value]


def read(path: Path) -> ArArchive:
    """Read an archive's headers.

    Raises:
        BadArchiveError: the file is not an archive, or is truncated.
    """
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
        if magic not in (MAGIC, THIN):
            raise BadArchiveError(f"{path.name} is not an archive")
        return ArArchive(path, magic == THIN, tuple(_members(file, path, thin=magic == THIN)))


def symbols(path: Path, limit: int = 4 << 20) -> bytes:
    """Return the names in the symbol index of an archive, unparsed, up to `limit` bytes.

    Raises:
        BadArchiveError: the file is not an archive.
    """
    for member in read(path).members:
        if member.name.encode() in _INDEXES or member.name.startswith(_BSD_INDEX):
            with path.open("rb") as file:
                file.seek(member.content)
                return file.read(min(member.size, limit))
    return b""


def fatten(archive: ArArchive) -> Iterator[bytes]:
    """Yield the content of a regular archive with the objects that a thin archive names, in pieces.

    Raises:
        BadArchiveError: an object is missing or has changed, or the archive is too large for its index.
    """
    if missing := archive.missing():
        # A thin archive names objects of the build folder and holds none. Packed as it is, it would be
        # useless on another machine; with an object that was rebuilt since, it would be a wrong one.
        raise BadArchiveError(f"{archive.path.name} names {missing}, which is missing or has changed")
    table, places = _long_names(archive)
    indexes = [member for member in archive.members if member.name.encode() in _INDEXES]
    offset = len(MAGIC) + sum(_HEADER + _even(member.size) for member in indexes)
    offset += _HEADER + len(table)
    moved: dict[int, int] = {}
    for member in archive.objects:
        moved[member.header] = offset
        offset += _HEADER + _even(member.size)
    yield MAGIC
    for member in indexes:
        yield _header(member.name, member.size)
        yield _padded(_index(archive.path, member, moved))
    # Names go to the table in any case: a header has room for 15 bytes of a name, and
    # objects of LLVM have more.
    yield _header("//", len(table))
    yield table
    for member in archive.objects:
        yield _header(f"/{places[Path(member.name).name]}", member.size)
        with archive.object_path(member).open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        # Members begin at even offsets.
        yield b"\n" * (member.size % 2)


def fat_size(archive: ArArchive) -> int:
    """Return the number of bytes that `fatten` yields."""
    table, _ = _long_names(archive)
    held = [member for member in archive.members if member.name.encode() in _INDEXES]
    sizes = [len(table), *(member.size for member in (*held, *archive.objects))]
    return len(MAGIC) + sum(_HEADER + _even(size) for size in sizes)


def _long_names(archive: ArArchive) -> tuple[bytes, dict[str, int]]:
    """Return the table of the objects' names without their folders, and the place of each in it."""
    table, places = b"", {}
    for member in archive.objects:
        name = Path(member.name).name
        if name not in places:
            places[name] = len(table)
            table += os.fsencode(name) + b"/\n"
    return _padded(table), places


def _members(file: IO[bytes], path: Path, *, thin: bool) -> Iterator[ArMember]:
    whole = os.fstat(file.fileno()).st_size
    long_names = b""
    offset = len(MAGIC)
    while offset < whole:
        file.seek(offset)
        header = file.read(_HEADER)
        if len(header) < _HEADER or header[58:60] != _END:
            raise BadArchiveError(f"{path.name} is damaged or truncated at byte {offset}")
        raw, number = header[:16].rstrip(), header[48:58].strip()
        if not number.isdigit():
            raise BadArchiveError(f"{path.name} is damaged at byte {offset}: a size is not a number")
        size = int(number)
        # The tables of a thin archive are in it; its objects are not, although their headers give a size.
        content = offset + _HEADER
        held = not thin or raw in _TABLES
        if held and content + size > whole:
            raise BadArchiveError(f"{path.name} is truncated: a member ends after the end of the file")
        if raw == b"//":
            long_names = file.read(size)
        yield ArMember(_name(raw, long_names, file, content), size, offset, content)
        offset = content + (_even(size) if held else 0)


def _name(raw: bytes, long_names: bytes, file: IO[bytes], content: int) -> str:
    if raw in _TABLES:
        return raw.decode()
    # GNU's form: `/123` is an offset into the table of long names.
    if raw.startswith(b"/") and raw[1:].isdigit():
        start = int(raw[1:])
        return os.fsdecode(long_names[start : long_names.find(b"/\n", start)])
    # BSD's form, and macOS's: the name is the start of the content, and the number its length.
    if raw.startswith(b"#1/"):
        file.seek(content)
        return os.fsdecode(file.read(int(raw[3:])).rstrip(b"\0"))
    return os.fsdecode(raw.removesuffix(b"/"))


def _index(path: Path, member: ArMember, moved: dict[int, int]) -> bytes:
    """Return the symbol index with the new offsets of the members."""
    with path.open("rb") as file:
        file.seek(member.content)
        content = file.read(member.size)
    number = _INDEXES[member.name.encode()]
    width = struct.calcsize(number)
    (count,) = struct.unpack_from(number, content)
    old = struct.unpack_from(f">{count}{number[1]}", content, width)
    try:
        new = struct.pack(f">{count}{number[1]}", *(moved[offset] for offset in old))
    except (KeyError, struct.error) as error:
        raise BadArchiveError(f"{path.name}: its index does not match its members") from error
    return content[:width] + new + content[width + len(new) :]


def _header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{0o644:<8o}{size:<10}".encode() + _END


def _even(size: int) -> int:
    return size + size % 2


def _padded(content: bytes) -> bytes:
    return content + b"\n" * (len(content) % 2)
