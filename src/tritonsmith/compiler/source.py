"""Read the kernels of a Python file without running it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError, did_you_mean

_MISSING = object()
# A file that has one of these may bind names that its text does not show.
_STARS = ("*", "globals", "exec", "setattr", "__getattr__")
# Codecs for names of hosts. Both take quadratic time, so a `coding:` line of a stranger's file could hang a
# command.
_SLOW_CODECS = ("idna", "punycode")


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel.

    Attributes:
        name: its name in the function's head.
        constexpr: annotated with `tl.constexpr`.
        has_default: the function's head gives it a value.
        default: that value.
    """

    name: str
    constexpr: bool = False
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True)
class KernelSource:
    """A function that Triton compiles.

    Attributes:
        name: the name of the function.
        parameters: its parameters, in order.
        heuristics: names of parameters that `@triton.heuristics` computes.
        autotuned: it is decorated with `@triton.autotune`.
    """

    name: str
    parameters: tuple[KernelParameter, ...]
    heuristics: tuple[str, ...] = ()
    autotuned: bool = False


@dataclass(frozen=True)
class InnerKernel:
    """A kernel that a function defines when called.

    Attributes:
        maker: name of that function.
        name: the name of the kernel.
        bound: names of the module that are bound to the function's result.
        free: the function needs no arguments.
    """

    maker: str
    name: str
    bound: tuple[str, ...]
    free: bool

    def hints(self, file: Path) -> list[str]:
        """Return hints on how to name the kernel."""
        ways = [f"the result of {self.maker}(): {file}:{name}" for name in self.bound]
        if self.free:
            ways.append(f"the kernel that a call of {self.maker}() defines: {file}:{self.maker}.{self.name}")
        advice = f"bind it in your own file: k = {self.maker}(...), and give k as the kernel"
        return ways or [f"{self.maker}() needs arguments; {advice}"]


def read(file: Path) -> str:
    """Read a Python file as Python does: a byte order mark and a `coding:` line are obeyed.

    Raises:
        FactError: the file does not exist, or is not text.
    """
    try:
        if file.is_dir():
            raise FactError("this is a folder, not a Python file", where=file)
        return _decoded(read_bytes(file))
    except FileNotFoundError:
        near = [path.name for path in file.parent.glob("*.py")] if file.parent.is_dir() else []
        hints = did_you_mean(file.name, near) if near else ()
        raise FactError("no such file", where=file, hints=hints) from None
    # `coding: zip` passes `detect_encoding`, and its `decode` raises LookupError: it is no codec of texts.
    except (UnicodeError, LookupError, SyntaxError) as error:
        raise FactError(
            "cannot decode this file as UTF-8 or as its declared encoding", where=file, why=str(error)
        ) from error
    except OSError as error:
        raise FactError("cannot read this file", where=file, why=error.strerror) from error


def _decoded(content: bytes) -> str:
    codec, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    if codec in _SLOW_CODECS:
        raise SyntaxError(f"unknown encoding: {codec}")
    # As Python's own parser does, so that line numbers agree with those of its errors.
    return content.decode(codec).replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(file: Path) -> bytes:
    """Read a kernel's file, or one that it imports.

    Raises:
        OSError: it is missing, unreadable, too large, or not a regular file.
    """
    return untrusted.read_bytes(file, configs.load("kernels")["source"]["limit"])


def broken_line(text: str) -> int:
    """Return the line on which this Python cannot parse a text, from 1; 0 if it can."""
    try:
        untrusted.python_tree(text)
    except SyntaxError as error:
        return error.lineno or 1
    except ValueError:
        return 1
    return 0


def kernels(text: str) -> tuple[str, ...]:
    """Return the names of the functions with a Triton decorator; none if the text cannot be parsed."""
    return tuple(dict.fromkeys(function.name for function in _functions(text) if _is_kernel(function)))


def launched(text: str) -> tuple[str, ...]:
    """Return the names of the kernels that no other kernel of the text calls."""
    # Helpers are decorated too: what nothing else in the file calls is what the host launches.
    called = _called(text)
    return tuple(name for name in kernels(text) if name not in called)


def line_of(text: str, kernel: str) -> int:
    """Return the line of a kernel's `def`, from 1; 1 if the file only binds it to its name."""
    return next((function.lineno for function in _functions(text) if function.name == kernel), 1)


def inner_kernels(text: str) -> tuple[InnerKernel, ...]:
    """Return the kernels that functions of the module define when called."""
    tree = _parse(text)
    calls: dict[str, list[str]] = {}
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            calls.setdefault(_word(node.value), []).extend(names)
    inner = []
    for maker in _functions(text):
        inside = [node for node in ast.walk(maker) if isinstance(node, ast.FunctionDef) and node is not maker]
        heads = maker.args
        needs = len(heads.posonlyargs) + len(heads.args) > len(heads.defaults) or None in heads.kw_defaults
        inner += [
            InnerKernel(maker.name, node.name, tuple(calls.get(maker.name, ())), not needs)
            for node in inside
            if _is_kernel(node)
        ]
    return tuple(inner)


def choose(text: str, kernel: str, file: Path) -> str:
    """Return the kernel's name: the given one, or else that of the only kernel in the file.

    Raises:
        UsageError: no name is given, and there is not exactly one kernel.
        FactError: no name is given, and the file cannot be parsed.
    """
    if kernel:
        return kernel
    # Without a name the whole text must be understood: a kernel in a part that cannot be parsed may be the
    # one.
    if wrong := _wrong(text):
        hints = ["if the file needs a newer Python than tritonsmith runs on, name the kernel: FILE:KERNEL"]
        raise FactError("cannot parse this file as Python", where=file, why=wrong, hints=hints)
    names = kernels(text)
    if len(names) == 1:
        return names[0]
    if len(alone := launched(text)) == 1:
        return alone[0]
    inner = inner_kernels(text)
    if not names and len(inner) == 1 and len(inner[0].bound) == 1:
        return inner[0].bound[0]
    if not names and inner:
        what = f"this file has no module-level kernel, only {_listed(inner)}"
        raise UsageError(
            what, where=file, hints=[hint for candidate in inner for hint in candidate.hints(file)]
        )
    if not names:
        raise UsageError(
            "this file has no kernel", where=file, hints=["a kernel is a function with @triton.jit"]
        )
    raise UsageError(
        f"this file has {len(names)} kernels",
        where=file,
        hints=[f"choose one: {file}:{name}" for name in names],
    )


def no_such(name: str, text: str, file: Path) -> UsageError:
    """Return the error for a kernel that does not exist, or not at module level."""
    inner = [candidate for candidate in inner_kernels(text) if candidate.name == name]
    if inner:
        hints = [hint for candidate in inner for hint in candidate.hints(file)]
        return UsageError(
            f"this file has no kernel {name!r} at module level, only {_listed(inner)}",
            where=file,
            hints=hints,
        )
    return UsageError(
        f"this file has no kernel {name!r}", where=file, hints=did_you_mean(name, kernels(text))
    )


def _listed(inner: Iterable[InnerKernel]) -> str:
    return ", ".join(f"{kernel.name} inside {kernel.maker}()" for kernel in inner)


def find(text: str, name: str, file: Path, *, presume: bool = False) -> KernelSource | None:
    """Return the parameters and decorators of a kernel; None if they are known only by running the file.

    Args:
        text: of the file.
        name: of the kernel.
        file: for messages.
        presume: a decorator that is not Triton's leaves the parameters as they are.

    Raises:
        UsageError: the file binds no such name.
    """
    definitions = [function for function in _functions(text) if function.name == name]
    bound = _bound(text)
    # Of two definitions in the branches of an `if`, the GPU may decide which one counts.
    if len(definitions) != 1 or bound.count(name) != 1:
        if not definitions and _complete(text) and name.partition(".")[0] not in bound:
            raise no_such(name, text, file)
        return None
    (function,) = definitions
    if not function.decorator_list or function.args.vararg or function.args.kwarg:
        return None
    heuristics: list[str] = []
    autotuned = False
    for decorator in function.decorator_list:
        word = _word(decorator)
        if word == "heuristics":
            names = _keys(decorator)
            if names is None and not presume:
                return None
            heuristics += names or ()
        elif word == "autotune":
            autotuned = True
        elif word != "jit" and not presume:
            # Any other decorator may return a kernel with another head.
            return None
    parameters = tuple(_parameters(function.args))
    if any(parameter.default is _MISSING for parameter in parameters) and not presume:
        return None
    return KernelSource(name, parameters, tuple(heuristics), autotuned)


def _wrong(text: str) -> str:
    """Return the reason why a text is not Python; empty if it is."""
    try:
        untrusted.python_tree(text)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return f"{place}{error.msg}: {(error.text or '').strip()}".removesuffix(": ")
    except ValueError as error:
        return str(error)
    return ""


# A file has many kernels, and each of them asks several questions of the same tree.
@lru_cache(maxsize=2)
def _parse(text: str) -> ast.Module | None:
    """Return the module; None if this Python cannot parse it."""
    try:
        return untrusted.python_tree(text)
    # No error: the environment's interpreter may be newer than this one, and accept the text. ValueError is
    # raised for a text that is nested more deeply than the parser may go.
    except (SyntaxError, ValueError):
        return None


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    """Yield the functions of the module, including those inside its `if`, `try` and `with` statements."""
    tree = _parse(text)
    waiting: deque[ast.stmt] = deque(tree.body if tree else ())
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            # To the front, so that functions come in the order of the text.
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            waiting.extendleft(reversed(inner))


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any(_word(decorator) in ("jit", "autotune", "heuristics") for decorator in function.decorator_list)


def _word(decorator: ast.expr) -> str:
    """Return the last name of a decorator: `jit` of `@triton.jit`, `@jit`, `@triton.jit(debug=True)`."""
    head = decorator.func if isinstance(decorator, ast.Call) else decorator
    return head.attr if isinstance(head, ast.Attribute) else head.id if isinstance(head, ast.Name) else ""


def _keys(decorator: ast.expr) -> list[str] | None:
    """Return the names in `@triton.heuristics({"EVEN": ...})`; None if they are not literals there."""
    if not isinstance(decorator, ast.Call):
        return None
    tables = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
    if len(tables) != 1 or not isinstance(tables[0], ast.Dict):
        return None
    names = [key.value if isinstance(key, ast.Constant) else None for key in tables[0].keys]
    return [name for name in names if isinstance(name, str)] if all(names) else None


def _parameters(arguments: ast.arguments) -> Iterator[KernelParameter]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    heads = zip(
        [*plain, *arguments.kwonlyargs], [*defaults, *arguments.defaults, *arguments.kw_defaults], strict=True
    )
    for head, default in heads:
        constexpr = head.annotation is not None and _says_constexpr(head.annotation)
        yield KernelParameter(
            head.arg, constexpr, default is not None, _literal(default) if default else None
        )


def _says_constexpr(annotation: ast.expr) -> bool:
    # Triton looks for the word in the annotation's text, too: `KernelParam.is_constexpr` of
    # python/triton/runtime/jit.py.
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.endswith("constexpr")
    return _word(annotation) == "constexpr"


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    # A name or a call is a ValueError, `{[]: 1}` is a TypeError; the last two come from deep nesting.
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _MISSING


def _complete(text: str) -> bool:
    """Report whether every name that the file binds can be seen in its text."""
    tree = _parse(text)
    return tree is not None and not any(
        (isinstance(node, ast.alias) and node.name == "*")
        or (isinstance(node, ast.Name) and node.id in _STARS)
        or (isinstance(node, ast.FunctionDef) and node.name in _STARS)
        for node in ast.walk(tree)
    )


def _bound(text: str) -> list[str]:
    """Return the names that the file defines, imports or assigns outside functions, once per occurrence."""
    tree = _parse(text)
    names: list[str] = []
    for node in _outside(tree) if tree else ():
        if isinstance(node, ast.alias):
            names.append(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return names


def _outside(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes outside of functions, and the names that functions bind by `global`."""
    waiting = deque(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
        else:
            globals_ = {
                name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names
            }
            yield from (ast.Name(name, ast.Store()) for name in globals_)


def _called(text: str) -> set[str]:
    """Return the names that kernels mention in their bodies."""
    return {
        node.id
        for function in _functions(text)
        if _is_kernel(function)
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
