from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.store import made
from tritonsmith.envs.workspace import Workspace
from tritonsmith.store.store import Store


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work space")


@pytest.fixture
def store(space: Workspace) -> Store:
    return made.store_in(space)
