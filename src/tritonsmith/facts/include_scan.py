"""Find the headers that each source of a checkout reaches: `#include` lines as text, conditions ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_SUFFIXES = (".cc", ".cpp")
_TESTS = "unittest"  # Triton's unit tests are built with googletest, and by default not at all
_LIMIT = 4 << 20  # bytes of a source


@dataclass(frozen=True)
class ReachedHeaders:
    """The headers that a source includes, itself or through headers of the checkout.

    Attributes:
        own: headers of the checkout, relative to it.
        others: names that are no file of the checkout, as written: LLVM's, generated and system headers.
    """

    own: frozenset[Path]
    others: frozenset[str]


class IncludeScan:
    """The includes of one checkout; each file is read once."""

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        """Record the folders to search.

        Args:
            root: the checkout.
            folders: its include folders.
        """
        self._root = root
        self._folders = tuple(folders)
        self._direct: dict[Path, tuple[frozenset[Path], frozenset[str]]] = {}

    def reached(self, source: Path) -> ReachedHeaders:
        """Return the headers that a source reaches."""
        own: set[Path] = set()
        others: set[str] = set()
        todo = [source]
        while todo:
            headers, names = self._read(todo.pop())
            others |= names
            todo += headers - own
            own |= headers
        return ReachedHeaders(frozenset(path.relative_to(self._root) for path in own), frozenset(others))

    def _read(self, file: Path) -> tuple[frozenset[Path], frozenset[str]]:
        if file not in self._direct:
            try:
                includes = _INCLUDE.findall(untrusted.read_text(file, _LIMIT))
            except OSError:
                includes = []
            places = {quoted or angled: self._find(file, quoted, angled) for quoted, angled in includes}
            own = frozenset(path for path in places.values() if path)
            self._direct[file] = own, frozenset(name for name, path in places.items() if not path)
        return self._direct[file]

    def _find(self, file: Path, quoted: str, angled: str) -> Path | None:
        above = [folder for folder in file.parents if folder.is_relative_to(self._root)] if quoted else []
        for folder in (*above[:1], *self._folders, *above[1:]):  # a target may look in its own top folder
            path = Path(os.path.normpath(folder / (quoted or angled)))
            if path.is_relative_to(self._root) and untrusted.is_file(path):
                return path
        return None


def sources(root: Path, folders: Mapping[str, Iterable[str]]) -> dict[str, tuple[Path, ...]]:
    """Return the sources of named groups of folders; a file in two groups belongs to the longest folder.

    Args:
        root: the checkout.
        folders: name of a group to its folders, relative to the checkout.
    """
    owners = {root / folder: name for name, group in folders.items() for folder in group}
    by_group: dict[str, set[Path]] = {name: set() for name in folders}
    for start in owners:
        for path in start.rglob("*"):
            if path.suffix in _SUFFIXES and _TESTS not in path.parts and untrusted.is_file(path):
                by_group[owners[next(parent for parent in path.parents if parent in owners)]].add(path)
    return {name: tuple(sorted(paths)) for name, paths in by_group.items()}
