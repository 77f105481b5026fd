"""The house's own rules, as far as a test can hold them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import tritonsmith

_SOURCES = Path(tritonsmith.__file__).parent


def test_who_searches_for_a_class_finds_one() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path in _SOURCES.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.relative_to(_SOURCES).as_posix())
    assert len(homes) > 300
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
