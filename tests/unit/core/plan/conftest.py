from __future__ import annotations

import io
from pathlib import Path

import pytest

from tritonsmith.core.plan import files
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.plan.steps.base import StepTools
from tritonsmith.core.ui.progress import PhaseProgress


class Recorder(PhaseProgress):
    """Progress that nobody sees, and that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__(live=False, silent=True)
        self.updates: list[tuple[int, int | None, str]] = []

    def update(self, done: int, total: int | None, current: str = "", part: float | None = None) -> None:
        self.updates.append((done, total, current))
        super().update(done, total, current, part)


def tools(progress: PhaseProgress | None = None) -> StepTools:
    """What a step gets from the runner: for one that is called without it, so that its own errors come."""
    return StepTools(io.StringIO(), Path("log"), progress or Recorder(), {}, None)


@pytest.fixture
def progress() -> Recorder:
    return Recorder()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "run.log"


@pytest.fixture
def runner(log: Path, progress: Recorder) -> Runner:
    return Runner(log, progress)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that carries the mark."""
    folder = tmp_path / "own"
    files.mark(folder)
    return folder
