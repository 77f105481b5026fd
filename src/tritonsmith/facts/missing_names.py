"""Find names that a Python package uses and another one lacks, from the files of both; nothing is imported.

Only certain cases are reported: a use that no `if`, loop, `try` or earlier `return` may keep from running, of
a name that no statement of the other package binds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.IfExp, ast.Match, ast.BoolOp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar)
_OTHERS = (ast.With, ast.AsyncWith, ast.Assert, ast.Lambda)  # `with suppress(ImportError)`; `python -O`
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MAY_NOT_RUN = (*_BRANCHES, *_OTHERS, *_LOOPS)
_LEAVES = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, order=True)
class MissingName:
    """A use of a name that does not exist.

    Attributes:
        file: relative to the package that uses it.
        line: of the first such use, from 1.
        name: `triton.tools.ragged_tma`, `triton.language.constexpr_function`.
        function: the function whose call fails; empty if the file's import does.
    """

    file: Path
    line: int
    name: str
    function: str


def find(user: Path, package: Path) -> tuple[MissingName, ...]:
    """Return the names that the files of a package use and another package lacks.

    Args:
        user: folder of the package that imports.
        package: folder of the package that is imported, by its own name.
    """
    there = Package(package)
    names: list[MissingName] = []
    for path in sorted(user.rglob("*.py")):
        names += _in_file(path, path.relative_to(user), there)
    return tuple(names)


def _in_file(path: Path, file: Path, there: Package) -> list[MissingName]:
    tree = parse_module(path)
    if tree is None:
        return []
    modules, first = _modules(tree, there), dict[str, MissingName]()
    for node, function in _certain(tree.body, ""):
        if name := _missing(node, modules, there):
            first.setdefault(name, MissingName(file, getattr(node, "lineno", 1), name, function))
    return list(first.values())


def _certain(statements: Iterable[ast.stmt], function: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield nodes that run whenever their file or function does, with the function; the file's first."""
    later: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for statement in statements:
        for node in _evaluated(statement):
            yield node, function
            if isinstance(node, _FUNCTIONS) and not function:
                later.append(node)
        if _may_leave(statement):
            break
    # Bodies come after the file: a function runs when everything else in its file has been bound.
    for inner in later:
        yield from _certain(inner.body, inner.name)


def _may_leave(statement: ast.stmt) -> bool:
    """Return whether the code after a statement may not run."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return False
    return any(isinstance(node, _LEAVES) for node in (statement, *outside_functions(statement)))


def _evaluated(root: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the nodes evaluated with it: for a function its decorators and defaults."""
    waiting: list[ast.AST] = [root]
    # No recursion: a file of others may be nested as deeply as it likes.
    while waiting:
        node = waiting.pop()
        if isinstance(node, _MAY_NOT_RUN):
            continue
        yield node
        if isinstance(node, _FUNCTIONS):
            inner: list[ast.AST] = [
                *node.decorator_list,
                *node.args.defaults,
                *filter(None, node.args.kw_defaults),
            ]
        elif isinstance(node, ast.AnnAssign):
            # Annotations are evaluated late, or never.
            inner = [node.value] if node.value else []
        elif isinstance(node, ast.Attribute):
            # The outermost part stands for all of `a.b.c`.
            inner = [_dotted(node)[0]]
        else:
            inner = list(ast.iter_child_nodes(node))
        waiting += reversed(inner)


def _missing(node: ast.AST, modules: dict[str, str], there: Package) -> str:
    """Return the name that is missing; empty if all exist."""
    match node:
        case ast.Import(names=names):
            absent = (_missing_module(alias.name, there) for alias in names)
            return next(filter(None, absent), "")
        case ast.ImportFrom(module=str(module), names=names, level=0) if there.covers(module):
            if name := _missing_module(module, there):
                return name
            imported = (alias.name for alias in names if alias.name != "*")
            return next((f"{module}.{name}" for name in imported if not there.has(module, name)), "")
        case ast.Attribute():
            return _missing_attribute(node, modules, there)
        case _:
            return ""


def _missing_module(dotted: str, there: Package) -> str:
    parts = dotted.split(".")
    if not there.covers(dotted):
        return ""
    # From the second part on: the first is the package, which exists.
    every = (".".join(parts[:end]) for end in range(2, len(parts) + 1))
    return next((module for module in every if not there.has_module(module)), "")


def _missing_attribute(node: ast.Attribute, modules: dict[str, str], there: Package) -> str:
    """Return the first part of `tl.a.b` that is missing, where `tl` is a module and nothing else."""
    root, chain = _dotted(node)
    module = modules.get(root.id, "") if isinstance(root, ast.Name) else ""
    for name in chain if module else ():
        if not there.has(module, name):
            return f"{module}.{name}"
        if not there.is_submodule(module, name):
            break
        module = f"{module}.{name}"
    return ""


def _dotted(node: ast.Attribute) -> tuple[ast.expr, list[str]]:
    """Return the expression that `x.a.b` begins with, and the names after it."""
    names: list[str] = []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        names.append(root.attr)
        root = root.value
    return root, names[::-1]


def _modules(tree: ast.Module, there: Package) -> dict[str, str]:
    """Return the names of a file that are bound to one module of a package, and nothing else in any scope."""
    meanings: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for name, meaning in _imports(node) or ((name, "") for name in bound_names(node)):
            # By the whole file, whatever the scope: a name that is bound twice may mean either,
            # so nothing is said of it.
            meanings.setdefault(name, set()).add(meaning)
    return {
        name: meaning
        for name, (meaning, *others) in ((name, tuple(every)) for name, every in meanings.items())
        if not others and _is_module(meaning, there)
    }


def _is_module(dotted: str, there: Package) -> bool:
    outer, _, name = dotted.rpartition(".")
    return there.covers(dotted) and (
        not outer or (_is_module(outer, there) and there.is_submodule(outer, name))
    )


def _imports(node: ast.AST) -> tuple[tuple[str, str], ...]:
    """Return the names that an import binds, each with the module or object that it names."""
    if isinstance(node, ast.Import):
        return tuple(
            (alias.asname or (top := alias.name.split(".")[0]), alias.name if alias.asname else top)
            for alias in node.names
        )
    if isinstance(node, ast.ImportFrom):
        return tuple(
            (alias.asname or alias.name, "" if node.level else f"{node.module}.{alias.name}")
            for alias in node.names
        )
    return ()


_ALWAYS = ("__name__", "__file__", "__doc__", "__path__", "__package__", "__spec__", "__loader__", "__dict__")
_SCOPES = {"globals", "locals", "vars"}  # who calls them can bind any name


class Package:
    """A package of Python files: its modules, and the names in each.

    A name counts as present if any statement of its module binds it, in a branch or a function or not: so a
    name that is reported missing is missing.

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
        """Return whether there is such a module, or may be one."""
        # libtriton makes its submodules when it is loaded; no file shows them.
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
        tree = parse_module(source) if source else None
        others = (node for node in ast.walk(tree) if not _imports_submodule(node, module)) if tree else ()
        return all(name not in bound_names(node) for node in others)

    def _names_in(self, module: str) -> frozenset[str] | None:
        if module not in self._names:
            # A circle of star imports comes back here while the module is being
            # read: any name may exist then.
            self._names[module] = None
            self._names[module] = self._read(module)
        return self._names[module]

    def _read(self, module: str) -> frozenset[str] | None:
        """Return the names of a module; None if any name may exist."""
        path = self._path(module)
        source = _source(path)
        if source is None:
            return frozenset(_ALWAYS) if path.is_dir() else None  # a namespace package; an extension module
        tree = parse_module(source)
        if tree is None or any(map(_binds_anything, ast.walk(tree))) or _makes_names(tree):
            return None
        package = module if source.name == "__init__.py" else module.rpartition(".")[0]
        names = set(_ALWAYS)
        for node in ast.walk(tree):
            names.update(bound_names(node))
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


def parse_module(path: Path) -> ast.Module | None:
    """Return a file's syntax tree; None if this Python cannot parse it."""
    try:
        return untrusted.python_tree(untrusted.read_bytes(path))
    except (OSError, SyntaxError, ValueError):
        return None


def bound_names(node: ast.AST) -> tuple[str, ...]:
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
