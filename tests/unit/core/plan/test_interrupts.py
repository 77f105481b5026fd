"""A run that is stopped or killed, in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone

# Runs a group that ends, and then one whose second step hangs; `pid` tells once the runner listens to it.
RUN = """
import sys
from pathlib import Path
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Plan, Run, Write, stamped, stopping
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

here, hang = Path(sys.argv[1]), sys.argv[2]
stopping.GRACE_AFTER_INT = float(sys.argv[3])

class Telling(PhaseProgress):
    def update(self, done, total, current=""):
        (here / "pid.new").write_text(current)
        (here / "pid.new").rename(here / "pid")

def sh(script):
    return Run(("/bin/sh", "-c", script), cwd=here, phase="p")

one = stamped([sh("echo x >> one")], here / ".one")
two = stamped([sh("echo x >> two"), sh(hang), Write(here / "last", "x", phase="p")], here / ".two")
try:
    Runner(here / "log", Telling(live=False)).run(Plan("x", (*one, *two)))
except SmithError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
HANG = "sleep 600 & echo $$; wait"
IGNORE = f"trap '' INT; {HANG}"

# Dies while it writes: before the file gets its name, or before the stamp gets its.
DIE = """
import os, signal, sys
from pathlib import Path
from tritonsmith.core.plan import Plan, Write, stamped
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

here, at = Path(sys.argv[1]), int(sys.argv[2])
calls, fsync = [], os.fsync

def dying(descriptor):
    calls.append(descriptor)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(descriptor)

os.fsync = dying
steps = stamped([Write(here / "file", "new" * 10_000, phase="p")], here / ".done")
Runner(here / "log", PhaseProgress(live=False, silent=True)).run(Plan("x", steps))
"""


def start(folder: Path, hang: str, grace: float = 5.0) -> subprocess.Popen[str]:
    argv = (sys.executable, "-c", RUN, str(folder), hang, str(grace))
    return subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@contextmanager
def hanging(
    folder: Path, hang: str, grace: float = 5.0
) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A run in its second group, and the processes of that group's hanging step."""
    with start(folder, hang, grace) as process:
        try:
            while not (folder / "pid").exists():
                assert process.poll() is None
                time.sleep(0.01)
            shell = psutil.Process(int((folder / "pid").read_text()))
            yield process, [shell, *shell.children(recursive=True)]
        finally:
            process.kill()


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_interrupt(tmp_path: Path) -> None:
    with hanging(tmp_path, HANG) as (process, children):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130
        assert all_gone(children)
    assert "interrupted; what was built so far is kept" in said
    assert "run the same command again" in said
    assert "Traceback" not in said
    assert "interrupted" in (tmp_path / "log").read_text()
    assert (tmp_path / ".one").exists()
    assert not (tmp_path / ".two").exists()
    with start(tmp_path, "true") as process:
        assert process.wait() == 0
    assert (lines(tmp_path / "one"), lines(tmp_path / "two")) == (1, 2)
    assert (tmp_path / ".two").exists()


def test_a_second_interrupt_stops_what_ignores_the_first(tmp_path: Path) -> None:
    with hanging(tmp_path, IGNORE, grace=600.0) as (process, children):
        process.send_signal(signal.SIGINT)
        assert not all_gone(children, within=0.2)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            if all_gone(children, within=0.2):
                break
        process.communicate(timeout=30)
        assert process.returncode == 130
        assert all_gone(children)


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    with hanging(tmp_path, HANG) as (process, children):
        process.kill()
        process.wait()
        for child in children:
            child.kill()  # nobody is left to do it
    assert (tmp_path / ".one").exists()
    assert not (tmp_path / ".two").exists()
    with start(tmp_path, "true") as process:
        assert process.wait() == 0
    assert (lines(tmp_path / "one"), lines(tmp_path / "two")) == (1, 2)
    assert (tmp_path / "last").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("at", "seen"), [(1, "old"), (2, "new" * 10_000), (3, "new" * 10_000)])
def test_a_reader_never_sees_half_a_file(tmp_path: Path, at: int, seen: str) -> None:
    (tmp_path / "file").write_text("old")

    def run(number: int) -> int:
        argv = (sys.executable, "-c", DIE, str(tmp_path), str(number))
        return subprocess.run(argv, check=False).returncode

    assert run(at) == (-signal.SIGKILL if at < 3 else 0)
    assert (tmp_path / "file").read_text() == seen
    assert (tmp_path / ".done").exists() is (at == 3)
    if at < 3:
        assert run(9) == 0
    assert (tmp_path / "file").read_text() == "new" * 10_000
    assert re.fullmatch("[0-9a-f]{16}", (tmp_path / ".done").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".done", "file", "log"]


def test_what_begins_anew_says_so(tmp_path: Path) -> None:
    """A plan without stamps and without Ninja: nothing of it is kept."""
    alone = RUN.replace("(*one, *two)", "(sh(hang),)")
    argv = (sys.executable, "-c", alone, str(tmp_path), HANG, "5")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "pid").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "\ninterrupted\n" in said
    assert said.splitlines()[-1] == "  - run the same command again: the next run starts over"
