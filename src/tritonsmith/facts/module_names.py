"""List the modules of an installed Python package and the names in each, from its files; nothing is imported.

A name counts as present if any statement of its module binds it, in a branch or a function or not: so a name
that is reported missing is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core import untrusted

_ALWAYS = ("__name__", "__file__", "__doc__", "__path__", "__package__", "__spec__", "__loader__", "__dict__")
_SCOPES = {"globals", "locals", "vars"}  # who calls them can bind any name


class Package:
    """A package of Python files.

    Attributes:
        name: the name that it is imported by, which is its folder's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = folder.name
        self._names: dict[str, frozenset[str] | None] = {}

    def covers(self, dotted: str) -> bool:
        """Return whether this is the package or a module in it, existing or not."""
        return dotted.partition(".")[0] == self.name

    def has_module(self, dotted: str) -> bool:
        """Return whether there is such a module, or its parent is an extension module, which may have any."""
        outer, _, _ = dotted.rpartition(".")
        if self._is_extension(outer):
            return True
        path = self._path(dotted)
        return path.is_dir() or _source(path) is not None or self._is_extension(dotted)

    def has(self, module: str, name: str) -> bool:
        """Return whether a module has a name, as far as can be determined."""
        names = self._names_in(module)
        return names is None or name in names or self.has_module(f"{module}.{name}")

    def is_submodule(self, module: str, name: str) -> bool:
        """Return whether a name in a module can only be its submodule of that name."""
        names = self._names_in(module)
        if names is None or not self.has_module(f"{module}.{name}"):
            return False
        source = _source(self._path(module))
        tree = parse(source) if source else None
        others = (node for node in ast.walk(tree) if not _imports_submodule(node, module)) if tree else ()
        return all(name not in bound(node) for node in others)

    def _names_in(self, module: str) -> frozenset[str] | None:
        if module not in self._names:
            self._names[module] = None  # of a circle of star imports, any name
            self._names[module] = self._read(module)
        return self._names[module]

    def _read(self, module: str) -> frozenset[str] | None:
        """Return the names of a module; None if any name may exist."""
        path = self._path(module)
        source = _source(path)
        if source is None:
            return frozenset(_ALWAYS) if path.is_dir() else None  # a namespace package; an extension module
        tree = parse(source)
        if tree is None or any(map(_binds_anything, ast.walk(tree))) or _makes_names(tree):
            return None
        package = module if source.name == "__init__.py" else module.rpartition(".")[0]
        names = set(_ALWAYS)
        for node in ast.walk(tree):
            names.update(bound(node))
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                origin = _origin(node, package)
                more = self._names_in(origin) if self.covers(origin) else None
                if more is None:
                    return None
                names |= more
        return frozenset(names)

    def _path(self, dotted: str) -> Path:
        return self._folder.joinpath(*dotted.split(".")[1:])

    def _is_extension(self, dotted: str) -> bool:
        path = self._path(dotted)
        return dotted != self.name and any(
            untrusted.is_file(file)
            for kind in ("so", "pyd")
            for file in path.parent.glob(f"{path.name}*.{kind}")
        )


def parse(path: Path) -> ast.Module | None:
    """Return a file's syntax tree; None if this Python cannot parse it."""
    try:
        return untrusted.python_tree(untrusted.read_bytes(path))
    except (OSError, SyntaxError, ValueError):
        return None


def bound(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node binds by itself, except by `from x import *`."""
    result: tuple[str, ...] = ()
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            result = (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            result = (name,)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            result = (name,)
        case ast.MatchMapping(rest=str(name)):
            result = (name,)
        case ast.Import(names=names):
            result = tuple(alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(names=names):
            result = tuple(alias.asname or alias.name for alias in names)
    return result


def _source(path: Path) -> Path | None:
    for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if untrusted.is_file(file):
            return file
    return None


def _binds_anything(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _SCOPES
        case _:
            return False


def _makes_names(tree: ast.Module) -> bool:
    """Return whether an import may bind names no statement shows: `__getattr__`, `exec`, `sys.modules`."""
    return any(
        (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
        or (isinstance(node, ast.Name) and node.id == "exec")
        or (isinstance(node, ast.Attribute) and node.attr == "modules")
        for node in outside_functions(tree)
    )


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in a node that are in no function or class in it; these themselves are included."""
    waiting = [*ast.iter_child_nodes(node)][::-1]
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += [*ast.iter_child_nodes(child)][::-1]


def _imports_submodule(node: ast.AST, module: str) -> bool:
    """Return whether a node is `from . import name` in the module itself."""
    return isinstance(node, ast.ImportFrom) and (
        (node.level == 1 and not node.module) or (not node.level and node.module == module)
    )


def _origin(node: ast.ImportFrom, package: str) -> str:
    """Return the module that a `from` names, in a module of `package`."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
