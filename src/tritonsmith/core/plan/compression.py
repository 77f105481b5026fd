"""Decompress data from start to end, in bounded memory and within fixed limits."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.core.untrusted import UnreadableError

VARIABLE = "TRITONSMITH_UNPACK_LIMIT"
_CHUNK = 1 << 16  # bytes
Progress = Callable[[int, int | None], None]  # bytes so far, and in all (None if unknown)
_NewMember = Callable[[], "bz2.BZ2Decompressor | lzma.LZMADecompressor | _Inflate"]
_ZSTD = b"\x28\xb5\x2f\xfd"  # begins a file; https://www.rfc-editor.org/rfc/rfc8878


class DamagedError(UnreadableError):
    """The data violates its format."""

    hints: tuple[str, ...] = (
        "fetch it again: a transfer may have damaged it",
        "or ask the author of the file which format it has",
    )


class TooMuchError(DamagedError):
    """The data exceeds a limit."""

    def __init__(self, what: str, *hints: str) -> None:
        super().__init__(what)
        self.hints = ("check where it comes from: no LLVM archive exceeds this limit", *hints)


@dataclass(frozen=True)
class UnpackLimits:
    """Limits of archives, from `configs/archives.toml`, which gives the reasons.

    Attributes:
        bytes: total unpacked size.
        ratio: largest ratio of unpacked to packed size; None for any.
        ratio_from: bytes below which the ratio does not count.
        entries: number of entries of an archive.
        name: bytes of a name.
        depth: nesting of folders.
        header: bytes of the extended headers of an entry.
        padding: bytes of zeros behind an archive's end.
        memory: bytes for the data unpacked last.
    """

    bytes: int
    ratio: int | None
    ratio_from: int
    entries: int
    name: int
    depth: int
    header: int
    padding: int
    memory: int


def limits() -> UnpackLimits:
    """Return the limits that apply.

    Raises:
        UsageError: the variable that raises the limits is not a size.
    """
    table = configs.load("archives")["limits"]
    raised = os.environ.get(VARIABLE, "")
    names = ("ratio_from", "entries", "name", "depth", "header", "padding", "memory")
    values: dict[str, int] = {name: int(table[name.replace("_", "-")]) for name in names}
    if not raised:
        return UnpackLimits(bytes=int(table["bytes"]), ratio=int(table["ratio"]), **values)
    return UnpackLimits(bytes=size(raised, VARIABLE), ratio=None, **values)


def size(text: str, where: str = "") -> int:
    """Return bytes from `50GB`, `1.5TiB` or `800MB`.

    Args:
        text: a number and a unit.
        where: the text comes from, if that is not obvious.

    Raises:
        UsageError: the text is not a size.
    """
    match = re.fullmatch(
        r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(i?)b?", text.strip(), re.IGNORECASE | re.ASCII
    )
    if not match:
        raise UsageError(
            f"not a size: {text!r}", where=where or None, hints=["number and unit: 50GB, 1.5TiB, 800MB"]
        )
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " kmgt".index(match[2].lower() or " "))


class Decompressed(io.RawIOBase):
    """A file, decompressed from gzip, bzip2, xz or zstd; other files are read as they are.

    Its progress counts bytes of the file as it is.
    """

    def __init__(self, raw: IO[bytes], allowed: UnpackLimits, progress: Progress | None = None) -> None:
        self._raw, self._limits, self._progress = raw, allowed, progress
        begin = raw.read(6)
        raw.seek(0)
        # The packed size is needed for the ratio: a bomb of 10 MB that unpacks to 10 GB stays
        # below the limit of bytes.
        self._packed = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        self._read_some = _reader(raw, begin, allowed)
        self._done = 0

    def readable(self) -> bool:
        """Report that it can be read, always."""
        return True

    def read(self, amount: int = -1) -> bytes:
        """Read up to `amount` bytes, fewer only at the end.

        Raises:
            DamagedError: the data ends too early, or violates its format.
            TooMuchError: the data unpacks to more than is allowed.
        """
        if amount < 0:
            raise ValueError("how much?")  # a bug of ours: nothing is read whole
        pieces = []
        while amount > 0 and (piece := self._piece(min(amount, _CHUNK))):
            pieces.append(piece)
            amount -= len(piece)
        return b"".join(pieces)

    def _piece(self, amount: int) -> bytes:
        try:
            piece = self._read_some(amount)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            raise DamagedError(_words(error)) from None
        except OSError as error:
            if error.errno is not None:
                raise
            # Python's bz2 reports damaged data by an OSError without a number; one
            # with a number is the disk's.
            raise DamagedError(_words(error)) from None
        self._done += len(piece)
        self._check()
        if self._progress and piece:
            self._progress(self._raw.tell(), self._packed)
        return piece

    def _check(self) -> None:
        raising = f"{VARIABLE}=SIZE raises the limit (200GB), if you trust the archive"
        if self._done > self._limits.bytes:
            raise TooMuchError(f"the data unpacks to more than {self._limits.bytes:,} bytes", raising)
        ratio = self._limits.ratio
        # Small files of zeros have any ratio, and do no harm.
        if ratio and self._done > max(self._limits.ratio_from, ratio * self._packed):
            raise TooMuchError(f"the data unpacks to more than {ratio} times its size", raising)


def _words(error: Exception) -> str:
    """Return a readable message."""
    message = str(error) or type(error).__name__
    # lzma says "Memory usage limit exceeded", zstd "Frame requires too much memory for decoding".
    if "emory" in message:
        return f"unpacking needs more memory than is allowed ({message})"
    return f"damaged or truncated: {message}"


def _reader(raw: IO[bytes], begin: bytes, allowed: UnpackLimits) -> Callable[[int], bytes]:
    if begin.startswith(_ZSTD):
        return _zstd(raw, allowed.memory)
    # By the first bytes, never by the file's name: a URL may end in anything, and a mirror may repack.
    kinds: dict[bytes, _NewMember] = {
        b"\x1f\x8b": _Inflate,
        b"BZh": bz2.BZ2Decompressor,
        b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=allowed.memory),
    }
    make = next((make for magic, make in kinds.items() if begin.startswith(magic)), None)
    return _Members(raw, make).read if make else raw.read


def _zstd(raw: IO[bytes], window: int) -> Callable[[int], bytes]:
    import zstandard  # noqa: PLC0415 - most archives do without

    # A frame's header chooses the window, up to 2 GiB, and the decompressor allocates it: so the limit. An
    # archive that was packed by several threads has more than one frame.
    reader = zstandard.ZstdDecompressor(max_window_size=window).stream_reader(raw, read_across_frames=True)

    def read(amount: int) -> bytes:
        try:
            piece: bytes = reader.read(amount)
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from None
        return piece

    return read


class _Members:
    """Compressed members, one after the other, with nothing between or after them."""

    def __init__(self, raw: IO[bytes], make: _NewMember) -> None:
        self._raw, self._make = raw, make
        self._member = make()

    def read(self, amount: int) -> bytes:
        while True:
            packed, wants_more = b"", False
            if self._member.eof:
                # `gzip`, `bzip2` and `xz` files may be concatenated, and pigz and pbzip2 write
                # them so. Python's decompressors stop after the first, and a reader that did so
                # would see a truncated archive.
                packed = self._member.unused_data or self._raw.read(_CHUNK)
                if not packed:
                    return b""
                self._member = self._make()
            elif self._member.needs_input:
                packed, wants_more = self._raw.read(_CHUNK), True
            if piece := self._member.decompress(packed, amount):
                return piece
            # No more input, no output, and no end: the file is truncated. A member that had input left may
            # have used it up without output, in a header between two blocks; then the file is read on first.
            if wants_more and not (packed or self._member.eof):
                raise EOFError("the data ends too early")


class _Inflate:
    """zlib's decompressor, with the interface of the others."""

    def __init__(self) -> None:
        self._zlib: Any = zlib.decompressobj(wbits=31)  # gzip

    @property
    def eof(self) -> bool:
        return bool(self._zlib.eof)

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return bytes(self._zlib.unused_data)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return bytes(self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length))
