"""Find checks of a stub's identity or class: Python does not call the stub, so the source is read."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable
from typing import Any

from .frames import shown
from .stub_finder import names_in
from .stub_ledger import Ledger
from .stubs import is_stub_module, name_of, stub


def note_identities(body: Iterable[ast.stmt], names: dict[str, Any], path: str, ledger: Ledger) -> None:
    """Note the places where `is` and `isinstance` check a stand-in: Python does not call the stand-in.

    Args:
        body: the executed statements of a file.
        names: of the module, after the run.
        path: of the file.
        ledger: of the stand-ins.
    """
    for node in (node for part in body for node in ast.walk(part)):
        looked: list[ast.expr] = []
        if isinstance(node, ast.Compare) and any(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops):
            looked, what = [node.left, *node.comparators], "the identity"
        elif isinstance(node, ast.Call) and "isinstance" in names_in(node.func):
            looked, what = node.args[:1], "the class"
        for name in filter(None, (name_of(_value(one, names, ledger)) for one in looked)):
            text = f"the code depends on {what} of {name}, a stand-in"
            ledger.doubts[f"{shown(path)}:{node.lineno}: {text}"] = None  # type: ignore[attr-defined]


def _value(node: ast.expr, names: dict[str, Any], ledger: Ledger) -> Any:
    """Return the value of an expression that depends only on names of the module: a stand-in, a module."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, (ast.Call, ast.Subscript)):
        value = _value(node.func if isinstance(node, ast.Call) else node.value, names, ledger)
        return value if name_of(value) else None
    if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
        return None
    parent = _value(node.value, names, ledger)
    if name_of(parent):
        return stub(f"{name_of(parent)}.{node.attr}", ledger)
    if (
        not isinstance(parent, types.ModuleType)
        or not is_stub_module(parent)
        or hasattr(type(parent), node.attr)
    ):
        return None
    return vars(parent).get(node.attr) or stub(f"{parent.__name__}.{node.attr}", ledger)
