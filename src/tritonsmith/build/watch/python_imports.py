"""The Python files that a file imports, if they lie beside it; they are parsed, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tritonsmith.core import untrusted


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
        yield base / f"{part}.py"
        base /= part
        yield base / "__init__.py"
