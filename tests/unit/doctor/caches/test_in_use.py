"""What a compile may still want."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.doctor.caches import made
from tritonsmith.doctor.caches import in_use
from tritonsmith.doctor.caches.in_use import Living
from tritonsmith.facts import triton_cache
from tritonsmith.facts.triton_processes import TritonProcess

BUSY = (TritonProcess(4711, "python train.py"),)


def reason(root: Path, living: Living = ()) -> str:
    (entry,) = triton_cache.scan(made.as_root(root)).entries
    return in_use.reason(entry, living, time.time())


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen((sys.executable, "-c", ""))
    process.wait()
    return process.pid


@pytest.mark.parametrize("as_file", [True, False])
def test_a_living_process_is_writing(root: Path, as_file: bool) -> None:
    made.writing(made.unfinished(root), os.getpid(), ago=-1, as_file=as_file)
    assert reason(root) == f"process {os.getpid()} is writing to it"


def test_a_writer_that_is_gone_may_have_been_on_another_machine(root: Path, gone: int) -> None:
    made.writing(made.unfinished(root), gone, ago=60)
    assert reason(root).startswith("unfinished, and changed 6")


def test_a_writer_that_is_long_gone_keeps_nothing(root: Path, gone: int) -> None:
    made.writing(made.unfinished(root), gone)
    assert reason(root) == ""


def test_a_process_that_got_the_number_later_is_not_the_writer(root: Path) -> None:
    made.writing(made.unfinished(root), os.getpid(), ago=1_000_000)
    assert reason(root) == ""


@pytest.mark.parametrize(("ago", "kept"), [(0, True), (500, True), (700, False)])
def test_unfinished_entries_are_kept_for_minutes(root: Path, ago: float, kept: bool) -> None:
    made.age(made.unfinished(root), ago)
    assert bool(reason(root)) is kept


@pytest.mark.parametrize(
    ("ago", "living", "words"),
    [
        (5, (), ""),
        (5, BUSY, "process 4711 (python train.py) has Triton loaded"),
        (5, None, "made 5 s ago"),
        (200, BUSY, ""),
        (-500, BUSY, "made 0 s ago"),
    ],
)
def test_finished_entries_are_kept_while_somebody_compiles(
    root: Path, ago: float, living: Living, words: str
) -> None:
    made.kernel(root, ago=ago)
    found = reason(root, living)
    assert words in found
    assert bool(found) is bool(words)


def running(version: str) -> Living:
    return (TritonProcess(4711, "python train.py", version),)


@pytest.mark.parametrize(
    ("era", "version", "kept"),
    [
        ("base32", "3.9.0", True),
        ("base32", "3.2.0", False),
        ("base64url", "3.2.0", True),
        ("sha256", "3.9.0", False),
        ("md5", "", True),
    ],
)
def test_a_process_wants_only_what_is_spelt_its_way(root: Path, era: str, version: str, kept: bool) -> None:
    made.kernel(root, era=era, ago=5)
    assert bool(reason(root, running(version))) is kept


@pytest.mark.parametrize(
    ("era", "version", "kept"),
    [
        ("md5", "2.1.0", True),
        ("sha256", "3.1.0", True),
        ("sha256", "2.1.0", False),
        ("base64url", "3.2.0", False),
        ("base32", "3.9.0", False),
    ],
)
def test_old_tritons_need_the_folders_of_entries(root: Path, era: str, version: str, kept: bool) -> None:
    made.kernel(root, era=era, ago=500_000)
    assert ("fails if an entry's folder is deleted" in reason(root, running(version))) is kept
    assert reason(root, None) == ""


def test_readers_get_time_where_there_are_some() -> None:
    assert in_use.grace(()) == 0
    assert in_use.grace(BUSY) == in_use.grace(None) > 0


def test_what_is_abandoned(gone: int) -> None:
    now = time.time()
    hour_ago = int((now - 3600) * 1e9)
    assert in_use.abandoned(gone, hour_ago, now)
    assert not in_use.abandoned(gone, int(now * 1e9), now)
    assert not in_use.abandoned(os.getpid(), int((now + 1) * 1e9), now + 3600)
