from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build.store import made
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work space")


@pytest.fixture
def store(space: Workspace) -> Store:
    return made.store_in(space)
