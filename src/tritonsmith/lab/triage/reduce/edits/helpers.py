"""Functions that a kernel calls, put in the place of a call."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from tritonsmith.lab.triage.reduce.edits import tree


def inlined(text: str) -> Iterator[str | None]:
    """The text with one call less, for each statement that is a call of a function of the module.

    Only of a function that returns at its end: then its statements do in the place of the call.
    """
    module, nodes = tree.parsed(text)
    known = {one.name: one for one in tree.functions(module) if _simple(one)}
    for number, node in enumerate(nodes):
        call = getattr(node, "value", None)
        if not isinstance(node, (ast.Expr, ast.Assign, ast.Return)) or not isinstance(call, ast.Call):
            continue
        helper = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
        caller = next((one for one in tree.functions(module) if node in set(ast.walk(one))), None)
        if not helper or not caller or caller is helper:
            continue
        body = _body(helper, call, node, _names(caller))
        if body is None:
            continue
        new: dict[int, tree.Replacement] = {number: body}
        uses = [one for one in nodes if isinstance(one, ast.Name) and one.id == helper.name]
        if len(uses) == 1:
            new[nodes.index(helper)] = None
        yield tree.replaced(text, new)


def _simple(function: ast.FunctionDef) -> bool:
    """Report whether a function has plain parameters only, and returns at its end or not at all."""
    inside = [node for part in function.body for node in ast.walk(part)]
    returns = [node for node in inside if isinstance(node, ast.Return)]
    nested = any(isinstance(node, (ast.FunctionDef, ast.Lambda, ast.comprehension)) for node in inside)
    plain = not (function.args.vararg or function.args.kwarg)
    return plain and not nested and returns in ([], [function.body[-1]])


def _body(
    helper: ast.FunctionDef, call: ast.Call, node: ast.Expr | ast.Assign | ast.Return, taken: set[str]
) -> list[ast.stmt] | None:
    """The statements that do what a call does."""
    given = _given(helper, call)
    if given is None:
        return None
    body = [copy.deepcopy(one) for one in helper.body]
    stored = {
        one.id
        for part in body
        for one in ast.walk(part)
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    }
    values: dict[str, ast.expr] = {}
    before: list[ast.stmt] = []
    for name, (value, constant) in given.items():
        if name not in stored and (constant or isinstance(value, (ast.Name, ast.Constant, ast.Attribute))):
            values[name] = value
        else:
            fresh = _fresh(name, taken)
            values[name] = ast.Name(fresh, ast.Load())
            before.append(ast.Assign([ast.Name(fresh, ast.Store())], value))
    for name in sorted(stored - set(given)):
        values[name] = ast.Name(_fresh(name, taken), ast.Load())
    body = [*before, *(tree.named(one, values) for one in body)]
    last = body[-1]
    result = last.value if isinstance(last, ast.Return) else None
    if isinstance(last, ast.Return):
        body.pop()
    if isinstance(node, ast.Assign):
        return [*body, ast.Assign(node.targets, result)] if result else None
    return [*body, ast.Return(result)] if isinstance(node, ast.Return) else body or [ast.Pass()]


def _given(helper: ast.FunctionDef, call: ast.Call) -> dict[str, tuple[ast.expr, bool]] | None:
    """Each parameter's argument, and whether it is a constant of the compile; None if one cannot be told."""
    if any(isinstance(one, ast.Starred) for one in call.args) or not all(one.arg for one in call.keywords):
        return None
    heads = [*helper.args.posonlyargs, *helper.args.args]
    lacking: list[ast.expr | None] = [None] * (len(heads) - len(helper.args.defaults))
    known: dict[str, ast.expr | None] = {
        one.arg: default for one, default in zip(heads, [*lacking, *helper.args.defaults], strict=True)
    }
    known |= {
        one.arg: default for one, default in zip(helper.args.kwonlyargs, helper.args.kw_defaults, strict=True)
    }
    if len(call.args) > len(heads):
        return None
    known |= {one.arg: value for one, value in zip(heads, call.args, strict=False)}
    known |= {one.arg: one.value for one in call.keywords if one.arg}
    constants = {
        one.arg
        for one in [*heads, *helper.args.kwonlyargs]
        if one.annotation and "constexpr" in ast.unparse(one.annotation)
    }
    found = {name: (value, name in constants) for name, value in known.items() if value is not None}
    return found if len(found) == len(heads) + len(helper.args.kwonlyargs) else None


def _fresh(name: str, taken: set[str]) -> str:
    """A name that the caller does not have yet."""
    fresh, number = name, 1
    while fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    taken.add(fresh)
    return fresh


def _names(function: ast.FunctionDef) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
