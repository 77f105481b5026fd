"""Read ELF files (64 bits, little-endian) without binutils: machine, sections, symbols of a shared library.

Nothing else of a file is read, so a library of 700 MB takes milliseconds. Sources: the System V ABI, "Symbol
Table" and "Dynamic Section"; the Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
# e_machine, by the ELF standard
_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv64", 0x15: "ppc64le"}
_HEADER = 64
_LONGEST_NAME = 1 << 12  # bytes; a damaged file may have 65,535 sections whose names have no end
# `struct` and not pyelftools, whose objects take 4.4 s instead of 0.3 s for the 46,000 dynamic symbols of an
# LLVM, and 0.2 s to import.
_SECTION = struct.Struct("<IIQQQQ")  # the rest of an entry links sections to each other
_SYMBOL = struct.Struct("<IBBHQQ")
_WEAK = 2
_TYPES = {0, 1, 2, 10}  # of symbols that stand for code or data: NOTYPE, OBJECT, FUNC, GNU_IFUNC
_NEEDED, _SONAME = 1, 14
_UNVERSIONED = 1  # of versions: local, global; and all above have a name
Content = bytes | mmap.mmap
Sections = Mapping[str, tuple[int, int]]


class DamagedElfError(ValueError):
    """The file is cut off, or its headers contradict each other."""


@dataclass(frozen=True)
class SectionHeader:
    """A section, as its header describes it; nothing has checked that the file is that long.

    Attributes:
        name: `.text.matmul`.
        kind: `sh_type`.
        flags: `sh_flags`.
        offset: in the file, in bytes.
        size: in bytes, also of a section that takes no room in the file.
    """

    name: str
    kind: int
    flags: int
    offset: int
    size: int


def machine_number(content: Content) -> int:
    """Return the `e_machine` of a file that begins with `MAGIC`.

    Raises:
        DamagedElfError: it ends before.
    """
    try:
        (number,) = struct.unpack_from("<H", content, 18)
    except struct.error as error:
        raise DamagedElfError(str(error)) from error
    return int(number)


def machine_of(path: Path) -> str:
    """Return the machine of a program or library: `x86_64`, `aarch64` ...; empty if no 64-bit ELF file.

    Raises:
        OSError: it cannot be read.
    """
    with untrusted.opened(path) as file:
        head = file.read(_HEADER)
    if len(head) < _HEADER or not head.startswith(MAGIC):
        return ""
    number = machine_number(head)
    return _MACHINES.get(number, f"machine {number}")


def sections(content: Content) -> list[SectionHeader]:
    """Return the headers of all sections, in order.

    Raises:
        DamagedElfError: their table or the one of their names is not in the file.
    """
    try:
        (start,) = struct.unpack_from("<Q", content, 0x28)
        entry, count, names = struct.unpack_from("<HHH", content, 0x3A)
        # A library that was cut off in a copy has lost its headers, which are at the end.
        if start + entry * count > len(content):
            raise DamagedElfError("the section headers extend past the end of the file")
        rows = [_SECTION.unpack_from(content, start + number * entry) for number in range(count)]
        table = rows[names][4]
    except (struct.error, IndexError) as error:
        raise DamagedElfError(str(error)) from error
    return [
        SectionHeader(_section_name(content, table + name), kind, flags, offset, size)
        for name, kind, flags, _, offset, size in rows
    ]


def section_extents(content: Content) -> dict[str, tuple[int, int]]:
    """Return offset and size in bytes of each section, cut to the file; none if the file is damaged."""
    # Callers search within these extents: a damaged file must not send them past its end.
    whole = len(content)
    try:
        headers = sections(content)
    except DamagedElfError:
        return {}
    return {
        header.name: (min(header.offset, whole), min(header.size, whole - min(header.offset, whole)))
        for header in headers
    }


def _section_name(content: Content, at: int) -> str:
    begin = min(at, len(content))
    end = content.find(b"\0", begin, begin + _LONGEST_NAME)
    return content[begin : max(begin, end)].decode("utf-8", "replace")


@dataclass(frozen=True)
class SharedLibrary:
    """A shared library.

    Attributes:
        path: the file.
        machine: the machine that it is for, such as `x86_64`.
        soname: the name that other libraries need it by; may be empty.
        needed: libraries that it needs, by these names.
        exported: names of symbols that others may use.
        missing: names that it requires from others; empty version tags mean none.
        versions: tags that it needs of others: `GLIBC_2.34`.
        strong: exported names that only one library may define; inline functions are not among them.
        defined: all names that it defines, with hidden ones if it was not stripped.
        stripped: whether it lacks hidden symbols.
    """

    path: Path
    machine: str
    soname: str
    needed: tuple[str, ...]
    exported: frozenset[str]
    missing: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = ()
    strong: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    stripped: bool = False


def read_shared_library(path: Path) -> SharedLibrary:
    """Read a shared library.

    Raises:
        FactError: it cannot be read, or is no shared library.
    """
    try:
        machine = machine_of(path)
        if not machine:
            raise FactError("this file is not a 64-bit shared library for Linux", where=path)
        with untrusted.opened(path) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
            return _read(path, machine, content, section_extents(content))
    except OSError as error:
        raise FactError("cannot read this file", where=path, why=error.strerror) from error
    except (struct.error, ValueError, IndexError) as error:
        raise FactError("this shared library is damaged or cut off", where=path, why=str(error)) from error


def _read(path: Path, machine: str, content: mmap.mmap, sections: Sections) -> SharedLibrary:
    if ".dynsym" not in sections or ".dynamic" not in sections:
        raise FactError("this file is not a shared library", where=path, why="it has no dynamic symbols")
    entries = [*_dynamic(content, sections)]
    names = {kind: [name for at, name in entries if at == kind] for kind in (_NEEDED, _SONAME)}
    tags = dict(_tags(content, sections))
    exported, strong, missing = set(), set(), {}
    symbols = _symbols(content, sections, ".dynsym", ".dynstr")
    for (name, binding, section), version in zip(symbols, _versions(content, sections), strict=False):
        if section:
            exported.add(name)
        # Weak definitions are inline functions and templates: every library may have them, and the first
        # one loaded wins. Two strong ones of a name are two copies of one code, such as LLVM's.
        if section and binding != _WEAK:
            strong.add(name)
        if name and not section and binding != _WEAK:
            missing[name] = tags.get(version, "")
    hidden = _symbols(content, sections, ".symtab", ".strtab") if ".symtab" in sections else ()
    defined = exported.union(name for name, _, section in hidden if section)
    return SharedLibrary(
        path,
        machine,
        (names[_SONAME] or [""])[0],
        tuple(names[_NEEDED]),
        frozenset(exported - {""}),
        missing,
        tuple(sorted(set(tags.values()))),
        frozenset(strong - {""}),
        frozenset(defined - {""}),
        stripped=".symtab" not in sections,
    )


def _dynamic(content: mmap.mmap, sections: Sections) -> Iterator[tuple[int, str]]:
    # Here and below sizes are cut to whole entries: a damaged header may give any.
    offset, size = sections[".dynamic"]
    for tag, value in struct.iter_unpack("<QQ", content[offset : offset + size - size % 16]):
        if tag in (_NEEDED, _SONAME):
            yield tag, _text(content, sections[".dynstr"][0] + value)


def _symbols(
    content: mmap.mmap, sections: Sections, table: str, strings: str
) -> Iterator[tuple[str, int, int]]:
    """Yield name, binding and section of each symbol; other kinds, such as files, without a name."""
    offset, size = sections[table]
    begin = sections[strings][0]
    rows = content[offset : offset + size - size % _SYMBOL.size]
    for at, info, _, section, _, _ in _SYMBOL.iter_unpack(rows):
        yield (_text(content, begin + at) if info & 15 in _TYPES else "", info >> 4, section)


def _versions(content: mmap.mmap, sections: Sections) -> Iterator[int]:
    """Yield the number of each dynamic symbol's version."""
    offset, size = sections.get(".gnu.version", (0, 0))
    if not size:
        count = sections[".dynsym"][1] // _SYMBOL.size
        yield from (_UNVERSIONED for _ in range(count))
        return
    for (number,) in struct.iter_unpack("<H", content[offset : offset + size - size % 2]):
        # The top bit marks a hidden version.
        yield number & 0x7FFF


def _tags(content: mmap.mmap, sections: Sections) -> Iterator[tuple[int, str]]:
    """Yield number and name of each version that is required from others."""
    offset, size = sections.get(".gnu.version_r", (0, 0))
    strings = sections[".dynstr"][0]
    at, end = offset, offset + size
    while at < end:
        # Elf64_Verneed and its Elf64_Vernaux: two lists, linked by offsets from the
        # record itself. A 0 ends them.
        _, count, _, first, following = struct.unpack_from("<HHIII", content, at)
        inner = at + first
        for _ in range(count):
            _, _, number, name, step = struct.unpack_from("<IHHII", content, inner)
            yield number, _text(content, strings + name)
            inner += step
        if not following:
            return
        at += following


def _text(content: mmap.mmap, at: int) -> str:
    return content[at : content.find(b"\0", at)].decode("utf-8", "replace")
