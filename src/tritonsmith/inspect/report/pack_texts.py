"""Pack many nearly equal texts for a browser.

Every distinct line of a chunk is stored once, a text is a list of line numbers, and the whole is deflated; a
browser can unpack this without extra code (`DecompressionStream`). Deflate alone looks back 32 KiB, less than
one dump, so it cannot see that the next dump has the same text. The browser searches and compares distinct
lines too, so it never has to write out all texts.

A chunk, before it is deflated (all numbers are little-endian, of 4 bytes):

    size of the lines    lines, in UTF-8, with a line feed between them
    for each text: its number of lines, and then for each the step from the line before it, less one

So a text whose lines are all new is a row of zeros.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from operator import sub

_FULL = 4 * 2**20  # bytes of distinct lines; a browser unpacks this in some 30 ms
_ENOUGH = 2**20  # bytes of text, from which on the next kernel gets a chunk of its own


@dataclass
class Packer:
    """A packer that takes texts one by one and returns chunks as they fill up.

    Attributes:
        texts: number of texts; equal ones count once.
        size: of all texts, in bytes; equal ones count each time.
        starts: number of the first text of each chunk.
    """

    texts: int = 0
    size: int = 0
    starts: list[int] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)
    _lines: dict[bytes, int] = field(default_factory=dict)
    _steps: list[bytes] = field(default_factory=list)
    _distinct: int = 0
    _taken: int = 0
    _last: int = -1

    def add(self, text: bytes) -> int:
        """Add a text, and return its number; an equal text keeps the first one's number."""
        self.size += len(text)
        digest = hashlib.sha256(text).digest()
        if digest in self._known:
            return self._known[digest]
        if not self._steps:
            self.starts.append(self.texts)
        number = self._known[digest] = self.texts
        self.texts += 1
        self._taken += len(text)
        self._steps.append(self._encoded(text.split(b"\n")))
        return number

    def chunk(self, *, between: bool = False) -> str | None:
        """Return the chunk in base64 if it is full, else None; between kernels, less is enough."""
        if self._distinct >= _FULL or (between and self._taken >= _ENOUGH):
            return self.rest()
        return None

    def rest(self) -> str | None:
        """Return the texts that are not in a chunk yet, in base64; None if there are none."""
        if not self._steps:
            return None
        lines = b"\n".join(self._lines)
        content = b"".join((struct.pack("<I", len(lines)), lines, *self._steps))
        self._lines, self._steps = {}, []
        self._distinct, self._taken, self._last = 0, 0, -1
        return base64.b64encode(zlib.compress(content, 9)).decode()

    def _encoded(self, lines: list[bytes]) -> bytes:
        before = len(self._lines)
        following = count(before)
        known = self._lines
        numbers = [
            known[line] if line in known else known.setdefault(line, next(following)) for line in lines
        ]
        if len(known) > before:
            self._distinct += sum(len(line) + 1 for line in _from(known, before))
        expected = [self._last + 1, *(number + 1 for number in numbers[:-1])]
        steps = array("i", [len(lines), *map(sub, numbers, expected)])
        self._last = numbers[-1]
        if sys.byteorder == "big":
            steps.byteswap()
        return steps.tobytes()


def _from(known: dict[bytes, int], first: int) -> Iterator[bytes]:
    """Yield the last lines, without a walk over all of them."""
    backwards = reversed(known)
    for _ in range(len(known) - first):
        yield next(backwards)
