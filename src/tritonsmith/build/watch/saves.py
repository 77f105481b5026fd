"""Saved files, as they come: a thread watches folders, and reports relevant saves to the main thread.

The main thread waits for a save, or is interrupted by one as by ^C: so whatever it is doing is stopped by
the same code that stops it at ^C.
"""

from __future__ import annotations

import errno
import hashlib
import os
import queue
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import SmithError

_SIGNAL = signal.SIGUSR1
_MILLISECONDS = 1000
_LONGEST = 1.0  # seconds for which consecutive saves are collected at most


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
        if self._heeded and not self._found.empty():  # the signal may arrive after its save was handled
            self._heeded = False  # the next save must not interrupt the cleanup
            raise SavedError

    def _watch(self) -> None:
        try:
            while not self._over.is_set():
                with suppress(FileNotFoundError):  # a folder was just removed; watch the others
                    self._watch_folders()
        except (OSError, RuntimeError) as error:  # watchfiles's own errors are of both kinds
            hints = [
                "watch less: --path FILE_OR_FOLDER",
                "on a network's disk: export WATCHFILES_FORCE_POLLING=1",
                "allow more: sysctl fs.inotify.max_user_watches",
            ]
            self._tell(SmithError("cannot watch these folders", why=str(error), hints=hints))
        except Exception as error:  # noqa: BLE001 - the main thread waits, and reports it as a bug
            self._tell(error)

    def _watch_folders(self) -> None:
        """Watch until the set of folders changes."""
        from watchfiles import Change, watch  # noqa: PLC0415 - it loads while the first run goes on

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
            recursive=False,
        ):
            paths = {Path(name) for _, name in changes}
            selected = frozenset().union(*(files.select(paths) for files in self._watched))
            matter = frozenset(path for path in selected if self._counts(path))
            if matter:
                self._tell(matter)
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
        signal.pthread_kill(self._main, _SIGNAL)
