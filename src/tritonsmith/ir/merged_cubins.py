"""Merge cubins into one ELF file, so that one nvdisasm reads all of them, and split the text that it prints.

nvdisasm prepares its tables for half a second of CPU before it reads a file, which for most kernels is nearly
all of its time. Its text of a merged file is, kernel by kernel, what it prints for each alone.

Of each cubin, the merged file has what `nvdisasm -c -g` reads: the code, its relocations and symbols, the
attributes that list the targets of indirect branches (`.nv.info.KERNEL`), and the line table. Sources: the
System V ABI, "Sections", "Symbol Table" and "Relocation"; `readelf -SWrs` of cubins of Triton 3.4 to 3.9.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tritonsmith.core.errors import FactError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION, _SHORT_RELOCATION, _ADDRESS = struct.Struct("<QQq"), struct.Struct("<QQ"), struct.Struct("<q")
_LINES, _TEXT, _INFO, _RELOCATIONS = ".debug_line", ".text.", ".nv.info.", ".rela"
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _REL = 1, 2, 3, 4, 8, 9
_FUNCTION, _SECTION_SYMBOL = 2, 3  # STT_FUNC, STT_SECTION
_MARKS = (".note.nv.cuinfo", ".nv.compat")  # say for which GPU it is: `sm_90a`
_INFO_LINK = 0x40  # SHF_INFO_LINK: `sh_info` is the number of another section
_RESERVED = 0xFF00  # SHN_LORESERVE: numbers from here on are no sections
_NUMBER = 0xFFFFFF  # in `sh_info` of code: the symbol of its function; the bits above count registers

_HEADLINE = re.compile(r"^(//-+) (\S+) +(-+)$", re.MULTILINE)
_LABEL = re.compile(r"\.L_x_(\d+)\b")
_NAME_WIDTH = 25  # at least, in the headline of a section
_TRAILER = "SYMBOLS"  # the headline above the undefined symbols


@dataclass(frozen=True)
class _Section:
    """A section of a cubin, with the fields of its header that are copied."""

    name: str
    kind: int
    flags: int
    info: int
    align: int
    content: bytes


@dataclass
class _Table:
    """A table of strings."""

    content: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, text: str) -> int:
        at = len(self.content)
        self.content += text.encode() + b"\0"
        return at


@dataclass
class _Merged:
    """The parts of a file that is being merged.

    Attributes:
        strings: the names of symbols.
        symbols: all of them, in their order: nvdisasm numbers labels by it.
        code: sections, and the symbols of their functions: see `_NUMBER`.
        infos: attributes, and the numbers of the code that they are about.
        lines: of all line tables.
        relocations: of the code by the number of its section, 0 for those of the lines.
    """

    strings: _Table = field(default_factory=_Table)
    symbols: list[bytes] = field(default_factory=list)
    code: list[tuple[_Section, int]] = field(default_factory=list)
    infos: list[tuple[_Section, int]] = field(default_factory=list)
    lines: bytearray = field(default_factory=bytearray)
    relocations: defaultdict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))


# The sections of a merged file before its code.
_SHSTRTAB_AT, _STRTAB_AT, _SYMTAB_AT, _LINES_AT, _REST_AT, _CODE_AT = range(1, 7)


def group(cubin: bytes) -> Hashable:
    """Return what the cubins of one file have in common: the GPU and the version of the format.

    Raises:
        FactError: the file is damaged, or has several functions.
    """
    try:
        ident, kind, machine, version, _, _, _, flags, *_ = _HEADER.unpack_from(cubin)
        sections = list(_sections(cubin))
        marks = tuple(section.content for section in sections if section.name in _MARKS)
        symbols = next(section.content for section in sections if section.kind == _SYMTAB)
        functions = sum(
            info & 0xF == _FUNCTION and section > 0
            for _, info, _, section, *_ in _SYMBOL.iter_unpack(symbols)
        )
    except (struct.error, LookupError, ValueError, StopIteration) as error:
        raise FactError("this cubin is damaged", why=repr(error)) from error
    # Where one function ends as the next one begins, nvdisasm skips a number among its labels.
    if functions != 1:
        raise FactError("this cubin has several functions")
    return ident, kind, machine, version, flags, marks


def prefixes(cubins: Sequence[bytes]) -> list[str]:
    """Return a prefix for the names of each cubin, none of which is in any of them."""
    stem = "tritonsmith_"
    while any(stem.encode() in cubin for cubin in cubins):
        stem = f"_{stem}"
    return [f"{stem}{number}_." for number in range(len(cubins))]


def merge(cubins: Sequence[bytes], names: Sequence[str]) -> bytes:
    """Return one file with the code of all cubins.

    Args:
        cubins: of one group.
        names: their prefixes.

    Raises:
        FactError: one is damaged, or has something that is not known here.
    """
    merged = _Merged()
    try:
        for cubin, prefix in zip(cubins, names, strict=True):
            _add(merged, cubin, prefix)
        return _render(merged, cubins[0])
    except (struct.error, LookupError, ValueError) as error:
        raise FactError("these cubins cannot be merged", why=repr(error)) from error


def _sections(cubin: bytes) -> Iterator[_Section]:
    start, count, names_at = (_HEADER.unpack_from(cubin)[at] for at in (6, 12, 13))
    rows = [_SECTION.unpack_from(cubin, start + number * _SECTION.size) for number in range(count)]
    names = _content(cubin, rows[names_at])
    for row in rows:
        yield _Section(_string(names, row[0]), row[1], row[2], row[7], row[8], _content(cubin, row))


def _content(cubin: bytes, row: Sequence[int]) -> bytes:
    if row[1] == _NOBITS:
        return b""
    if row[4] + row[5] > len(cubin):
        raise ValueError("a section extends past the end of the file")
    return cubin[row[4] : row[4] + row[5]]


def _string(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _add(merged: _Merged, cubin: bytes, prefix: str) -> None:
    """Add what nvdisasm reads of a cubin."""
    sections = list(_sections(cubin))
    first = _CODE_AT + len(merged.code)
    code = [number for number, section in enumerate(sections) if section.name.startswith(_TEXT)]
    places = {number: first + place for place, number in enumerate(code)}
    symbols = len(merged.symbols)  # the number of the first one
    _add_symbols(merged, sections, places, prefix)
    for number in code:
        function = symbols + (sections[number].info & _NUMBER)
        merged.code.append((_renamed(sections[number], _TEXT, prefix), function))
    relocated = {number: (place, 0) for number, place in places.items()}
    relocated |= {
        number: (0, len(merged.lines)) for number, section in enumerate(sections) if section.name == _LINES
    }
    for section in sections:
        if section.name == _LINES:
            merged.lines += section.content
        elif section.name.startswith(_INFO):
            merged.infos.append((_renamed(section, _INFO, prefix), places[section.info]))
        elif section.kind in {_REL, _RELA} and section.info in relocated:
            place, shift = relocated[section.info]
            rows = _relocations(section, sections[section.info].content)
            merged.relocations[place] += [
                _RELOCATION.pack(shift + at, (symbols + number) << 32 | kind, addend)
                for at, kind, number, addend in rows
            ]


def _add_symbols(
    merged: _Merged, sections: Sequence[_Section], places: Mapping[int, int], prefix: str
) -> None:
    """Add all symbols of a cubin."""
    table = next(section.content for section in sections if section.kind == _SYMTAB)
    strings = next(section.content for section in sections if section.name == ".strtab")
    for name, info, other, section, value, size in _SYMBOL.iter_unpack(table):
        # What is defined in a section that is left out may still be named by a relocation of the code.
        left_out = 0 < section < _RESERVED and section not in places
        place = _REST_AT if left_out else places.get(section, section)
        extent = (0, 0) if left_out else (value, size)
        text = _string(strings, name)
        if info & 0xF == _SECTION_SYMBOL and section in places:
            text = f"{_TEXT}{prefix}{text.removeprefix(_TEXT)}"
        elif text:
            text = f"{prefix}{text}"
        merged.symbols.append(_SYMBOL.pack(merged.strings.add(text), info, other, place, *extent))


def _renamed(section: _Section, kind: str, prefix: str) -> _Section:
    name = f"{kind}{prefix}{section.name.removeprefix(kind)}"
    return _Section(name, section.kind, section.flags, section.info, section.align, section.content)


def _relocations(section: _Section, content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield offset, type, symbol and addend of relocations of a content.

    Raises:
        ValueError: they are of a kind that is not known here.
    """
    if section.kind == _RELA:
        for offset, info, addend in _RELOCATION.iter_unpack(section.content):
            yield offset, info & 0xFFFFFFFF, info >> 32, addend
    elif section.content and not section.name.endswith(_LINES):
        raise ValueError(f"{section.name}: code without addends")
    else:  # before compute capability 9.0, where the addend is in the place of the address
        for offset, info in _SHORT_RELOCATION.iter_unpack(section.content):
            yield offset, info & 0xFFFFFFFF, info >> 32, *_ADDRESS.unpack_from(content, offset)


def _render(merged: _Merged, first: bytes) -> bytes:
    """Return the file; its header is that of the first cubin."""
    body, names, headers = bytearray(_HEADER.size), _Table(), [bytes(_SECTION.size)]

    def put(
        name: str, kind: int, content: bytes, *, flags: int = 0, link: int = 0, info: int = 0, align: int = 1
    ) -> None:
        body.extend(bytes(-len(body) % max(align, 1)))
        entry = {_SYMTAB: _SYMBOL.size, _RELA: _RELOCATION.size}.get(kind, 0)
        at = names.add(name)
        headers.append(_SECTION.pack(at, kind, flags, 0, len(body), len(content), link, info, align, entry))
        body.extend(content)

    # In the order of the constants above. The names of the sections are known at the end.
    headers.append(b"")
    put(".strtab", _STRTAB, bytes(merged.strings.content))
    put(
        ".symtab",
        _SYMTAB,
        b"".join(merged.symbols),
        link=_STRTAB_AT,
        info=len(merged.symbols),
        align=8,
    )
    put(_LINES, _PROGBITS, bytes(merged.lines))
    put(".rest", _PROGBITS, b"")
    for section, function in merged.code:
        info = section.info & ~_NUMBER | function
        put(
            section.name,
            section.kind,
            section.content,
            flags=section.flags,
            link=_SYMTAB_AT,
            info=info,
            align=section.align,
        )
    for section in _sections(first):
        if section.name in _MARKS:
            flags = section.flags & ~_INFO_LINK
            put(section.name, section.kind, section.content, flags=flags, align=section.align)
    for section, place in merged.infos:
        put(
            section.name,
            section.kind,
            section.content,
            flags=section.flags,
            link=_SYMTAB_AT,
            info=place,
            align=section.align,
        )
    for place, rows in merged.relocations.items():
        name = merged.code[place - _CODE_AT][0].name if place else _LINES
        put(
            _RELOCATIONS + name,
            _RELA,
            b"".join(rows),
            link=_SYMTAB_AT,
            info=place or _LINES_AT,
            align=8,
        )
    put(".shstrtab", _STRTAB, b"")
    row = list(_SECTION.unpack(headers.pop()))
    row[4:6] = len(body), len(names.content)
    headers[_SHSTRTAB_AT] = _SECTION.pack(*row)
    body += names.content
    body.extend(bytes(-len(body) % 8))
    head = list(_HEADER.unpack_from(first))
    head[5], head[6] = 0, len(body)  # no program headers
    head[10], head[12], head[13] = 0, len(headers), _SHSTRTAB_AT
    body[: _HEADER.size] = _HEADER.pack(*head)
    return bytes(body) + b"".join(headers)


def split(text: str, names: Sequence[str]) -> list[str]:
    """Return the text of each cubin, as nvdisasm prints it for that cubin alone.

    Args:
        text: what `nvdisasm -c -g` prints for a merged file.
        names: the prefixes of the cubins.

    Raises:
        FactError: a part is about none of the cubins, or there is none for one of them.
    """
    cuts = [match.start() for match in _HEADLINE.finditer(text)]
    head = text[: cuts[0]] if cuts else text
    own: dict[str, list[str]] = {name: [] for name in names}
    for begin, end in itertools.pairwise([*cuts, len(text)]):
        part = text[begin:end]
        title = _headline(part)
        if title == _TRAILER:
            lines = part.splitlines(keepends=True)
            for name in names:
                # Its headline and the empty line below it, and the lines about symbols of this cubin.
                if symbols := [line for line in lines[2:] if name in line]:
                    own[name].append("".join([*lines[:2], *symbols]))
            continue
        owner = [name for name in names if title.startswith(f"{_TEXT}{name}")]
        if len(owner) != 1:
            raise FactError("nvdisasm printed a part that is of no kernel", where=title)
        own[owner[0]].append(part)
    if not all(own.values()):
        raise FactError("nvdisasm printed nothing about a kernel")
    return [_as_alone(head + "".join(parts), name) for name, parts in own.items()]


def _headline(part: str) -> str:
    match = _HEADLINE.match(part)
    return match[2] if match else ""


def _as_alone(text: str, prefix: str) -> str:
    """Return a text with the names and labels that it would have without the others."""
    # Between two sections it prints empty lines.
    text = text.rstrip("\n").replace(prefix, "") + "\n"
    text = _HEADLINE.sub(
        lambda match: (
            match[0] if match[2] == _TRAILER else f"{match[1]} {match[2]:<{_NAME_WIDTH}} {match[3]}"
        ),
        text,
    )
    # nvdisasm numbers the labels of all functions of a file in one sequence.
    numbers = sorted({int(match[1]) for match in _LABEL.finditer(text)})
    places = {number: place for place, number in enumerate(numbers)}
    return _LABEL.sub(lambda match: f".L_x_{places[int(match[1])]}", text)
