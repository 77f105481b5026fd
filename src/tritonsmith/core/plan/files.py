"""File changes that are not steps of a plan: scratch folders, streamed dumps, the tool's own records.

Together with the steps (`plan/steps/`), marks and locks, this is all code that changes a disk:
`tests/unit/test_promises.py` scans the rest of the tool for calls that do.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

_LOG_MODE = 0o600  # what programs say is for who ran them


def make_folder(path: Path) -> None:
    """Create a folder and its parents; no error if it exists."""
    path.mkdir(parents=True, exist_ok=True)


def write(path: Path, content: str | bytes) -> None:
    """Write a file that no other process reads yet."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_script(path: Path, content: str) -> None:
    """Write a program for a folder of the tool's own."""
    write(path, content)
    path.chmod(0o755)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically; it is on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` at the end of a `with`; other processes that do so wait.

    It begins with the mode and the owner of a file that is there.
    """
    # In the same folder, and so on the same file system: `rename` is atomic only there.
    fresh = path.with_name(f".{path.name}.tritonsmith")
    with _alone(fresh) as file:
        file.truncate(0)
        # Without this a script would lose its x, and a file of root's written by `sudo` would
        # keep its owner by chance.
        if path.is_file() and not path.is_symlink():
            _become(file.fileno(), path.lstat())
        yield file
        file.flush()
        fresh.replace(path)


def _become(handle: int, other: os.stat_result) -> None:
    """Give an open file the mode of another one, and its owner where that is possible."""
    mine = os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (other.st_uid, other.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, other.st_uid, other.st_gid)
    os.fchmod(handle, stat.S_IMODE(other.st_mode))


def _alone(path: Path) -> BinaryIO:
    """Open a file to write, once nobody else does."""
    while True:
        with suppress(FileNotFoundError):
            # A link that came with a checkout leads elsewhere; a file that may not be written was left
            # by a run that was killed.
            regular = stat.S_ISREG(path.lstat().st_mode)
            if not regular or not os.access(path, os.W_OK):
                path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
        file = open(handle, "ab")  # noqa: PTH123, SIM115 - of a descriptor; the caller closes it
        with suppress(OSError):  # a network file system without locks does without
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            # While this one waited, the other may have renamed its file: then the descriptor is of a file
            # with another name, and a new one is opened.
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return file
        file.close()


@contextmanager
def growing(path: Path) -> Iterator[IO[str]]:
    """Yield a text file that is `PATH.partial` until it is complete, at the end of a `with`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def create(path: Path) -> BinaryIO:
    """Open a new file to write it piece by piece; fails if the file exists."""
    return cast("BinaryIO", path.open("xb"))


def link_or_create(path: Path, content: bytes, twin: Path | None = None) -> None:
    """Create a file, or a hard link to its twin, a file that already has this content."""
    if twin:
        # A file system without hard links, or with too many of this file.
        with suppress(OSError):
            path.hardlink_to(twin)
            return
    with path.open("xb", buffering=0) as file:
        left = memoryview(content)
        # An almost full disk takes a part of it, and says so only by the count.
        while left:
            left = left[file.write(left) :]


def append_if_any(path: Path, line: str) -> None:
    """Append a line to a file; none is made where there is no such file."""
    with suppress(FileNotFoundError):
        append(path, line)


def append(path: Path, line: str) -> None:
    """Append a line to a file that is there."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "ab", buffering=0) as file:  # noqa: PTH123 - of a descriptor
        left = memoryview(f"{line}\n".encode())
        while left:
            left = left[file.write(left) :]


def copy(source: Path, dest: Path) -> None:
    """Copy the content of a file, and create the folder of the copy if necessary."""
    dest.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, dest)


def remove(paths: Iterable[Path], folders: Iterable[Path] = ()) -> None:
    """Remove files that the tool wrote, if they exist; then folders, which must be empty."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in folders:
        folder.rmdir()


@contextmanager
def scratch(purpose: str = "", parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder for temporary files, which is removed at the end of a `with`.

    Args:
        purpose: part of its name.
        parent: the folder that it is made in, in which what cannot be removed stays; None for the system's.
    """
    # NFS keeps a file that is open, and a program may have left a child that writes.
    lenient = parent is not None
    with tempfile.TemporaryDirectory(
        prefix=f"tritonsmith-{purpose}", dir=parent, ignore_cleanup_errors=lenient
    ) as folder:
        yield Path(folder)


def opened_log(path: Path) -> AbstractContextManager[IO[str]]:
    """Return a log to append to, line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _LOG_MODE)
    # names of files may hold bytes that are no UTF-8
    return open(handle, "a", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: PTH123
