"""Statements: removed, or replaced by what stands in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tritonsmith.lab.triage.reduce.edits import tree
from tritonsmith.worker.needed_statements import needed

Place = tuple[int, str | None]  # number of a node, and the text with an edit there

_FIRST = ("range", "static_range")  # `tl.range` ends so, too


def needed_only(text: str, kernel: str) -> str | None:
    """The text with those statements of the module that a kernel needs: what the compiler's worker runs."""
    module = ast.parse(text)
    module.body = needed(module, kernel) or module.body
    return tree.text_of(module, text)


def removable(text: str, kernel: str, *, top: bool = False) -> list[int]:
    """Numbers of the statements that may go, the last one first: who uses a value goes before who makes it.

    Args:
        text: the module.
        kernel: which stays; empty if any may go.
        top: those of the module only.
    """
    module, nodes = tree.parsed(text)
    kept = tree.kernel_of(module, kernel)
    here = set(map(id, module.body))
    found = [
        number
        for number, node in enumerate(nodes)
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.Pass)
        and node is not kept
        and (id(node) in here or not top)
    ]
    return found[::-1]


def unwrapped(text: str, begin: int) -> Iterator[Place]:
    """Choices replaced by one side, loops by their first iteration, `with` and `try` by their body.

    Args:
        text: the module.
        begin: the first number to look at.
    """
    _, nodes = tree.parsed(text)
    for number, node in enumerate(nodes):
        if number >= begin:
            for inside in _inside(node):
                yield number, tree.replaced(text, {number: inside})
            if isinstance(node, (ast.If, ast.For, ast.While)) and node.orelse:
                yield number, _without_else(text, number)


def _inside(node: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If):
        yield node.body
        if node.orelse:
            yield node.orelse
    elif isinstance(node, ast.For):
        yield node.body
        if start := _start(node.iter):
            yield [ast.Assign([node.target], start), *node.body]
    elif isinstance(node, (ast.While, ast.With, ast.Try)):
        yield node.body


def _start(iterated: ast.expr) -> ast.expr | None:
    """The first value of a `range`."""
    if not isinstance(iterated, ast.Call) or not iterated.args:
        return None
    name = iterated.func.attr if isinstance(iterated.func, ast.Attribute) else ""
    name = iterated.func.id if isinstance(iterated.func, ast.Name) else name
    if name not in _FIRST:
        return None
    return iterated.args[0] if len(iterated.args) > 1 else ast.Constant(0)


def _without_else(text: str, number: int) -> str | None:
    module, nodes = tree.parsed(text)
    nodes[number].orelse = []  # type: ignore[attr-defined]
    return tree.text_of(module, text)


def copies(text: str) -> Iterator[str | None]:
    """Names of a function with what they stand for in their place, or under one name.

    A name that is bound once stands for a name, a constant, or an earlier name that is bound once to the same
    expression. Two names of which one is ever assigned to the other may be one.
    """
    module, nodes = tree.parsed(text)
    for function in tree.functions(module):
        inside = set(ast.walk(function))
        names = [one for one in nodes if one in inside and isinstance(one, ast.Name)]
        bound = [one.id for one in names if not isinstance(one.ctx, ast.Load)]
        bound += [one.arg for one in inside if isinstance(one, ast.arg)]
        first: dict[str, ast.expr] = {}
        for number, node in enumerate(nodes):
            target, value = _assignment(node) if node in inside else ("", None)
            if not target or value is None:
                continue
            if bound.count(target) == 1:
                same = first.setdefault(ast.dump(value), ast.Name(target, ast.Load()))
                stands = value if isinstance(value, (ast.Name, ast.Constant)) else same
                if not (isinstance(stands, ast.Name) and stands.id == target):
                    uses = [one for one in names if one.id == target and isinstance(one.ctx, ast.Load)]
                    yield tree.replaced(text, {number: None, **{nodes.index(one): stands for one in uses}})
            elif isinstance(value, ast.Name) and value.id in bound and value.id != target:
                uses = [one for one in names if one.id == target]
                renamed = {nodes.index(one): ast.Name(value.id, one.ctx) for one in uses}
                yield tree.replaced(text, {**renamed, number: None})


def _assignment(node: ast.AST) -> tuple[str, ast.expr | None]:
    """The name and the value of `name = value` and `name: constexpr = value`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return "", None
