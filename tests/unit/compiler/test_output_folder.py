"""Names of folders: what a file system takes, and no way out of the folder."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.manifest import folder_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cuda-90-32,BLOCK=64", "cuda-90-32,BLOCK=64"),
        ("cuda-90-32 -> hip-gfx942-64", "cuda-90-32--hip-gfx942-64"),
        ("a.py:add", "a.py_add"),
        ("../../etc", "_.._etc"),
        ("..", "_"),
    ],
)
def test_names_of_folders(text: str, name: str) -> None:
    assert folder_name(text) == name


def test_long_names_of_folders_are_cut_and_stay_different() -> None:
    one, other = (folder_name(f"{'A' * 120} -> {'A' * 120}={number}") for number in (1, 2))
    assert one != other
    assert max(len(one), len(other)) < 256
