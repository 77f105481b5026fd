from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tritonsmith.cli.program import SmithProgram
from tritonsmith.cli.tasks import namespace


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Smith = Callable[..., Answer]


@pytest.fixture
def smith(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Smith:
    """Runs a command line in this process."""
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)  # Invoke changes it

    def run(*argv: str) -> Answer:
        code = 0
        monkeypatch.setattr(sys, "argv", ["invoke", *argv])  # where tasks count their words
        try:
            SmithProgram(name="tritonsmith", namespace=namespace, version="0").run(["tritonsmith", *argv])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run
