"""Find the backends' calls of passes, and their conditions: `compiler.py` is parsed and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tritonsmith.atlas.native import PythonBinding
from tritonsmith.atlas.source_files import Place, SourceFiles
from tritonsmith.core import untrusted


@dataclass(frozen=True)
class PassCall:
    """A call of a pass in a pipeline.

    Attributes:
        name: as it is called: `passes.ttgpuir.add_coalesce`.
        arguments: as written, without the pass manager.
        backend: `nvidia`, `amd`; empty where the file is of none.
        stage: the function: `make_ttgir`.
        place: the line, with the conditions around it.
    """

    name: str
    arguments: tuple[str, ...]
    backend: str
    stage: str
    place: Place

    @property
    def in_words(self) -> Place:
        """The line, with the stage and the call."""
        stage = f"{self.stage}{f' of {self.backend}' if self.backend else ''}"
        call = f"{self.name}({', '.join(('pm', *self.arguments))})"
        return replace(self.place, what=f"{stage}: {call}")


def calls(tree: SourceFiles) -> tuple[PassCall, ...]:
    """Return every call of a pass in the Python of the backends and the compiler, by file and line."""
    pass_calls: list[PassCall] = []
    for file in tree.having(".py"):
        text = tree.text(file)
        if "add_" in text and ("passes." in text or "pm.add" in text) and "test" not in file.split("/"):
            pass_calls += calls_in(text, file)
    return tuple(pass_calls)


def calls_in(text: str, file: str) -> Iterator[PassCall]:
    """Yield the calls of passes in one file; none in a template, which no backend runs."""
    try:
        parsed = untrusted.python_tree(text)
    except (SyntaxError, ValueError):
        return
    yield from _Visitor(file).visit_all(parsed)


def of_binding(
    known: tuple[PassCall, ...], binding: PythonBinding, rivals: tuple[PythonBinding, ...]
) -> tuple[PassCall, ...]:
    """Return calls of a binding; where several have its name, those whose path has most of its words."""
    same = [rival for rival in rivals if rival.name == binding.name]
    return tuple(
        call
        for call in known
        if call.name.rpartition(".")[2] == binding.name and _nearest(call, same) is binding
    )


def _nearest(call: PassCall, candidates: list[PythonBinding]) -> PythonBinding:
    words = {*call.name.split("."), call.backend}
    return max(
        candidates, key=lambda binding: (len(words & {*binding.words}), -len({*binding.words} - words))
    )


def backend_of(file: str) -> str:
    """Return the backend whose file this is: `nvidia` of `third_party/nvidia/backend/compiler.py`."""
    parts = file.split("/")
    for before in ("third_party", "backends"):
        if before in parts[:-2]:
            return parts[parts.index(before) + 1]
    return ""


class _Visitor:
    """Walks statements with the conditions around them."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_all(self, tree: ast.AST) -> Iterator[PassCall]:
        yield from self._visit(tree, "", ())

    def _visit(self, node: ast.AST, stage: str, when: tuple[str, ...]) -> Iterator[PassCall]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Conditions around a nested function hold where it is defined, not where it is called.
            stage, when = node.name, ()
        if isinstance(node, ast.Call) and (call := self._call(node, stage, when)):
            yield call
        if isinstance(node, (ast.If, ast.IfExp)):
            test = ast.unparse(node.test)
            body = node.body if isinstance(node.body, list) else [node.body]
            other = node.orelse if isinstance(node.orelse, list) else [node.orelse]
            for statement in body:
                yield from self._visit(statement, stage, (*when, test))
            for statement in other:
                yield from self._visit(statement, stage, (*when, f"not ({test})"))
            return
        if isinstance(node, (ast.For, ast.While)):
            head = (
                f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
                if isinstance(node, ast.For)
                else (f"while {ast.unparse(node.test)}")
            )
            for statement in node.body:
                yield from self._visit(statement, stage, (*when, head))
            return
        for child in ast.iter_child_nodes(node):
            yield from self._visit(child, stage, when)

    def _call(self, node: ast.Call, stage: str, when: tuple[str, ...]) -> PassCall | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        name = ast.unparse(node.func)
        arguments = [
            *map(ast.unparse, node.args),
            *(f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords),
        ]
        by_manager = name.startswith("pm.")
        ours = node.func.attr.startswith("add_") or "passes" in name
        if not ours or not (by_manager or arguments[:1] == ["pm"]):
            return None
        return PassCall(
            name,
            tuple(arguments if by_manager else arguments[1:]),
            backend_of(self._file),
            stage,
            Place(self._file, node.lineno, name, when),
        )
