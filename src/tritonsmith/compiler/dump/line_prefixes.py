"""Remove line prefixes from logs: the time (GitHub Actions), a rank (torchrun), a colour.

No parser recognises IR behind a prefix, so it is removed before a log is split. Its form is not documented
anywhere: it is the text before the first banner, if the lines after that banner begin in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tritonsmith.ir import banners

_ALIKE = 4  # lines after a banner that begin as it does: then each line of the log does
_HELD = 4 * banners.LONGEST  # bytes without a line end that are waited for
_LONGEST = 16 << 20  # bytes of those lines
_COLOUR = rb"\x1b\[[\d;]*[mK]"
_DIGITS = re.compile(rb"\d+")


def without(chunks: Iterable[bytes], say: Callable[[str], object]) -> Iterator[bytes]:
    """Yield the chunks of a log without line prefixes, from its first banner on; usually the unchanged log.

    Args:
        chunks: the log.
        say: called once with the prefix that is removed, as it stands before the first banner.
    """
    held = b""
    rest = iter(chunks)
    for chunk in rest:
        held += chunk
        begin = _first(held)
        if begin is None:  # no banner yet: all but the last line is known to be none
            cut = held.rfind(b"\n") + 1 or (len(held) if len(held) > _HELD else 0)
            yield held[:cut]
            held = held[cut:]
        elif not begin[1] or len(held) - begin[0] > _LONGEST:
            break
        elif held.count(b"\n", begin[0]) > _ALIKE:
            pattern = _pattern(held, *begin)
            if pattern is None:
                break
            say(begin[1].decode("utf-8", "replace"))
            yield held[: begin[0]]
            yield from _lines(held[begin[0] :], rest, pattern)
            return
    yield held
    yield from rest


def _first(data: bytes) -> tuple[int, bytes] | None:
    """Return the offset of the first banner's line, and the text before the banner; None if none yet."""
    at = 0
    while (at := data.find(banners.MARK, at)) >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
        if not last:
            return None
        if last - first <= banners.LONGEST and (parsed := banners.parse(_plain(data[first:last]))):
            banner = _plain(data[first:last])[parsed[0] :]
            start = data.find(banner[: banner.find(banners.MARK)], first)
            return first, data[first:start]
        at = last
    return None


def _plain(line: bytes) -> bytes:
    return re.sub(_COLOUR, b"", line) if b"\x1b" in line else line


def _pattern(data: bytes, begin: int, prefix: bytes) -> re.Pattern[bytes] | None:
    """Return a pattern of the prefix; None if the lines after the banner do not begin with it."""
    solid = prefix.rstrip(b" ") or prefix
    alike = rb"\d+".join(map(re.escape, _DIGITS.split(solid)))
    alike += rb" {0,%d}" % (len(prefix) - len(solid))  # editors take blanks at the ends of lines away
    following = data[begin:].split(b"\n", _ALIKE + 1)[1 : _ALIKE + 1]
    if not all(re.match(alike, line) for line in following):
        return None
    return re.compile(rb"(?m:^)" + alike + (rb"|" + _COLOUR if b"\x1b" in prefix else b""))


def _lines(held: bytes, rest: Iterable[bytes], pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield whole lines without the pattern."""
    for chunk in rest:
        cut = chunk.rfind(b"\n") + 1
        if not cut and len(held) < _HELD:
            held += chunk
            continue
        yield pattern.sub(b"", held + chunk[:cut])
        held = chunk[cut:]
    yield pattern.sub(b"", held)
