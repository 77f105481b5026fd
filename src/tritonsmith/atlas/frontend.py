"""Parse the functions of Triton's language: their text, and the ops that they build."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from tritonsmith.atlas.mentions import PythonBinding
from tritonsmith.atlas.source_files import Place, SourceFiles
from tritonsmith.core import untrusted

_LANGUAGES = {"tl": "triton/language", "gl": "triton/experimental/gluon/language"}
_Function = ast.FunctionDef


@dataclass(frozen=True)
class LanguageFunction:
    """A function that kernels call.

    Attributes:
        name: `tl.dot`.
        place: the place of its definition.
        signature: the signature as written, without the compiler's own parameters.
        about: its docstring.
        semantic: the functions of `semantic.py` that it calls.
        builds: the builder's functions that these call, nearest first.
        calls: other functions of the language that it calls.
    """

    name: str
    place: Place
    signature: str
    about: str
    semantic: tuple[Place, ...]
    builds: tuple[str, ...]
    calls: tuple[str, ...]


class FrontEnd:
    """The language of a tree: `python/triton/language` of a checkout, `language` of an installed Triton."""

    def __init__(self, tree: SourceFiles) -> None:
        self._tree = tree

    @cached_property
    def functions(self) -> Mapping[str, LanguageFunction]:
        """The functions by name, of all languages that the tree has."""
        known: dict[str, LanguageFunction] = {}
        for prefix, folder in _LANGUAGES.items():
            for top in (f"python/{folder}", folder.removeprefix("triton/")):
                if f"{top}/__init__.py" in self._tree.names:
                    known |= dict(self._language(prefix, top))
        return known

    def _language(self, prefix: str, top: str) -> Iterator[tuple[str, LanguageFunction]]:
        # `tl` checks its types in semantic.py, Gluon in _semantic.py.
        candidates = (f"{top}/semantic.py", f"{top}/_semantic.py")
        semantic_file = next((file for file in candidates if file in self._tree.names), "")
        semantic = self._functions_of(semantic_file)
        modules: dict[str, dict[str, _Function]] = {}
        exports = list(_exports(self._parsed(f"{top}/__init__.py")))
        # tl.math is a module, whose functions __init__.py does not name.
        exports += [
            ("math", name) for name in self._functions_of(f"{top}/math.py") if not name.startswith("_")
        ]
        known = {name for _, name in exports}
        for module, name in exports:
            file = f"{top}/{module}.py"
            if module not in modules:
                modules[module] = self._functions_of(file)
            functions = modules[module]
            if name in functions:
                yield (
                    f"{prefix}.{name}",
                    _language_function(
                        f"{prefix}.{name}", file, functions[name], semantic, semantic_file, known
                    ),
                )

    def _parsed(self, file: str) -> ast.Module:
        try:
            text = self._tree.text(file) if file in self._tree.names else ""
            return untrusted.python_tree(text)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    def _functions_of(self, file: str) -> dict[str, _Function]:
        every = (node for node in ast.walk(self._parsed(file)) if isinstance(node, _Function))
        definitions: dict[str, _Function] = {}
        # Breadth first: a function of the module counts before a method or a nested function of its name.
        for node in every:
            definitions.setdefault(node.name, node)
        return definitions


def full_path(name: str) -> str:
    """Return the name of a function with its package: `triton.language.dot` for `tl.dot`."""
    prefix, _, rest = name.partition(".")
    return f"{_LANGUAGES[prefix].replace('/', '.')}.{rest}"


def builders_of(
    function: LanguageFunction, builders: Mapping[str, tuple[PythonBinding, ...]]
) -> tuple[PythonBinding, ...]:
    """Return the C++ functions of the builder that a function of the language calls in the end."""
    return tuple(binding for name in function.builds for binding in builders.get(name, ()))


def _exports(module: ast.Module) -> Iterator[tuple[str, str]]:
    # `from .core import dot` makes `tl.dot`; an absolute import is of another package.
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            for name in node.names:
                yield node.module, name.name


def _language_function(
    name: str,
    file: str,
    node: _Function,
    semantic: Mapping[str, _Function],
    semantic_file: str,
    known: set[str],
) -> LanguageFunction:
    called = _called(node)
    # Old versions call semantic.add(..., builder), newer ones _semantic.add(...).
    in_semantic = dict.fromkeys(callee for owner, callee in called if "semantic" in owner)
    first = [callee for callee in in_semantic if callee in semantic]
    builds = [f"create_{node.name}"]  # it counts if it is called below
    builds += [callee for of, callee in called if "builder" in of and callee.startswith("create_")]
    # Level by level through the functions that are called, so that the nearest builders come first.
    nearest, visited = list(first), set(first)
    while nearest:
        inside = [(of, callee) for parent in nearest for of, callee in _called(semantic[parent])]
        builds += [callee for of, callee in inside if "builder" in of and callee.startswith("create_")]
        nearest = [
            callee
            for of, callee in dict.fromkeys(inside)
            if of in ("", "self") and callee in semantic and callee not in visited
        ]
        visited |= {*nearest}
    own = builds[0]
    # Users never pass these; the compiler does.
    arguments = ast.unparse(node.args).replace("_semantic=None", "").replace("_builder=None", "")
    return LanguageFunction(
        name,
        Place(file, node.lineno, name),
        f"{name}({arguments.replace('_generator=None', '').rstrip(', ')})",
        inspect.cleandoc(ast.get_docstring(node) or ""),
        tuple(Place(semantic_file, semantic[callee].lineno, callee) for callee in first),
        tuple(dict.fromkeys(builder for builder in builds if builder != own or own in builds[1:])),
        tuple(sorted({callee for _, callee in called if callee in known} - {node.name})),
    )


@cache
def _called(node: ast.AST) -> tuple[tuple[str, str], ...]:
    """Return the calls in a function: the object whose method is called, or an empty text, and the name."""
    # Nodes hash by identity, so a semantic function that many functions of the language call is walked once.
    calls = (callee.func for callee in ast.walk(node) if isinstance(callee, ast.Call))
    return tuple(
        (ast.unparse(callee.value), callee.attr) if isinstance(callee, ast.Attribute) else ("", callee.id)
        for callee in calls
        if isinstance(callee, (ast.Attribute, ast.Name))
    )
