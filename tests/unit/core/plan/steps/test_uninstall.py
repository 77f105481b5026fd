from __future__ import annotations

import atexit
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.facts.installs import put
from tritonsmith.core.errors import InterruptedRunError, LockedError, OwnershipError, StepError
from tritonsmith.core.plan import Plan, Recover, Step, Uninstall
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.plan.steps import uninstall as steps_uninstall
from tritonsmith.core.plan.steps.uninstall import UninstallJournal

EASY = "/src/triton/python\n/src/other\n"
Snapshot = dict[str, tuple[str, int]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An environment with a package, a script, a link to elsewhere and a neighbour."""
    root = tmp_path / "an env"
    put(
        root,
        {
            "site/triton/__init__.py": "init",
            "site/triton/_C/libtriton.so": "library",
            "site/triton-3.5.dist-info/RECORD": "record",
            "site/other/x.py": "other",
            "site/easy-install.pth": EASY,
            "bin/proton": "script",
        },
    )
    (root / "bin" / "proton").chmod(0o755)
    (root / "site" / "easy-install.pth").chmod(0o600)
    put(tmp_path / "elsewhere", {"precious": "precious"})
    (root / "site" / "triton" / "link").symlink_to(tmp_path / "elsewhere")
    return root


@pytest.fixture
def journal(root: Path) -> UninstallJournal:
    """All of the package goes."""
    site = root / "site"
    names = (
        "triton/__init__.py",
        "triton/_C/libtriton.so",
        "triton/link",
        "triton-3.5.dist-info/RECORD",
        "gone",
    )
    return UninstallJournal(
        files=(*(site / name for name in names), root / "bin" / "proton"),
        edits=((site / "easy-install.pth", "/src/other\n"),),
        folders=tuple(
            site / name for name in ("triton", "triton/_C", "triton-3.5.dist-info", "other", "gone")
        ),
    )


def place(root: Path) -> Path:
    return root / "site" / steps_uninstall.NAME


def snapshot(folder: Path) -> Snapshot:
    """Every file and link below a folder: its content or target, and its mode."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            text = f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
            found[str(path.relative_to(folder))] = (text, path.lstat().st_mode)
    return found


AFTER = ["site/easy-install.pth", "site/other/x.py"]


def assert_gone(root: Path) -> None:
    assert list(snapshot(root)) == AFTER
    assert (root / "site" / "easy-install.pth").read_text() == "/src/other\n"
    assert (root / "site" / "easy-install.pth").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (root / "site").iterdir()) == ["easy-install.pth", "other"]
    assert (root / "bin").is_dir()
    assert (root.parent / "elsewhere" / "precious").read_text() == "precious"


def test_everything_goes_and_nothing_else(root: Path, journal: UninstallJournal) -> None:
    steps_uninstall.remove(journal, place(root), root)
    assert_gone(root)
    assert steps_uninstall.pending(place(root)) is None


def test_a_name_that_is_no_utf_8_comes_back(root: Path) -> None:
    path = root / "site" / "triton" / os.fsdecode(b"caf\xe9.so")
    steps_uninstall.remove(UninstallJournal((path,)), place(root), root)  # gone already: nothing to move
    path.write_text("mine")
    place(root).mkdir()
    steps_uninstall._write(
        place(root) / "journal.json", json.dumps(asdict(UninstallJournal((path,))), default=str)
    )
    path.rename(place(root) / "0")
    steps_uninstall.recover(place(root), root)
    assert path.read_text() == "mine"
    assert not place(root).exists()


def fail_at(number: int, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """Let the file system fail once, at a rename or an unlink."""
    real = getattr(os, name)
    calls = iter(range(1000))

    def failing(*args: Any, **named: Any) -> Any:
        if next(calls) == number:
            raise error
        return real(*args, **named)

    monkeypatch.setattr(os, name, failing)


@pytest.mark.parametrize(
    "error", [OSError(errno.EXDEV, "another file system"), KeyboardInterrupt()], ids=repr
)
@pytest.mark.parametrize("number", range(10))
def test_a_failure_on_the_way_puts_everything_back(
    root: Path, journal: UninstallJournal, number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(root)
    fail_at(number, monkeypatch, "replace", error)
    with pytest.raises(type(error)):
        steps_uninstall.remove(journal, place(root), root)
    assert snapshot(root) == before
    assert not place(root).exists()


@pytest.mark.parametrize(
    ("failures", "match"),
    [
        ([(4, "replace", "once"), (5, "replace", "twice")], "once|twice"),
        # A marker that was written in vain: the disk fails when it is there already, and on the way back.
        ([(5, "fsync", "the marker's folder"), (12, "replace", "on the way back")], "on the way back"),
    ],
)
def test_a_failure_while_putting_back_leaves_the_rest_for_the_next_run(
    root: Path,
    journal: UninstallJournal,
    failures: list[tuple[int, str, str]],
    match: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = snapshot(root)
    with monkeypatch.context() as patched:
        for number, name, words in failures:
            fail_at(number, patched, name, OSError(errno.EIO, words))
        with pytest.raises(OSError, match=match):
            steps_uninstall.remove(journal, place(root), root)
    left = steps_uninstall.pending(place(root))
    assert left is not None
    assert not left.committed
    assert left.journal == journal
    steps_uninstall.recover(place(root), root)
    assert snapshot(root) == before


@pytest.mark.parametrize("name", ["unlink", "rmdir"])
def test_a_failure_after_the_commit_leaves_the_rest_for_the_next_run(
    root: Path, journal: UninstallJournal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = (
        3 if name == "unlink" else 5
    )  # that of the stash itself; other folders may have got a file meanwhile
    with monkeypatch.context() as patched:
        fail_at(number, patched, name, OSError(errno.EIO, "broken"))
        with pytest.raises(OSError, match="broken"):
            steps_uninstall.remove(journal, place(root), root)
    steps_uninstall.recover(place(root), root)
    assert_gone(root)


FORKS = """
import json, os, signal, sys, traceback
from pathlib import Path
from tritonsmith.core.plan.steps import uninstall as stash
def deadly(real):
    def call(*args, **named):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(*args, **named)
    return call
for line in sys.stdin:
    act, folder, left = json.loads(line)
    run = os.fork()
    if run == 0:
        for name in ("replace", "unlink", "rmdir", "mkdir", "open", "fsync"):
            setattr(os, name, deadly(getattr(os, name)))
        root = Path(folder)
        site = root / "site"
        try:
            exec(act)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]), flush=True)
"""
REMOVE = """
names = ("triton/__init__.py", "triton/_C/libtriton.so", "triton/link", "triton-3.5.dist-info/RECORD", "gone")
stash.remove(
    stash.UninstallJournal(
        (*(site / name for name in names), root / "bin" / "proton"),
        ((site / "easy-install.pth", "/src/other\\n"),),
        tuple(site / name for name in ("triton", "triton/_C", "triton-3.5.dist-info", "other", "gone")),
    ),
    site / stash.NAME, root)
"""
RECOVER = "stash.recover(site / stash.NAME, root)"


@cache
def forks() -> subprocess.Popen[str]:
    """A process that forks for each of these, and has imported what they need."""
    argv = (sys.executable, "-c", FORKS)
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def killed(act: str, root: Path, after: int) -> bool:
    """Whether a process is killed before it has called the file system so often."""
    process = forks()
    assert process.stdin
    assert process.stdout
    print(json.dumps((act, str(root), after)), file=process.stdin, flush=True)
    code = int(process.stdout.readline())
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("after", [*range(0, 40, 3), 40])
def test_killed_at_any_point_the_next_run_heals(root: Path, after: int) -> None:
    before = snapshot(root)
    was_killed = killed(REMOVE, root, after)
    left = steps_uninstall.pending(place(root))
    if left:
        assert was_killed
    committed = left.committed if left else snapshot(root) != before
    steps_uninstall.recover(place(root), root)
    assert not os.path.lexists(place(root))
    if committed:
        assert_gone(root)
    else:
        assert snapshot(root) == before


@pytest.mark.parametrize("first", [12, 31])
def test_healing_may_be_killed_as_well(root: Path, first: int) -> None:
    before = snapshot(root)
    assert killed(REMOVE, root, first)
    left = steps_uninstall.pending(place(root))
    assert left is not None
    after = 0
    while killed(RECOVER, root, after):
        after += 4
    if left.committed:
        assert_gone(root)
    else:
        assert snapshot(root) == before
    assert after > 4


def test_the_kill_points_cover_both_sides_of_the_commit(root: Path) -> None:
    """Or the two tests above would show less than they seem to."""
    assert killed(REMOVE, root, 12)
    left = steps_uninstall.pending(place(root))
    assert left is not None
    assert not left.committed
    steps_uninstall.recover(place(root), root)
    assert killed(REMOVE, root, 31)
    left = steps_uninstall.pending(place(root))
    assert left is not None
    assert left.committed


def test_what_somebody_put_there_since_stays(root: Path, journal: UninstallJournal) -> None:
    """pip may have installed a Triton between the kill and the next purge."""
    assert killed(REMOVE, root, 15)
    site = root / "site"
    put(site, {"triton/__init__.py": "newer", "easy-install.pth": "/src/newer\n"})
    steps_uninstall.recover(place(root), root)
    assert (site / "triton" / "__init__.py").read_text() == "newer"
    assert (site / "easy-install.pth").read_text() == "/src/newer\n"
    assert (site / "triton" / "_C" / "libtriton.so").read_text() == "library"
    assert journal.files[0].exists()


# --- what is refused


@pytest.mark.parametrize(
    "path",
    [
        "../elsewhere/precious",
        "site/triton/link/precious",
        "site/..",
        ".",
        "site/triton",
        "/etc/hostname",
        "bin/..",
    ],
)
def test_what_lies_outside_or_is_a_folder_is_refused(root: Path, path: str) -> None:
    before = snapshot(root.parent)
    good = root / "site" / "triton" / "__init__.py"
    with pytest.raises(OwnershipError, match="nothing was touched"):
        steps_uninstall.remove(UninstallJournal((good, root / path)), place(root), root)
    assert snapshot(root.parent) == before
    assert not place(root).exists()


@pytest.mark.parametrize("path", ["pyvenv.cfg", "bin/python", "bin/python3.11", "bin/pypy3", "link"])
def test_what_makes_the_environment_is_refused(root: Path, path: str) -> None:
    """Whatever a RECORD says: without it the next run would find no environment to heal."""
    for name in ("pyvenv.cfg", "bin/python", "bin/python3.11", "bin/pypy3"):
        (root / name).write_text(name)
    (root / "link").symlink_to(root / "site")
    before = snapshot(root)
    where = root / "link" / steps_uninstall.NAME if path == "link" else place(root)
    good = root / "site" / "triton" / "__init__.py"
    for journal in (UninstallJournal((good, root / path)), UninstallJournal((good,), (), (root / "site",))):
        with pytest.raises(OwnershipError, match="refusing to remove this; nothing was touched"):
            steps_uninstall.remove(journal, where, root)
    assert snapshot(root) == before


@pytest.mark.parametrize("change", ["edit", "folder", "stash"])
def test_nothing_else_of_a_journal_may_lie_outside(root: Path, change: str) -> None:
    outside = root.parent / "elsewhere"
    journal = UninstallJournal((), ((outside / "precious", ""),) if change == "edit" else (), ())
    if change == "folder":
        journal = UninstallJournal((), (), (outside,))
    where = outside / "stash" if change == "stash" else place(root)
    with pytest.raises(OwnershipError, match="the path is not below"):
        steps_uninstall.remove(journal, where, root)
    assert (outside / "precious").read_text() == "precious"


@pytest.mark.parametrize("folder", ["/", "~"])
def test_the_home_folder_and_the_root_are_no_environments(folder: str) -> None:
    root = Path(folder).expanduser()
    with pytest.raises(OwnershipError, match="the root is the home folder or /"):
        steps_uninstall.remove(UninstallJournal(()), root / "stash", root)


def test_a_journal_that_was_tampered_with_reaches_nothing_outside(
    root: Path, journal: UninstallJournal
) -> None:
    assert killed(REMOVE, root, 15)
    path = place(root) / "journal.json"
    target = root.parent / "elsewhere" / "new"
    path.write_text(path.read_text().replace(str(journal.files[0]), str(target)))
    with pytest.raises(OwnershipError, match="the path is not below"):
        steps_uninstall.recover(place(root), root)
    assert not target.exists()


@pytest.mark.parametrize("text", [None, "", "[]", '{"files": 1}', '{"files": []}'])
def test_a_stash_without_a_readable_journal_is_left_alone(root: Path, text: str | None) -> None:
    put(place(root), {"0": "somebody's"})
    if text is not None:
        put(place(root), {"journal.json": text})
    with pytest.raises(OwnershipError, match="cannot read the stash"):
        steps_uninstall.pending(place(root))
    with pytest.raises(OwnershipError, match="cannot read the stash"):
        steps_uninstall.recover(place(root), root)
    assert (place(root) / "0").read_text() == "somebody's"


def test_a_link_is_no_stash(root: Path) -> None:
    place(root).symlink_to(root.parent / "elsewhere")
    with pytest.raises(OwnershipError, match="cannot read the stash"):
        steps_uninstall.recover(place(root), root)
    assert (root.parent / "elsewhere" / "precious").exists()


def test_a_second_run_does_not_heal_what_is_at_work(root: Path, journal: UninstallJournal) -> None:
    assert killed(REMOVE, root, 15)
    handle = os.open(place(root), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(LockedError, match="another run is removing files here"):
            steps_uninstall.recover(place(root), root)
        with pytest.raises(FileExistsError):
            steps_uninstall.remove(journal, place(root), root)
    finally:
        os.close(handle)
    steps_uninstall.recover(place(root), root)


def test_a_file_system_without_locks_does_without(
    root: Path, journal: UninstallJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system may refuse to lock a folder."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "no such locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    steps_uninstall.remove(journal, place(root), root)
    assert_gone(root)


# --- as steps of a plan


def uninstall(root: Path, journal: UninstallJournal) -> Uninstall:
    return Uninstall(journal, place(root), root, phase="purge")


def present(journal: UninstallJournal) -> UninstallJournal:
    """What a plan has in it: only what is there."""
    return UninstallJournal(
        tuple(path for path in journal.files if os.path.lexists(path)), journal.edits, journal.folders
    )


def recovery(root: Path) -> Recover:
    left = steps_uninstall.pending(place(root))
    assert left is not None
    return Recover(left.journal, place(root), root, left.committed, phase="purge")


def by_the_runner(step: Step, runner: Runner) -> None:
    runner.run(Plan("a plan", (step,)))


def by_the_shell(step: Step, _: Runner) -> None:
    script = Plan("a plan", (step,)).shell()
    subprocess.run(("/bin/sh", "-c", script), check=True, capture_output=True)


@pytest.mark.parametrize("act", [by_the_runner, by_the_shell], ids=lambda act: act.__name__)
def test_the_script_does_what_the_runner_does(
    root: Path, journal: UninstallJournal, runner: Runner, act: Callable[[Step, Runner], None]
) -> None:
    act(uninstall(root, present(journal)), runner)
    assert_gone(root)


@pytest.mark.parametrize("after", [15, 31])
@pytest.mark.parametrize("act", [by_the_runner, by_the_shell], ids=lambda act: act.__name__)
def test_the_script_heals_as_the_runner_does(
    root: Path, runner: Runner, act: Callable[[Step, Runner], None], after: int
) -> None:
    before = snapshot(root)
    assert killed(REMOVE, root, after)
    step = recovery(root)
    act(step, runner)
    if step.committed:
        assert_gone(root)
    else:
        assert snapshot(root) == before


def test_a_failure_is_told_and_everything_is_back(
    root: Path, journal: UninstallJournal, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(root)
    fail_at(4, monkeypatch, "replace", OSError(errno.EACCES, "Permission denied", "x"))
    with pytest.raises(StepError, match="purge: Permission denied"):
        by_the_runner(uninstall(root, journal), runner)
    assert snapshot(root) == before


def test_interrupted_everything_is_back(
    root: Path, journal: UninstallJournal, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(root)
    fail_at(4, monkeypatch, "replace", KeyboardInterrupt())
    with pytest.raises(InterruptedRunError):
        by_the_runner(uninstall(root, journal), runner)
    assert snapshot(root) == before
