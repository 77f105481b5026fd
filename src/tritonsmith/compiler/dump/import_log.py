"""`passes.dump --from-log`: split a saved log into a dump, and empty the folder that it goes into.

A CI system or a launcher puts a prefix before each line: the time (GitHub Actions), a rank (torchrun), a
colour. No parser recognises IR behind it, so it is removed.
"""

from __future__ import annotations

import errno
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tritonsmith.compiler.dump import binaries
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump.index import (
    CHECKED,
    COMPILED,
    FILE,
    KEPT,
    OUTPUT,
    UNFINISHED,
    DumpIndex,
)
from tritonsmith.compiler.dump.splitter import Splitter
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, files
from tritonsmith.core.plan.compression import Decompressed, limits
from tritonsmith.core.ui import console
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.core.untrusted import UnreadableError
from tritonsmith.ir import banners

CHUNK = 1 << 20
REPRODUCERS = "reproducers"
# The files in those folders of a dump that are no kernel's: a dump that was killed has no index that lists
# them.
_BESIDE = {COMPILED: re.compile(r"[^/]+\.\w+"), REPRODUCERS: re.compile(r"[^/]+\.mlir")}
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# No tool documents the form of its prefix. It is the text before the first banner, if this many lines after
# that banner begin in the same way.
_ALIKE = 4
_HELD = 4 * banners.LONGEST  # bytes without a line end that are waited for
_PREFIXED = 16 << 20  # bytes of those lines
_COLOUR = rb"\x1b\[[\d;]*[mK]"
_DIGITS = re.compile(rb"\d+")


def read(
    source: str, out: Path, *, python: str = "", progress: Callable[[int, int | None], None] = lambda *_: None
) -> DumpIndex:
    """Split a log into dumps.

    Args:
        source: a file, plain or compressed with gzip or zstd; `-` for standard input.
        out: the output folder.
        python: an interpreter that has the Triton that printed the log; empty if unknown.
        progress: called with the number of bytes read and the total, None if unknown.

    Raises:
        SmithError: the file cannot be read, or the folder holds something else.
    """
    space = workspace.default()
    if python or out.is_relative_to(space.root):
        space.claim()
    name = source if source == "-" else str(Path(source).expanduser().absolute())
    if source != "-" and not Path(name).exists():
        hints = ["check the path; to read standard input: invoke passes.dump --from-log -"]
        raise FactError("cannot read this log", where=source, why="no such file", hints=hints)
    if source != "-" and Path(name).is_dir():
        dumped = (Path(name) / FILE).is_file()
        hints = [f"to read a dump folder: {command('passes.list', source)}"] if dumped else []
        raise FactError("cannot read this log", where=source, why="it is a folder", hints=hints)
    if source != "-" and not Path(name).is_file():
        hints = ["to read what a program prints: PROGRAM 2>&1 | invoke passes.dump --from-log -"]
        raise FactError(
            "cannot read this log", where=source, why="a pipe or a device, not a file", hints=hints
        )
    if python:
        step = indexes.record_origin(name, python, space, "import")
        space.run(Plan("record", (step,)), "passes.import", quiet=True)
    empty(out)
    with explaining_full_disk(out):
        splitter = Splitter(out)
        try:
            for chunk in without_prefixes(_chunks(source, progress), _say):
                splitter.feed(chunk)
        # Half of a log that was cut off, or damaged in its compression, is still worth reading.
        except FactError as error:
            splitter.close(command=name, python=python)
            finish(out)
            hints = ["the readable part was imported: " + command("passes.list", out)]
            raise FactError(error.what, where=error.where, why=error.why, hints=hints) from error
        index = splitter.close(command=name, python=python)
        finish(out)
        return index


def read_with_progress(source: str, out: Path, *, python: str = "") -> DumpIndex:
    """Split a log into dumps as `read` does, and show the progress on the terminal."""
    with PhaseProgress() as bars:
        bars.begin("import")
        began = time.monotonic()
        index = read(source, out, python=python, progress=bars.update)
        bars.end(time.monotonic() - began)
    return index


def place(source: str) -> Path:
    """Return the default folder of an imported log, in the workspace."""
    name = "stdin" if source == "-" else Path(source).name.partition(".")[0] or "log"
    return workspace.default().root / "passes" / name


def check(index: DumpIndex) -> None:
    """Check that the log contains a dump.

    Raises:
        SmithError: there is no banner in it.
    """
    if not index.dumps:
        hints = [
            "to record a log: MLIR_ENABLE_DUMP=1 TRITON_ALWAYS_COMPILE=1 python script.py 2> log",
            "MLIR prints to standard error: check that the log contains it",
        ]
        raise SmithError("this log contains no IR of a pass", where=index.command, hints=hints)


@contextmanager
def explaining_full_disk(out: Path) -> Iterator[None]:
    """Report a full disk with the dump's folder: the error of a write names no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        hints = ["free some disk space there, or choose another folder: --out DIR"]
        raise SmithError("cannot write the dump", where=out, why=error.strerror, hints=hints) from error


def _say(prefix: str) -> None:
    console.note(
        f"every line starts with a prefix such as {prefix!r}, which is not part of the IR and is removed"
    )


def _chunks(source: str, progress: Callable[[int, int | None], None]) -> Iterator[bytes]:
    try:
        with _opened(source) as (file, total):
            done = 0
            while chunk := file.read(CHUNK):
                yield chunk
                done += len(chunk)
                progress(done, total)
    except OSError as error:
        raise FactError("cannot read this log", where=source, why=str(error)) from error
    except UnreadableError as error:
        raise FactError("cannot read this log", where=source, why=str(error), hints=error.hints) from error


@contextmanager
def _opened(source: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Yield the uncompressed log, and its size if known."""
    if source == "-":
        yield cast("BinaryIO", sys.stdin.buffer), None
        return
    path = Path(source).expanduser()
    with untrusted.opened(path) as begin:
        packed = begin.read(4).startswith((_GZIP, _ZSTD))
    with untrusted.opened(path) as file:
        if packed:
            yield cast("BinaryIO", Decompressed(file, limits())), None
        else:
            yield file, path.stat().st_size


def empty(out: Path) -> None:
    """Create the folder, and delete the files of an older dump in it.

    Raises:
        SmithError: the folder cannot be created.
        UsageError: it holds something else.
    """
    old = older(out)
    try:
        files.make_folder(out)
        files.write_atomically(out / UNFINISHED, list_files(out, old[0]))
    except OSError as error:
        raise SmithError("cannot create the output folder", where=out, why=str(error)) from error
    files.remove(*old)


def older(out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files of an older dump in a folder, and the folders that they lie in.

    Raises:
        UsageError: the folder holds something else.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return (), ()
    if (out / UNFINISHED).is_file():
        return _unfinished(out)
    if not (out / FILE).is_file():
        hints = ["choose another folder: --out DIR"]
        raise UsageError("this folder is not empty and does not contain a dump", where=out, hints=hints)
    old = indexes.read(out)
    names = dict.fromkeys((*(entry.name for entry in old.kernels), COMPILED))
    folders = tuple(out / name for name in names if _is_folder_of(out, name) and (out / name).is_dir())
    written = (*(dump.path for dump in old.dumps), *binaries.names(old), *old.reproducers, old.output)
    # The index last: as long as it is there, it tells of the others.
    paths = tuple(
        out / name
        for name in dict.fromkeys((*written, KEPT, CHECKED, FILE))
        if (out / name).parent.resolve().is_relative_to(out.resolve())
    )
    foreign = [folder for folder in folders if set(folder.iterdir()) - set(paths)]
    if foreign:
        raise _foreign(foreign[0])
    return paths, folders


def _unfinished(out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Do the same as `older` for a dump whose run was killed, by the names noted before its files.

    Raises:
        UsageError: a folder of the dump holds something else.
    """
    # A pattern alone would not do: a user's copy of a dumped text has a name of the same form.
    names = {*untrusted.read_text(out / UNFINISHED).splitlines()}
    paths = [out / OUTPUT, out / KEPT, out / CHECKED]
    folders = []
    for folder in sorted(entry for entry in out.iterdir() if entry.is_dir() and not entry.is_symlink()):
        inside = sorted(folder.iterdir())
        form = _BESIDE.get(folder.name)
        mine = [
            path
            for path in inside
            if (form.fullmatch(path.name) if form else f"{folder.name}/{path.name}" in names)
            and path.is_file()
            and not path.is_symlink()
        ]
        if mine and len(mine) < len(inside):
            raise _foreign(next(path for path in inside if path not in mine))
        if mine:
            paths += mine
            folders.append(folder)
    return (*paths, out / FILE), tuple(folders)


def _is_folder_of(out: Path, name: str) -> bool:
    """Report whether a folder named by an index lies directly in `out`."""
    # An untrusted index may name `../../elsewhere`, or a link to it, and these folders are deleted.
    place = out / name
    return place.parent == out and name not in ("", ".", "..") and not place.is_symlink()


def _foreign(path: Path) -> UsageError:
    what = "this folder contains files that do not belong to the dump"
    return UsageError(what, where=path, hints=["move these files away"])


def list_files(out: Path, written: Iterable[Path]) -> str:
    """Return the list of an older dump's files that a run notes before it deletes them."""
    # The run may be killed while it deletes, too. A name with a line end could name another file here.
    names = (str(path.relative_to(out)) for path in written)
    return "".join(f"{name}\n" for name in names if name.isprintable())


def finish(out: Path) -> None:
    """Mark the dump as complete."""
    files.remove([out / UNFINISHED])


def without_prefixes(chunks: Iterable[bytes], say: Callable[[str], object]) -> Iterator[bytes]:
    """Yield the chunks of a log without line prefixes, from its first banner on; usually the unchanged log.

    Args:
        chunks: the log.
        say: called once with the prefix that is removed, as it stands before the first banner.
    """
    held = b""
    rest = iter(chunks)
    for chunk in rest:
        held += chunk
        begin = _first_banner(held)
        # No banner yet: all lines but the last, which may be half of one, are known to be none.
        if begin is None:
            cut = held.rfind(b"\n") + 1 or (len(held) if len(held) > _HELD else 0)
            yield held[:cut]
            held = held[cut:]
        elif not begin[1] or len(held) - begin[0] > _PREFIXED:
            break
        elif held.count(b"\n", begin[0]) > _ALIKE:
            pattern = _prefix_pattern(held, *begin)
            if pattern is None:
                break
            say(begin[1].decode("utf-8", "replace"))
            yield held[: begin[0]]
            yield from _lines_without(held[begin[0] :], rest, pattern)
            return
    yield held
    yield from rest


def _first_banner(data: bytes) -> tuple[int, bytes] | None:
    """Return the offset of the first banner's line, and the text before the banner; None if none yet."""
    at = 0
    while (at := data.find(banners.MARK, at)) >= 0:
        first, last = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1
        if not last:
            return None
        if last - first <= banners.LONGEST and (parsed := banners.parse(_without_colours(data[first:last]))):
            banner = _without_colours(data[first:last])[parsed[0] :]
            start = data.find(banner[: banner.find(banners.MARK)], first)
            return first, data[first:start]
        at = last
    return None


def _without_colours(line: bytes) -> bytes:
    return re.sub(_COLOUR, b"", line) if b"\x1b" in line else line


def _prefix_pattern(data: bytes, begin: int, prefix: bytes) -> re.Pattern[bytes] | None:
    """Return a pattern of the prefix; None if the lines after the banner do not begin with it."""
    solid = prefix.rstrip(b" ") or prefix
    # Times and counters differ from line to line, in their digits only.
    alike = rb"\d+".join(map(re.escape, _DIGITS.split(solid)))
    # Editors take blanks at the ends of lines away, and an empty line of IR is all prefix.
    alike += rb" {0,%d}" % (len(prefix) - len(solid))
    following = data[begin:].split(b"\n", _ALIKE + 1)[1 : _ALIKE + 1]
    if not all(re.match(alike, line) for line in following):
        return None
    return re.compile(rb"(?m:^)" + alike + (rb"|" + _COLOUR if b"\x1b" in prefix else b""))


def _lines_without(held: bytes, rest: Iterable[bytes], pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield whole lines without the pattern."""
    for chunk in rest:
        cut = chunk.rfind(b"\n") + 1
        if not cut and len(held) < _HELD:
            held += chunk
            continue
        yield pattern.sub(b"", held + chunk[:cut])
        held = chunk[cut:]
    yield pattern.sub(b"", held)
