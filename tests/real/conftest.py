"""Upstream's history, from the clone that TRITONSMITH_TRITON_SOURCE names; its own folder stays untouched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import REAL_SOURCE

from .regenerate_checkouts import COMMITS, History


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A clone of that clone."""
    source = os.environ.get(REAL_SOURCE)
    if not source:
        pytest.skip(f"{REAL_SOURCE} names no clone of Triton with upstream's history")
    return History(Path(source).expanduser().absolute(), tmp_path_factory.mktemp("history"))


@pytest.fixture
def tree(history: History) -> Callable[[str], Path]:
    """The worktree of a version; skips if the clone lacks its commit."""

    def get(version: str) -> Path:
        commit = COMMITS[version]
        if not history.has(commit):
            pytest.skip(f"{os.environ[REAL_SOURCE]} lacks {commit[:10]}, the commit of {version}")
        return history.tree(commit)

    return get
