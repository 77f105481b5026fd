"""Runs of the worker as forks of an interpreter that has imported what it imports of the library.

Each is the same program, from its first line: `__main__`, without tritonsmith. The tests of signals and of
what is left behind start an interpreter of their own.
"""

from __future__ import annotations

import ast
import atexit
import gc
import importlib
import os
import runpy
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.integration.preloaded import Preloaded, become, serve

FOLDER = Path(__file__).parents[3] / "src" / "tritonsmith" / "worker"


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the worker answers where the packages of `place / "site"` are installed."""
    environ = {**os.environ, "PYTHONPATH": str(place / "site")}
    return _interpreter().run((str(FOLDER), *words), cwd=Path.cwd(), env=environ, timeout=60)


@cache
def _interpreter() -> Preloaded:
    made = Preloaded(__name__)
    atexit.register(made.end)
    return made


def _imported(path: Path) -> set[str]:
    """The modules of the library that are imported as the first thing."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


if __name__ == "__main__":
    for path in FOLDER.glob("*.py"):
        for name in _imported(path):
            importlib.import_module(name)
    gc.freeze()
    found = serve(socket.socket(fileno=int(sys.argv[1])))
    if found:
        become(*found)
        sys.path[:1] = os.environ["PYTHONPATH"].split(os.pathsep)
        runpy.run_path(str(FOLDER), run_name="__main__")
