"""Which Python files a text speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.inspect.report import python_sources


def test_names_are_found_in_all_languages() -> None:
    text = b"""
#loc1 = loc("/home/me/matmul.py":12:4)
!5 = !DIFile(filename: "flash.py", directory: "/home/me/kernels")
\t.file\t1 "/home/me" "softmax.py"
#loc2 = loc("rows"(#loc1))
#loc3 = loc("notes.txt":1:1)
"""
    found = python_sources.names(text)
    assert found[0] == "/home/me/matmul.py"
    assert set(found) >= {"/home/me/kernels/flash.py", "/home/me/softmax.py"}
    assert not any(name.endswith(".txt") for name in found)


def test_only_python_files_that_are_here_by_their_full_name_are_read(tmp_path: Path) -> None:
    here, large = tmp_path / "kernel.py", tmp_path / "large.py"
    here.write_text("x = 1\n")
    large.write_text("#" * 2**21)
    (tmp_path / "secret").write_text("no")
    (tmp_path / "folder.py").mkdir()
    names = [here, large, tmp_path / "secret", tmp_path / "gone.py", tmp_path / "folder.py"]
    assert python_sources.read([*map(str, names), "kernel.py", "\0.py"]) == {str(here): "x = 1\n"}


@pytest.mark.parametrize("written", [r"mein Code \C3\A9.py", r"mein Code \303\251.py", "mein Code é.py"])
def test_a_name_beyond_ascii_is_read_and_keeps_the_key_that_the_ir_has(tmp_path: Path, written: str) -> None:
    (tmp_path / "mein Code é.py").write_text("x = 1\n")
    (name,) = python_sources.names(f'#loc = loc("{tmp_path}/{written}":1:1)'.encode())
    assert python_sources.read([name]) == {f"{tmp_path}/{written}": "x = 1\n"}
