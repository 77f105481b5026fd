from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tritonsmith.errors import LockedError
from tritonsmith.plan import locks

HOLDER = """
import sys
from pathlib import Path
from tritonsmith.plan import locks
with locks.hold(Path(sys.argv[1]), purpose="build-triton --env dev"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until its standard input ends."""
    argv = (sys.executable, "-c", HOLDER, str(lock))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_error_names_the_process_that_holds_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with another_process(lock) as process:
        with pytest.raises(LockedError) as caught, locks.hold(lock, purpose="up"):
            pytest.fail("two hold one lock")
        assert f"process {process.pid} runs `build-triton --env dev` since 2" in str(caught.value)
        assert caught.value.where == str(tmp_path)
        assert caught.value.exit_code == 1
        process.communicate("")
        assert process.returncode == 0
    with locks.hold(lock, purpose="up"):
        holder = json.loads((tmp_path / "lock.holder").read_text())
    assert (holder["pid"], holder["purpose"]) == (os.getpid(), "up")


def test_a_killed_holder_frees_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with another_process(lock) as process:
        process.kill()
        process.wait()
    assert (tmp_path / "lock.holder").exists()
    with locks.hold(lock, purpose="up"):
        assert json.loads((tmp_path / "lock.holder").read_text())["pid"] == os.getpid()
    assert not (tmp_path / "lock.holder").exists()


def test_an_error_in_the_body_frees_it(tmp_path: Path) -> None:
    def fail() -> None:
        with locks.hold(tmp_path / "lock", purpose="up"):
            raise ValueError("from the body")

    for _ in range(2):
        with pytest.raises(ValueError, match="from the body"):
            fail()
    assert not (tmp_path / "lock.holder").exists()


def test_an_unreadable_holder_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "lock"
    with another_process(lock):
        for text in ("", "{", "{}", "[]", "null"):
            (tmp_path / "lock.holder").write_text(text)
            with pytest.raises(LockedError, match="left no name"), locks.hold(lock, purpose="up"):
                pytest.fail("two hold one lock")
            assert "cannot read" in capsys.readouterr().err
