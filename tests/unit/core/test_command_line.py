"""How a command is written that gives the tool what an extra installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core import command_line


@pytest.mark.parametrize(
    ("prefix", "mark", "command"),
    [
        ("cache/uv/archive-v0/Qe1B", "", "uvx --from 'tritonsmith[check]' tritonsmith"),
        ("uv/tools/tritonsmith", "uv-receipt.toml", "uv tool install 'tritonsmith[check]'"),
        ("pipx/venvs/tritonsmith", "pipx_metadata.json", "pipx install --force 'tritonsmith[check]'"),
        ("pipx/74917", "pipx_metadata.json", "pipx run --spec 'tritonsmith[check]' tritonsmith"),
        ("venv", "pyvenv.cfg", "pip install 'tritonsmith[check]', into the Python that runs the tool"),
    ],
)
def test_an_extra_is_installed_as_the_tool_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, mark: str, command: str
) -> None:
    place = tmp_path / prefix
    place.mkdir(parents=True)
    if mark:
        (place / mark).touch()
    monkeypatch.setattr("sys.prefix", str(place))
    assert command_line.installing("check") == command
