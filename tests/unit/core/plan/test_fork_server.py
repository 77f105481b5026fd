"""A program that is imported once and forked for each run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import stopping
from tritonsmith.core.plan.fork_server import ForkServer

PROGRAM = """
import os, subprocess, sys, time

def first():
    print("first", flush=True)

def main():
    print(sys.argv[1:], os.getpgid(0) == os.getpid(), os.getppid(), flush=True)
    print("error", file=sys.stderr)
    if "wait" in sys.argv:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("up", child.pid)
        time.sleep(600)
    if "leave" in sys.argv:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("left", child.pid, flush=True)
        time.sleep(0.3)
    if "die" in sys.argv:
        os.abort()
    if "import" in sys.argv:
        print("tritonsmith.core.command_line" in sys.modules)
        import tritonsmith.core.command_line
    sys.exit(7)
"""


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "served_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(stopping, "GRACE_AFTER_INT", 0.2)
    monkeypatch.setattr(stopping, "GRACE_AFTER_TERM", 0.2)


@pytest.fixture
def server() -> Iterator[ForkServer]:
    with ForkServer("served_program:first", "served_program:main") as made:
        yield made


def test_runs_are_forks_of_one_process(server: ForkServer) -> None:
    parents = set()
    for word in ("one", "two words"):
        lines: list[str] = []
        assert server.run(["program", word], lines.append) == 7
        said = lines[1].rsplit(" ", 1)
        assert [lines[0], said[0], *lines[2:]] == ["first", f"[{word!r}] True", "error"]
        parents.add(said[1])
    assert len(parents) == 1


def test_the_output_goes_to_a_file_and_the_errors_come_as_lines(server: ForkServer, tmp_path: Path) -> None:
    lines: list[str] = []
    with (tmp_path / "answer").open("wb") as answer:
        assert server.run(["program", "apart"], lines.append, answer=answer) == 7
    assert lines == ["error"]
    first, second = (tmp_path / "answer").read_text().splitlines()
    assert first == "first"
    assert second.startswith("['apart'] True ")
    assert server.run(["program"], lines.append) == 7
    assert lines[1] == "first"


def test_the_second_run_begins_with_what_the_first_has_imported(server: ForkServer) -> None:
    said = []
    for _ in range(2):
        lines: list[str] = []
        server.run(["program", "import"], lines.append)
        said.append(lines[-1])
    assert said == ["False", "True"]


def test_a_run_that_is_killed(server: ForkServer) -> None:
    assert server.run(["program", "die"], lambda _: None) == -signal.SIGABRT
    assert server.run(["program"], lambda _: None) == 7


def test_an_interrupted_run_is_stopped_with_its_children_and_the_server_goes_on(server: ForkServer) -> None:
    found: list[psutil.Process] = []

    def interrupt(line: str) -> None:
        if line.startswith("up "):
            found.append(psutil.Process(int(line.split()[1])))
            found.append(psutil.Process(found[0].ppid()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.run(["program", "wait"], interrupt)
    assert len(found) == 2
    assert all_gone(found)
    assert server.run(["program"], lambda _: None) == 7


@pytest.mark.slow
def test_a_run_that_ends_while_it_is_stopped(server: ForkServer) -> None:
    def interrupt(line: str) -> None:
        if line == "error":
            time.sleep(0.3)  # its last line
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            server.run(["program"], interrupt)
    lines: list[str] = []
    assert server.run(["program", "next"], lines.append) == 7
    assert "next" in lines[1]


def test_what_a_run_leaves_in_the_background_ends_with_it(server: ForkServer) -> None:
    left: list[psutil.Process] = []

    def on_line(line: str) -> None:
        if line.startswith("left "):
            left.append(psutil.Process(int(line.split()[1])))

    assert server.run(["program", "leave"], on_line) == 7
    assert len(left) == 1
    assert all_gone(left)


def test_a_server_that_is_gone_says_so(server: ForkServer) -> None:
    lines: list[str] = []
    server.run(["program"], lines.append)
    os.kill(int(lines[1].rsplit(" ", 1)[1]), signal.SIGKILL)
    with pytest.raises((SmithError, OSError)):
        server.run(["program"], lines.append)
    assert server.run(["program"], lines.append) == 7


def test_nothing_is_left_when_the_caller_is_killed() -> None:
    code = """
import sys
from tritonsmith.core.plan.fork_server import ForkServer
with ForkServer("served_program:main") as server:
    server.run(["program", "wait"], lambda line: print(line, flush=True))
"""
    with subprocess.Popen((sys.executable, "-c", code), stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout
        line = next(line for line in caller.stdout if line.startswith("up "))
        child = psutil.Process(int(line.split()[1]))
        family = [child, *child.parents()[:2]]
        assert caller.pid not in [one.pid for one in family]
        caller.kill()
    assert all_gone(family)


def test_a_server_whose_last_code_nobody_reads_ends_as_any_other(server: ForkServer) -> None:
    server.start()
    process = server._process
    assert process
    with Path(os.devnull).open("w") as nothing:
        socket.send_fds(server._requests, [b'["program"]'], [nothing.fileno(), nothing.fileno()])
    while server._requests.recv(100, socket.MSG_PEEK).count(b"\n") < 2:  # a number, and a code
        time.sleep(0.01)
    server.close()
    assert process.returncode == 0
