from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.support import REPOSITORY
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import EXIT_BROKEN_PIPE, ConfigError, InterruptedRunError, UsageError
from tritonsmith.core.plan import files


def call(error: BaseException) -> Exit:
    """What a task whose body raises `error` ends with."""

    def body(_context: Any) -> None:
        raise error

    with pytest.raises(Exit) as caught:
        task()(body)(Context())
    return caught.value


REFUSED = "error: the system refused: Permission denied\n  where: /a/file"
NO_HOME = "error: unknown home folder\n  why:   Could not determine home directory."


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError("it broke", hints=["mend it"]), 1, "error: it broke\nThings to try:\n  - mend it"),
        (UsageError("no such thing"), 2, "error: no such thing"),
        (
            PermissionError(13, "Permission denied", "/a/file"),
            1,
            f"{REFUSED}\nThings to try:\n  - check the owner and the permissions: `ls -ld`",
        ),
        (
            RuntimeError("Could not determine home directory."),
            2,
            f"{NO_HOME}\nThings to try:\n  - give the full path",
        ),
        (InterruptedRunError("interrupted"), 130, "error: interrupted"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Exit("of its own", code=7), 7, "of its own"),
    ],
)
def test_foreseen_errors(error: BaseException, code: int, message: str) -> None:
    stop = call(error)
    assert (stop.code, stop.message) == (code, message)
    assert not workspace.default().root.exists()


def test_a_bug_leaves_a_log_and_not_a_wall_of_text() -> None:
    stop = call(ZeroDivisionError("of ours"))
    assert stop.code == 3
    (log,) = (workspace.default().root / "logs").iterdir()
    assert stop.message is not None
    assert stop.message.splitlines()[:2] == [
        "error: a bug of tritonsmith: ZeroDivisionError: of ours",
        f"  where: {log}",
    ]
    assert "Traceback" not in stop.message
    text = log.read_text()
    assert text.startswith("tritonsmith 0.1.0, Python 3.")
    assert "Traceback (most recent call last):" in text
    assert text.endswith("ZeroDivisionError: of ours\n")


def test_a_bug_before_anything_was_made_leaves_a_workspace_that_can_be_used() -> None:
    call(ZeroDivisionError("of ours"))
    assert files.is_marked(workspace.default().root)
    workspace.default().claim()


def test_secrets_are_redacted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://me:hunter2@mirror.example/llvm"
    monkeypatch.setattr(
        "sys.argv", ["tritonsmith", "setup-mlir", "--llvm-source", url, f"{home}/secret-name"]
    )
    stop = call(ValueError(f"cannot use {url} from {home}"))
    (log,) = (workspace.default().root / "logs").iterdir()
    for text in (log.read_text(), (stop.message or "").splitlines()[0]):
        assert "hunter2" not in text
        assert "https://***@mirror.example/llvm" in text
        assert str(home) not in text
    assert "~/secret-name" in log.read_text()


def test_a_home_folder_that_is_the_root_changes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    call(ValueError("at /usr/bin"))
    (log,) = (workspace.default().root / "logs").iterdir()
    assert "at /usr/bin" in log.read_text()


@pytest.mark.parametrize("obstacle", ["file", "foreign"])
def test_a_bug_whose_log_cannot_be_written_is_shown(obstacle: str) -> None:
    root = workspace.default().root
    if obstacle == "file":
        root.touch()
    else:
        root.mkdir()
        (root / "theirs").touch()
    stop = call(ZeroDivisionError("of ours"))
    assert stop.code == 3
    assert "Traceback" in (stop.message or "")
    assert obstacle == "file" or [path.name for path in root.iterdir()] == ["theirs"]


def test_a_home_folder_that_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_uid: int) -> None:
        raise KeyError("uid not found: 1234")

    for name in ("HOME", "TRITONSMITH_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    stop = call(ZeroDivisionError("of ours"))
    assert stop.code == 3
    assert "ZeroDivisionError: of ours" in (stop.message or "")
    assert list(tmp_path.iterdir()) == []


SMITH = Path(sys.executable).with_name("tritonsmith")
INVOKE = (str(SMITH.with_name("invoke")), "--search-root", str(REPOSITORY))


@pytest.mark.slow
@pytest.mark.parametrize("program", [(str(SMITH),), INVOKE], ids=["tritonsmith", "invoke"])
def test_a_stream_in_ascii(program: tuple[str, ...], tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    argv = (*program, "doctor", "--only", "machine")
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, encoding="ascii", check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "machine" in done.stdout
    assert "bug" not in done.stderr


@pytest.mark.slow
def test_a_folder_that_was_deleted(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$0" doctor --only machine'
    done = subprocess.run(
        ("/bin/sh", "-c", script, SMITH), cwd=gone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "error: the current folder no longer exists" in done.stderr
    assert "cd ~" in done.stderr


def test_the_body_gets_its_arguments_and_its_answer_comes_back() -> None:
    @task()
    def made(_context: Any, name: str = flag("whose", "x")) -> str:
        """What it does."""
        return f"hello {name}"

    assert made(Context(), name="y") == "hello y"
    assert made.__doc__ == "What it does."
    assert [argument.names for argument in made.get_arguments()] == [("name",)]


_PRINTS = """
import sys; sys.argv = ['tritonsmith', 'env.list']
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.ui import console
from invoke.context import Context
from invoke.exceptions import Exit
@task()
def body(context):
    for _ in range(20000): {call}  # 140 kB: more than two pipes hold
try:
    body(Context())
except Exit as end:
    if end.message: print(end.message, file=sys.stderr)
    sys.exit(end.code)
"""
_CALLS = pytest.mark.parametrize("call", ["print('a line')", "console.out().print('a line')"])


@_CALLS
def test_a_reader_that_has_gone_is_no_bug(call: str) -> None:
    process = subprocess.Popen(
        (sys.executable, "-c", _PRINTS.format(call=call)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == "a line\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == EXIT_BROKEN_PIPE


@pytest.mark.slow
@_CALLS
@pytest.mark.parametrize(("place", "code"), [("/dev/full", 1), ("&-", 0)])
def test_output_that_nobody_can_take_is_no_bug(call: str, place: str, code: int) -> None:
    shell = ("sh", "-c", f'"$0" -c "$1" >{place}', sys.executable, _PRINTS.format(call=call))
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, check=False)
    said = ["error: No space left on device", "Things to try:"] if code else []
    assert (done.returncode, done.stderr.splitlines()[:2]) == (code, said)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/folder/007-cse.mlir")
    with (tmp_path / "output").open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)  # which is dropped for good: not pytest's own
        said = call(error).message or ""
    assert said.splitlines()[:2] == ["error: No space left on device", "  where: /some/folder/007-cse.mlir"]
    assert "free some disk space" in said


HEARS = """
import subprocess, sys
from invoke.context import Context
from invoke.exceptions import Exit
from tritonsmith.cli.tasks.task import task

@task()
def body(context):
    subprocess.run(("sh", "-c", "trap 'echo heard; exit' INT; kill -INT $$; echo deaf"), check=False)
    print("ready", flush=True)
    sys.stdin.read()

try:
    body(Context())
except Exit as end:
    sys.exit(end.code)
"""


def test_what_a_script_starts_in_the_background_heeds_interrupts_and_so_do_its_children() -> None:
    """There SIGINT is ignored from the start, which programs inherit and a shell cannot even undo."""
    argv = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", HEARS)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "heard\n"
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
