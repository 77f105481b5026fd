"""What tests of every kind share: the guard around unit tests, and what happens when a tool is missing."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from filelock import FileLock

T = TypeVar("T")

REPOSITORY = Path(__file__).parents[1]
REAL_HOME = Path.home()
REAL_SOURCE = "TRITONSMITH_TRITON_SOURCE"
REAL_WHEELS = "TRITONSMITH_TRITON_WHEELS"
REAL_BUILD = "TRITONSMITH_TRITON_BUILD"

_LOCAL_HOSTS = {"127.0.0.1", "::1", "localhost", "", None}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.symlink", "os.link", "shutil.rmtree"}


class Guard:
    """An audit hook that fails a test which reaches for the network or writes below the real home folder.

    No library gets around it, and no code under test catches what it raises.

    Attributes:
        armed: whether it looks at all.
        allowed: folders that may lie below the home folder: temporary ones, caches of Python's own.
    """

    def __init__(self) -> None:
        self.armed = False
        self.allowed: tuple[Path, ...] = ()

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.armed:
            return
        if event in ("socket.connect", "socket.sendto"):
            sock, address = args
            if sock.family != socket.AF_UNIX and address[0] not in _LOCAL_HOSTS:
                self._refuse(f"connects to {address}")
        elif event == "socket.getaddrinfo":
            if args[0] not in _LOCAL_HOSTS:
                self._refuse(f"looks up {args[0]!r}")
        elif event == "open":
            if isinstance(args[0], (str, bytes)) and args[2] & _WRITES:
                self._check(args[0], event)
        elif event in _CHANGES and not any(isinstance(part, int) and part >= 0 for part in args[2:]):
            for path in args[1:2] if event == "os.symlink" else args[:2]:  # what a link says changes nothing
                self._check(path, event)

    def _check(self, path: Any, event: str) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        full = Path(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100 - links stay as they are
        if full.is_relative_to(REAL_HOME) and not any(full.is_relative_to(folder) for folder in self.allowed):
            self._refuse(f"changes {full} ({event})")

    def _refuse(self, what: str) -> None:
        self.armed = False  # or the report of the failure would be refused too
        pytest.fail(f"a unit test {what}")


def all_gone(processes: Iterable[psutil.Process], *, within: float = 20.0) -> bool:
    """Whether all of them end, at the latest after so many seconds; an orphan may stay as a zombie."""
    until = time.monotonic() + within
    left = list(processes)
    while left and time.monotonic() < until:
        left = [one for one in left if _runs(one)]
        time.sleep(0.01)
    return not left


def command_of(process: psutil.Process) -> str:
    """The command line of a process; empty for one that has ended, a zombie included."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def as_plain_user(body: Callable[[], T]) -> T:
    """The result of a function, called without root's right to pass over the modes of files.

    It is called in a thread, because rights are a thread's own, and these do not come back.
    """
    if os.geteuid() != 0:
        return body()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_without_rights, body).result()


def _without_rights(body: Callable[[], T]) -> T:
    version_and_thread = struct.pack("Ii", 0x20080522, 0)  # <linux/capability.h>
    if ctypes.CDLL(None, use_errno=True).capset(version_and_thread, bytes(24)):
        raise OSError(ctypes.get_errno(), "capset")
    return body()


def script_of_python(path: Path, code: str) -> Path:
    """Make a program of Python code. A `#!` line with the interpreter would break at a space in its path."""
    path.write_text(f'#!/bin/sh\n"exec" "{sys.executable}" "$0" "$@"\n{code}', encoding="utf-8")
    path.chmod(0o755)
    return path


def require(*programs: str) -> None:
    """Skip the test if a program is missing; fail it where `CI` says that all of them ought to be there."""
    _give_up_without([name for name in programs if shutil.which(name) is None])


def require_root(purpose: str) -> None:
    """Skip the test for a plain user, in CI too: the tests run as one there."""
    if os.geteuid() != 0:
        pytest.skip(f"missing: root ({purpose})")


def require_c() -> None:
    """The same for a C compiler, and the C library's headers: a minimal Debian has gcc without them."""
    require("cc")
    probe = subprocess.run(
        ("cc", "-fsyntax-only", "-x", "c", "-"),
        input=b"#include <stdio.h>\n",
        capture_output=True,
        check=False,
    )
    _give_up_without(["libc6-dev"] if probe.returncode else [])


def nothing_may_be_skipped() -> bool:
    """Whether the variable `CI` says so."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _give_up_without(missing: list[str]) -> None:
    if not missing:
        return
    message = f"missing: {', '.join(missing)}"
    if nothing_may_be_skipped():
        pytest.fail(f"{message} (CI is set, so nothing may be skipped)")
    pytest.skip(message)


def slow(*values: object) -> list[Any]:
    """Return parameters whose tests are slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def group_of(item: pytest.Item) -> str:
    """What names the tests that run on one worker; empty for a test that may run on any.

    Tests that share what a fixture made must: whoever looks at the one mini-Triton is in its group, or in
    that of the one with libraries to debug, else whoever has a fixture of its own module's is in that
    module's. `with_wheel` is shared by all workers, and a factory is each worker's own.

    Unit tests are sent out by file. pytest-xdist sends each test of no group by itself, and counts all groups
    that it has sent before: for ten thousand tests that takes longer than many of them. What a test imports
    or caches also serves the others of its file.
    """
    found = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest has no other way to ask
    scopes = {name: made[-1].scope for name, made in found.items() if made[-1].baseid.startswith("tests")}
    for each in ("with_wheel", "tmp_path_factory"):
        scopes.pop(each, None)
    if scopes.get("smith") == "session":
        return "mini-triton"
    if scopes.get("site") == "session":
        return "mini-libraries"
    if {"module", "session"} & set(scopes.values()):
        return item.path.stem
    if item.get_closest_marker("unit") and not item.get_closest_marker("xdist_group"):
        return f"{item.path.parent.name}/{item.path.stem}"
    return ""


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once in a run of the tests, by the first worker that asks for it.

    Args:
        factory: the session's.
        name: of the folder.
        make: fills it. If it fails, the next worker that asks tries again, in an empty folder.
    """
    workers = os.environ.get("PYTEST_XDIST_WORKER")
    folder = (factory.getbasetemp().parent if workers else factory.getbasetemp()) / name
    whole = folder.with_name(f"{name}.whole")
    with FileLock(folder.with_name(f"{name}.lock")):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder


def not_run(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """Lines for the end of a run: how many tests of which kind did not run, and why.

    Args:
        skipped: node ids of skipped tests, and why.
    """
    counts = Counter((node.split("/")[1], reason.removeprefix("Skipped: ")) for node, reason in skipped)
    return [f"{kind}: {count} not run, {reason}" for (kind, reason), count in sorted(counts.items())]
