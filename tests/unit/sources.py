"""Trees of the tool's modules, for the tests that hold rules of the house.

They are parsed and walked once, which takes two seconds: the tests that look at them are `together` on one
worker.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import pytest

import tritonsmith

SOURCES = Path(tritonsmith.__file__).parent

together = pytest.mark.xdist_group("sources")


@cache
def trees() -> dict[str, ast.Module]:
    """Trees of all modules, by their paths below src/tritonsmith. They are shared: nobody changes one."""
    paths = sorted(SOURCES.rglob("*.py"))
    enabled = gc.isenabled()
    gc.disable()  # half of the time of parsing would be the look for garbage, of which there is none
    try:
        return {
            path.relative_to(SOURCES).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in paths
        }
    finally:
        if enabled:
            gc.enable()
        gc.freeze()


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """The nodes of one module in the order of `ast.walk`."""
    return tuple(ast.walk(trees()[name]))
