from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder
