"""SIGTERM, SIGHUP and a terminal that is closed; and what is done at once, of which one fails."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import stopping
from tritonsmith.core.plan.stopping import stoppable

BOTH = (signal.SIGTERM, signal.SIGHUP)

# A task whose body waits, and tells when it does so. It sleeps in short pieces: a signal that comes between
# Python's last look for one and the system call is heard only when the sleep ends.
WAITING = """
import sys, time
from pathlib import Path
from invoke.collection import Collection
from invoke.program import Program
from tritonsmith.cli.tasks.task import task

@task()
def wait(context):
    Path(sys.argv[2]).touch()
    while True:
        time.sleep(0.1)

Program(namespace=Collection(wait)).run(["x", "wait"])
"""


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test before this one has heard a signal just now."""
    monkeypatch.setattr(stopping._Heard, "at", 0.0)


@pytest.mark.parametrize("number", BOTH)
def test_both_are_as_an_interrupt(number: signal.Signals) -> None:
    before = list(map(signal.getsignal, BOTH))
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(number)
    assert list(map(signal.getsignal, BOTH)) == before


def test_signals_that_come_together_are_one() -> None:
    """A second one would end what stops the children."""

    def stopping_children() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            for number in BOTH:
                signal.raise_signal(number)
            stopped.append("children")

    stopped: list[str] = []
    with pytest.raises(KeyboardInterrupt), stoppable():
        stopping_children()
    assert stopped == ["children"]


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_a_thread_nothing_changes() -> None:
    seen: list[object] = []

    def body() -> None:
        with stoppable():
            seen.extend(map(signal.getsignal, BOTH))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == list(map(signal.getsignal, BOTH))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, *BOTH])
def test_every_task_ends_with_130(tmp_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    with subprocess.Popen(
        (sys.executable, "-c", WAITING, "wait", str(begun)), stderr=subprocess.PIPE, text=True
    ) as process:
        while not begun.exists():
            assert process.poll() is None
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.read() == "interrupted\n"
    assert process.returncode == 130


def test_a_closed_terminal(tmp_path: Path) -> None:
    """Its window is closed: the kernel sends SIGHUP, and every word to it is an error from then on."""
    begun = tmp_path / "begun"
    pid, terminal = pty.fork()
    if pid == 0:  # a session of its own, whose terminal this is
        os.execv(sys.executable, [sys.executable, "-c", WAITING, "wait", str(begun)])  # noqa: S606
    while not begun.exists():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130


def test_functions_run_at_once() -> None:
    both = threading.Barrier(2, timeout=60)
    results = stopping.at_once(dict.fromkeys("ab", both.wait), 2)
    assert sorted(name for name, _ in results) == ["a", "b"]
    assert list(stopping.at_once({}, 2)) == []


def test_a_function_that_fails_stops_the_others() -> None:
    both = threading.Barrier(2, timeout=60)

    def fail() -> None:
        both.wait()
        raise SmithError("broken")

    def wait() -> None:
        while True:
            stopping.check()
            time.sleep(0.001)

    def begin() -> None:
        both.wait()
        wait()

    with pytest.raises(SmithError, match="broken"):
        list(stopping.at_once({"waits": begin, "fails": fail, "comes too late": wait}, 2))


def test_whoever_does_not_wait_for_all_stops_the_others() -> None:
    def wait() -> None:
        while True:
            stopping.check()
            time.sleep(0.001)

    with closing(stopping.at_once({"ends": lambda: None, "waits": wait}, 2)) as results:
        assert next(results) == ("ends", None)
