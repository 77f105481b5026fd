"""Python source made smaller: expressions by an operand or a constant, keywords and decorators, parameters.

A parameter goes with its argument in every call, or is replaced by a value.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence

from tritonsmith.lab.edits import python_statements
from tritonsmith.lab.edits.python_statements import Place

_JIT = "jit"


def keywords(text: str) -> list[int]:
    """Numbers of the keyword arguments of calls, and of decorators other than the one that makes a kernel."""
    _, nodes = python_statements.parsed(text)
    own = {
        id(decorator)
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if _word(decorator) != _JIT
    }
    return [number for number, node in enumerate(nodes) if isinstance(node, ast.keyword) or id(node) in own][
        ::-1
    ]


def simpler(text: str, begin: int) -> Iterator[Place]:
    """Expressions replaced by a constant, or by a part of theirs: outer ones first.

    Args:
        text: the module.
        begin: the first number to look at.
    """
    module, nodes = python_statements.parsed(text)
    kept = _kept(module)
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for number, node in enumerate(nodes):
        if number >= begin and isinstance(node, ast.expr) and id(node) not in kept:
            for expression in _simpler(node, modules):
                yield number, python_statements.replaced(text, {number: expression})


def constants(text: str, begin: int) -> Iterator[Place]:
    """Numbers replaced by 0 and 1, and sizes by half of them."""
    module, nodes = python_statements.parsed(text)
    kept = _kept(module)
    for number, node in enumerate(nodes):
        if number >= begin and isinstance(node, ast.Constant) and id(node) not in kept:
            for value in smaller(node.value):
                yield number, python_statements.replaced(text, {number: ast.Constant(value)})


def smaller(value: object) -> tuple[int | float, ...]:
    """Numbers to try instead of one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ()
    if isinstance(value, float):
        return tuple(number for number in (0.0, 1.0) if value not in (number, 0))
    return tuple(number for number in dict.fromkeys((0, 1, value // 2)) if number < value)


def _kept(module: ast.Module) -> set[int]:
    """Return the ids of nodes that are no values: annotations, decorators, callees, targets, and texts."""
    kept: set[int] = set()
    for node in ast.walk(module):
        whole: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            whole += [*node.decorator_list, node.returns]
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            whole += [node.annotation]
        elif isinstance(node, ast.JoinedStr):
            whole += node.values
        kept |= {id(part) for root in whole if root for part in ast.walk(root)}
        if isinstance(node, ast.Call):
            kept |= {id(node.func)}
        elif isinstance(node, ast.Attribute):
            kept |= {id(node.value)}
        elif isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            kept |= {id(node)}
    return kept


def _simpler(node: ast.expr, modules: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Constant, ast.Slice, ast.Attribute)):
        return
    if isinstance(node, (ast.Compare, ast.BoolOp)):
        yield ast.Constant(True)
    elif not isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        yield ast.Constant(0)
    yield from _operands(node, modules)


def _operands(node: ast.expr, modules: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, (ast.Tuple, ast.List)):
        yield from node.elts
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and _root(node.func) not in modules:
            yield node.func.value  # x of x.to(...)
        yield from node.args
        if len(node.args) > 1:
            yield ast.Call(node.func, node.args[:-1], node.keywords)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _word(decorator: ast.expr) -> str:
    head = decorator.func if isinstance(decorator, ast.Call) else decorator
    return head.attr if isinstance(head, ast.Attribute) else head.id if isinstance(head, ast.Name) else ""


def unused_parameters(text: str, function: str) -> list[str]:
    """Parameters that a function does not use."""
    head = python_statements.kernel_of(ast.parse(text), function)
    if not head:
        return []
    used = {node.id for part in head.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return [parameter.arg for parameter in _plain(head.args) if parameter.arg not in used]


def without_parameters(text: str, function: str, names: Sequence[str]) -> str | None:
    """The text without some parameters of a function, in its head and in every call."""
    return _changed(text, function, names, {})


def with_values(text: str, function: str, values: Mapping[str, ast.expr]) -> str | None:
    """The text with expressions in the place of parameters; None if the function assigns to one of them."""
    return _changed(text, function, list(values), values)


def _changed(text: str, function: str, names: Sequence[str], values: Mapping[str, ast.expr]) -> str | None:
    module = ast.parse(text)
    head = python_statements.kernel_of(module, function)
    if not head:
        return None
    for node in [inner for part in head.body for inner in ast.walk(part)]:
        if isinstance(node, ast.Name) and node.id in values and not isinstance(node.ctx, ast.Load):
            return None
    order = [parameter.arg for parameter in _plain(head.args)]
    positional = order[: len(order) - len(head.args.kwonlyargs)]
    head.body = [python_statements.named(part, values) for part in head.body]
    _drop(head.args, names)
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and _called(call) == function:
            if any(isinstance(argument, ast.Starred) for argument in call.args) or not all(
                keyword.arg for keyword in call.keywords
            ):
                return None
            call.args = [
                argument for name, argument in zip(positional, call.args, strict=False) if name not in names
            ]
            call.keywords = [keyword for keyword in call.keywords if keyword.arg not in names]
    return python_statements.text_of(module, text)


def _drop(arguments: ast.arguments, names: Container[str]) -> None:
    plain = [*arguments.posonlyargs, *arguments.args]
    lacking: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    paired = zip(plain, [*lacking, *arguments.defaults], strict=True)
    left = [(parameter, default) for parameter, default in paired if parameter.arg not in names]
    arguments.posonlyargs = [parameter for parameter in arguments.posonlyargs if parameter.arg not in names]
    arguments.args = [parameter for parameter in arguments.args if parameter.arg not in names]
    arguments.defaults = [default for _, default in left if default]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    stay = [(parameter, default) for parameter, default in keyword if parameter.arg not in names]
    arguments.kwonlyargs, arguments.kw_defaults = (
        [parameter for parameter, _ in stay],
        [default for _, default in stay],
    )


def _plain(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _called(call: ast.Call) -> str:
    """`f` of `f(...)` and of the launch `f[grid](...)`."""
    head = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return head.id if isinstance(head, ast.Name) else ""
