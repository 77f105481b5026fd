"""The house's own rules, as far as a test can hold them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("package", "most"), [("kernels", 20), ("passes", 14)])
def test_folders_of_commands_know_few_others(package: str, most: int) -> None:
    """The linter holds that no import goes up; this, that a reader of one folder opens few others."""
    arrows: set[tuple[str, str]] = set()
    for path in (_SOURCES / package).rglob("*.py"):
        home = path.relative_to(_SOURCES / package).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"tritonsmith.{package}"):
                names = [f"{node.module}.{alias.name}".split(".")[2] for alias in node.names]
                arrows.update((home, name) for name in names if name != home)
    assert 5 < len(arrows) <= most
