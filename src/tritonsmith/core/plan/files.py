"""Change files outside of a plan, and delete them only below folders that the tool marked as its own.

Outside of a plan are scratch folders, streamed dumps and the tool's own records. Together with the steps
(`plan/steps/`) and locks, this is all code that changes a disk: `tests/unit/test_promises.py` scans the rest
of the tool for calls that do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from tritonsmith.core.errors import OwnershipError

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


def write_atomically(path: Path, content: str | bytes | Iterator[str], *, wait: bool = True) -> None:
    """Write a file atomically; it is on disk when this returns.

    Args:
        path: the file.
        content: its new content, perhaps in pieces.
        wait: wait while another process writes it.

    Raises:
        BlockingIOError: another process writes it, and `wait` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, wait=wait) as file:
        for piece in (content,) if isinstance(content, (str, bytes)) else content:
            file.write(piece.encode() if isinstance(piece, str) else piece)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path, *, wait: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` at the end of a `with`; other processes that do so wait.

    It begins with the mode and the owner of a file that is there.

    Raises:
        BlockingIOError: another process does so, and `wait` is False.
    """
    # In the same folder, and so on the same file system: `rename` is atomic only there.
    fresh = path.with_name(f".{path.name}.tritonsmith")
    with _alone(fresh, wait=wait) as file:
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


def _alone(path: Path, *, wait: bool) -> BinaryIO:
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
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        except OSError:  # a network file system without locks does without
            pass
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


def link_or_create(path: str, content: bytes, twin: str = "") -> None:
    """Create a file, or a hard link to its twin, a file that already has this content."""
    # Texts: to make paths of them would take as long as a link does, for each of thousands of dumps.
    if twin:
        # A file system without hard links, or with too many of this file.
        with suppress(OSError):
            os.link(twin, path)
            return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        _write_all(handle, content)
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    # An almost full disk takes a part of it, and says so only by the count.
    done = os.write(handle, content)
    while done < len(content):
        done += os.write(handle, memoryview(content)[done:])


def appending(path: Path) -> BinaryIO | None:
    """Open a file for `append_line`; None where there is no such file."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    # Without a buffer: each line is in the file when `append_line` returns.
    return open(handle, "ab", buffering=0)  # noqa: PTH123 - of a descriptor


def append_line(file: BinaryIO, line: str) -> None:
    """Append a line to a file that `appending` opened."""
    _write_all(file.fileno(), f"{line}\n".encode())


def append(path: Path, line: str) -> None:
    """Append a line to a file that is there."""
    file = appending(path)
    if file is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    with file:
        append_line(file, line)


def size_and_time(file: Path) -> tuple[int, int]:
    """Return a file's size and the time of its last change in nanoseconds; zeros if it cannot be found."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def copy(source: Path, dest: Path, *, dated: bool = False) -> None:
    """Copy the content of a file, and create the folder of the copy if necessary.

    Args:
        source: the file.
        dest: the copy.
        dated: the copy has the time of the file, and not that of now.
    """
    dest.parent.mkdir(parents=True, exist_ok=True)
    # Before the content: if another program replaces the file meanwhile, the copy is too old, not too young.
    status = source.stat()
    shutil.copyfile(source, dest)
    if dated:
        os.utime(dest, ns=(status.st_atime_ns, status.st_mtime_ns))


def rename_if_any(source: Path, dest: Path) -> None:
    """Rename a file that the tool wrote, if it exists."""
    with suppress(FileNotFoundError):
        source.rename(dest)


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
    # Names of files may hold bytes that are not UTF-8.
    return open(handle, "a", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: PTH123


# https://bford.info/cachedir/: backup programs pass over folders that hold this file.
CACHEDIR_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
_TAG = "CACHEDIR.TAG"
_MARKER = "tritonsmith-owned"
_BEGUN = re.compile(rf"{re.escape(_TAG)}(\.\d+)?")


def mark(root: Path) -> None:
    """Mark `root` as a folder of the tool. Refuses a folder that holds other files.

    Raises:
        OwnershipError: the folder exists, is not empty and carries no mark.
    """
    if is_marked(root):
        return
    # A run that was killed between the tag and the marker leaves the tag alone, which is no foreign file.
    foreign = root.is_dir() and any(not is_begun(entry) for entry in root.iterdir())
    # Asked again: another process may have marked it between the two looks.
    if foreign and not is_marked(root):
        raise OwnershipError(
            "refusing to use a folder that already contains files",
            where=root,
            why="later commands may delete everything in the workspace",
            hints=["set TRITONSMITH_HOME to an empty or new folder"],
        )
    root.mkdir(parents=True, exist_ok=True)
    # Whoever marks the folder at the same time, another thread perhaps, sees no half tag and moves its own.
    fresh = root / f"{_TAG}.{threading.get_native_id()}"
    fresh.write_text(f"{CACHEDIR_SIGNATURE}\n# This folder belongs to tritonsmith.\n", encoding="ascii")
    fresh.replace(root / _TAG)
    (root / _MARKER).write_text("schema = 1\n", encoding="ascii")


def is_begun(path: Path) -> bool:
    """Return whether an entry of a folder belongs to a process that marks the folder, or was killed then."""
    return bool(_BEGUN.fullmatch(path.name)) and not path.is_symlink()


def is_marked(root: Path) -> bool:
    """Return whether `root` has a valid tag and marker, neither of them a link."""
    tag, marker = root / _TAG, root / _MARKER
    # A link may lead to the marker of another folder.
    if tag.is_symlink() or marker.is_symlink() or not marker.is_file() or not tag.is_file():
        return False
    return tag.read_bytes().startswith(CACHEDIR_SIGNATURE.encode())


def check_owned(path: Path, root: Path) -> Path:
    """Check that a path may be deleted, and return it without the links on the way to it.

    It must lie below a marked root.

    Raises:
        OwnershipError: the path is elsewhere, or must not be deleted.
    """
    problem = _problem(path, root)
    if problem:
        raise OwnershipError(
            f"refusing to delete this: {problem}",
            where=path,
            why=f"deletions are confined to {root}",
            hints=["delete it by hand if you are sure"],
        )
    # The last component is not resolved, so that a link itself is deleted and never its target.
    return path.parent.resolve() / path.name


def _problem(path: Path, root: Path) -> str | None:
    if not path.is_absolute() or ".." in path.parts or not path.name:
        return "the path is relative, empty or contains .."
    if root.resolve() in {Path("/"), Path.home().resolve()}:
        return "the root is the home folder or /"
    if not is_marked(root):
        return "the root has no marker of tritonsmith"
    target = path.parent.resolve() / path.name
    if not target.is_relative_to(root.resolve()) or target == root.resolve():
        return "the path is outside the root"
    return None if target.is_symlink() else _held(target)


def _held(target: Path) -> str | None:
    """Return the content of a folder that must not be deleted; None if there is none."""
    if Path.home().resolve().is_relative_to(target):
        return "the folder contains the home folder"
    # A disk that is mounted inside, or a bind mount of a container, holds what is not ours.
    if os.path.ismount(target) or any(mount.is_relative_to(target) for mount in _mount_points()):
        return "the folder is, or contains, a mount point"
    return None


def _mount_points() -> list[Path]:
    """Mount points, including bind mounts, which `os.path.ismount` does not detect."""
    import psutil  # noqa: PLC0415 - only deletions look

    return [Path(part.mountpoint) for part in psutil.disk_partitions(all=True)]


def remove_owned(path: Path, root: Path) -> None:
    """Delete one path that `check_owned` accepts: links are unlinked, folders deleted with their content."""
    target = check_owned(path, root)
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        remove_tree(target)


def remove_tree(folder: Path) -> None:
    """Delete a folder and its content, including folders without permissions.

    Raises:
        OSError: a path cannot be deleted; the error names its full path.
    """
    try:
        shutil.rmtree(folder)
    except PermissionError:
        _unlock(folder)
        # A build may have made folders read-only (Go's module cache, Nix). A second try tells
        # which path is in the way.
        shutil.rmtree(folder, onerror=_named)


def _unlock(folder: Path) -> None:
    """Make a folder and its subfolders accessible where we own them; links are not followed."""
    for place, folders, _, handle in os.fwalk(folder.parent, follow_symlinks=False):
        here = Path(place)
        folders[:] = [folder.name] if here == folder.parent else folders
        for name in folders:
            about = os.stat(name, dir_fd=handle, follow_symlinks=False)
            locked = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_IRWXU != stat.S_IRWXU
            if locked and about.st_uid == os.geteuid():
                os.chmod(name, stat.S_IRWXU, dir_fd=handle)


def _named(_: object, path: str, failure: tuple[object, BaseException, object]) -> None:
    """Add the full path to an error of `shutil.rmtree`, which works with names below descriptors."""
    error = failure[1]
    raise OSError(error.errno, error.strerror, path) if isinstance(error, OSError) else error
