"""Split a stream of dumps while it arrives: one file per dump, everything else into output.log.

A chunk is searched for one short mark, without a loop over lines. The text between two banners is kept in
memory, up to a limit, until it is complete: only then is it known where the IR ends, and whether it is equal
to the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import OUTPUT, DumpIndex
from tritonsmith.compiler.dump.index_writer import IndexWriter
from tritonsmith.core.plan import files
from tritonsmith.ir import banners
from tritonsmith.ir.banners import Banner

# Bytes of one dump that are held in memory. A longer one goes to its file as it arrives, and ends at the next
# banner.
KEPT = 16 << 20
_LONGEST_LINE = 4 * banners.LONGEST


class Splitter:
    """A splitter of a stream: call `feed`, then `close`.

    Args:
        out: an empty folder.
        echo: called with text that is not IR, as soon as that is known.
    """

    def __init__(self, out: Path, echo: Callable[[bytes], object] | None = None) -> None:
        self._writer = IndexWriter(out)
        self._output: BinaryIO = files.create(out / OUTPUT)
        self._echo = echo
        self._echoed = 0  # bytes at the front of what is not in a file yet
        self._line: list[bytes] = []  # of a line whose end has not come yet
        self._length = 0  # of that
        self._segment: list[bytes] = []  # what came since the last banner
        self._held = 0  # bytes of it
        self._spilled: _Spilled | None = None
        self._banner: Banner | None = None
        self._raw = b""
        self._same = ("", b"")  # the last IR that was whole, and its kind
        self._begin = 0  # of that banner, in the stream
        self._size = 0  # of all that is in segments, banners included

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the stream."""
        cut = chunk.rfind(b"\n") + 1
        # No banner is that long: a longer line can be passed on before its end.
        if not cut and self._length + len(chunk) < _LONGEST_LINE:
            self._line.append(chunk)
            self._length += len(chunk)
            return
        end, begin = cut or len(chunk), 0
        if self._line:
            # Only the line is put together: a copy of the whole chunk would take as long as the search in it.
            begin = chunk.find(b"\n") + 1 or len(chunk)
            line = b"".join([*self._line, chunk[:begin]])
            self._lines(line, 0, len(line))
        self._lines(chunk, begin, end)
        self._line = [chunk[end:]] if end < len(chunk) else []
        self._length = len(chunk) - end

    def idle(self) -> None:
        """Pass on text that is known to be the program's own output; called while nothing arrives."""
        # A prompt or a progress bar has no line end, and the user waits for it.
        if self._echo is None or self._spilled:
            return
        data = b"".join(self._segment)
        body, whole = self._body(data) if self._banner else (b"", True)
        stop = len(body)
        if not whole:
            return
        line = b"".join(self._line)
        # It may be half a banner, whose rest is still to come.
        if b"-----//" not in line and b"***" not in line:
            data += line
        self._say(data[max(stop, self._echoed) :])
        self._echoed = max(len(data), self._echoed)

    def close(self, *, died: str = "", **about: Any) -> DumpIndex:
        """End the stream; write and return the index.

        Args:
            died: description of the program's crash; empty if it did not crash.
            about: fields of `DumpIndex` about the run: command, Triton, interpreter, variables, reproducers.
        """
        rest = b"".join(self._line)
        self._lines(rest, 0, len(rest))
        self._finish(last=True)
        self._output.close()
        return self._writer.close(died, size=self._size, **about)

    def stop(self) -> None:
        """Close the files, if `close` was not called."""
        self._output.close()
        self._writer.stop()
        if self._spilled:
            self._spilled.stop()

    def _lines(self, data: bytes, begin: int, end: int) -> None:
        """Cut whole lines, between two offsets, at the banners."""
        at = begin
        while mark := banners.MARKED.search(data, at, end):
            at = mark.start()
            first = data.rfind(b"\n", begin, at) + 1 or begin
            last = data.find(b"\n", at, end) + 1 or end
            # The mark alone also occurs in strings of IR, and in a program's own output.
            if last - first <= banners.LONGEST and (parsed := banners.parse(data[first:last])):
                start = first + parsed[0]
                self._text(data[begin:start])
                self._finish()
                self._begin, self._banner, self._raw = self._size, parsed[1], data[start:last]
                self._size += last - start
                begin, at = last, self._after_same(data, last, end)
            else:
                at = last
        self._text(data[begin:end])

    def _after_same(self, data: bytes, begin: int, end: int) -> int:
        """Return the offset from which a banner may follow: after the whole lines of IR that is repeated."""
        # Most passes change nothing, and to compare is many times faster than to search.
        kind, known = self._same
        whole = known.rfind(b"\n") + 1
        same = self._banner and self._banner.kind == kind and data.startswith(known, begin)
        return begin + whole if same and begin + whole <= end else begin

    def _text(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        if self._banner is None:
            self._print(data, self._echoed)
            self._echoed = max(self._echoed - len(data), 0)
        elif self._spilled:
            self._spilled.write(data)
        else:
            self._segment.append(data)
            self._held += len(data)
            if self._held > KEPT:
                self._overflow()

    def _overflow(self) -> None:
        """Write a long segment to its file: the IR ended long ago, or its rest follows as it arrives."""
        assert self._banner is not None  # noqa: S101 - for the type checker
        data = b"".join(self._segment)
        stop = banners.end(self._banner.kind, data)
        if stop is not None and stop < len(data):
            self._finish()
            self._banner = None
            return
        self._spilled = _Spilled(self._writer, self._banner, data, self._raw, self._begin)
        self._segment, self._held = [], 0

    def _finish(self, *, last: bool = False) -> None:
        """Complete the segment."""
        if self._banner is None:
            return
        if self._spilled:
            self._spilled.close(whole=not last)
            self._spilled = None
        else:
            data = self._segment[0] if len(self._segment) == 1 else b"".join(self._segment)
            body, whole = self._body(data)
            self._writer.add(self._banner, self._raw, self._begin, body, whole=whole)
            self._print(data[len(body) :], max(self._echoed - len(body), 0))
        self._segment, self._held, self._echoed = [], 0, 0
        self._banner = None

    def _body(self, data: bytes) -> tuple[bytes, bool]:
        """Return the IR at the start of a segment, and True if it is complete."""
        assert self._banner is not None  # noqa: S101 - for the type checker
        kind, known = self._same
        # Finding the end is a look at the whole text, and most passes change nothing. What LLVM logs behind
        # the IR is another line each time.
        if kind == self._banner.kind and data.startswith(known) and banners.ends_at(kind, data, len(known)):
            return known, True
        stop = banners.end(self._banner.kind, data)
        if stop is None:
            return data[: banners.crash_offset(data)], False
        self._same = (self._banner.kind, data[:stop])
        return self._same[1], True

    def _print(self, data: bytes, echoed: int = 0) -> None:
        if data:
            self._output.write(data)
            self._writer.add_output(data)
            self._say(data[echoed:])

    def _say(self, data: bytes) -> None:
        """Pass on the program's own output, without timing reports and LLVM's log of its passes."""
        if self._echo and data.strip(b"\n"):
            own = banners.log().sub(b"", pass_runs.without(data))
            if own.strip(b"\n"):
                self._echo(own)


class _Spilled:
    """A dump that is too long to hold in memory."""

    def __init__(self, writer: IndexWriter, banner: Banner, data: bytes, raw: bytes, begin: int) -> None:
        self._path, self._close = writer.add_in_pieces(banner, raw, begin, data)
        self._file = files.create(self._path)
        self._digest = hashlib.sha256()
        self._size = self._lines = 0
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write the next piece."""
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
        self._lines += data.count(b"\n")

    def stop(self) -> None:
        """Close the file."""
        self._file.close()

    def close(self, *, whole: bool) -> None:
        """Close the file and complete the dump."""
        self.stop()
        self._close(self._size, self._lines, self._digest.hexdigest(), whole)
