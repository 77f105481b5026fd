"""The store under SIGKILL: never half an entry to be seen, the next run goes on, nothing in use goes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.build.store import operations
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.store import Store
from tritonsmith.core.plan.download import sha256_of
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.facts import llvm_tree

KILLED = -9
ALL = ("publish", "bring", "export", "gc", "adopt", "forget")


class Killer:
    """A process that does operations in children, and lets them die.

    Attributes:
        root: what they work below.
        last: exit status of the last one.
        changes: how many changes it made.
    """

    def __init__(self, process: subprocess.Popen[str], root: Path) -> None:
        self._process = process
        self.root = root
        self.last = self.changes = 0

    def start(self, name: str, *, die_at: int = -1, limit: int = 0) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, str(self.root), die_at, limit]) + "\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        assert self._process.stdout is not None
        self.last, self.changes = json.loads(self._process.stdout.readline())
        return self.last

    def do(self, name: str, *, die_at: int = -1, limit: int = 0) -> int:
        self.start(name, die_at=die_at, limit=limit)
        return self.wait()

    @property
    def store(self) -> Store:
        return operations.world(self.root)[1]


@contextmanager
def ready_to_die(folder: Path, name: str) -> Iterator[Killer]:
    argv = (sys.executable, "-m", operations.__name__, str(folder / f"counter of {name}"))
    with (
        (folder / f"errors of {name}").open("w") as errors,
        subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        yield Killer(process, folder / "world")
    assert process.returncode == 0


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    (tmp_path / "world").mkdir()
    with ready_to_die(tmp_path, "one") as one:
        yield one


@pytest.fixture
def another(tmp_path: Path, killer: Killer) -> Iterator[Killer]:
    """A second process, in the same world."""
    assert killer.root == tmp_path / "world"
    with ready_to_die(tmp_path, "two") as two:
        yield two


def check(killer: Killer) -> None:
    """What must hold whenever one looks."""
    for entry in killer.store.entries():
        assert entry.status in ("ready", "unfinished"), entry
        if entry.status == "ready":
            assert describe_tree.problems(entry) == ()
    exported = killer.root / "out.tar.zst"
    sidecar = exported.with_name(f"{exported.name}.sha256")
    if sidecar.exists():
        assert sidecar.read_text().split()[0] == sha256_of(exported)
    theirs = killer.root / "theirs"
    if theirs.exists() and (theirs / "lib").exists():
        assert llvm_tree.is_tree(theirs) or not (killer.store.manifest("adopted")).exists()


def ready(killer: Killer) -> set[str]:
    return {entry.name for entry in killer.store.entries() if entry.status == "ready"}


def every_death(killer: Killer, name: str) -> Iterator[int]:
    """Kill an operation before each of its changes; it is done again after each death by the test."""
    at = 0
    while killer.do(name, die_at=at) == KILLED:
        check(killer)
        yield at
        at += 1
    assert killer.last == 0
    assert at > 5


def test_publishing(killer: Killer) -> None:
    for _ in every_death(killer, "publish"):
        pass  # each run goes on where the one before died
    assert ready(killer) == {"built"}


@pytest.mark.slow
def test_importing(killer: Killer) -> None:
    assert killer.do("archive") == 0
    for _ in every_death(killer, "bring"):
        pass
    assert ready(killer) == {"far"}
    assert store_entry.leftovers(killer.store.root) == ()
    assert killer.do("bring") == 0  # there already
    assert ready(killer) == {"far"}


def test_exporting(killer: Killer) -> None:
    assert killer.do("publish") == 0
    for _ in every_death(killer, "export"):
        pass
    assert (killer.root / "out.tar.zst.sha256").exists()
    assert ready(killer) == {"built"}


@pytest.mark.slow
def test_collecting(killer: Killer) -> None:
    assert killer.do("publish") == 0
    assert killer.do("archive") == 0
    assert killer.do("bring") == 0
    for _ in every_death(killer, "gc"):
        assert "built" in ready(killer)
        if killer.changes >= 0 and "far" not in ready(killer):
            assert killer.do("bring", die_at=6) == KILLED  # an import that came to nothing, on top of it
            check(killer)
        elif "far" not in {entry.name for entry in killer.store.entries()}:
            assert killer.do("bring") == 0
    assert ready(killer) == {"built"}
    assert {path.name for path in killer.store.root.iterdir() if path.is_dir()} == {"built", "users"}
    assert store_entry.leftovers(killer.store.root) == ()


def test_adopting_and_forgetting(killer: Killer) -> None:
    assert killer.do("adopt") == 0
    for _ in range(20):
        killer.do("forget", die_at=3)
        check(killer)
    assert killer.do("forget") == 0
    assert ready(killer) == set()
    assert llvm_tree.is_tree(killer.root / "theirs")


@pytest.mark.slow
def test_two_hundred_deaths_at_random(killer: Killer) -> None:
    """Any operation, dead at any of its changes, after any other."""
    assert killer.do("publish") == 0
    assert killer.do("archive") == 0
    chance = random.Random(4)  # noqa: S311 - the same each time
    deaths = 0
    most = {"publish": 24, "bring": 60, "export": 12, "gc": 36}  # changes: few runs come to their end
    while deaths < 200:
        name = chance.choice(list(most))
        killer.do(name, die_at=chance.randrange(most[name]))
        deaths += killer.last == KILLED
        assert killer.changes <= most[name], "there are changes that it never dies at"
        assert killer.last in (KILLED, 0, 1)
        check(killer)
        assert "built" in ready(killer), "an entry in use went"
    for name in ("gc", "publish", "bring", "export"):
        assert killer.do(name) == 0
    assert ready(killer) == {"built", "far"}
    check(killer)
    assert killer.do("gc") == 0
    assert ready(killer) == {"built"}


@pytest.mark.slow
def test_who_comes_to_use_it_while_it_is_collected(killer: Killer, another: Killer) -> None:
    """Either the one is told that it went, or the other leaves it: at once, many times."""
    assert killer.do("archive") == 0
    for _ in range(12):
        assert killer.do("bring") == 0
        killer.start("gc_now")
        another.start("use")
        assert killer.wait() == 0
        assert another.wait() in (0, 1)
        assert ready(killer) == ({"far"} if another.last == 0 else set())
        for record in killer.store.users.iterdir():
            record.unlink()
        assert killer.do("gc_now") == 0
        assert ready(killer) == set()


def test_two_importers_at_once(killer: Killer, another: Killer) -> None:
    assert killer.do("archive") == 0
    for _ in range(5):
        killer.start("bring")
        another.start("bring")
        assert sorted((killer.wait(), another.wait())) in ([0, 0], [0, 1])
        check(killer)
        assert ready(killer) == {"far"}
        assert killer.do("gc_now") == 0


@pytest.mark.parametrize("name", ["bring", "export", "publish"])
def test_a_disk_that_is_full(killer: Killer, name: str) -> None:
    """A file cannot grow beyond 64 KiB: what ENOSPC does, at a place that is known."""
    if name != "publish":
        assert killer.do("publish") == 0
    assert killer.do("archive") == 0
    before = ready(killer)
    assert killer.do(name, limit=1 << 16) == 1
    check(killer)
    assert ready(killer) == before
    assert killer.do(name) == 0
    check(killer)
