"""`passes.import`: split a saved log."""

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
        source: a file, plain, by gzip or by zstd; `-` for standard input.
        out: the output folder.
        python: an interpreter that has the Triton that printed it, if anybody knows.
        progress: called with the bytes that were read, and of how many.

    Raises:
        SmithError: the file cannot be read, or the folder holds something else.
    """
    space = workspace.default()
    if python or out.is_relative_to(space.root):
        space.claim()
    name = source if source == "-" else str(Path(source).expanduser().absolute())
    if source != "-" and not Path(name).exists():
        hints = ["check the path; to read standard input: invoke passes.import -"]
        raise FactError("cannot read this log", where=source, why="no such file", hints=hints)
    if source != "-" and Path(name).is_dir():
        dumped = (Path(name) / FILE).is_file()
        hints = [f"to read a dump folder: {command('passes.list', source)}"] if dumped else []
        raise FactError("cannot read this log", where=source, why="it is a folder", hints=hints)
    if source != "-" and not Path(name).is_file():
        hints = ["to read what a program prints: PROGRAM 2>&1 | invoke passes.import -"]
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
    """Check that the log has a dump.

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
    """The default folder of an imported log, in the workspace."""
    name = "stdin" if source == "-" else Path(source).name.partition(".")[0] or "log"
    return workspace.default().root / "passes" / name


def shown(source: str, out: Path, *, python: str = "") -> DumpIndex:
    """`read`, with its progress on the terminal."""
    with PhaseProgress() as bars:
        bars.begin("import")
        began = time.monotonic()
        index = read(source, out, python=python, progress=bars.update)
        bars.end(time.monotonic() - began)
    return index


def _is_folder_of(out: Path, name: str) -> bool:
    """Whether the folder is inside `out`: an untrusted index may say `../../elsewhere`."""
    place = out / name
    return place.parent == out and name not in ("", ".", "..") and not place.is_symlink()


def older(out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Files of an older dump in a folder, and folders that they lie in.

    Raises:
        UsageError: something else is in it.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return (), ()
    if (out / UNFINISHED).is_file():
        return _unfinished(out)
    if not (out / FILE).is_file():
        hints = ["choose another folder: --out DIR"]
        raise UsageError("this folder is not empty and does not contain a dump", where=out, hints=hints)
    old = indexes.read(out)
    names = dict.fromkeys((*(one.name for one in old.kernels), COMPILED))
    folders = tuple(out / name for name in names if _is_folder_of(out, name) and (out / name).is_dir())
    written = (*(dump.path for dump in old.dumps), *binaries.names(old), *old.reproducers, old.output)
    found = tuple(
        out / name
        for name in dict.fromkeys((*written, KEPT, FILE))  # the index last, which tells of the others
        if (out / name).parent.resolve().is_relative_to(out.resolve())
    )
    left = [folder for folder in folders if set(folder.iterdir()) - set(found)]
    if left:
        raise _foreign(left[0])
    return found, folders


def _unfinished(out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Do the same for a dump whose run was killed, by the names that it noted before it wrote the files.

    A pattern would not do: a user's copy of a text has a name of the same form.

    Raises:
        UsageError: something else is in a folder of it.
    """
    names = {*untrusted.read_text(out / UNFINISHED).splitlines()}
    found = [out / OUTPUT, out / KEPT]
    folders = []
    for folder in sorted(one for one in out.iterdir() if one.is_dir() and not one.is_symlink()):
        inside = sorted(folder.iterdir())
        form = _BESIDE.get(folder.name)
        mine = [
            one
            for one in inside
            if (form.fullmatch(one.name) if form else f"{folder.name}/{one.name}" in names)
            and one.is_file()
            and not one.is_symlink()
        ]
        if mine and len(mine) < len(inside):
            raise _foreign(next(one for one in inside if one not in mine))
        if mine:
            found += mine
            folders.append(folder)
    return (*found, out / FILE), tuple(folders)


def _foreign(path: Path) -> UsageError:
    what = "this folder contains files that do not belong to the dump"
    return UsageError(what, where=path, hints=["move these files away"])


def noted(out: Path, written: Iterable[Path]) -> str:
    """What a run notes of an older dump's files before it deletes them: it may be killed then, too."""
    names = (str(path.relative_to(out)) for path in written)
    return "".join(f"{name}\n" for name in names if name.isprintable())


def empty(out: Path) -> None:
    """Create the folder, and delete the files of an older dump in it.

    Raises:
        UsageError: something else is in it.
    """
    old = older(out)
    try:
        files.make_folder(out)
        files.write_atomically(out / UNFINISHED, noted(out, old[0]))
    except OSError as error:
        raise SmithError("cannot create the output folder", where=out, why=str(error)) from error
    files.remove(*old)


def finish(out: Path) -> None:
    """All of a dump is there."""
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
    """The uncompressed log, and its size if known."""
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
