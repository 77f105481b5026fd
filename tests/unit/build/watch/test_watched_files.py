"""Which files count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.watch.files import NamedPaths, PythonFiles


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_kernel_s_file_and_what_it_imports_beside_it(tmp_path: Path) -> None:
    kernel = write(
        tmp_path / "kernel.py",
        "import os, triton\nimport tiles\nfrom parts import dot\nfrom parts.deep import more as other\n",
    )
    tiles = write(tmp_path / "tiles.py", "from sizes import BLOCK\n")
    names = ("parts/__init__.py", "parts/dot.py", "parts/deep.py", "sizes.py")
    files = {kernel, tiles, *(write(tmp_path / name) for name in names)}
    foreign = {write(tmp_path / "other.py"), write(tmp_path / "parts" / "unused.py")}
    watched = PythonFiles([kernel])
    assert watched.select(files | foreign | {tmp_path / "notes.txt"}) == files
    assert watched.folders() == {tmp_path, tmp_path / "parts"}


def test_relative_imports(tmp_path: Path) -> None:
    kernel = write(tmp_path / "pack" / "inner" / "kernel.py", "from . import near\nfrom ..far import one\n")
    files = {write(tmp_path / "pack" / "inner" / "near.py"), write(tmp_path / "pack" / "far.py")}
    assert PythonFiles([kernel]).select(files) == files


def test_imports_that_come_and_go(tmp_path: Path) -> None:
    kernel, tiles = write(tmp_path / "kernel.py"), write(tmp_path / "tiles.py")
    watched = PythonFiles([kernel])
    assert watched.select([tiles]) == frozenset()
    write(kernel, "import tiles, later\n")
    assert watched.select([kernel]) == {kernel}
    assert watched.select([tiles]) == {tiles}
    later = write(tmp_path / "later.py")
    assert watched.select([later]) == {later}
    write(kernel, "import tiles, later\n)")
    watched.select([kernel])
    assert watched.select([tiles]) == {tiles}, "imports of a file with an error are those of before"
    tiles.unlink()
    assert watched.select([tiles]) == {tiles}


def test_the_target_of_a_link(tmp_path: Path) -> None:
    real = write(tmp_path / "real" / "kernel.py")
    link = tmp_path / "kernel.py"
    link.symlink_to(real)
    watched = PythonFiles([link])
    assert watched.select([real]) == {real}
    assert watched.folders() == {tmp_path, real.parent}


def test_named_files_and_folders(tmp_path: Path) -> None:
    file, folder = tmp_path / "shapes.toml", tmp_path / "data"
    write(folder / "deep" / "one.json")
    write(folder / ".git" / "index")
    watched = NamedPaths([file, folder])
    assert watched.folders() == {tmp_path, folder, folder / "deep"}
    made = {file, folder / "deep" / "one.json", folder / "new"}
    assert watched.select({*made, tmp_path / "other.toml", folder / "deep"}) == made


@pytest.mark.parametrize(
    "name",
    [
        "README.md", ".git/index", "__pycache__/kernel.cpython-311.pyc", ".kernel.py.swp", "kernel.py~",
        "4913", ".#kernel.py", "#kernel.py#", "kernel.py___jb_tmp___", ".goutputstream-X1",
        ".venv/lib/module.py",
    ],
)  # fmt: skip
def test_what_never_counts(name: str, tmp_path: Path) -> None:
    assert NamedPaths([tmp_path]).select([tmp_path / name]) == frozenset()
