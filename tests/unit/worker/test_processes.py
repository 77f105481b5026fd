"""A call in its own process ends, and all that it has started with it."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from tritonsmith.worker.processes import adopt, end_adopted, in_child, limit_memory

pytestmark = pytest.mark.unit


def _crash() -> None:
    faulthandler.disable()  # of pytest, which would print where
    os.kill(os.getpid(), signal.SIGSEGV)


def test_what_it_returns_prints_and_raises(tmp_path: Path) -> None:
    def act() -> list[int]:
        os.write(1, b"said\n")  # pytest has its own sys.stdout
        return [1, 2]

    def fail() -> None:
        raise SystemExit("no")

    made = in_child(act, str(tmp_path / "log"))
    assert (made["status"], made["value"]) == ("ok", [1, 2])
    assert (tmp_path / "log").read_text() == "said\n"
    assert in_child(fail)["error"] == "SystemExit: no"
    assert in_child(_crash)["error"].endswith("SIGSEGV")
    assert in_child(lambda: os._exit(3))["error"].endswith("exit code 3")


def _start(folder: Path, *, session: bool) -> None:
    """A process that holds the pipe, and outlives its parent."""
    pid = os.fork()
    if pid == 0:
        if session:
            os.setsid()
        (folder / "pid").write_text(str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    while not (folder / "pid").exists():
        time.sleep(0.01)


def test_what_it_has_started_does_not_stay(tmp_path: Path) -> None:
    """It holds one end of a pipe, of which nothing is left when it is gone."""
    reader, writer = os.pipe()
    assert in_child(lambda: _start(tmp_path, session=False), timeout=30)["status"] == "ok"
    os.close(writer)
    assert select.select([reader], [], [], 60)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.skipif(sys.platform != "linux", reason="ends by the signal of Linux")
def test_one_that_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    def act() -> None:
        _start(tmp_path, session=True)
        while True:
            time.sleep(1)

    made = in_child(act, timeout=0.5)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (made["status"], made["error"]) == ("timeout", "timed out after 0 s")


@pytest.mark.skipif(sys.platform != "linux", reason="ends by the signal of Linux")
def test_a_crash_is_one_though_somebody_holds_the_pipe(tmp_path: Path) -> None:
    def act() -> None:
        _start(tmp_path, session=True)
        _crash()

    made = in_child(act, timeout=30)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (made["status"], made["error"]) == ("crashed", "the compiler died: SIGSEGV")


def test_a_long_answer() -> None:
    assert in_child(lambda: "é" * 300_000)["value"] == "é" * 300_000


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells whose children are adopted")
def test_one_that_left_its_session_ends_with_its_adopter(tmp_path: Path) -> None:
    def adopter() -> None:
        adopt()
        said = in_child(lambda: _start(tmp_path, session=True), timeout=30)
        assert said["status"] == "ok"
        end_adopted()

    assert in_child(adopter, timeout=60)["status"] == "ok"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse the limit")
def test_memory_is_bounded() -> None:
    def act() -> int:
        limit_memory(1 << 30)
        return len(bytearray(2 << 30))

    assert in_child(act)["error"].startswith("MemoryError")
