"""The files of a source tree, as git sees them: tracked, or new and not ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tritonsmith.build.watch.named_paths import NamedPaths, matters
from tritonsmith.build.watch.saves import WatchedFiles
from tritonsmith.facts import git


class TreeFiles:
    """The files of a folder under git that a command may depend on.

    Args:
        root: the folder.
        files: its files.
        wanted: tells whether a command depends on a file.
    """

    def __init__(self, root: Path, files: frozenset[Path], wanted: Callable[[Path], bool]) -> None:
        self._root, self._files, self._wanted = root, files, wanted

    def folders(self) -> frozenset[Path]:
        """Return the folders to watch; build and cache folders are not among them if git ignores them."""
        inner = {path.parent for path in self._files}
        between = {folder for path in inner for folder in path.parents if folder.is_relative_to(self._root)}
        return frozenset((self._root, *inner, *between))

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Select the paths that are such files, before the change or after it."""
        changed, before = frozenset(paths), self._files
        if any(matters(path.relative_to(self._root)) for path in self._strange(changed)):
            self._files = _listed(self._root) or before
        return frozenset(filter(self._wanted, (changed & before) | (self._files - before)))

    def _strange(self, paths: Iterable[Path]) -> list[Path]:
        return [path for path in paths if path not in self._files and path.is_relative_to(self._root)]


def of(root: Path, wanted: Callable[[Path], bool] = lambda _: True) -> WatchedFiles:
    """Return the files of a folder; without git, all but those that editors and Python keep there.

    Args:
        root: the folder.
        wanted: tells whether a command depends on a file.
    """
    files = _listed(root)
    return NamedPaths([root], wanted) if files is None else TreeFiles(root, files, wanted)


def _listed(root: Path) -> frozenset[Path] | None:
    answer = git.look(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if answer is None or answer.code:
        return None
    names = (Path(name) for name in answer.out.split("\0") if name)
    return frozenset(path for name in names if matters(name) and (path := root / name).exists())
