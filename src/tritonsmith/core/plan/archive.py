"""Read two kinds of archive: tar, which is extracted, and ar (`lib*.a`), whose thin form can be made regular.

Tar archives come from strangers. They are read from start to end in bounded memory, unknown entries are
refused, nothing is written outside the destination, and the destination appears only when it is complete.
The format: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, and for what GNU adds
https://www.gnu.org/software/tar/manual/html_node/Standard.html

A thin ar archive names its objects instead of holding them. The format (llvm/lib/Object/Archive.cpp): a
magic, then members with a header of 60 bytes. `/` is the index of symbols (the offset of a header for each),
`//` the table of long names; BSD's members have their names before their content.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal

from tritonsmith.core.errors import DownloadError
from tritonsmith.core.plan.compression import (
    DamagedError,
    Decompressed,
    Progress,
    TooMuchError,
    UnpackLimits,
    limits,
)
from tritonsmith.core.plan.confined_tree import FreshTree
from tritonsmith.core.untrusted import UnreadableError

Kind = Literal["file", "folder", "link", "hard link"]
_BLOCK = 512  # bytes
_CHUNK = 1 << 18
# `\0` is a file of the oldest archives, `7` a contiguous one, which all systems treat as a file.
_KINDS: dict[bytes, Kind] = {
    b"0": "file", b"\0": "file", b"7": "file", b"1": "hard link", b"2": "link", b"5": "folder"
}  # fmt: skip
_SPECIAL = {b"3": "a device", b"4": "a device", b"6": "a pipe", b"S": "a sparse file"}
_PAX, _GLOBAL, _LONG_NAME, _LONG_TARGET = b"xX", b"g", b"L", b"K"
_USTAR = b"ustar\0"

AR_MAGIC = b"!<arch>\n"
THIN_AR_MAGIC = b"!<thin>\n"
_AR_HEADER = 60  # bytes
_AR_HEADER_END = b"`\n"
# Symbol indexes: System V's with 32 bits, and the 64 bits that LLVM writes for archives beyond 4 GiB. An
# index holds offsets of headers, which all move when a thin archive becomes a regular one.
_AR_INDEXES = {b"/": ">I", b"/SYM64/": ">Q"}  # name to format of a number in it
_AR_TABLES = (b"/", b"/SYM64/", b"//")  # held by thin archives too
_BSD_INDEX = "__.SYMDEF"


def extract(
    archive: Path, dest: Path, *, only: tuple[str, ...] = (), strip: int = 1, progress: Progress
) -> None:
    """Extract a tar archive, compressed or plain, to `DEST.partial`, then rename it; neither may exist yet.

    `strip` leading components are dropped; `only` names the first ones that are wanted then, all if empty.

    Raises:
        DownloadError: not a tar archive, truncated, an entry that points outside, or more than is allowed.
        OSError: the disk is full, or cannot be written.
    """
    partial = dest.with_name(f"{dest.name}.partial")
    with open_tar(archive, progress) as tarball, FreshTree(partial) as tree:
        for member in tarball:
            if len(member.parts) > strip and (not only or member.parts[strip] in only):
                add_member(tree, member, tarball, strip)
        tree.finish()
        if not any(partial.iterdir()):
            raise DownloadError(
                "the archive contains none of the required files",
                where=archive,
                why=f"looked for {', '.join(only) or 'any file'}",
                hints=["is it a source archive of llvm-project?"],
            )
    partial.rename(dest)


@contextmanager
def open_tar(archive: Path, progress: Progress | None = None) -> Iterator[Tarball]:
    """Open a tar archive, compressed or plain, to read it from start to end.

    Raises:
        DownloadError: whatever the body finds damaged.
    """
    allowed = limits()
    try:
        with archive.open("rb") as raw:
            yield Tarball(Decompressed(raw, allowed, progress), allowed)
    except UnreadableError as error:
        raise DownloadError(
            "cannot extract this archive", where=archive, why=str(error), hints=error.hints
        ) from error


def add_member(tree: FreshTree, member: TarMember, tarball: Tarball, strip: int) -> None:
    """Add the entry that came last to a tree, without its `strip` leading components."""
    parts = member.parts[strip:]
    if member.kind == "folder":
        tree.folder(parts)
    elif member.kind == "link":
        tree.link(parts, member.target)
    elif member.kind == "hard link":
        linked = tuple(part for part in member.target.split("/") if part not in ("", "."))
        if member.target.startswith("/") or ".." in linked:
            raise DamagedError(f"link {member.name!r} points outside, to {member.target!r}")
        if linked[:strip] != member.parts[:strip]:
            raise DamagedError(f"link {member.name!r} points to {member.target!r}, which is not unpacked")
        tree.hard_link(parts, linked[strip:])
    else:
        content = tarball.content()
        tree.file(parts, content, member.size, executable=member.executable, mtime=member.mtime)


@dataclass(frozen=True)
class TarMember:
    """An entry of an archive.

    Attributes:
        name: as it is there, in any encoding.
        parts: the name's components; none of them is empty, `.` or `..`.
        kind: a special file or a sparse one is refused before.
        size: bytes of content; 0 unless it is a file.
        executable: its owner may run it.
        mtime: seconds since 1970.
        target: where a link leads.
    """

    name: str
    parts: tuple[str, ...]
    kind: Kind
    size: int = 0
    executable: bool = False
    mtime: int = 0
    target: str = ""


class Tarball:
    """A tar archive that is being read, decompressed; iterating gives its members."""

    # Python's tarfile reads into memory what a header asks for, takes a damaged header for the end, and does
    # not check what follows the end. Here everything has a limit.

    def __init__(self, plain: Decompressed, allowed: UnpackLimits) -> None:
        self._plain, self._limits = plain, allowed
        self._left = self._pad = 0  # of the content of the member that came last

    def __iter__(self) -> Iterator[TarMember]:
        count = 0
        while member := self._next():
            count += 1
            if count > self._limits.entries:
                raise TooMuchError(f"the archive has more than {self._limits.entries:,} entries")
            yield member

    def content(self) -> Iterator[bytes]:
        """Yield the content of the latest member, in pieces."""
        while self._left:
            piece = self._exactly(min(self._left, _CHUNK))
            self._left -= len(piece)
            yield piece

    def _next(self) -> TarMember | None:
        for _ in self.content():
            pass  # of a member that was not read
        self._exactly(self._pad)
        self._pad, budget = 0, self._limits.header
        extended: dict[str, str] = {}
        while True:
            header = self._exactly(_BLOCK)
            if not any(header):
                self._finish(_BLOCK)
                if extended:
                    raise DamagedError("damaged: the archive ends after an extended header")
                return None
            member, kind, size = _tar_header(header)
            if kind not in _PAX + _GLOBAL + _LONG_NAME + _LONG_TARGET:
                return self._member(member, kind, size, extended)
            # Extended headers may follow each other without end, and each is read into memory: one
            # budget for all of an entry.
            budget -= size + _BLOCK
            if budget < 0:
                raise TooMuchError(f"an entry has headers of more than {self._limits.header:,} bytes")
            text = self._exactly(size)
            self._exactly(-size % _BLOCK)
            if kind == _LONG_NAME:
                extended["path"] = _text(text)
            elif kind == _LONG_TARGET:
                extended["linkpath"] = _text(text)
            elif kind in _PAX:
                extended |= _pax_records(text)

    def _member(self, member: TarMember, kind: bytes, size: int, extended: dict[str, str]) -> TarMember:
        name = extended.get("path", member.name)
        if kind in _SPECIAL or any(key.startswith("GNU.sparse") for key in extended):
            what = _SPECIAL.get(kind, "a sparse file")
            # A sparse file's header says that it has terabytes; a device or a pipe
            # is nothing that LLVM ships.
            raise DamagedError(f"entry {name!r} is {what}: only files, folders and links are unpacked")
        if kind not in _KINDS:
            raise DamagedError(f"entry {name!r} has an unknown type ({kind!r})")
        translated = _KINDS[kind]
        if translated == "file" and name.endswith("/"):  # as they were before there was a kind for folders
            translated = "folder"
        # A size of 8 GiB and more does not fit the octal field.
        if "size" in extended:
            size = _decimal(extended["size"])
        if size > self._limits.bytes:
            raise TooMuchError(f"entry {name!r} claims to have {size:,} bytes")
        # By the kind as it is written: content follows a `file` that became a folder by its name, too.
        self._left = size if _KINDS[kind] == "file" else 0
        self._pad = -self._left % _BLOCK
        target = extended.get("linkpath", member.target) if "link" in translated else ""
        if max(len(os.fsencode(name)), len(os.fsencode(target))) > self._limits.name:
            raise TooMuchError(f"entry {name[:80]!r}... has a name of more than {self._limits.name} bytes")
        parts = _name_parts(name)
        if len(parts) > self._limits.depth:
            raise TooMuchError(f"entry {name[:80]!r}... is more than {self._limits.depth} folders deep")
        if "\0" in target:
            raise DamagedError(f"entry {name!r} points to {target!r}")
        return replace(member, name=name, parts=parts, kind=translated, size=self._left, target=target)

    def _finish(self, zeros: int) -> None:
        """Check that only a few zeros follow the end."""
        while piece := self._plain.read(_CHUNK):
            zeros += len(piece)
            # tar pads with zeros to 10 KiB, and tools that append write on behind the end: hidden entries,
            # which this reader would not see and another one would.
            if any(piece) or zeros > self._limits.padding:
                raise DamagedError("data follows the end of the archive")

    def _exactly(self, amount: int) -> bytes:
        data = self._plain.read(amount)
        if len(data) < amount:
            raise DamagedError("damaged or truncated: the archive ends too early")
        return data


def _tar_header(block: bytes) -> tuple[TarMember, bytes, int]:
    """Return the entry, its kind as it is there, and the size of what follows."""
    # The checksum is computed as if its own field held blanks.
    total = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
    if _number(block[148:156]) != total:
        raise DamagedError("damaged or truncated: the checksum of a header does not match")
    # GNU's old format has other fields at this place, which are no part of the name.
    prefix = _text(block[345:500]) if block[257:263] == _USTAR else ""
    name = _text(block[:100])
    member = TarMember(
        name=f"{prefix}/{name}" if prefix else name,
        parts=(),
        kind="file",
        executable=bool(_number(block[100:108]) & 0o100),
        mtime=_number(block[136:148]),
        target=_text(block[157:257]),
    )
    return member, block[156:157], _number(block[124:136])


def _number(field: bytes) -> int:
    """Parse octal, or GNU's binary with the first bit set; no field that we read is negative."""
    if field[0] & 0x80:
        if field[0] != 0x80:  # noqa: PLR2004 - negative, or larger than any file
            raise DamagedError("damaged: a number in a header is out of range")
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise DamagedError("damaged: a header contains an invalid number")
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return os.fsdecode(field.partition(b"\0")[0])


def _pax_records(text: bytes) -> dict[str, str]:
    """Return the records of a pax header: `LENGTH KEY=VALUE`, each with a line feed."""
    records = {}
    at = 0
    while at < len(text):
        # The length is bounded before it is parsed: Python takes seconds for an
        # integer of a million digits.
        blank = text.find(b" ", at, at + 10)
        digits = text[at:blank] if blank > at else b""
        length = int(digits) if digits.isdigit() else 0
        record = text[blank + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if at + length > len(text) or not (record.endswith(b"\n") and equals):
            raise DamagedError("damaged: an extended header contains an invalid record")
        records[os.fsdecode(key)] = os.fsdecode(value[:-1])
        at += length
    return records


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004 - of 64 bits
        raise DamagedError(f"damaged: {text[:40]!r} is not a size")
    return int(text)


def _name_parts(name: str) -> tuple[str, ...]:
    if "\0" in name:
        raise DamagedError(f"entry {name!r} has no name")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts:
        raise DamagedError(f"entry {name!r} is outside the archive's folder")
    return parts


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
            if member.name.encode() not in _AR_TABLES and not member.name.startswith(_BSD_INDEX)
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


def ar_kind(path: Path) -> Literal["fat", "thin", ""]:
    """Return the kind of archive that a file is; empty if it is none."""
    with path.open("rb") as file:
        return {AR_MAGIC: "fat", THIN_AR_MAGIC: "thin"}.get(file.read(len(AR_MAGIC)), "")  # type: ignore[return-value]


def read_ar(path: Path) -> ArArchive:
    """Read an archive's headers.

    Raises:
        BadArchiveError: the file is not an archive, or is truncated.
    """
    with path.open("rb") as file:
        magic = file.read(len(AR_MAGIC))
        if magic not in (AR_MAGIC, THIN_AR_MAGIC):
            raise BadArchiveError(f"{path.name} is not an archive")
        return ArArchive(
            path, magic == THIN_AR_MAGIC, tuple(_ar_members(file, path, thin=magic == THIN_AR_MAGIC))
        )


def ar_symbols(path: Path, limit: int = 4 << 20) -> bytes:
    """Return the names in the symbol index of an archive, unparsed, up to `limit` bytes.

    Raises:
        BadArchiveError: the file is not an archive.
    """
    for member in read_ar(path).members:
        if member.name.encode() in _AR_INDEXES or member.name.startswith(_BSD_INDEX):
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
    indexes = [member for member in archive.members if member.name.encode() in _AR_INDEXES]
    offset = len(AR_MAGIC) + sum(_AR_HEADER + _even(member.size) for member in indexes)
    offset += _AR_HEADER + len(table)
    moved: dict[int, int] = {}
    for member in archive.objects:
        moved[member.header] = offset
        offset += _AR_HEADER + _even(member.size)
    yield AR_MAGIC
    for member in indexes:
        yield _ar_member_header(member.name, member.size)
        yield _padded(_moved_index(archive.path, member, moved))
    # Names go to the table in any case: a header has room for 15 bytes of a name, and
    # objects of LLVM have more.
    yield _ar_member_header("//", len(table))
    yield table
    for member in archive.objects:
        yield _ar_member_header(f"/{places[Path(member.name).name]}", member.size)
        with archive.object_path(member).open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        # Members begin at even offsets.
        yield b"\n" * (member.size % 2)


def fat_size(archive: ArArchive) -> int:
    """Return the number of bytes that `fatten` yields."""
    table, _ = _long_names(archive)
    held = [member for member in archive.members if member.name.encode() in _AR_INDEXES]
    sizes = [len(table), *(member.size for member in (*held, *archive.objects))]
    return len(AR_MAGIC) + sum(_AR_HEADER + _even(size) for size in sizes)


def _long_names(archive: ArArchive) -> tuple[bytes, dict[str, int]]:
    """Return the table of the objects' names without their folders, and the place of each in it."""
    table, places = b"", {}
    for member in archive.objects:
        name = Path(member.name).name
        if name not in places:
            places[name] = len(table)
            table += os.fsencode(name) + b"/\n"
    return _padded(table), places


def _ar_members(file: IO[bytes], path: Path, *, thin: bool) -> Iterator[ArMember]:
    whole = os.fstat(file.fileno()).st_size
    long_names = b""
    offset = len(AR_MAGIC)
    while offset < whole:
        file.seek(offset)
        header = file.read(_AR_HEADER)
        if len(header) < _AR_HEADER or header[58:60] != _AR_HEADER_END:
            raise BadArchiveError(f"{path.name} is damaged or truncated at byte {offset}")
        raw, number = header[:16].rstrip(), header[48:58].strip()
        if not number.isdigit():
            raise BadArchiveError(f"{path.name} is damaged at byte {offset}: a size is not a number")
        size = int(number)
        # The tables of a thin archive are in it; its objects are not, although their headers give a size.
        content = offset + _AR_HEADER
        held = not thin or raw in _AR_TABLES
        if held and content + size > whole:
            raise BadArchiveError(f"{path.name} is truncated: a member ends after the end of the file")
        if raw == b"//":
            long_names = file.read(size)
        yield ArMember(_ar_name(raw, long_names, file, content), size, offset, content)
        offset = content + (_even(size) if held else 0)


def _ar_name(raw: bytes, long_names: bytes, file: IO[bytes], content: int) -> str:
    if raw in _AR_TABLES:
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


def _moved_index(path: Path, member: ArMember, moved: dict[int, int]) -> bytes:
    """Return the symbol index with the new offsets of the members."""
    with path.open("rb") as file:
        file.seek(member.content)
        content = file.read(member.size)
    number = _AR_INDEXES[member.name.encode()]
    width = struct.calcsize(number)
    (count,) = struct.unpack_from(number, content)
    old = struct.unpack_from(f">{count}{number[1]}", content, width)
    try:
        new = struct.pack(f">{count}{number[1]}", *(moved[offset] for offset in old))
    except (KeyError, struct.error) as error:
        raise BadArchiveError(f"{path.name}: its index does not match its members") from error
    return content[:width] + new + content[width + len(new) :]


def _ar_member_header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{0o644:<8o}{size:<10}".encode() + _AR_HEADER_END


def _even(size: int) -> int:
    return size + size % 2


def _padded(content: bytes) -> bytes:
    return content + b"\n" * (len(content) % 2)
