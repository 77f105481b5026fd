"""Edits that make Python source smaller: of statements, calls, expressions, keywords and parameters.

A text is parsed, edited at nodes that have numbers, and written again. The result always parses, and reads no
name that it does not bind.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import symtable
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.worker.load import needed

# The standard library's `ast` is enough: the result has no comments and one way of spacing, which is how a
# minimal example looks. A tree that keeps the layout (libcst) would keep what is to go, and a generic reducer
# (shrinkray, picire) would ask the compiler about texts that do not even parse.
Place = tuple[int, str | None]  # number of a node, and the text with an edit there

_FIRST = ("range", "static_range")  # `tl.range` ends so, too
Replacement = Any  # of a node: None to remove it, a list of nodes, or a node
_STAR = re.compile(r"^\s*from .* import \*$", re.MULTILINE)
_BUILTINS = frozenset(dir(builtins))
_MODULE = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__annotations__"})


def needed_only(text: str, kernel: str) -> str | None:
    """Return the text with those statements of the module that a kernel needs, as the worker runs them."""
    module = untrusted.parse(text)
    module.body = needed(module, kernel) or module.body
    return text_of(module, text)


def removable(text: str, kernel: str, *, top: bool = False) -> list[int]:
    """Return the numbers of the statements that can be removed, the last one first.

    Args:
        text: the module.
        kernel: name of the function that stays; empty if any can go.
        top: list the statements of the module only, and none of its functions.
    """
    module, nodes = parsed(text)
    kept = kernel_of(module, kernel)
    here = set(map(id, module.body))
    numbers = [
        number
        for number, node in enumerate(nodes)
        if isinstance(node, ast.stmt)
        # `pass` is what `text_of` puts in the place of an empty body.
        and not isinstance(node, ast.Pass)
        and node is not kept
        and (id(node) in here or not top)
    ]
    return numbers[::-1]  # a value's users go before the statement that binds it


def unwrapped(text: str, begin: int) -> Iterator[Place]:
    """Replace choices by one side, loops by their first iteration, `with` and `try` by their body.

    Args:
        text: the module.
        begin: the first number to look at.
    """
    _, nodes = parsed(text)
    for number, node in enumerate(nodes):
        if number >= begin:
            for inside in _inside(node):
                yield number, replaced(text, {number: inside})
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
    """Return the first value of a `range`."""
    if not isinstance(iterated, ast.Call) or not iterated.args:
        return None
    name = iterated.func.attr if isinstance(iterated.func, ast.Attribute) else ""
    name = iterated.func.id if isinstance(iterated.func, ast.Name) else name
    if name not in _FIRST:
        return None
    return iterated.args[0] if len(iterated.args) > 1 else ast.Constant(0)


def _without_else(text: str, number: int) -> str | None:
    module, nodes = parsed(text)
    nodes[number].orelse = []  # type: ignore[attr-defined]
    return text_of(module, text)


def copies(text: str) -> Iterator[str | None]:
    """Replace names of a function by their values, or two names by one.

    A name that is bound once is replaced by a name, a constant, or an earlier name that is bound once to the
    same expression. Two names become one if either is ever assigned to the other.
    """
    module, nodes = parsed(text)
    for function in functions(module):
        inside = set(ast.walk(function))
        names = [inner for inner in nodes if inner in inside and isinstance(inner, ast.Name)]
        bound = [inner.id for inner in names if not isinstance(inner.ctx, ast.Load)]
        bound += [inner.arg for inner in inside if isinstance(inner, ast.arg)]
        first: dict[str, ast.expr] = {}
        for number, node in enumerate(nodes):
            target, value = _assignment(node) if node in inside else ("", None)
            if not target or value is None:
                continue
            # A name that is bound twice has two values, and each use would have to be told apart.
            if bound.count(target) == 1:
                same = first.setdefault(ast.dump(value), ast.Name(target, ast.Load()))
                stands = value if isinstance(value, (ast.Name, ast.Constant)) else same
                if not (isinstance(stands, ast.Name) and stands.id == target):
                    uses = [name for name in names if name.id == target and isinstance(name.ctx, ast.Load)]
                    yield replaced(text, {number: None, **{nodes.index(name): stands for name in uses}})
            elif isinstance(value, ast.Name) and value.id in bound and value.id != target:
                uses = [name for name in names if name.id == target]
                renamed = {nodes.index(name): ast.Name(value.id, name.ctx) for name in uses}
                yield replaced(text, {**renamed, number: None})


def _assignment(node: ast.AST) -> tuple[str, ast.expr | None]:
    """Return name and value of `name = value` and `name: constexpr = value`; empty and None for others."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return "", None


def parsed(text: str) -> tuple[ast.Module, list[ast.AST]]:
    """Return the tree of a text, and its nodes in the order of the text: their places are their numbers."""
    tree = untrusted.parse(text)
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        # `ast` shares one `Load()` among all nodes, so a context has no place of its own.
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        waiting += children[::-1]  # a stack: so nodes come in the order of the text
    return tree, nodes


def kernel_of(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return a function of the module; None if there is none."""
    return next(
        (
            statement
            for statement in tree.body
            if isinstance(statement, ast.FunctionDef) and statement.name == name
        ),
        None,
    )


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions of the module, in order."""
    return [statement for statement in tree.body if isinstance(statement, ast.FunctionDef)]


def replaced(text: str, new: Mapping[int, Replacement]) -> str | None:
    """Return the text with other nodes at some numbers; None as for `text_of`."""
    tree, nodes = parsed(text)
    # Nodes are told apart by identity, as two of a tree may be equal.
    edited = _Replacer({id(nodes[number]): node for number, node in new.items()}).visit(tree)
    return text_of(edited, text)


def without(text: str, numbers: Sequence[int]) -> str | None:
    """Return the text without the nodes of some numbers, which must be items of lists."""
    return replaced(text, dict.fromkeys(numbers))


def text_of(tree: ast.Module, before: str) -> str | None:
    """Return the text of a tree; None if it is no Python, or reads a name that only `before` binds.

    Args:
        tree: a tree, in which bodies may have become empty.
        before: the text before the edit.
    """
    for node in ast.walk(tree):
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `0[1]`, which a try decides on
            compile(text, "candidate", "exec", dont_inherit=True)  # not with this module's `annotations`
    except (SyntaxError, ValueError, AttributeError, RecursionError):
        return None
    # A test takes a second, and this takes a millisecond: most candidates that are none end here.
    return text if unbound(text) <= unbound(before) else None


# Cached, as the text before an edit is the same for many candidates.
@lru_cache(maxsize=64)
def unbound(text: str) -> frozenset[str]:
    """Return the names that are read somewhere and bound nowhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = symtable.symtable(text, "candidate", "exec")
    bound = {
        symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    waiting, read = [module], set[str]()
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        read |= {
            symbol.get_name()
            for symbol in scope.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or scope is module)
        }
        bound |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_declared_global()}
    if _STAR.search(text):
        return frozenset()  # it may bind anything
    return frozenset(read - bound - _BUILTINS - _MODULE)


class _Replacer(ast.NodeTransformer):
    def __init__(self, new: Mapping[int, Replacement]) -> None:
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return self._new[id(node)] if id(node) in self._new else self.generic_visit(node)


def named(node: ast.stmt, values: Mapping[str, ast.expr]) -> ast.stmt:
    """Return a statement with expressions for names that it reads, and names for those that it binds."""
    renamed: ast.stmt = _Renamer(values).visit(node)
    return renamed


class _Renamer(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        if value is None or isinstance(node.ctx, ast.Load):
            return value or node
        return ast.Name(value.id, node.ctx) if isinstance(value, ast.Name) else node


def inlined(text: str) -> Iterator[str | None]:
    """Yield the text with a function's body in the place of a call, for each call that is a statement."""
    # A function that returns in its middle has no statements that could stand there.
    module, nodes = parsed(text)
    known = {function.name: function for function in functions(module) if _simple(function)}
    for number, node in enumerate(nodes):
        call = getattr(node, "value", None)
        if not isinstance(node, (ast.Expr, ast.Assign, ast.Return)) or not isinstance(call, ast.Call):
            continue
        helper = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
        caller = next((function for function in functions(module) if node in set(ast.walk(function))), None)
        if not helper or not caller or caller is helper:
            continue
        body = _body(helper, call, node, _names(caller))
        if body is None:
            continue
        new: dict[int, Replacement] = {number: body}
        uses = [name for name in nodes if isinstance(name, ast.Name) and name.id == helper.name]
        if len(uses) == 1:  # this call: the function itself is not needed any more
            new[nodes.index(helper)] = None
        yield replaced(text, new)


def _simple(function: ast.FunctionDef) -> bool:
    """Report whether a function has plain parameters only, and returns at its end or not at all."""
    inside = [node for part in function.body for node in ast.walk(part)]
    returns = [node for node in inside if isinstance(node, ast.Return)]
    # A nested scope has names of its own, which renaming those of the body would mix with them.
    nested = any(isinstance(node, (ast.FunctionDef, ast.Lambda, ast.comprehension)) for node in inside)
    plain = not (function.args.vararg or function.args.kwarg)
    return plain and not nested and returns in ([], [function.body[-1]])


def _body(
    helper: ast.FunctionDef, call: ast.Call, node: ast.Expr | ast.Assign | ast.Return, taken: set[str]
) -> list[ast.stmt] | None:
    """Return the statements that replace a call; None if its arguments do not fit."""
    arguments = _given(helper, call)
    if arguments is None:
        return None
    # A copy, as the function may have other calls.
    body = [copy.deepcopy(statement) for statement in helper.body]
    stored = {
        inner.id
        for part in body
        for inner in ast.walk(part)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    }
    values: dict[str, ast.expr] = {}
    before: list[ast.stmt] = []
    # An expression is evaluated once by a call: only a name or a constant may be put in several places.
    for name, (value, constant) in arguments.items():
        if name not in stored and (constant or isinstance(value, (ast.Name, ast.Constant, ast.Attribute))):
            values[name] = value
        else:
            fresh = _fresh(name, taken)
            values[name] = ast.Name(fresh, ast.Load())
            before.append(ast.Assign([ast.Name(fresh, ast.Store())], value))
    # The order of a set of texts differs from process to process, and a search that is resumed needs the same
    # candidates.
    for name in sorted(stored - set(arguments)):
        values[name] = ast.Name(_fresh(name, taken), ast.Load())
    body = [*before, *(named(statement, values) for statement in body)]
    last = body[-1]
    result = last.value if isinstance(last, ast.Return) else None
    if isinstance(last, ast.Return):
        body.pop()
    if isinstance(node, ast.Assign):
        return [*body, ast.Assign(node.targets, result)] if result else None
    return [*body, ast.Return(result)] if isinstance(node, ast.Return) else body or [ast.Pass()]


def _given(helper: ast.FunctionDef, call: ast.Call) -> dict[str, tuple[ast.expr, bool]] | None:
    """Map parameters to their argument, and whether that is a constexpr; None if one has no argument."""
    # `*args` and `**kwargs` hide which parameter gets what.
    if any(isinstance(argument, ast.Starred) for argument in call.args) or not all(
        argument.arg for argument in call.keywords
    ):
        return None
    heads = [*helper.args.posonlyargs, *helper.args.args]
    lacking: list[ast.expr | None] = [None] * (len(heads) - len(helper.args.defaults))
    known: dict[str, ast.expr | None] = {
        parameter.arg: default
        for parameter, default in zip(heads, [*lacking, *helper.args.defaults], strict=True)
    }
    known |= {
        parameter.arg: default
        for parameter, default in zip(helper.args.kwonlyargs, helper.args.kw_defaults, strict=True)
    }
    if len(call.args) > len(heads):
        return None
    known |= {parameter.arg: value for parameter, value in zip(heads, call.args, strict=False)}
    known |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    # The compiler evaluates a constexpr, so its expression may stand at each of its uses.
    constants = {
        parameter.arg
        for parameter in [*heads, *helper.args.kwonlyargs]
        if parameter.annotation and "constexpr" in ast.unparse(parameter.annotation)
    }
    bound = {name: (value, name in constants) for name, value in known.items() if value is not None}
    return bound if len(bound) == len(heads) + len(helper.args.kwonlyargs) else None


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name that the caller does not have yet."""
    fresh, number = name, 1
    while fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    taken.add(fresh)
    return fresh


def _names(function: ast.FunctionDef) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return names | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


_JIT = "jit"


def keywords(text: str) -> list[int]:
    """Return the numbers of keyword arguments, and of decorators other than the one that makes a kernel."""
    _, nodes = parsed(text)
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
    """Replace expressions by a constant, or by a part of theirs, outer ones first.

    Args:
        text: the module.
        begin: the first number to look at.
    """
    module, nodes = parsed(text)
    kept = _kept(module)
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for number, node in enumerate(nodes):
        if number >= begin and isinstance(node, ast.expr) and id(node) not in kept:
            # Outer expressions come first, as one that goes takes along all that is in it.
            for expression in _simpler(node, modules):
                yield number, replaced(text, {number: expression})


def constants(text: str, begin: int) -> Iterator[Place]:
    """Replace numbers by 0 and 1, and sizes by half of them."""
    module, nodes = parsed(text)
    kept = _kept(module)
    for number, node in enumerate(nodes):
        if number >= begin and isinstance(node, ast.Constant) and id(node) not in kept:
            for value in smaller(node.value):
                yield number, replaced(text, {number: ast.Constant(value)})


def smaller(value: object) -> tuple[int | float, ...]:
    """Return the smaller numbers to try instead of a value; none for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ()
    if isinstance(value, float):
        return tuple(number for number in (0.0, 1.0) if value not in (number, 0))
    # Half of a size is often a size, too: a power of two stays one, as `tl.arange` wants it.
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
        elif isinstance(node, ast.JoinedStr):  # a number in the place of its text would not unparse
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
    # `True` takes the branch that the condition guards, which is where the symptom more often is.
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
        # `x` of `x.to(...)` is a value; `tl` of `tl.load(...)` is none.
        if isinstance(node.func, ast.Attribute) and _root(node.func) not in modules:
            yield node.func.value
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
    """Return the parameters that a function does not use."""
    head = kernel_of(untrusted.parse(text), function)
    if not head:
        return []
    used = {node.id for part in head.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return [parameter.arg for parameter in _plain(head.args) if parameter.arg not in used]


def without_parameters(text: str, function: str, names: Sequence[str]) -> str | None:
    """Return the text without some parameters of a function, in its head and in every call."""
    return _changed(text, function, names, {})


def with_values(text: str, function: str, values: Mapping[str, ast.expr]) -> str | None:
    """Return the text with expressions in the place of parameters; None if the function assigns to one."""
    return _changed(text, function, list(values), values)


def _changed(text: str, function: str, names: Sequence[str], values: Mapping[str, ast.expr]) -> str | None:
    module = untrusted.parse(text)
    head = kernel_of(module, function)
    if not head:
        return None
    for node in [inner for part in head.body for inner in ast.walk(part)]:
        # A parameter that is assigned has another value from there on.
        if isinstance(node, ast.Name) and node.id in values and not isinstance(node.ctx, ast.Load):
            return None
    order = [parameter.arg for parameter in _plain(head.args)]
    positional = order[: len(order) - len(head.args.kwonlyargs)]
    head.body = [named(part, values) for part in head.body]
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
    return text_of(module, text)


def _drop(arguments: ast.arguments, names: Container[str]) -> None:
    # `ast` keeps the defaults of the last parameters only, without saying whose they are.
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
    """Return `f` of `f(...)` and of the launch `f[grid](...)`."""
    head = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return head.id if isinstance(head, ast.Name) else ""
