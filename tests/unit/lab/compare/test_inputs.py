"""Kernels to compare, and output folders that are there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.compare.making import point, written
from tritonsmith.core.errors import FactError
from tritonsmith.lab.compare import two_sides


def test_output_folders_are_found_below_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "two" / "b", [point()])
    written(tmp_path / "two" / "a", [point()])
    assert [one.folder.name for one in two_sides.read_folders(tmp_path / "two")] == ["a", "b"]
    assert [one.folder for one in two_sides.read_folders(tmp_path / "two" / "b")] == [tmp_path / "two" / "b"]
    (tmp_path / "none").mkdir()
    with pytest.raises(FactError, match="no compiled kernel"):
        two_sides.read_folders(tmp_path / "none")
