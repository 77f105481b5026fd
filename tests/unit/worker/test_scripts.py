"""Scripts in forks of one process: each sees what it would see alone, and ends as it would end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tritonsmith import worker

pytestmark = pytest.mark.unit


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs the text of a script; returns the row, with what it printed."""
    argv = [sys.executable, str(worker.FOLDER), "scripts", "json"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"ready": True}
        (tmp_path / "beside").mkdir()

        def act(text: str, *arguments: str, timeout: float = 60.0) -> dict[str, Any]:
            script, log = tmp_path / "beside" / "script.py", tmp_path / "log"
            script.write_text(text, encoding="utf-8")
            assert process.stdin
            assert process.stdout
            request = {"script": "beside/script.py", "arguments": arguments}
            process.stdin.write(json.dumps({**request, "log": str(log), "timeout": timeout}) + "\n")
            process.stdin.flush()
            row: dict[str, Any] = json.loads(process.stdout.readline())
            return {**row, "log": log.read_text(encoding="utf-8")}

        yield act
        process.stdin.close()


def test_a_script_sees_what_it_would_see_alone(run: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "beside" / "neighbour.py").write_text("VALUE = 7\n", encoding="utf-8")
    text = (
        "import atexit, os, sys, neighbour\natexit.register(print, 'at exit')\n"
        "print(__name__, sys.argv, os.getcwd(), repr(sys.stdin.read()), neighbour.VALUE)\n"
        "neighbour.VALUE = 8\n"
    )
    for _ in range(2):
        row = run(text, "a", "b")
        assert (row["status"], row["value"]) == ("ok", 0)
        seen = f"__main__ ['beside/script.py', 'a', 'b'] {tmp_path} '' 7\nat exit\n"
        assert row["log"] == seen


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        ("", "ok", 0),
        ("import sys; sys.exit(3)", "ok", 3),
        ("import sys; sys.exit('why')", "ok", 1),
        ("1 / 0", "ok", 1),
        ("raise KeyboardInterrupt", "ok", 1),
        ("def", "ok", 1),
        ("import os; os._exit(0)", "crashed", None),
        ("import os; os.abort()", "crashed", None),
        ("while True: pass", "timeout", None),
    ],
)
def test_the_end_of_a_script_is_the_answer_and_the_next_one_runs(
    run: Callable[..., dict[str, Any]], end: str, status: str, code: int | None
) -> None:
    row = run(end, timeout=3.0 if status == "timeout" else 60.0)
    assert (row["status"], row["value"]) == (status, code)
    assert run("print('next')")["log"] == "next\n"
