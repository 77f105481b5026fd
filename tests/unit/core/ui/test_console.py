from __future__ import annotations

import pytest

from tritonsmith.core.ui import console

TEXT = "invoke setup-mlir && invoke --list; reinvoke it, or (invoke cache.list); to invoke: it"


def test_commands_are_named_as_the_program_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/tritonsmith", "doctor"])
    assert console.typed(TEXT) == TEXT.replace("invoke s", "tritonsmith s").replace(
        "invoke --", "tritonsmith --"
    ).replace("(invoke", "(tritonsmith")


@pytest.mark.parametrize("program", ["/somewhere/bin/invoke", "inv", ""])
def test_invoke_stays_invoke(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr("sys.argv", [program])
    assert console.typed(TEXT) == TEXT
