"""A folder that is filled with untrusted names; nothing outside the folder is touched.

Every path is walked from the folder's own descriptor, component by component, without following links, and
every file is a new one. Links come last, when no file is to be written any more, and lead nowhere but into
the tree: a `..` in a link's target takes away a folder of the tree that is no link, so the target means what
it says, whatever other links there are. A hard link is made only to a regular file that was written here.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from tritonsmith.core.plan import files
from tritonsmith.core.plan.compression import DamagedError

# Each component is opened below the descriptor of its parent, and never through a link. So no archive, and no
# process that changes the tree meanwhile, can lead a write out of it; checking paths first would be a race.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFIT = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}  # names that this file system does not take

Parts = tuple[str, ...]


class FreshTree:
    """A folder that is being filled; deleted on failure, because half an archive may be what fills the disk.

    Attributes:
        root: the folder, which is made, and must not be there before.
        sums: of each file in it, by its path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sums: dict[str, str] = {}
        self._folders: set[Parts] = {()}
        # Symbolic links are made last, when nothing is written any more: an entry could otherwise be
        # written through one that came before.
        self._links: dict[Parts, str] = {}
        root.mkdir(parents=True)
        self._open: tuple[Parts, int] = ((), os.open(root, _FOLDER))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._open[1])
        if kind:
            # The first failure is the one to report; the next run removes the folder.
            with suppress(OSError):
                files.remove_tree(self.root)

    def folder(self, parts: Parts) -> None:
        """Create a folder and its missing parents."""
        with _explained(parts, self.root):
            self._enter(parts)

    def file(self, parts: Parts, pieces: Iterable[bytes], size: int, *, executable: bool, mtime: int) -> None:
        """Write a file of `size` bytes; who may read an executable one may run it.

        `mtime` is in seconds since 1970; a time in the future becomes now.

        Raises:
            DamagedError: the name exists.
            OSError: the disk is full.
        """
        sha256 = hashlib.sha256()
        with _explained(parts, self.root):
            parent = self._enter(parts[:-1])
            # Before the first byte: others share this disk, and suffer while 30 GB fill it.
            free = os.statvfs(parent)
            if size > free.f_bavail * free.f_frsize:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            handle = os.open(parts[-1], _NEW, 0o777 if executable else 0o666, dir_fd=parent)
            with open(handle, "wb", buffering=0) as file:  # noqa: PTH123 - of a descriptor
                for piece in pieces:
                    sha256.update(piece)
                    _write(file.fileno(), piece)
                # Ninja takes an output for up to date while it is newer than its inputs: one from the
                # future would never be rebuilt.
                when = min(mtime, int(time.time()))
                os.utime(file.fileno(), (when, when))
        self.sums["/".join(parts)] = sha256.hexdigest()

    def hard_link(self, parts: Parts, target: Parts) -> None:
        """Make a second name for a file that was written before.

        Raises:
            DamagedError: the name exists, or the file does not.
        """
        # `sums` has what this tree wrote itself, so a hard link reaches no file outside and no symbolic link.
        if (sha256 := self.sums.get("/".join(target))) is None:
            raise DamagedError(
                f"entry {'/'.join(parts)!r}, a link to {'/'.join(target)!r}, points to no earlier file"
            )
        with _explained(parts, self.root):
            # The next `_enter` closes the descriptor of the folder before.
            source = os.dup(self._enter(target[:-1]))
            try:
                parent = self._enter(parts[:-1])
                names = (target[-1], parts[-1])
                os.link(*names, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
            finally:
                os.close(source)
        self.sums["/".join(parts)] = sha256

    def link(self, parts: Parts, target: str) -> None:
        """Record a symbolic link, which `finish` creates."""
        if parts in self._links:
            raise DamagedError(f"entry {'/'.join(parts)!r} occurs twice")
        with _explained(parts, self.root):
            self._enter(parts[:-1])
        self._links[parts] = target

    def finish(self) -> None:
        """Create the links, and check the whole tree.

        Raises:
            DamagedError: a link points outside, or its name exists.
        """
        for parts, target in self._links.items():
            if not self._inside(parts[:-1], target):
                raise DamagedError(f"entry {'/'.join(parts)!r}, a link to {target!r}, points outside")
        for parts, target in self._links.items():
            with _explained(parts, self.root):
                os.symlink(target, parts[-1], dir_fd=self._enter(parts[:-1]))
        # Another process of this user may have put files in, which the checksums do not cover.
        self._check()

    def _enter(self, parts: Parts) -> int:
        """Return a descriptor of a folder, which is created if it is missing; valid until the next call."""
        here, handle = self._open
        if here == parts:
            return handle
        # Most entries are in, or below, the folder of the entry before: that saves most of the opens.
        common = here == parts[: len(here)]
        handle = os.dup(handle) if common else os.open(self.root, _FOLDER)
        try:
            for depth in range(len(here) if common else 0, len(parts)):
                deeper = self._step(handle, parts[depth], parts[: depth + 1])
                os.close(handle)
                handle = deeper
        except BaseException:
            os.close(handle)
            raise
        os.close(self._open[1])
        self._open = (parts, handle)
        return handle

    def _step(self, handle: int, name: str, parts: Parts) -> int:
        if parts not in self._folders:
            os.mkdir(name, 0o777, dir_fd=handle)
            self._folders.add(parts)
        return os.open(name, _FOLDER, dir_fd=handle)

    def _inside(self, here: Parts, target: str) -> bool:
        """Return whether a link in a folder points into the tree, whatever other links exist."""
        if not target or target.startswith("/"):
            return False
        for part in target.split("/"):
            if part == "..":
                # After a link, `..` would leave the link's target: only real folders can be left.
                if not here or here not in self._folders:
                    return False
                here = here[:-1]
            elif part not in ("", "."):
                here = (*here, part)
        return True

    def _check(self) -> None:
        """Check that the tree has what was put into it, and nothing else."""
        paths: set[Parts] = set()
        for folder, folders, names, handle in os.fwalk(self.root, follow_symlinks=False):
            above = Path(folder).relative_to(self.root).parts
            for name in (*folders, *names):
                parts = (*above, name)
                mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
                right = (
                    stat.S_ISLNK(mode) and os.readlink(name, dir_fd=handle) == self._links.get(parts),
                    stat.S_ISDIR(mode) and parts in self._folders,
                    stat.S_ISREG(mode) and "/".join(parts) in self.sums,
                )
                if not any(right):
                    raise DamagedError(f"{'/'.join(parts)!r} was added by another process meanwhile")
                paths.add(parts)
        if len(paths) != len(self._folders) - 1 + len(self._links) + len(self.sums):
            raise DamagedError("another process removed files meanwhile")


def _write(handle: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def _explained(parts: Parts, root: Path) -> Iterator[None]:
    """Raise errors about a name as damage of the archive; a full or read-only disk stays an OSError."""
    name = "/".join(parts)
    try:
        yield
    except FileExistsError:
        raise DamagedError(f"entry {name!r} occurs twice") from None
    except NotADirectoryError:
        raise DamagedError(f"entry {name!r} is below a file") from None
    except OSError as error:
        if error.errno in _UNFIT:
            raise DamagedError(f"entry {name[:80]!r}: {error.strerror}") from None
        raise OSError(error.errno, error.strerror, str(root)) from error
