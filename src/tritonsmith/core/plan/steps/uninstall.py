"""Remove files, all or none, from a folder that the tool does not own: site-packages.

Each file is renamed into a stash beside it; then all of them are deleted, or all are put back. Order on disk:

1. the journal, which records where each file belongs, complete and synced before the first rename
2. the renames
3. the marker `committed`, synced: from here on the only way is forward
4. the stashed files, emptied folders, the journal and last the marker are deleted

A killed process leaves the stash. Without the marker its files are put back, with the marker they are deleted
(`recover`). The idea is that of pip's own uninstall (stash, commit, rollback) and of rustup's transactions.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from tritonsmith.core.errors import OwnershipError
from tritonsmith.core.plan import locks
from tritonsmith.core.plan.steps.base import Step, StepTools, quote

# On the file system of site-packages, so that a rename can move files in. pip and importlib.metadata pass
# over names that begin with `~`: pip's own stash has one.
NAME = "~tritonsmith-purge"
_JOURNAL, _MARKER = "journal.json", "committed"


@dataclass(frozen=True)
class UninstallJournal:
    """The files of one removal.

    Attributes:
        files: paths that go; the stash has each under its number.
        edits: paths that get another text; the stash has the old one under its number, after the files.
        folders: removed at the end, if they are empty then.
    """

    files: tuple[Path, ...]
    edits: tuple[tuple[Path, str], ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Removed files, then edited files."""
        return (*self.files, *(path for path, _ in self.edits))

    def stashed(self, stash: Path) -> tuple[tuple[Path, Path], ...]:
        """Return each path with its path in the stash."""
        return tuple((path, stash / str(number)) for number, path in enumerate(self.paths))

    @property
    def deepest_first(self) -> tuple[Path, ...]:
        """Folders in the order of their removal."""
        return tuple(sorted(self.folders, key=lambda folder: len(folder.parts), reverse=True))


@dataclass(frozen=True)
class Pending:
    """The state of an unfinished removal; `committed` if everything had been moved."""

    journal: UninstallJournal
    committed: bool


def pending(stash: Path) -> Pending | None:
    """Return an earlier removal's state in this stash; None if the stash does not exist.

    Raises:
        OwnershipError: a folder of that name exists, and the tool did not create it.
    """
    if not os.path.lexists(stash):
        return None
    if stash.is_symlink() or not stash.is_dir():
        raise _strange(stash)
    try:
        journal = _read(stash / _JOURNAL)
    except FileNotFoundError:
        if any(path.name.isdecimal() for path in stash.iterdir()):
            raise _strange(stash) from None
        journal = UninstallJournal(())  # killed before the first rename, or after the last deletion
    except (ValueError, KeyError, TypeError):
        raise _strange(stash) from None
    return Pending(journal, (stash / _MARKER).exists())


@dataclass(frozen=True)
class Uninstall(Step):
    """Remove files from a folder that is not the tool's own, all or nothing.

    Attributes:
        journal: files that go, files that lose lines, folders that go if that empties them.
        stash: a new folder on the same file system, where files wait until all of them are moved.
        root: everything must lie below it.
    """

    noun: ClassVar[str] = "removed file"

    journal: UninstallJournal
    stash: Path
    root: Path

    @property
    def count(self) -> int:
        return len(self.journal.files)

    def shell(self) -> list[str]:
        texts = dict(self.journal.edits)
        lines = [f"mkdir {quote(self.stash)}"]
        for path, place in self.journal.stashed(self.stash):
            lines.append(f"mv {quote(path)} {quote(place)}")
            if path in texts:  # with its old mode
                lines.append(f"cp -p {quote(place)} {quote(path)}")
                lines.append(f"printf %s {shlex.quote(texts[path])} > {quote(path)}")
        return [*lines, f"rm -rf -- {quote(self.stash)}", *map(_remove_empty, self.journal.deepest_first)]

    def act(self, tools: StepTools) -> None:
        remove(self.journal, self.stash, self.root)


@dataclass(frozen=True)
class Recover(Uninstall):
    """Finish a killed `Uninstall`: put everything back, or delete it if everything had been moved."""

    committed: bool

    def shell(self) -> list[str]:
        edited = dict(self.journal.edits)
        lines = []
        for path, place in [] if self.committed else reversed(self.journal.stashed(self.stash)):
            # An edited file exists and is replaced; a removed one that exists again was created since, by
            # pip for example, and stays.
            option = "-f" if path in edited else "-n"
            there = f"[ ! -e {quote(place)} ] && [ ! -L {quote(place)} ]"
            lines.append(f"{there} || mv {option} {quote(place)} {quote(path)}")
        emptied = self.journal.deepest_first if self.committed else ()
        return [*lines, f"rm -rf -- {quote(self.stash)}", *map(_remove_empty, emptied)]

    def act(self, tools: StepTools) -> None:
        recover(self.stash, self.root)


def _remove_empty(folder: Path) -> str:
    return f"rmdir {quote(folder)} 2> /dev/null || true"


def remove(journal: UninstallJournal, stash: Path, root: Path) -> None:
    """Remove files and change others, all or nothing.

    Args:
        journal: what to do. Files that are not there are passed over; links are unlinked, not followed.
        stash: a folder that does not exist yet, on the file system of everything that goes.
        root: everything must lie below it.

    Raises:
        OwnershipError: a path lies outside the root, or is a folder; nothing was touched.
        OSError: a file could not be moved; everything was put back.
    """
    _prove(journal, stash, root)
    _spare(journal, stash, root)
    for path in journal.paths:
        if path.is_dir() and not path.is_symlink():
            raise _refused(path, "the path is a folder")
    stash.mkdir()
    with _alone(stash):
        try:
            # The order makes it all or nothing: the journal is on disk before the first file moves,
            # the marker after the last. Killed before the marker, the next run puts everything back;
            # after it, it deletes the rest.
            _write(stash / _JOURNAL, json.dumps(asdict(journal), default=str))
            _move_in(journal, stash)
            _write(stash / _MARKER, "")
        except BaseException:
            _put_back(journal, stash)
            raise
        _delete(journal, stash)


def recover(stash: Path, root: Path) -> None:
    """Finish an earlier removal: put everything back, or delete what was committed.

    Raises:
        LockedError: that removal is still running.
        OwnershipError: the tool did not create the stash.
        OSError: a file could not be put back; the stash stays.
    """
    if pending(stash) is None:
        return
    with _alone(stash):
        unfinished = pending(stash)
        if unfinished is None:
            return
        _prove(unfinished.journal, stash, root)
        if unfinished.committed:
            _delete(unfinished.journal, stash)
        else:
            _put_back(unfinished.journal, stash)


def inside(path: Path, root: Path) -> bool:
    """Return whether an absolute path is below a resolved root; only links on the way to it are followed."""
    target = path.parent.resolve() / path.name
    return path.name not in ("", "..") and target != root and target.is_relative_to(root)


def _move_in(journal: UninstallJournal, stash: Path) -> None:
    texts = dict(journal.edits)
    for path, place in journal.stashed(stash):
        if path in texts:
            # The old file is moved away and not written to: uv installs hard links to its cache, which must
            # keep their text.
            new = place.with_suffix(".new")
            _write(new, texts[path], mode=path.stat().st_mode)
            path.replace(place)
            new.replace(path)
        elif os.path.lexists(path):
            path.replace(place)


def _put_back(journal: UninstallJournal, stash: Path) -> None:
    """Put files back in reverse order, as far as possible. A file that was created there since stays."""
    texts = dict(journal.edits)
    failures: list[OSError] = []
    # The marker may be there already, when ^C or a full disk came just after it. From here the way is back.
    (stash / _MARKER).unlink(missing_ok=True)
    for path, place in reversed(journal.stashed(stash)):
        try:
            if os.path.lexists(place) and (not os.path.lexists(path) or _is_ours(path, texts.get(path))):
                path.parent.mkdir(parents=True, exist_ok=True)
                place.replace(path)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    _dissolve(stash)


def _is_ours(path: Path, text: str | None) -> bool:
    return text is not None and path.read_bytes() == _bytes(text)


def _delete(journal: UninstallJournal, stash: Path) -> None:
    for _, place in journal.stashed(stash):
        place.unlink(missing_ok=True)
    for folder in journal.deepest_first:
        with suppress(OSError):  # it is not empty, or gone
            folder.rmdir()
    _dissolve(stash)


def _dissolve(stash: Path) -> None:
    """Delete the stash and what is left in it."""
    # The journal goes before the marker: a marker alone means that nothing is left to do, a journal alone
    # that everything must be put back.
    last = (stash / _JOURNAL, stash / _MARKER)
    for path in (*(path for path in stash.iterdir() if path not in last), *last):
        path.unlink(missing_ok=True)
    stash.rmdir()


def _prove(journal: UninstallJournal, stash: Path, root: Path) -> None:
    whole = root.resolve()
    if whole in {Path("/"), Path.home().resolve()}:
        raise _refused(root, "the root is the home folder or /")
    for path in (stash, *journal.paths, *journal.folders):
        if not inside(path, whole):
            raise _refused(path, f"the path is not below {root}")


def _spare(journal: UninstallJournal, stash: Path, root: Path) -> None:
    """Refuse files without which the environment breaks, so that the next run could not put them back."""
    site, whole = stash.parent.resolve(), root.resolve()
    way = {folder.parent.resolve() / folder.name for folder in stash.absolute().parents if folder.name}
    kept = {*way, *site.parents, site, whole / "pyvenv.cfg", whole / "bin"}  # links on the way, too
    for path in (*journal.paths, *journal.folders):
        target = path.parent.resolve() / path.name
        if target in kept or (target.parent == whole / "bin" and target.name.startswith(("python", "pypy"))):
            raise _refused(path, "the environment does not work without this file")


def _refused(path: Path, why: str) -> OwnershipError:
    return OwnershipError("refusing to remove this; nothing was touched", where=path, why=why)


def _strange(stash: Path) -> OwnershipError:
    return OwnershipError(
        "cannot read the stash of an earlier removal",
        where=stash,
        why="its journal is damaged or missing, so the original paths of its files are unknown",
        hints=["inspect the stash, and move it to another place"],
    )


def _read(path: Path) -> UninstallJournal:
    content = json.loads(path.read_text(encoding="utf-8"))
    return UninstallJournal(
        tuple(map(Path, content["files"])),
        tuple((Path(name), str(text)) for name, text in content["edits"]),
        tuple(map(Path, content["folders"])),
    )


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file atomically; it is on disk when this returns."""
    fresh = path.with_name(f"{path.name}.partial")
    with fresh.open("wb") as file:
        file.write(_bytes(text))
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(mode & 0o777)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def _alone(stash: Path) -> Iterator[None]:
    """Lock the stash against a second process; the lock ends with its process."""
    handle = os.open(stash, os.O_RDONLY)
    try:
        locks.hold_folder(handle, stash, "removing files here")
        yield
    finally:
        os.close(handle)
