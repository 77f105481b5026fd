from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonsmith.kernels.batch import executor


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of work run in threads of this process, not in processes of their own."""
    monkeypatch.setattr(executor, "Processes", ThreadPoolExecutor)
