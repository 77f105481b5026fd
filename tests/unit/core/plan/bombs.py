"""Archives of a few KiB that ask for GiB, and others that no program writes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

ZEROS = bytes(1 << 20)
MANY = 120  # MiB: more than may come of so few bytes, and more than a confined process has


def header(
    name: str, size: int = 0, kind: bytes = b"0", target: str = "", magic: bytes = b"ustar\x0000"
) -> bytes:
    """A header of an entry, whatever it says."""
    number = f"{size:011o}\0".encode() if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    fields = (name.encode(), b"0000644", b"0", b"0", number, b"0", b" " * 8, kind, target.encode(), magic)
    block = bytearray(struct.pack("100s8s8s8s12s12s8ss100s8s", *fields).ljust(512, b"\0"))
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block)


def entry(name: str, content: bytes, kind: bytes = b"0") -> bytes:
    """A header and a content."""
    return header(name, len(content), kind) + content + bytes(-len(content) % 512)


END = bytes(1024)


def zstd(plain: Iterator[bytes]) -> bytes:
    """Packed as an export is."""
    out = io.BytesIO()
    with zstandard.ZstdCompressor(level=1).stream_writer(out, closefd=False) as writer:
        for piece in plain:
            writer.write(piece)
    return out.getvalue()


def zeros(mebibytes: int = MANY) -> Iterator[bytes]:
    for _ in range(mebibytes):
        yield ZEROS


def with_zeros(before: bytes, mebibytes: int = MANY, after: bytes = END) -> bytes:
    """An archive with many zeros in it."""

    def pieces() -> Iterator[bytes]:
        yield before
        yield from zeros(mebibytes)
        yield after

    return zstd(pieces())


def sparse(name: str) -> bytes:
    """A sparse file of 256 GiB, as GNU tar writes it: a map in the header, and no content."""
    with tarfile.open(fileobj=(out := io.BytesIO()), mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo(name)
        member.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.name": name,
            "GNU.sparse.size": str(256 << 30),
            "GNU.sparse.numblocks": "1",
            "GNU.sparse.map": f"{256 << 30},0",
        }
        tar.addfile(member)
    return out.getvalue()[:-10240] if out.getvalue().endswith(bytes(10240)) else out.getvalue()


def wide_zstd() -> bytes:
    """A frame that wants a window of 2 GiB, with one small block in it."""
    return b"\x28\xb5\x2f\xfd" + bytes([0, 21 << 3]) + struct.pack("<I", 1 | 4 << 3)[:3] + b"1234"


def wide_xz() -> bytes:
    """A stream that wants a dictionary of 3 GiB."""
    whole = bytearray(lzma.compress(ZEROS[:5000], format=lzma.FORMAT_XZ))
    length = (whole[12] + 1) * 4
    at = whole.index(b"\x21\x01", 12) + 2
    whole[at] = 39
    whole[12 + length - 4 : 12 + length] = struct.pack("<I", zlib.crc32(whole[12 : 12 + length - 4]))
    return bytes(whole)


def extended(kind: bytes) -> bytes:
    """An extended header of many zeros."""
    return with_zeros(header("x", MANY << 20, kind), after=header("tree/a") + END)


def endless() -> bytes:
    """Extended headers without end."""
    return zstd(iter([entry("x", b"12 path=abc\n", b"x") * 5000, header("tree/a"), END]))


MAKERS: dict[str, Callable[[str], bytes]] = {
    "a first entry of many zeros": lambda head: with_zeros(header(head, MANY << 20)),
    "a file of many zeros": lambda _: with_zeros(header("tree/zeros", MANY << 20)),
    "zeros behind its end": lambda _: with_zeros(entry("tree/a", b"x") + END),
    "a pax header of many zeros": lambda _: extended(b"x"),
    "a global header of many zeros": lambda _: extended(b"g"),
    "a long name of many zeros": lambda _: extended(b"L"),
    "extended headers without end": lambda _: endless(),
    "a sparse file": lambda _: zstd(iter([sparse("tree/hole"), END])),
    "an old sparse file": lambda _: zstd(iter([header("tree/hole", 0, b"S", magic=b"ustar  \0"), END])),
    "a window of 2 GiB": lambda _: wide_zstd(),
    "a dictionary of 3 GiB": lambda _: wide_xz(),
    "gzip": lambda _: gzip.compress(header("tree/zeros", MANY << 20) + ZEROS * MANY, 6),
    "bzip2": lambda _: bz2.compress(header("tree/zeros", MANY << 20) + ZEROS * MANY, 9),
}


def write(folder: Path, name: str, head: str = "tree/first") -> Path:
    """A bomb in a file."""
    path = folder / "bomb.tar.zst"
    path.write_bytes(MAKERS[name](head))
    return path
