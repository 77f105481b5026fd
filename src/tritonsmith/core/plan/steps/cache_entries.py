"""Remove entries of a cache that other programs write to: one rename each, then deletion. Add entries.

Triton's cache has no lock. So an entry is removed only if it has not changed since it was inspected. Where
others may read the entry, its index is emptied first: whoever has just read the index finds the files for a
while, and everyone else compiles again, which changes the entry, so that it stays.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import stat
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from tritonsmith.core import untrusted
from tritonsmith.core.errors import OwnershipError
from tritonsmith.core.plan import files, locks
from tritonsmith.core.plan.steps.base import Step, StepTools
from tritonsmith.core.untrusted import TRASH, CacheIndex, SeenEntry

# Through descriptors and never through a link: other programs, of other users too, write
# to these folders meanwhile.
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_DEPTH = 2  # components of a name: an entry, or something in it
_FRESH = "fresh index"
_ELF_HEADER = 64  # bytes, of a 64-bit file
# In a cache that a run is filling, or has begun to fill; a clearing removes it as it does its own.
FILLING = f"{TRASH}fill"
_EVERY = 1000  # entries between two words about the progress


@dataclass(frozen=True)
class RemoveEntries(Step):
    """Remove entries that have not changed since they were inspected; everything else in the root stays.

    Attributes:
        root: the cache's folder, absolute and without a link in it.
        entries: the entries to remove.
        index: how an entry is taken out of use.
        grace: seconds between that and its removal; 0 where nobody reads, and then it is not taken out first.
    """

    root: Path
    entries: tuple[SeenEntry, ...]
    index: CacheIndex
    grace: float = 0.0

    def shell(self) -> list[str]:
        # The shell cannot tell whether an entry has changed.
        each = "printf '%s\\n' \"$entries\" | while IFS= read -r entry; do"
        lines = ["(", f"cd -P {shlex.quote(str(self.root))}", "entries=$(cat <<'EOF'"]
        lines += [*(entry.name for entry in self.entries), "EOF", ")"]
        if self.grace:
            fresh = f'printf %s {shlex.quote(self.index.empty)} > index && mv index "$index"'
            lines += [
                f'{each} for index in "./$entry"/{self.index.prefix}*; do',
                f'  if [ -f "$index" ]; then {fresh}; fi',
                "done; done",
                f"sleep {self.grace:g}",
            ]
        return [*lines, f'{each} rm -rf -- "./$entry"; done', ")"]

    def act(self, tools: StepTools) -> None:
        """Keep entries that have changed since they were inspected, or have become links.

        Raises:
            OwnershipError: the root is `/`, the home folder, or reached through a link; a name contains `..`.
            LockedError: another run is clearing the same cache.
            OSError: the root cannot be written to.
        """
        whole = len(self.entries)
        for entry in self.entries:
            _check_name(entry.name)
        with _opened(self.root) as root:
            _sweep(root)
            with _trash(root) as trash:
                going = self.entries
                if self.grace:
                    tools.update(0, whole, "taking entries out of use")
                    # Two phases. First all indexes are emptied; then, after a pause in which whoever has
                    # read an index opens its files, everything goes. Deleting at once would let a program
                    # that is compiling fail with FileNotFoundError.
                    retired = [_retire(root, entry, self.index, trash) for entry in going]
                    going = tuple(entry for entry in retired if entry)
                    time.sleep(self.grace)
                for done, entry in enumerate(going):
                    # One rename takes the whole entry out of sight. Deleting file by file would leave half
                    # an entry, which Triton before 83adb20b11 (#10411) takes for a hit.
                    if _move(root, entry, trash, str(done)):
                        _delete(trash, str(done))
                    if done % _EVERY == 0:
                        tools.update(done, whole, "deleting entries")

    @property
    def title(self) -> str:
        return f"{len(self.entries)} entries of {self.root}"


@dataclass(frozen=True)
class AddEntries(Step):
    """Copy entries into a cache, each whole or not at all; a whole entry that is there stays as it is.

    Attributes:
        root: the cache's folder, which exists.
        entries: folders of entries, each in the cache that wrote it.
        home: the folder in which the cache lies where it is used: an index names the files by absolute paths.
        index: how an entry's index is recognized.
        ours: names of entries that the tool has added before: their indexes may be written again.
        last: what is written once all entries are there; until then, the root has the folder `FILLING`.
    """

    noun: ClassVar[str] = "added entry"

    root: Path
    entries: tuple[Path, ...]
    home: Path
    index: CacheIndex
    ours: frozenset[str] = frozenset()
    last: Step | None = None

    @property
    def count(self) -> int:
        return len(self.entries)

    def shell(self) -> list[str]:
        # The shell cannot tell whether an entry that is there is whole.
        root, fresh = shlex.quote(str(self.root)), shlex.quote(str(self.root / FILLING))
        lines = [f"rm -rf -- {fresh}", f"mkdir {fresh}"]
        for entry in self.entries:
            source, name = shlex.quote(str(entry)), shlex.quote(entry.name)
            paths = shlex.quote(f"s|{entry.parent}/|{self.home}/|g")
            lines += [
                f"if [ ! -e {root}/{name} ]; then",
                f"  cp -R {source} {fresh}/",
                # An extension has no index.
                f"  for index in {fresh}/{name}/{self.index.prefix}*; do",
                f'    if [ -f "$index" ]; then sed -i {paths} "$index"; fi',
                "  done",
                f"  mv {fresh}/{name} {root}/{name}",
                "fi",
            ]
        return [*lines, *(self.last.shell() if self.last else ()), f"rm -rf -- {fresh}"]

    def act(self, tools: StepTools) -> None:
        """Complete entries that are damaged, too, and correct the indexes of those that are `ours`.

        Raises:
            OSError: the root cannot be written to; what was added until then is whole.
        """
        fresh = self.root / FILLING
        # By a descriptor, for the lock; the cache itself may be reached through a link.
        with _folder(str(self.root.resolve())) as root:
            locks.hold_folder(root, self.root, "changing this cache", wait=True)
            # Under the lock, whatever is in it was left by a run that is dead.
            _remove(root, FILLING)
            fresh.mkdir()
            try:
                for done, entry in enumerate(self.entries):
                    self._add(entry, fresh / entry.name)
                    if done % _EVERY == 0:
                        tools.update(done, len(self.entries), "adding entries")
                if self.last:
                    self.last.act(tools)
            except BaseException:
                # The folder stays: it tells that the cache is unfinished. Half an entry only fills the disk.
                for path in fresh.iterdir():
                    shutil.rmtree(path, ignore_errors=True)
                raise
            _remove(root, FILLING)

    def _add(self, entry: Path, fresh: Path) -> None:
        place = self.root / entry.name
        standing = standing_of(entry, self.root, self.home, self.index)
        if standing == "missing":
            self._copy(entry, fresh)
            try:
                # One rename: a reader, and the next run, see the whole entry or none, whatever happens.
                fresh.rename(place)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise
                # A program has begun to compile it meanwhile.
                shutil.rmtree(fresh)
        # File by file, each by a rename, and not the folder: a program that compiles it just now would
        # fail if the folder went away.
        elif standing == "damaged":
            self._copy(entry, place)
        elif standing == "elsewhere" and entry.name in self.ours:
            self._copy_indexes(entry, place)

    def _copy(self, entry: Path, place: Path) -> None:
        place.mkdir(exist_ok=True)
        for name in _names(entry):
            if name.startswith(self.index.prefix):
                continue
            with untrusted.opened(entry / name) as old, files.replacing(place / name) as new:
                shutil.copyfileobj(old, new)
        # Last, as Triton does: it takes an entry without an index for none at all.
        self._copy_indexes(entry, place)

    def _copy_indexes(self, entry: Path, place: Path) -> None:
        for name in _names(entry):
            if not name.startswith(self.index.prefix):
                continue
            content = untrusted.read_bytes(entry / name)
            # One that names nothing, or is damaged, is copied as it is: Triton compiles such an entry again.
            if children := _children(entry / name):
                table = untrusted.json_of(content)
                paths = {file: str(self.home / entry.name / file) for file in children}
                content = json.dumps({**table, "child_paths": paths}).encode()
            files.write_atomically(place / name, content)

    @property
    def title(self) -> str:
        return f"{len(self.entries)} entries to {self.root}"


Standing = Literal["missing", "whole", "damaged", "elsewhere"]


def standing_of(entry: Path, root: Path, home: Path, index: CacheIndex) -> Standing:
    """Compare an entry with what a cache has under its name.

    Args:
        entry: the entry, whole.
        root: the cache.
        home: the folder in which the cache lies where it is used.
        index: how an entry's index is recognized.

    Returns:
        `missing`; `whole`, perhaps with other content; `damaged`, if files are missing, empty or cut off;
        or `elsewhere`, if it is whole, but its index names files of another folder than `home`.
    """
    place = root / entry.name
    if not os.path.lexists(place):
        return "missing"
    names = _names(entry)
    indexes = [name for name in names if name.startswith(index.prefix)]
    # What has no index: an extension, or the result of an autotuner.
    if not indexes:
        return "whole" if all(_is_whole(entry / name, place / name) for name in names) else "damaged"
    for name in indexes:
        here = _children(place / name)
        needed = {*here, *_children(entry / name)}
        if not here or not all(file in here and _has(place / file, entry / file) for file in needed):
            return "damaged"
    named = [(file, path) for name in indexes for file, path in _children(place / name).items()]
    # By the text first: the home need not exist here. A cache may be reached through a link.
    homes = (str(home / entry.name), str(untrusted.real(home / entry.name)))
    for file, path in named:
        if not any(path == f"{folder}/{file}" for folder in homes) and (
            untrusted.real(Path(path)) != untrusted.real(home / entry.name / file)
        ):
            return "elsewhere"
    return "whole"


def _names(entry: Path) -> list[str]:
    """Return the names of an entry's files, without the lock that Triton 2.0 leaves."""
    names = (file.name for file in entry.iterdir() if file.is_file() and not file.is_symlink())
    return sorted(name for name in names if name != "lock")


def _children(file: Path) -> dict[str, str]:
    """Return the files that an index names, with their paths; nothing if it is damaged."""
    try:
        table = untrusted.read_json(file)
    except (OSError, ValueError):
        return {}
    children = table.get("child_paths") if isinstance(table, dict) else None
    if not isinstance(children, dict) or not all(isinstance(path, str) for path in children.values()):
        return {}
    return children


def _has(file: Path, ours: Path) -> bool:
    """Report whether a file is there and has content, unless ours is empty as well."""
    try:
        return untrusted.is_file(file) and (
            file.stat().st_size > 0 or (ours.is_file() and not ours.stat().st_size)
        )
    except (OSError, ValueError):  # a name that no file can have
        return False


def _is_whole(ours: Path, file: Path) -> bool:
    """Report whether a file that no index vouches for is whole; another compiler makes other bytes."""
    try:
        content = untrusted.read_bytes(file)
        if content == untrusted.read_bytes(ours):
            return True
        if file.suffix == ".so":
            return _is_whole_elf(content)
        untrusted.json_of(content)
    except (OSError, ValueError):
        return False
    return True


def _is_whole_elf(content: bytes) -> bool:
    """Report whether a 64-bit ELF file has its table of sections, which linkers write last: elf(5)."""
    if len(content) < _ELF_HEADER or content[:6] != b"\x7fELF\x02\x01":
        return False
    (begin,) = struct.unpack_from("<Q", content, 0x28)
    size, number = struct.unpack_from("<HH", content, 0x3A)
    return bool(begin and begin + size * number <= len(content))


def _remove(root: int, name: str) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(name, dir_fd=root)


def check_root(root: Path) -> None:
    """Check that entries of a folder may be removed.

    Raises:
        OwnershipError: the folder is `/`, the home folder or above it, or its path leads through a link.
    """
    home = Path.home().resolve()
    problem = None
    if not root.is_absolute() or root.resolve() != root:
        problem = "the path is relative, or leads through a link"
    elif root == Path("/") or home.is_relative_to(root):
        problem = "the folder is /, the home folder, or contains the home folder"
    if problem:
        raise OwnershipError(
            f"refusing to clear this folder: {problem}",
            where=root,
            hints=["name the cache itself: TRITON_CACHE_DIR, or --root PATH"],
        )


@contextmanager
def _opened(root: Path) -> Iterator[int]:
    """Yield a cache's root, checked and locked, as a descriptor."""
    check_root(root)
    with _folder(str(root)) as descriptor:
        # Triton itself takes no lock: this one is between two runs of this tool.
        locks.hold_folder(descriptor, root, "clearing this cache")
        yield descriptor


def _check_name(name: str) -> None:
    parts = name.split("/")
    if len(parts) > _DEPTH or any(part in ("", ".", "..") for part in parts):
        raise OwnershipError("refusing to delete this: not the name of a cache entry", where=name)


@contextmanager
def _folder(name: str, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _trash(root: int) -> Iterator[int]:
    """Yield a temporary folder in the root; it stays behind if the run is stopped."""
    name = f"{TRASH}{uuid.uuid4().hex}"
    os.mkdir(name, dir_fd=root)
    with _folder(name, root) as descriptor:
        yield descriptor
        # The file is there only if an index was retired and the rename of the next failed.
        with suppress(FileNotFoundError):
            os.unlink(_FRESH, dir_fd=descriptor)
        os.rmdir(name, dir_fd=root)


def _sweep(root: int) -> None:
    """Delete what a stopped run had moved out of the way."""
    for name in os.listdir(root):
        if name.startswith(TRASH):
            with suppress(OSError):  # a link, which rmtree refuses
                shutil.rmtree(name, dir_fd=root)


def _retire(root: int, seen: SeenEntry, index: CacheIndex, trash: int) -> SeenEntry | None:
    """Empty an entry's index; None if the entry is gone, has changed or may not be written to."""
    if "/" in seen.name:  # something in an entry, which no index names
        return seen
    with suppress(OSError):
        if not _is_as_seen(root, seen.name, seen):
            return None
        with _folder(seen.name, root) as entry:
            for file in os.listdir(entry):  # noqa: PTH208 - of a descriptor
                if file.startswith(index.prefix):
                    fresh = os.open(_FRESH, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=trash)
                    os.write(fresh, index.empty.encode())
                    os.close(fresh)
                    # Replaced, not written to: a reader that has the old index open reads it to its end.
                    os.rename(_FRESH, file, src_dir_fd=trash, dst_dir_fd=entry)
            # The rename changed the entry's own time; a later change is somebody
            # else's, who compiled it again.
            return SeenEntry(seen.name, os.fstat(entry).st_mtime_ns)
    return None


def _is_as_seen(parent: int, name: str, seen: SeenEntry) -> bool:
    about = os.stat(name, dir_fd=parent, follow_symlinks=False)
    # A folder's time changes when a file in it is made, replaced or removed: that
    # is every write of Triton's.
    return about.st_mtime_ns == seen.changed and not stat.S_ISLNK(about.st_mode)


def _move(root: int, seen: SeenEntry, trash: int, new_name: str) -> bool:
    """Move an entry out of the way, and return whether that worked."""
    with suppress(OSError), _parent(root, seen.name) as (parent, name):
        if _is_as_seen(parent, name, seen):
            os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=trash)
            return True
    return False


@contextmanager
def _parent(root: int, name: str) -> Iterator[tuple[int, str]]:
    """Yield the folder that contains an item (the root or an entry), and the item's name there."""
    entry, _, leaf = name.rpartition("/")
    if not entry:
        yield root, leaf
        return
    with _folder(entry, root) as descriptor:
        yield descriptor, leaf


def _delete(trash: int, name: str) -> None:
    try:
        with _folder(name, trash) as entry:
            for file in os.listdir(entry):  # noqa: PTH208 - of a descriptor
                os.unlink(file, dir_fd=entry)
        os.rmdir(name, dir_fd=trash)
    except NotADirectoryError:
        os.unlink(name, dir_fd=trash)
    # An entry of Triton's has files only: the quick way.
    except OSError:  # there is a folder in it
        shutil.rmtree(name, dir_fd=trash)
