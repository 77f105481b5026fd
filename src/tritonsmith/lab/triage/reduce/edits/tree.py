"""A text as a tree, edited at numbered nodes, and back: always Python that parses and names what it has.

The standard library's `ast` does: what comes out has no comments and one way of spacing, which is how a
minimal example looks. A tree that keeps the layout (libcst) would keep what is to go; a generic reducer
(shrinkray, picire) knows neither signatures nor launches, and would ask the compiler about texts that do
not even parse.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

Replacement = Any  # of a node: None to remove it, a list of nodes, or a node

_STAR = re.compile(r"^\s*from .* import \*$", re.MULTILINE)
_BUILTINS = frozenset(dir(builtins))
_MODULE = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__annotations__"})


def parsed(text: str) -> tuple[ast.Module, list[ast.AST]]:
    """The tree of a text, and its nodes in the order of the text: their places are their numbers."""
    tree = ast.parse(text)
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        children = [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr_context)]
        waiting += children[::-1]
    return tree, nodes


def kernel_of(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """A function of the module; None if there is none."""
    return next((one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of the module, in order."""
    return [one for one in tree.body if isinstance(one, ast.FunctionDef)]


def replaced(text: str, new: Mapping[int, Replacement]) -> str | None:
    """The text with other nodes at some numbers; None if that is no Python, or names what it lacks."""
    tree, nodes = parsed(text)
    made = _Replacer({id(nodes[number]): one for number, one in new.items()}).visit(tree)
    return text_of(made, text)


def without(text: str, numbers: Sequence[int]) -> str | None:
    """The text without the nodes of some numbers, which stand in lists."""
    return replaced(text, dict.fromkeys(numbers))


def text_of(tree: ast.Module, before: str) -> str | None:
    """The text of a tree; None if it is no Python, or names what it does not bind, and `before` did.

    Args:
        tree: with bodies that may have become empty.
        before: the text that it was made of.
    """
    for node in ast.walk(tree):
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `0[1]`, which a try decides on
            compile(text, "candidate", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, AttributeError, RecursionError):
        return None
    return text if unbound(text) <= unbound(before) else None


@lru_cache(maxsize=64)
def unbound(text: str) -> frozenset[str]:
    """Names that are read somewhere and bound nowhere: such a text need not be tried."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = symtable.symtable(text, "candidate", "exec")
    bound = {one.get_name() for one in module.get_symbols() if one.is_assigned() or one.is_imported()}
    waiting, read = [module], set[str]()
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        read |= {
            one.get_name()
            for one in scope.get_symbols()
            if one.is_referenced() and (one.is_global() or scope is module)
        }
        bound |= {one.get_name() for one in scope.get_symbols() if one.is_declared_global()}
    if _STAR.search(text):
        return frozenset()  # it may bind anything
    return frozenset(read - bound - _BUILTINS - _MODULE)


class _Replacer(ast.NodeTransformer):
    def __init__(self, new: Mapping[int, Replacement]) -> None:
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return self._new[id(node)] if id(node) in self._new else self.generic_visit(node)


def named(node: ast.stmt, values: Mapping[str, ast.expr]) -> ast.stmt:
    """A statement with expressions in the place of names that it reads, and names of those that it binds."""
    made: ast.stmt = _Renamer(values).visit(node)
    return made


class _Renamer(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        if value is None or isinstance(node.ctx, ast.Load):
            return value or node
        return ast.Name(value.id, node.ctx) if isinstance(value, ast.Name) else node
