"""A program that answers line by line, and one that ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan.programs import LineProcess

pytestmark = pytest.mark.unit

ECHO = """
import os, sys
for line in sys.stdin:
    print(line.strip() + os.environ.get("ADDED", "-"), flush=True)
"""


def dialogue(script: str, tmp_path: Path, added: str | None = None) -> LineProcess:
    argv = (sys.executable, "-c", script)
    return LineProcess(argv, cwd=tmp_path, change={"ADDED": added}, errors=tmp_path / "errors")


def test_each_line_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADDED", "old")
    for added, seen in (("!", "!"), (None, "-")):
        made = dialogue(ECHO, tmp_path, added)
        for word in ("one", "two"):
            made.say(word)
            assert made.hear() == f"{word}{seen}\n"
        made.close()


def test_one_that_ends_says_why(tmp_path: Path) -> None:
    made = dialogue("import sys; sys.exit('no more')", tmp_path)
    with pytest.raises(FactError) as error:
        made.hear()
    assert "no more" in str(error.value)
    with pytest.raises(FactError):
        made.hear()
    made.close()


def test_closed_it_is_gone(tmp_path: Path) -> None:
    made = dialogue("import os\nprint(os.getpid(), flush=True)\ninput()\n", tmp_path)
    pid = int(made.hear())
    made.close()
    made.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactError):
        LineProcess((str(tmp_path / "none"),), cwd=tmp_path, change={}, errors=tmp_path / "errors")
