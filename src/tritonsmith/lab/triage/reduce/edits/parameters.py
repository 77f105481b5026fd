"""Parameters of functions: removed with their arguments in every call, merged, or replaced by a value."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping, Sequence

from tritonsmith.lab.triage.reduce.edits import tree


def unused(text: str, function: str) -> list[str]:
    """Parameters that a function does not use."""
    found = tree.kernel_of(ast.parse(text), function)
    if not found:
        return []
    used = {node.id for part in found.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return [one.arg for one in _plain(found.args) if one.arg not in used]


def without(text: str, function: str, names: Sequence[str]) -> str | None:
    """The text without some parameters of a function, in its head and in every call."""
    return _changed(text, function, names, {})


def valued(text: str, function: str, values: Mapping[str, ast.expr]) -> str | None:
    """The text with expressions in the place of parameters; None if the function assigns to one of them."""
    return _changed(text, function, list(values), values)


def _changed(text: str, function: str, names: Sequence[str], values: Mapping[str, ast.expr]) -> str | None:
    module = ast.parse(text)
    found = tree.kernel_of(module, function)
    if not found:
        return None
    for node in [one for part in found.body for one in ast.walk(part)]:
        if isinstance(node, ast.Name) and node.id in values and not isinstance(node.ctx, ast.Load):
            return None
    order = [one.arg for one in _plain(found.args)]
    positional = order[: len(order) - len(found.args.kwonlyargs)]
    found.body = [tree.named(part, values) for part in found.body]
    _drop(found.args, names)
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and _called(call) == function:
            if any(isinstance(one, ast.Starred) for one in call.args) or not all(
                one.arg for one in call.keywords
            ):
                return None
            call.args = [one for name, one in zip(positional, call.args, strict=False) if name not in names]
            call.keywords = [one for one in call.keywords if one.arg not in names]
    return tree.text_of(module, text)


def _drop(arguments: ast.arguments, names: Container[str]) -> None:
    plain = [*arguments.posonlyargs, *arguments.args]
    lacking: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    paired = zip(plain, [*lacking, *arguments.defaults], strict=True)
    left = [(one, default) for one, default in paired if one.arg not in names]
    arguments.posonlyargs = [one for one in arguments.posonlyargs if one.arg not in names]
    arguments.args = [one for one in arguments.args if one.arg not in names]
    arguments.defaults = [default for _, default in left if default]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    stay = [(one, default) for one, default in keyword if one.arg not in names]
    arguments.kwonlyargs, arguments.kw_defaults = [one for one, _ in stay], [default for _, default in stay]


def _plain(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _called(call: ast.Call) -> str:
    """`f` of `f(...)` and of the launch `f[grid](...)`."""
    head = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return head.id if isinstance(head, ast.Name) else ""
