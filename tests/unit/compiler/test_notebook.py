"""Notebooks: what of their cells is Python, and which cell a line is in."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler import source, source_tree
from tritonsmith.core.errors import FactError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a blank in its path."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "my home"))
    return tmp_path


def written(folder: Path, *cells: str, **more: Any) -> Path:
    """A notebook with these code cells below a text."""
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path = folder / "my nb.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# x"}, *code], **more}))
    return path


def test_another_file_is_itself() -> None:
    assert source_tree.as_python(Path("/k.py")) == Path("/k.py")


def test_cells_are_one_file_that_finds_modules_beside_the_notebook(tmp_path: Path) -> None:
    file = source_tree.as_python(written(tmp_path, "import triton", "@triton.jit\ndef add(x):\n    pass"))
    text = source.read(file)
    assert file.is_relative_to(tmp_path / "my home")
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in text
    assert source.kernels(text) == ("add",)
    assert source_tree.as_python(tmp_path / "my nb.ipynb") == file


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ("%load_ext tritonsmith\nx = 1", ["x = 1"]),
        ("if 1:\n    !ls\n    y = !pwd\nz = 2", ["if 1:\n    pass\n    pass", "z = 2"]),
        ("a = (8\n% 3)\n%matplotlib inline", ["a = 8 % 3"]),
        ('t = """\n!ls\n"""\nadd?\n?add', ["t = '\\n!ls\\n'"]),
        ("%%time\nx = 1", ["x = 1"]),
        ("%%triton_stages --target h100\nx = 1", ["x = 1"]),
        ("%%bash\nx = 1", []),
    ],
)
def test_what_only_ipython_reads_is_a_comment(tmp_path: Path, cell: str, kept: list[str]) -> None:
    file = source_tree.as_python(written(tmp_path, cell, "end = 3"))
    text = source.read(file)
    found = [ast.unparse(one) for one in ast.parse(text).body[2:]]
    assert [one for one in found if one != "pass"] == [*kept, "end = 3"]
    assert len(text.splitlines()) == 2 + 1 + len(cell.splitlines()) + 1 + 1


def test_lines_are_told_as_the_cells_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "a\nb", "%%bash\nc", "d\ne\nf")
    file = source_tree.as_python(path)
    last = len(source.read(file).splitlines())
    assert source_tree.name_cells(f"at {file}:{last}") == f"at {path}, cell 3, line 3"
    assert (
        source_tree.name_cells(f'File "{file}", line {last - 2}, in x')
        == f'File "{path}, cell 3, line 1, in x'
    )
    assert (
        source_tree.name_cells(f"where: {file}\nwhy: line 4: b") == f"where: {path}\nwhy: cell 1, line 1: b"
    )
    both = source_tree.name_cells(f"where: {file}\nat {file}:5\nline 4")
    assert both == f"where: {path}\nat {path}, cell 1, line 2\ncell 1, line 1"
    assert source_tree.name_cells("/other.py:3, line 4") == "/other.py:3, line 4"
    gone = str(file.with_name("gone.py:3"))
    assert source_tree.name_cells(gone) == gone


def test_what_is_not_python_is_told_by_its_cell(tmp_path: Path) -> None:
    file = source_tree.as_python(written(tmp_path, "x = 1", "def f(:\n    %ls"))
    with pytest.raises(FactError) as caught:
        source.choose(source.read(file), "", file)
    assert "cell 2, line 1: invalid syntax" in source_tree.name_cells(str(caught.value))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a notebook of format 4"),
        ("[]", "not a notebook of format 4"),
        ('{"worksheets": []}', "not a notebook of format 4"),
        ('{"cells": [{"cell_type": "code", "source": [3]}]}', "not a notebook of format 4"),
        (
            '{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}',
            'the cells of this notebook are "R"',
        ),
    ],
)
def test_what_is_no_notebook(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(content)
    with pytest.raises(FactError, match=words):
        source_tree.as_python(path)


def test_a_missing_notebook(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no such file"):
        source_tree.as_python(tmp_path / "n.ipynb")
