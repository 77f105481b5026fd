"""A step that removes entries: only what it names, unchanged, below its root, in one rename each."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.support import as_plain_user
from tests.unit.core.plan.conftest import Recorder, tools
from tritonsmith.core.errors import LockedError, OwnershipError, StepError
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.plan.steps.base import Step, StepTools
from tritonsmith.core.plan.steps.cache_entries import FILLING, AddEntries, RemoveEntries, standing_of
from tritonsmith.core.plan.steps.files import Write
from tritonsmith.core.untrusted import TRASH, CacheIndex, SeenEntry

INDEX = CacheIndex("__grp__", "{}")
FILES = {"k.ttir", "k.json", "__grp__k.json"}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with two entries, a file and a folder of somebody's."""
    root = tmp_path / "cache"
    for name in ("A", "B"):
        fill(root / name)
    (root / "notes.txt").write_text("precious")
    (root / "project").mkdir()
    (root / "project" / "main.py").write_text("precious")
    return root


def fill(entry: Path) -> Path:
    entry.mkdir(parents=True)
    for name in FILES:
        (entry / name).write_text(name)
    return entry


def seen(root: Path, *names: str) -> tuple[SeenEntry, ...]:
    return tuple(SeenEntry(name, (root / name).lstat().st_mtime_ns) for name in names)


def step(root: Path, *names: str, grace: float = 0.0) -> RemoveEntries:
    return RemoveEntries(root, seen(root, *names), INDEX, grace, phase="clear")


def act(what: RemoveEntries) -> None:
    what.act(tools())


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_what_is_named_goes_and_nothing_else(cache: Path) -> None:
    act(step(cache, "A"))
    assert sorted(path.name for path in cache.iterdir()) == ["B", "notes.txt", "project"]
    assert (cache / "project" / "main.py").read_text() == "precious"


def test_a_name_that_begins_with_a_hyphen(cache: Path) -> None:
    fill(cache / "-rf")
    act(step(cache, "-rf"))
    assert not (cache / "-rf").exists()


def test_unfinished_writes_go_with_their_entry(cache: Path) -> None:
    (cache / "A" / "tmp.pid_1_x").mkdir()
    (cache / "A" / "tmp.pid_1_x" / "k.llir").write_text("half")
    act(step(cache, "A"))
    assert not (cache / "A").exists()


def test_something_in_an_entry_goes_alone(cache: Path) -> None:
    (cache / "A" / "tmp.pid_1_x").mkdir()
    (cache / "A" / "tmp.pid_1_x" / "k.llir").write_text("half")
    (cache / "A" / "k.llir.tmp.pid_1_2").write_text("half")
    act(step(cache, "A/tmp.pid_1_x", "A/k.llir.tmp.pid_1_2"))
    assert {path.name for path in (cache / "A").iterdir()} == FILES


def test_what_has_changed_since_stays(cache: Path) -> None:
    what = step(cache, "A", "B")
    (cache / "A" / "k.llir").write_text("new")
    os.utime(cache / "A", ns=(1, 1))  # the clock of a file system may be too coarse to show it
    act(what)
    assert {"k.llir", "__grp__k.json"} <= {path.name for path in (cache / "A").iterdir()}
    assert not (cache / "B").exists()


def test_what_has_gone_is_passed_over(cache: Path) -> None:
    what = step(cache, "A", "B")
    (cache / "A").rename(cache.parent / "elsewhere")
    act(what)
    assert not (cache / "B").exists()
    assert (cache.parent / "elsewhere" / "k.ttir").is_file()


def test_what_has_become_a_link_stays_and_so_does_its_target(cache: Path) -> None:
    what = step(cache, "A")
    target = fill(cache.parent / "target")
    (cache / "A").rename(cache.parent / "elsewhere")
    (cache / "A").symlink_to(target)
    stamp = what.entries[0].changed
    os.utime(cache / "A", ns=(stamp, stamp), follow_symlinks=False)
    act(what)
    assert (cache / "A").is_symlink()
    assert len(list(target.iterdir())) == 3


def test_an_entry_that_is_a_link_does_not_lead_to_what_is_in_it(cache: Path) -> None:
    target = fill(cache.parent / "target")
    (cache / "L").symlink_to(target)
    act(step(cache, "L/k.ttir"))
    assert (target / "k.ttir").is_file()


def test_links_in_an_entry_are_unlinked_and_not_followed(cache: Path) -> None:
    target = fill(cache.parent / "target")
    (cache / "A" / "k.ptx").symlink_to(target / "k.ttir")
    (cache / "A" / "folder").symlink_to(target)
    act(step(cache, "A"))
    assert not (cache / "A").exists()
    assert len(list(target.iterdir())) == 3


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "A/..", "A/../B", "/etc", "A/b/c", "A/"])
def test_names_that_climb_are_refused_before_anything_goes(cache: Path, name: str) -> None:
    before = tree(cache.parent)
    what = RemoveEntries(cache, (*seen(cache, "A"), SeenEntry(name, 0)), INDEX, phase="clear")
    with pytest.raises(OwnershipError, match="not the name of a cache entry"):
        act(what)
    assert tree(cache.parent) == before


def link(target: Path) -> Path:
    path = target.parent / "alias"
    path.symlink_to(target)
    return path


ROOTS: dict[str, Callable[[Path], Path]] = {
    "/": lambda _: Path("/"),
    "home": lambda _: Path.home(),
    "above home": lambda _: Path.home().parent,
    "relative": lambda _: Path("cache"),
    "a link": link,
    "below a link": lambda cache: link(cache.parent) / "cache",
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots_that_are_refused(cache: Path, name: str) -> None:
    before = tree(cache)
    with pytest.raises(OwnershipError, match="refusing to clear this folder"):
        act(RemoveEntries(ROOTS[name](cache), seen(cache, "A"), INDEX, phase="clear"))
    assert tree(cache) == before


@contextmanager
def clearing(what: RemoveEntries) -> Iterator[threading.Thread]:
    """Act in another thread; the body begins when the index of the entry A is empty."""
    thread = threading.Thread(target=act, args=(what,))
    thread.start()
    while (what.root / "A" / "__grp__k.json").read_text() != INDEX.empty:
        time.sleep(0.001)
    yield thread
    thread.join()


def test_readers_find_the_files_until_the_grace_is_over(cache: Path) -> None:
    with clearing(step(cache, "A", grace=0.5)) as thread:
        kept = {path.name for path in (cache / "A").iterdir()} == FILES and thread.is_alive()
    assert kept
    assert not (cache / "A").exists()


def test_an_index_is_there_at_any_time_until_the_grace_is_over(cache: Path) -> None:
    opened = [(cache / "A" / "__grp__k.json").read_text()]
    thread = threading.Thread(target=act, args=(step(cache, "A", grace=0.3),))
    thread.start()
    while thread.is_alive() and (cache / "A").exists():
        with suppress(FileNotFoundError):  # the folder has gone, by now
            opened.append((cache / "A" / "__grp__k.json").read_text())
    thread.join()
    assert list(dict.fromkeys(opened)) == ["__grp__k.json", INDEX.empty]
    assert opened == sorted(opened)


def test_an_entry_that_is_written_during_the_grace_stays_as_it_was_written(cache: Path) -> None:
    with clearing(step(cache, "A", "B", grace=0.5)):
        time.sleep(0.05)  # longer than the tick of any file system's clock
        for name in ("k.ttir", "__grp__k.json"):
            (cache / "A" / "fresh").write_text("compiled again")
            (cache / "A" / "fresh").replace(cache / "A" / name)
    assert {path.name for path in (cache / "A").iterdir()} == FILES
    assert (cache / "A" / "__grp__k.json").read_text() == "compiled again"
    assert not (cache / "B").exists()


def test_no_trash_is_left(cache: Path) -> None:
    act(step(cache, "A", "B"))
    assert not [path for path in cache.iterdir() if path.name.startswith(TRASH)]


def test_what_a_stopped_run_left_goes_first(cache: Path) -> None:
    fill(cache / f"{TRASH}0123" / "0")
    act(RemoveEntries(cache, (), INDEX, phase="clear"))
    assert sorted(path.name for path in cache.iterdir()) == ["A", "B", "notes.txt", "project"]


def test_a_link_with_the_name_of_trash_stays(cache: Path) -> None:
    target = fill(cache.parent / "target")
    (cache / f"{TRASH}0123").symlink_to(target)
    act(step(cache, "A"))
    assert (cache / f"{TRASH}0123").is_symlink()
    assert len(list(target.iterdir())) == 3


KILLED = """
import sys
from pathlib import Path
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.untrusted import CacheIndex, SeenEntry
from tritonsmith.core.plan.steps.cache_entries import RemoveEntries
from tritonsmith.core.ui.progress import PhaseProgress
root = Path(sys.argv[1])
names = [SeenEntry(path.name, path.stat().st_mtime_ns) for path in root.iterdir() if len(path.name) == 5]
print("it begins", flush=True)
step = RemoveEntries(root, tuple(names), CacheIndex("__grp__", "{}"), phase="clear")
Runner(root.parent / "log", PhaseProgress(live=False, silent=True)).run(Plan("clear", (step,)))
"""


@pytest.mark.slow
def test_a_killed_run_leaves_whole_entries_or_none_and_the_next_one_ends_it(cache: Path) -> None:
    for number in range(1000):
        fill(cache / f"E{number:04}")
    process = subprocess.Popen((sys.executable, "-c", KILLED, str(cache)), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        out.readline()
    while process.poll() is None and not list(cache.glob(f"{TRASH}*/*")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    left = list(cache.glob("E*"))
    assert process.returncode == -signal.SIGKILL, "it was over too soon"
    assert left
    assert all({"k.ttir", "k.json"} <= {path.name for path in entry.iterdir()} for entry in left)
    act(step(cache, *(path.name for path in left)))
    assert sorted(path.name for path in cache.iterdir()) == ["A", "B", "notes.txt", "project"]


def test_two_runs_on_one_cache(cache: Path) -> None:
    descriptor = os.open(cache, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(LockedError, match="another run"):
        act(step(cache, "A"))
    os.close(descriptor)
    act(step(cache, "A"))
    assert not (cache / "A").exists()


def test_a_root_that_may_not_be_written_to_loses_nothing(cache: Path, runner: Runner) -> None:
    cache.chmod(0o500)
    removal = Plan("p", (step(cache, "A"),))
    with pytest.raises(StepError, match="clear"):
        as_plain_user(lambda: runner.run(removal))
    cache.chmod(0o700)
    assert len(list((cache / "A").iterdir())) == 3


def test_the_runner_acts_on_it_and_its_log_names_every_entry(cache: Path, runner: Runner, log: Path) -> None:
    runner.run(Plan("p", (step(cache, "A", "B"),)))
    assert not (cache / "A").exists()
    assert {"+ A", "+ B"} <= set(log.read_text().splitlines())


def test_progress(cache: Path, progress: Recorder) -> None:
    step(cache, "A", "B", grace=0.01).act(tools(progress))
    assert {total for _, total, _ in progress.updates} == {2}
    assert {text for _, _, text in progress.updates} == {"taking entries out of use", "deleting entries"}


@pytest.mark.parametrize("grace", [0.0, 0.1])
def test_the_printed_shell_does_the_same(cache: Path, grace: float) -> None:
    fill(cache / "-begins with")
    script = Plan("p", (step(cache, "A", "-begins with", grace=grace),)).shell()
    subprocess.run(("/bin/sh", "-c", script), check=True, cwd=cache.parent)
    assert sorted(path.name for path in cache.iterdir()) == ["B", "notes.txt", "project"]
    assert ("sleep" in script) is bool(grace)


def test_no_descriptor_is_left_open(cache: Path) -> None:
    before = psutil.Process().num_fds()
    act(step(cache, "A", "B"))
    assert psutil.Process().num_fds() == before


def scratch_entry(root: Path, name: str) -> Path:
    """An entry with two files and an index, in a cache of its own."""
    folder = root / name
    folder.mkdir(parents=True)
    for file in ("k.cubin", "k.json", "lock"):
        (folder / file).write_text(f"{name} {file}")
    paths = {file: str(folder / file) for file in ("k.cubin", "k.json")}
    (folder / "__grp__k.json").write_text(json.dumps({"child_paths": paths}))
    return folder


def test_added_entries_name_their_files_in_the_new_place(tmp_path: Path, cache: Path) -> None:
    entries = tuple(scratch_entry(tmp_path / "scratch", name) for name in ("A", "N"))
    AddEntries(cache, entries, Path("/opt/warm"), INDEX, phase="add").act(tools())
    assert sorted(path.name for path in (cache / "N").iterdir()) == ["__grp__k.json", "k.cubin", "k.json"]
    index = json.loads((cache / "N" / "__grp__k.json").read_text())
    assert index["child_paths"] == {"k.cubin": "/opt/warm/N/k.cubin", "k.json": "/opt/warm/N/k.json"}


def test_a_whole_entry_that_is_there_stays_as_it_is(tmp_path: Path, cache: Path) -> None:
    (scratch_entry(cache, "C") / "k.cubin").write_text("mine")
    before = {path: path.read_bytes() for path in (cache / "C").iterdir()}
    AddEntries(cache, (scratch_entry(tmp_path / "scratch", "C"),), cache, INDEX, phase="add").act(tools())
    assert {path: path.read_bytes() for path in (cache / "C").iterdir()} == before


def test_the_script_adds_the_same(tmp_path: Path) -> None:
    entries = tuple(scratch_entry(tmp_path / "scratch", name) for name in ("A", "N", "X"))
    (tmp_path / "scratch" / "X" / "__grp__k.json").unlink()  # as of an extension
    first, second = tmp_path / "by the step", tmp_path / "by the script"
    for root in (first, second):
        (scratch_entry(root, "A") / "k.cubin").write_text("mine")
        (root / "A" / "__grp__k.json").write_text(f'{{"child_paths": {{"k.cubin": "{root}/A/k.cubin"}}}}')
    AddEntries(first, entries, tmp_path / "home", INDEX, phase="add").act(tools())
    script = "\n".join(AddEntries(second, entries, tmp_path / "home", INDEX, phase="add").shell())
    subprocess.run(("sh", "-e", "-c", script), check=True)
    for name in ("N", "X"):
        (second / name / "lock").unlink()
    contents = [
        {path.relative_to(root): path.read_text() for path in root.rglob("[!A]/*")}
        for root in (first, second)
    ]
    assert contents[0] == contents[1]


def test_the_script_and_the_step_leave_nothing_else(tmp_path: Path, cache: Path) -> None:
    entries = (scratch_entry(tmp_path / "scratch", "N"),)
    last = Write(cache / "record", "it", phase="add")
    AddEntries(cache, entries, cache, INDEX, last=last, phase="add").act(tools())
    assert sorted(path.name for path in cache.iterdir()) == ["A", "B", "N", "notes.txt", "project", "record"]


class FullDisk(Step):
    """A step that fails as on a full disk."""

    def shell(self) -> list[str]:
        return []

    def act(self, tools: StepTools) -> None:  # noqa: ARG002 - it fails before it uses them
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_run_that_fails_leaves_whole_entries_and_says_that_the_cache_is_unfinished(tmp_path: Path) -> None:
    root = tmp_path / "new"
    root.mkdir()
    good, bad = (scratch_entry(tmp_path / "scratch", name) for name in ("N", "O"))
    (bad / "k.cubin").chmod(0)
    adding = AddEntries(root, (good, bad), root, INDEX, phase="add")
    with pytest.raises(PermissionError):
        as_plain_user(lambda: adding.act(tools()))
    assert sorted(path.name for path in root.iterdir()) == [FILLING, "N"]
    assert list((root / FILLING).iterdir()) == []
    (bad / "k.cubin").chmod(0o644)
    adding.act(tools())
    assert sorted(path.name for path in root.iterdir()) == ["N", "O"]
    with pytest.raises(OSError, match="No space"):
        AddEntries(root, (good,), root, INDEX, last=FullDisk(phase="add"), phase="add").act(tools())
    assert (root / FILLING).is_dir()


KILLED_FILL = """
import sys
from pathlib import Path
from tests.unit.core.plan.conftest import tools
from tritonsmith.core.plan.steps.cache_entries import AddEntries
from tritonsmith.core.untrusted import CacheIndex
scratch, root = map(Path, sys.argv[1:])
entries = tuple(sorted(scratch.iterdir()))
print("it begins", flush=True)
AddEntries(root, entries, root, CacheIndex("__grp__", "{}"), phase="add").act(tools())
"""


@pytest.mark.slow
def test_a_killed_fill_leaves_whole_entries_and_the_next_one_ends_it(tmp_path: Path) -> None:
    root = tmp_path / "warm"
    root.mkdir()
    entries = tuple(scratch_entry(tmp_path / "scratch", f"E{number:04}") for number in range(2000))
    argv = (sys.executable, "-c", KILLED_FILL, str(tmp_path / "scratch"), str(root))
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        out.readline()
    while process.poll() is None and len(list(root.glob("E*"))) < 3:
        time.sleep(0.001)
    process.kill()
    process.wait()
    left = list(root.glob("E*"))
    assert process.returncode == -signal.SIGKILL, "it was over too soon"
    assert left
    assert {standing_of(tmp_path / "scratch" / path.name, root, root, INDEX) for path in left} == {"whole"}
    AddEntries(root, entries, root, INDEX, phase="add").act(tools())
    assert {standing_of(entry, root, root, INDEX) for entry in entries} == {"whole"}
    assert len(list(root.iterdir())) == len(entries)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("k.cubin", None),
        ("k.cubin", ""),
        ("__grp__k.json", None),
        ("__grp__k.json", "{}"),
        ("__grp__k.json", "[]"),
        ("__grp__k.json", "[" * 200_000),
        ("__grp__k.json", "garbage"),
        ("__grp__k.json", '{"child_paths": ["k.cubin"]}'),
        ("__grp__k.json", '{"child_paths": {"k.cu\\u0000bin": "x"}}'),
        ("__grp__k.json", '{"child_paths": {}}'),
    ],
)
def test_a_damaged_entry_is_completed(file: str, content: str | None, tmp_path: Path) -> None:
    root, entry = tmp_path / "warm", scratch_entry(tmp_path / "scratch", "N")
    root.mkdir()
    adding = AddEntries(root, (entry,), root, INDEX, phase="add")
    adding.act(tools())
    whole = {path: path.read_bytes() for path in (root / "N").iterdir()}
    (root / "N" / file).unlink()
    if content is not None:
        (root / "N" / file).write_text(content)
    assert standing_of(entry, root, root, INDEX) == "damaged"
    adding.act(tools())
    assert {path: path.read_bytes() for path in (root / "N").iterdir()} == whole


def test_a_damaged_entry_is_copied_as_it_is(tmp_path: Path) -> None:
    root, entry = tmp_path / "copy", scratch_entry(tmp_path / "warm", "N")
    root.mkdir()
    for number, text in enumerate(("{}", "[]", "garbage", '{"child_paths": 3}')):
        (entry / "__grp__k.json").write_text(text)
        named = entry.rename(entry.with_name(f"N{number}"))
        AddEntries(root, (named,), root, INDEX, phase="add").act(tools())
        assert (root / named.name / "__grp__k.json").read_text() == text
        named.rename(entry)


def test_an_extension_is_whole_if_it_is_ours_or_a_whole_library(tmp_path: Path) -> None:
    root = tmp_path / "warm"
    entry = tmp_path / "scratch" / "X"
    entry.mkdir(parents=True)
    (root / "X").mkdir(parents=True)
    library = Path(sys.modules["_ctypes"].__file__ or "").read_bytes()
    (entry / "x.so").write_bytes(b"ours")
    for content, standing in (
        (b"ours", "whole"),
        (library, "whole"),
        (library[: len(library) // 2], "damaged"),
        (library[:10], "damaged"),
        (b"our", "damaged"),
        (b"", "damaged"),
    ):
        (root / "X" / "x.so").write_bytes(content)
        assert standing_of(entry, root, root, INDEX) == standing
    AddEntries(root, (entry,), root, INDEX, phase="add").act(tools())
    assert (root / "X" / "x.so").read_bytes() == b"ours"


def test_the_index_of_another_folder_is_written_again_if_the_entry_is_ours(tmp_path: Path) -> None:
    root, entry = tmp_path / "moved", scratch_entry(tmp_path / "scratch", "N")
    root.mkdir()
    AddEntries(root, (entry,), tmp_path / "old", INDEX, phase="add").act(tools())
    index = root / "N" / "__grp__k.json"
    before = index.read_text()
    assert standing_of(entry, root, root, INDEX) == "elsewhere"
    AddEntries(root, (entry,), root, INDEX, phase="add").act(tools())
    assert index.read_text() == before
    AddEntries(root, (entry,), root, INDEX, frozenset({"N"}), phase="add").act(tools())
    assert json.loads(index.read_text())["child_paths"]["k.cubin"] == str(root / "N" / "k.cubin")
    assert standing_of(entry, root, root, INDEX) == "whole"
