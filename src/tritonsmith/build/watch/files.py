"""The files that matter to a command, and their saves as they come."""

from __future__ import annotations

import ast
import errno
import hashlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import SmithError
from tritonsmith.facts import git

_SIGNAL = signal.SIGUSR1
_MILLISECONDS = 1000
_LONGEST = 1.0  # seconds for which consecutive saves are collected at most


class NamedPaths:
    """Files, and whole folders without what editors, git and Python keep there.

    Args:
        paths: the files and folders.
        relevant: returns whether a command depends on a file of a folder.
    """

    def __init__(self, paths: Iterable[Path], relevant: Callable[[Path], bool] = lambda _: True) -> None:
        self._paths, self._relevant = frozenset(paths), relevant

    def folders(self) -> frozenset[Path]:
        """Return the folders to watch."""
        folders: set[Path] = set()
        for path in self._paths:
            folders |= set(_folders(path)) if untrusted.is_dir(path) else {path.parent}
        return frozenset(folders)

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Select the paths that are named, or lie in a named folder."""
        return frozenset(path for path in paths if self._has(path))

    def _has(self, path: Path) -> bool:
        if path in self._paths:
            return True
        for folder in self._paths.intersection(path.parents):
            inner = path.relative_to(folder)
            return matters(inner) and self._relevant(path) and not untrusted.is_dir(path)
        return False


def matters(path: Path) -> bool:
    """Report whether a command may depend on a file of this name.

    Args:
        path: path relative to the watched folder.
    """
    never = configs.load("watch")["never"]
    return not any(fnmatch(path.name, name) for name in never["names"]) and not any(
        part in never["folders"] for part in path.parts[:-1]
    )


def _folders(top: Path) -> Iterator[Path]:
    never = configs.load("watch")["never"]["folders"]
    for folder, inner, _ in os.walk(top):
        # os.walk descends into what this list still names.
        inner[:] = [name for name in inner if name not in never]
        yield Path(folder)


class SavedError(KeyboardInterrupt):
    """A file was saved during a run."""


class WatchedFiles(Protocol):
    """A set of files to watch."""

    def folders(self) -> frozenset[Path]:
        """Return the folders to watch, each without its subfolders."""

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Select relevant files among paths that were changed, created or removed, and add other new ones."""


class Saves:
    """Watch files, from the beginning of a `with` to its end.

    Args:
        watched: the files to watch.
    """

    def __init__(self, watched: Sequence[WatchedFiles]) -> None:
        self._watched = watched
        self._found: queue.SimpleQueue[frozenset[Path] | Exception] = queue.SimpleQueue()
        self._over = threading.Event()
        self._heeded = False
        self._ended = 0  # nanoseconds since 1970: end of the last run
        self._digests: dict[Path, bytes] = {}
        self._main = threading.main_thread().ident or 0
        # The main thread waits for a save, or is interrupted by one as by ^C: whatever it does then is
        # stopped by the code that stops it at ^C.
        self._thread = threading.Thread(target=self._watch, name="saves", daemon=True)

    def __enter__(self) -> Self:
        self._before = signal.signal(_SIGNAL, self._hear)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        signal.signal(_SIGNAL, self._before)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Let a save interrupt the body of a `with`.

        Raises:
            SavedError: a file was saved.
        """
        self._heeded = True
        try:
            # A save that came between two runs sent its signal when nobody listened.
            if not self._found.empty():
                self._hear()
            yield
        finally:
            self._heeded, self._ended = False, time.time_ns()

    def wait(self) -> frozenset[Path]:
        """Wait for the next save, and return the saved files.

        Raises:
            SmithError: the folders cannot be watched.
        """
        saved: set[Path] = set()
        while not saved or not self._found.empty():
            event = self._found.get()
            if isinstance(event, Exception):
                raise event
            saved |= event
        return frozenset(saved)

    def _hear(self, _number: int = _SIGNAL, _frame: FrameType | None = None) -> None:
        # The signal may arrive after its save was handled.
        if self._heeded and not self._found.empty():
            self._heeded = False
            raise SavedError

    def _watch(self) -> None:
        try:
            while not self._over.is_set():
                with suppress(FileNotFoundError):  # a folder was just removed; watch the others
                    self._watch_folders()
        except (OSError, RuntimeError) as error:  # watchfiles's own errors are of both kinds
            hints = [
                "watch less: --path FILE_OR_FOLDER",
                "on a network file system: export WATCHFILES_FORCE_POLLING=1",
                "allow more: sysctl fs.inotify.max_user_watches",
            ]
            self._tell(SmithError("cannot watch these folders", why=str(error), hints=hints))
        except Exception as error:  # noqa: BLE001 - the main thread waits, and reports it as a bug
            self._tell(error)

    def _watch_folders(self) -> None:
        """Watch until the set of folders changes."""
        # It loads while the first run goes on.
        from watchfiles import Change, watch  # noqa: PLC0415

        folders = self._folders()
        if not folders:
            raise PermissionError(errno.EACCES, "none of them exists and is readable")
        together = int(configs.load("watch")["saves"]["together"] * _MILLISECONDS)
        for changes in watch(
            *sorted(folders),
            watch_filter=None,
            step=together,
            debounce=int(_LONGEST * _MILLISECONDS),
            stop_event=self._over,
            # Folder by folder: inotify counts each watch, and a recursive one would take in build
            # folders of 100,000 files.
            recursive=False,
        ):
            paths = {Path(name) for _, name in changes}
            selected = frozenset().union(*(files.select(paths) for files in self._watched))
            matter = frozenset(path for path in selected if self._counts(path))
            if matter:
                self._tell(matter)
            # A folder that was removed and made again has no watch any more: its watch
            # belonged to the old inode.
            again = any(kind is Change.added and Path(name) in folders for kind, name in changes)
            if again or self._folders() != folders:
                return

    def _folders(self) -> frozenset[Path]:
        folders: frozenset[Path] = frozenset().union(*(files.folders() for files in self._watched))
        return frozenset(path for path in folders if os.access(path, os.R_OK | os.X_OK))

    def _counts(self, path: Path) -> bool:
        """Report whether a save counts: the content changed, or no run was in progress."""
        # Whoever saves an unchanged file between runs wants another run; a save during a run may be the
        # command's.
        try:
            in_run = self._heeded or path.stat().st_mtime_ns <= self._ended
            digest = hashlib.sha256(untrusted.read_bytes(path)).digest()
        except OSError:  # it is gone, or too large
            in_run, digest = False, b""
        same = self._digests.get(path) == digest
        self._digests[path] = digest
        return not (same and in_run)

    def _tell(self, event: frozenset[Path] | Exception) -> None:
        self._found.put(event)
        # To the main thread, by name: a signal to the process may be delivered to any thread, and would
        # not interrupt a read there.
        signal.pthread_kill(self._main, _SIGNAL)


class TreeFiles:
    """The files of a folder under git that a command may depend on.

    Args:
        root: the folder.
        files: its files.
        relevant: tells whether a command depends on a file.
    """

    def __init__(self, root: Path, files: frozenset[Path], relevant: Callable[[Path], bool]) -> None:
        self._root, self._files, self._relevant = root, files, relevant

    def folders(self) -> frozenset[Path]:
        """Return the folders to watch; build and cache folders are not among them if git ignores them."""
        inner = {path.parent for path in self._files}
        # A new file may appear in a folder that has only subfolders so far.
        between = {folder for path in inner for folder in path.parents if folder.is_relative_to(self._root)}
        return frozenset((self._root, *inner, *between))

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Select the paths that are such files, before the change or after it."""
        changed, before = frozenset(paths), self._files
        # Only a name that git has not listed yet needs another run of git, which takes long in a large tree.
        if any(matters(path.relative_to(self._root)) for path in self._strange(changed)):
            self._files = _listed(self._root) or before
        return frozenset(filter(self._relevant, (changed & before) | (self._files - before)))

    def _strange(self, paths: Iterable[Path]) -> list[Path]:
        return [path for path in paths if path not in self._files and path.is_relative_to(self._root)]


def files_of_tree(root: Path, relevant: Callable[[Path], bool] = lambda _: True) -> WatchedFiles:
    """Return the files of a folder; without git, all but those that editors and Python keep there.

    Args:
        root: the folder.
        relevant: tells whether a command depends on a file.
    """
    files = _listed(root)
    return NamedPaths([root], relevant) if files is None else TreeFiles(root, files, relevant)


def _listed(root: Path) -> frozenset[Path] | None:
    answer = git.look(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if answer is None or answer.code:
        return None
    names = (Path(name) for name in answer.out.split("\0") if name)
    return frozenset(path for name in names if matters(name) and (path := root / name).exists())


class PythonFiles:
    """Python files, and the files that they import.

    Args:
        roots: the files to start from.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = tuple(roots)
        self._imports: dict[Path, tuple[Path, ...]] = {}
        self._files = self._closure()

    def folders(self) -> frozenset[Path]:
        """Return the folders to watch: not the files, because editors replace them."""
        return frozenset(path.parent for path in self._files if path.parent.is_dir())

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Select the paths that are such files, before the change or after it."""
        changed = [path for path in paths if path.suffix == ".py"]
        if not changed:
            return frozenset()
        before, self._files = self._files, self._closure()
        return frozenset(changed) & (before | self._files)

    def _closure(self) -> frozenset[Path]:
        closure: set[Path] = set()
        todo = list(self._roots)
        while todo:
            path = todo.pop()
            # Both names of a linked file: an editor may save it under either.
            if path not in closure:
                closure |= {path, untrusted.real(path)}
                todo += self._imported(path)
        return frozenset(closure)

    def _imported(self, path: Path) -> tuple[Path, ...]:
        """Return the files that a file imports; the previous ones if it cannot be parsed now."""
        try:
            tree = untrusted.python_tree(untrusted.read_bytes(path))
        except (OSError, SyntaxError, ValueError):
            return self._imports.get(path, ())
        imported = {
            file for node in ast.walk(tree) for file in _files_of(node, path) if untrusted.is_file(file)
        }
        self._imports[path] = tuple(sorted(imported))
        return self._imports[path]


def _files_of(node: ast.AST, path: Path) -> Iterator[Path]:
    """Yield the possible files of a statement's modules."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _places(path.parent, alias.name)
    elif isinstance(node, ast.ImportFrom):
        base = path.parents[min(max(node.level, 1), len(path.parents)) - 1]
        for alias in node.names:
            yield from _places(base, ".".join(filter(None, (node.module, alias.name))))


def _places(base: Path, name: str) -> Iterator[Path]:
    """Yield the possible files of `a.b.c`: a/b/c.py, or the name `c` in a/b.py, within packages."""
    for part in name.split("."):
        # `from a.b import c`: `c` may be the module a/b/c.py, or a name in a/b.py;
        # without running it both count.
        yield base / f"{part}.py"
        base /= part
        yield base / "__init__.py"
