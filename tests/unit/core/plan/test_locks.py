from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from tritonsmith.core.errors import LockedError
from tritonsmith.core.plan import locks

HOLDER = """
import sys
from pathlib import Path
from tritonsmith.core.plan import locks
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


@contextmanager
def ended_after(seconds: float, process: subprocess.Popen[str]) -> Iterator[None]:
    """A process that is told to end in some seconds."""
    assert process.stdin is not None
    timer = threading.Timer(seconds, process.stdin.close)
    timer.start()
    try:
        yield
    finally:
        timer.join()


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


@pytest.mark.slow
def test_whoever_has_patience_gets_it_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "lock"
    patient = locks.hold(lock, purpose="up", patience=60)
    with another_process(lock) as process, ended_after(0.3, process), patient:
        assert process.wait() == 0
    assert f"waiting: process {process.pid} runs `build-triton --env dev`" in capsys.readouterr().err
    with another_process(lock), pytest.raises(LockedError), locks.hold(lock, purpose="up", patience=0.1):
        pytest.fail("two hold one lock")


@pytest.mark.slow
def test_patience_with_a_holder_who_has_not_said_its_name_yet(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with another_process(lock) as process:
        (tmp_path / "lock.holder").unlink()
        with ended_after(1.0, process), locks.hold(lock, purpose="up", patience=60):
            assert process.wait() == 0


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
            with pytest.raises(LockedError, match="its holder is unknown"), locks.hold(lock, purpose="up"):
                pytest.fail("two hold one lock")
            assert "cannot read" in capsys.readouterr().err


# Holds the lock, and runs a child by the runner's own means.
PARENT = """
import os, sys
from pathlib import Path
from tritonsmith.core.plan import locks, programs
with locks.hold(Path(sys.argv[1]), purpose="build-triton --env dev"):
    script = sys.argv[2]
    sys.stdout.reconfigure(line_buffering=True)
    programs.stream(("/bin/sh", "-c", script), cwd=Path.cwd(), env=dict(os.environ), on_line=print)
    print("over", flush=True)
    sys.stdin.read()
"""


NINJA = """
import os, time
from pathlib import Path
if os.fork():
    os.wait()
os.setpgid(0, 0)
print(os.getpid(), flush=True)
while Path("go").exists():
    time.sleep(0.05)
"""
LOOP = "while [ -e go ]; do sleep 0.05; done"


@contextmanager
def at_work(folder: Path, script: str = f"echo $$; {LOOP}") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock in `folder` and runs a child, until the file `go` is gone."""
    (folder / "go").touch()
    argv = (sys.executable, "-c", PARENT, str(folder / "lock"), script)
    with subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        try:
            yield process
        finally:
            (folder / "go").unlink(missing_ok=True)
            process.kill()


def test_what_a_killed_run_left_at_work_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "lock"
    with at_work(tmp_path) as process:
        (child,) = json.loads((tmp_path / "lock.holder").read_text())["children"]
        process.kill()
        process.wait()
        assert psutil.pid_exists(child["pid"])
        with locks.hold(lock, purpose="up"):
            assert (tmp_path / "go").exists()  # it did not end by itself
            assert not _runs(child["pid"])
    told = capsys.readouterr().err
    assert "`build-triton --env dev` was killed, and its child processes still run" in told
    assert f"stopping sh, process {child['pid']}" in told


def test_what_a_killed_ninja_left_at_work_is_stopped(tmp_path: Path) -> None:
    """Ninja gives each compile a process group of its own, and dies where nobody reads what it prints."""
    with at_work(tmp_path, f"exec {shlex.join((sys.executable, '-c', NINJA))}") as process:
        (child,) = json.loads((tmp_path / "lock.holder").read_text())["children"]
        (compile_,) = {
            one.pid for one in psutil.Process(child["pid"]).children() if os.getpgid(one.pid) != child["pid"]
        }
        for pid in (process.pid, child["pid"]):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        assert _runs(compile_)
        with locks.hold(tmp_path / "lock", purpose="up"):
            assert (tmp_path / "go").exists()  # it did not end by itself
            assert not _runs(compile_)


@pytest.mark.parametrize("children", [None, [], [{"pid": "?"}], [{"pid": 1, "started": "", "program": "x"}]])
def test_what_is_not_known_to_be_its_child_is_waited_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    children: list[object] | None,
) -> None:
    lock, holder = tmp_path / "lock", tmp_path / "lock.holder"
    with at_work(tmp_path) as process:
        process.kill()
        process.wait()
        told = json.loads(holder.read_text())
        pid = told["children"][0]["pid"]
        later = [{**told["children"][0], "started": "1"}]  # another process has its number by now
        holder.write_text(json.dumps({**told, "children": later if children is None else children}))
        with monkeypatch.context() as hurried:
            hurried.setattr(locks, "_GRACE", 0.0)
            with pytest.raises(LockedError) as caught, locks.hold(lock, purpose="up"):
                pytest.fail("Ninja is at work, and the lock is free")
        assert "`build-triton --env dev` was killed, and its child processes still run" in str(caught.value)
        assert "waiting: `build-triton --env dev` was killed" in capsys.readouterr().err
        assert _runs(pid)
        (tmp_path / "go").unlink()
        with locks.hold(lock, purpose="up"):  # as soon as that has ended
            pass


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_child_that_goes_on_does_not_keep_a_lock_that_was_released(tmp_path: Path) -> None:
    """A compiler cache's server, say, is started by a compile and stays."""
    script = """
import os, sys
from pathlib import Path
from tritonsmith.core.plan import locks, programs
with locks.hold(Path("lock"), purpose="x"):
    daemon = "sleep 600 >/dev/null 2>&1 & echo $!"
    programs.stream(("/bin/sh", "-c", daemon), cwd=Path.cwd(), env=dict(os.environ), on_line=print)
"""
    done = subprocess.run(
        (sys.executable, "-c", script), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    server = psutil.Process(int(done.stdout))
    try:
        assert server.is_running()
        with locks.hold(tmp_path / "lock", purpose="up"):
            pass
    finally:
        server.kill()


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, flock, calls = tmp_path / "lock", fcntl.flock, []

    def removed_before(handle: int, how: int) -> None:
        """As if the holder had removed the file and ended between our opening and locking it."""
        calls.append(handle)
        if len(calls) == 1:
            lock.unlink()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    with locks.hold(lock, purpose="up"):
        (handle,) = locks.inherited()
        assert os.fstat(handle).st_ino == lock.stat().st_ino
        with pytest.raises(LockedError), locks.hold(lock, purpose="up"):
            pytest.fail("two hold one lock")
    assert len(calls) > 1


def test_threads_take_locks_and_note_children_at_the_same_time(tmp_path: Path) -> None:
    """As `kernel.compare` does: a note that failed left the program that it was about without a parent."""

    def hold(name: str) -> None:
        with locks.hold(tmp_path / name, purpose="kernel.compare"):
            pass

    def repeat(act: Callable[[], None]) -> None:
        for _ in range(200):
            act()

    note = partial(locks.note_child, os.getpid(), "clang")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(repeat, act) for act in (partial(hold, "a"), partial(hold, "b"), note, note)]
    finally:
        sys.setswitchinterval(interval)
    for run in runs:
        run.result()
    assert not list(tmp_path.glob("*.holder"))
