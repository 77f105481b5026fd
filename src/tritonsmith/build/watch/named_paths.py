"""Files and folders that the user names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from tritonsmith.core import configs, untrusted


class NamedPaths:
    """Files, and whole folders without what editors, git and Python keep there.

    Args:
        paths: the files and folders.
        wanted: returns whether a command depends on a file of a folder.
    """

    def __init__(self, paths: Iterable[Path], wanted: Callable[[Path], bool] = lambda _: True) -> None:
        self._paths, self._wanted = frozenset(paths), wanted

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
            return matters(inner) and self._wanted(path) and not untrusted.is_dir(path)
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
        inner[:] = [name for name in inner if name not in never]
        yield Path(folder)
