"""Find names that a Python package uses and another one lacks, from the files of both; nothing is imported.

Only certain cases are reported: a use that no `if`, loop, `try` or earlier `return` may keep from running, of
a name that no statement of the other package binds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.facts.module_names import Package, bound, outside_functions, parse

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
    tree = parse(path)
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
    while waiting:  # no recursion: a file of others may be nested as deeply as it likes
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
            inner = [node.value] if node.value else []  # annotations are evaluated late, or never
        elif isinstance(node, ast.Attribute):
            inner = [_dotted(node)[0]]  # its outermost part stands for all of `a.b.c`
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
        for name, meaning in _imports(node) or ((name, "") for name in bound(node)):
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
