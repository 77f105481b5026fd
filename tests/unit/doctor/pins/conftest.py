"""A table of releases whose pins lie in repositories that a test makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tritonsmith.core import configs

Table = Callable[..., None]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Replaces the releases of the table by a test's own."""
    text = (configs.data_dir("configs") / "pytorch-pins.toml").read_text(encoding="utf-8")
    known = configs.data_dir("configs")

    def put(*rows: dict[str, Any]) -> None:
        folder = tmp_path / "own configs"
        folder.mkdir()
        for file in known.glob("*.toml"):
            (folder / file.name).write_bytes(file.read_bytes())
        document = tomlkit.parse(text).unwrap()
        document["release"] = list(rows)
        (folder / "pytorch-pins.toml").write_text(tomlkit.dumps(document), encoding="utf-8")
        monkeypatch.setattr(configs, "data_dir", lambda _: folder)

    return put
