"""Which headers each source of a checkout reaches: `#include` lines followed as text, conditions aside."""

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
    """What one source includes, itself or through headers of the checkout.

    Attributes:
        own: headers of the checkout, relative to it.
        others: names that are no file of the checkout, as written: LLVM's, generated and system headers.
    """

    own: frozenset[Path]
    others: frozenset[str]


class IncludeScan:
    """Follows the includes of one checkout; each file is read once."""

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        """Remember where to look.

        Args:
            root: the checkout.
            folders: its include folders.
        """
        self._root = root
        self._folders = tuple(folders)
        self._direct: dict[Path, tuple[frozenset[Path], frozenset[str]]] = {}

    def reached(self, source: Path) -> ReachedHeaders:
        """What a source reaches."""
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
                found = _INCLUDE.findall(untrusted.read_text(file, _LIMIT))
            except OSError:
                found = []
            places = {quoted or angled: self._find(file, quoted, angled) for quoted, angled in found}
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
    """The sources of named groups of folders; one in folders of two groups belongs to the longest.

    Args:
        root: the checkout.
        folders: name of a group to its folders, relative to the checkout.
    """
    owners = {root / folder: name for name, group in folders.items() for folder in group}
    found: dict[str, set[Path]] = {name: set() for name in folders}
    for start in owners:
        for path in start.rglob("*"):
            if path.suffix in _SUFFIXES and _TESTS not in path.parts and untrusted.is_file(path):
                found[owners[next(parent for parent in path.parents if parent in owners)]].add(path)
    return {name: tuple(sorted(paths)) for name, paths in found.items()}
