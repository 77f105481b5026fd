"""`passes.dump --from-log`: split a saved log."""

from __future__ import annotations

import errno
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tritonsmith.compiler.dump import binaries, line_prefixes, provenance
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump.index import COMPILED, FILE, KEPT, OUTPUT, UNFINISHED, DumpIndex
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

CHUNK = 1 << 20
REPRODUCERS = "reproducers"
# What is in the folders of a dump that are no kernel's; one that was killed has no index that tells.
_BESIDE = {COMPILED: re.compile(r"[^/]+\.\w+"), REPRODUCERS: re.compile(r"[^/]+\.mlir")}
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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
        step = provenance.record(name, python, space, "import")
        space.run(Plan("record", (step,)), "passes.import", quiet=True)
    empty(out)
    with full_disk_told(out):
        splitter = Splitter(out)
        try:
            for chunk in line_prefixes.without(_chunks(source, progress), _say):
                splitter.feed(chunk)
        except FactError as error:
            splitter.close(command=name, python=python)
            finish(out)
            hints = ["the readable part was imported: " + command("passes.list", out)]
            raise FactError(error.what, where=error.where, why=error.why, hints=hints) from error
        index = splitter.close(command=name, python=python)
        finish(out)
        return index


@contextmanager
def full_disk_told(out: Path) -> Iterator[None]:
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


def place(source: str) -> Path:
    """Return the default folder of an imported log, in the workspace."""
    name = "stdin" if source == "-" else Path(source).name.partition(".")[0] or "log"
    return workspace.default().root / "passes" / name


def shown(source: str, out: Path, *, python: str = "") -> DumpIndex:
    """Do the same as `read`, and show its progress on the terminal."""
    with PhaseProgress() as bars:
        bars.begin("import")
        began = time.monotonic()
        index = read(source, out, python=python, progress=bars.update)
        bars.end(time.monotonic() - began)
    return index


def _is_folder_of(out: Path, name: str) -> bool:
    """Report whether a folder named by an index lies directly in `out`."""
    # An untrusted index may name `../../elsewhere`, or a link to it, and these folders are deleted.
    place = out / name
    return place.parent == out and name not in ("", ".", "..") and not place.is_symlink()


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
    paths = tuple(
        out / name
        for name in dict.fromkeys((*written, KEPT, FILE))  # the index last, which tells of the others
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
    paths = [out / OUTPUT, out / KEPT]
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


def _foreign(path: Path) -> UsageError:
    what = "this folder contains files that do not belong to the dump"
    return UsageError(what, where=path, hints=["move these files away"])


def noted(out: Path, written: Iterable[Path]) -> str:
    """Return the list of an older dump's files that a run notes before it deletes them."""
    # The run may be killed while it deletes, too.
    names = (str(path.relative_to(out)) for path in written)
    return "".join(f"{name}\n" for name in names if name.isprintable())


def empty(out: Path) -> None:
    """Create the folder, and delete the files of an older dump in it.

    Raises:
        SmithError: the folder cannot be created.
        UsageError: it holds something else.
    """
    old = older(out)
    try:
        files.make_folder(out)
        files.write_atomically(out / UNFINISHED, noted(out, old[0]))
    except OSError as error:
        raise SmithError("cannot create the output folder", where=out, why=str(error)) from error
    files.remove(*old)


def finish(out: Path) -> None:
    """Mark the dump as complete."""
    files.remove([out / UNFINISHED])


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
