"""What the env's interpreter can run: Python 3.8, its standard library, and Triton once it is needed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.unit.worker.test_compile import place as place  # noqa: PLC0414 - a fixture
from tests.unit.worker.test_compile import point, run
from tritonsmith import worker

FILES = sorted(worker.FOLDER.glob("*.py"))
NEWER = {"annotationlib", "compression", "graphlib", "tomllib", "zoneinfo"}  # than Python 3.8


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Top-level modules; `.` for those beside the file."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level or str(node.module).partition(".")[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_python_3_8(file: Path) -> None:
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


INTERPRETER = {"interpret": {"numpy"}, "interpreted_memory": {"numpy"}}  # as Triton's interpreter does
GUARDED = {"load": {"annotationlib"}}  # where Python is 3.14 or later


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_imports_the_standard_library_and_triton_only(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    library = {".", *sys.stdlib_module_names} - NEWER | INTERPRETER.get(file.stem, set())
    assert set(imported(ast.walk(tree))) <= library | GUARDED.get(file.stem, set()) | {"triton"}
    assert set(imported(tree.body)) <= library, "Triton is imported late"


def test_modules_of_the_kernels_own_may_have_the_names_of_the_workers(place: Path) -> None:
    names = [file.stem for file in FILES if not file.stem.startswith("__")]
    for name in names:
        (place / f"{name}.py").write_text("MINE = True\n")
    path = place / "compile.py"
    mine = " and ".join(f"{name}.MINE" for name in names)
    path.write_text(
        f"import triton, sys, {', '.join(names)}\nassert {mine}\n"
        f"assert not {{{str(worker.FOLDER)!r}, {str(worker.FOLDER.parent)!r}}} & set(sys.path)\n"
        f"N = [{', '.join(names)}]\n@triton.jit\ndef k(x, WHAT=N): pass\n"
    )
    _, (_, row) = run(place, point("p", "x"), file=str(path))
    assert row["status"] == "ok"
