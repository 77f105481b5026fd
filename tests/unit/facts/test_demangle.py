from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.facts import demangle

NAMES = ("_ZN4mlir4Pass6absentEv", "_ZN4llvm24DisableABIBreakingChecksE")


def program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demangler that is the only program there."""
    (folder / "c++filt").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "c++filt").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_each_name_by_the_program_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, 'for name in "$@"; do echo "plain ${name#_ZN}"; done', monkeypatch)
    assert demangle.names(NAMES) == tuple(f"plain {name[3:]}" for name in NAMES)
    assert demangle.text(f"no {NAMES[0]}, {NAMES[0]}!") == f"no plain {NAMES[0][3:]}, plain {NAMES[0][3:]}!"


@pytest.mark.parametrize("script", ["exit 1", "echo one line"])
def test_names_stay_where_the_program_does_not_answer_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program(tmp_path, script, monkeypatch)
    assert demangle.names(NAMES) == NAMES


def test_names_stay_without_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demangle.names(NAMES) == NAMES
    assert demangle.text(NAMES[0]) == NAMES[0]
