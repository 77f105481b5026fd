"""Entries of a cache that other programs write to: out of the way in one rename, then deleted.

Triton's cache has no lock. So an entry goes only if it is as it was when somebody looked at it, and its index
goes first: whoever has just read it still finds the other files for a while, everyone else misses.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.errors import LockedError, OwnershipError
from tritonsmith.plan.steps import Step

TRASH = ".tritonsmith-trash-"  # begins the name of a run's own folder in the root; the next run empties it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW  # never through a link
_DEPTH = 2  # components of a name: an entry, or something in it
_EVERY = 1000  # entries between two words about the progress

Update = Callable[[int, int | None, str], None]


@dataclass(frozen=True)
class Seen:
    """Something in a cache, as it was when it was looked at.

    Attributes:
        name: `ENTRY`, or `ENTRY/NAME` for something in an entry.
        changed: its modification time, in nanoseconds.
    """

    name: str
    changed: int


@dataclass(frozen=True)
class RemoveEntries(Step):
    """Remove entries that have not changed since they were looked at; anything else in the root stays.

    Attributes:
        root: the cache's folder, absolute and without a link in it.
        entries: what goes.
        index: prefix of the file by which readers find the others of an entry.
        grace: seconds between taking the indexes away and the rest; 0 where nobody reads.
    """

    root: Path
    entries: tuple[Seen, ...]
    index: str
    grace: float = 0.0

    def shell(self) -> list[str]:
        """The step as lines of POSIX shell, which cannot tell whether an entry has changed."""
        each = "printf '%s\\n' \"$entries\" | while IFS= read -r entry; do"
        lines = ["(", f"cd -P {shlex.quote(str(self.root))}", "entries=$(cat <<'EOF'"]
        lines += [*(entry.name for entry in self.entries), "EOF", ")"]
        if self.grace:
            lines += [f'{each} rm -f -- "./$entry"/{self.index}*; done', f"sleep {self.grace:g}"]
        return [*lines, f'{each} rm -rf -- "./$entry"; done', ")"]

    @property
    def title(self) -> str:
        """A few words for the progress bar and the log."""
        return f"{len(self.entries)} entries of {self.root}"


@dataclass(frozen=True)
class _Retired:
    """Something that goes, as it is without its index.

    Attributes:
        name: as in `Seen`.
        changed: its modification time since then, in nanoseconds.
        files: names in it.
    """

    name: str
    changed: int
    files: tuple[str, ...] = ()


def act(step: RemoveEntries, update: Update) -> None:
    """Do the step. What has changed since it was looked at stays, and so does what has become a link.

    Args:
        step: what to remove.
        update: told how much is done, of how much, and what is going on.

    Raises:
        OwnershipError: the root is `/`, the home folder, or reached through a link; a name climbs.
        LockedError: another run clears the same cache.
        OSError: the root cannot be written to.
    """
    whole = 2 * len(step.entries)
    for seen in step.entries:
        _check_name(seen.name)
    with _opened(step.root) as root:
        _sweep(root)
        with _trash(root) as trash:
            retired: list[_Retired] = []
            for done, seen in enumerate(step.entries):
                if entry := _retire(root, seen, step.index):
                    retired.append(entry)
                if done % _EVERY == 0:
                    update(done, whole, "taking entries out of use")
            time.sleep(step.grace if retired else 0)
            for done, entry in enumerate(retired):
                if _move(root, entry, trash, str(done)):
                    _delete(trash, str(done), entry.files)
                if done % _EVERY == 0:
                    update(len(step.entries) + done, whole, "deleting entries")


def check_root(root: Path) -> None:
    """Make sure that a folder may be cleared of entries.

    Raises:
        OwnershipError: it is `/`, the home folder or above it, or its path leads through a link.
    """
    home = Path.home().resolve()
    problem = None
    if not root.is_absolute() or root.resolve() != root:
        problem = "its path is relative, or leads through a link"
    elif root == Path("/") or home.is_relative_to(root):
        problem = "it is /, the home folder, or holds the home folder"
    if problem:
        raise OwnershipError(
            f"will not clear this folder: {problem}",
            where=root,
            hints=["name the cache itself: TRITON_CACHE_DIR, or --root PATH"],
        )


@contextmanager
def _opened(root: Path) -> Iterator[int]:
    """The root as a descriptor: whatever happens to its path, only this folder's entries go."""
    check_root(root)
    with _folder(str(root)) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                "another run is clearing this cache", where=root, hints=["wait for it to end"]
            ) from None
        except OSError:  # NFS locks no folder: two runs at once may leave something to the next
            pass
        yield descriptor


def _check_name(name: str) -> None:
    parts = name.split("/")
    if len(parts) > _DEPTH or any(part in ("", ".", "..") for part in parts):
        raise OwnershipError("will not delete this: it is no name of something in a cache", where=name)


@contextmanager
def _folder(name: str, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _trash(root: int) -> Iterator[int]:
    """A folder of this run's own in the root; it stays behind if the run is stopped."""
    name = f"{TRASH}{uuid.uuid4().hex}"
    os.mkdir(name, dir_fd=root)
    with _folder(name, root) as descriptor:
        yield descriptor
        os.rmdir(name, dir_fd=root)


def _sweep(root: int) -> None:
    """Delete what a run that was stopped had moved out of the way."""
    for name in os.listdir(root):
        if name.startswith(TRASH):
            with suppress(OSError):  # a link, which rmtree refuses
                shutil.rmtree(name, dir_fd=root)


def _retire(root: int, seen: Seen, index: str) -> _Retired | None:
    """Take an entry's index away; None if it is gone, has changed or may not be written to."""
    with suppress(OSError), _parent(root, seen.name) as (parent, name):
        about = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if about.st_mtime_ns != seen.changed:
            return None
        if stat.S_ISREG(about.st_mode):
            return _Retired(seen.name, seen.changed)
        with _folder(name, parent) as entry:
            files = os.listdir(entry)  # noqa: PTH208 - of a descriptor
            indexes = [file for file in files if file.startswith(index)]
            for file in indexes:
                os.unlink(file, dir_fd=entry)
            rest = tuple(file for file in files if file not in indexes)
            return _Retired(seen.name, os.fstat(entry).st_mtime_ns, rest)
    return None


def _move(root: int, entry: _Retired, trash: int, new_name: str) -> bool:
    """Whether it is out of the way: it stays if somebody has written to it since."""
    with suppress(OSError), _parent(root, entry.name) as (parent, name):
        about = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if about.st_mtime_ns == entry.changed:
            os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=trash)
            return True
    return False


@contextmanager
def _parent(root: int, name: str) -> Iterator[tuple[int, str]]:
    """The folder that something lies in, the root or an entry, and its name there."""
    entry, _, leaf = name.rpartition("/")
    if not entry:
        yield root, leaf
        return
    with _folder(entry, root) as descriptor:
        yield descriptor, leaf


def _delete(trash: int, name: str, files: tuple[str, ...]) -> None:
    try:
        with _folder(name, trash) as entry:
            for file in files:
                os.unlink(file, dir_fd=entry)
        os.rmdir(name, dir_fd=trash)
    except NotADirectoryError:
        os.unlink(name, dir_fd=trash)
    except OSError:  # a folder in it
        shutil.rmtree(name, dir_fd=trash)
