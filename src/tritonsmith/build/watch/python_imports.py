"""The Python files that a file imports, as far as they lie beside it; read, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tritonsmith.core import untrusted


class PythonFiles:
    """Python files, and what they import.

    Args:
        roots: the files.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = tuple(roots)
        self._imports: dict[Path, tuple[Path, ...]] = {}
        self._files = self._closure()

    def folders(self) -> frozenset[Path]:
        """The folders to watch: not only the files, because editors replace these."""
        return frozenset(path.parent for path in self._files if path.parent.is_dir())

    def select(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Those of the paths that are such files, before the change or after it."""
        changed = [path for path in paths if path.suffix == ".py"]
        if not changed:
            return frozenset()
        before, self._files = self._files, self._closure()
        return frozenset(changed) & (before | self._files)

    def _closure(self) -> frozenset[Path]:
        found: set[Path] = set()
        todo = list(self._roots)
        while todo:
            path = todo.pop()
            if path not in found:
                found |= {path, untrusted.real(path)}
                todo += self._imported(path)
        return frozenset(found)

    def _imported(self, path: Path) -> tuple[Path, ...]:
        """The files that a file imports; those of the last time where it cannot be parsed now."""
        try:
            tree = untrusted.python_tree(untrusted.read_bytes(path))
        except (OSError, SyntaxError, ValueError):
            return self._imports.get(path, ())
        found = {file for node in ast.walk(tree) for file in _files_of(node, path) if untrusted.is_file(file)}
        self._imports[path] = tuple(sorted(found))
        return self._imports[path]


def _files_of(node: ast.AST, path: Path) -> Iterator[Path]:
    """Where the modules of a statement would lie."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _places(path.parent, alias.name)
    elif isinstance(node, ast.ImportFrom):
        base = path.parents[min(max(node.level, 1), len(path.parents)) - 1]
        for alias in node.names:
            yield from _places(base, ".".join(filter(None, (node.module, alias.name))))


def _places(base: Path, name: str) -> Iterator[Path]:
    """`a.b.c` is a/b/c.py, or the name `c` of a/b.py, within packages."""
    for part in name.split("."):
        yield base / f"{part}.py"
        base /= part
        yield base / "__init__.py"
