from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.core.plan.conftest import Recorder
from tritonsmith.core.errors import DownloadError, OwnershipError, PreflightError, StepError
from tritonsmith.core.plan import (
    Copy,
    Download,
    Extract,
    Link,
    MakeDir,
    Move,
    Plan,
    Remove,
    Run,
    Stamp,
    Step,
    Write,
    download,
    stamped,
)
from tritonsmith.core.plan.runner import NO_INSTALL, Runner
from tritonsmith.core.plan.steps.base import CommandFailedError

OLD = 1_000_000_000_000_000_000  # nanoseconds: a time stamp that only an untouched file keeps


def sh(script: str, cwd: Path, phase: str = "p", **options: object) -> Run:
    return Run(("/bin/sh", "-c", script), cwd=cwd, phase=phase, **options)  # type: ignore[arg-type]


def plan(*steps: Step) -> Plan:
    return Plan("a plan", steps)


def make_old(path: Path) -> Path:
    os.utime(path, ns=(OLD, OLD))
    return path


def is_untouched(path: Path) -> bool:
    return path.stat().st_mtime_ns == OLD


# --- stamps


def count(name: str, cwd: Path) -> Run:
    return sh(f"echo x >> {name}", cwd)


def times(name: str, cwd: Path) -> int:
    path = cwd / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_stamped_group_runs_once(runner: Runner, tmp_path: Path, log: Path) -> None:
    steps = stamped([count("a", tmp_path), count("b", tmp_path)], tmp_path / ".done")
    first = runner.run(plan(*steps))
    again = runner.run(plan(*steps, count("always", tmp_path)))
    assert (first.skipped, again.skipped) == (0, 2)
    assert [times(name, tmp_path) for name in ("a", "b", "always")] == [1, 1, 1]
    assert (first.log, list(first.seconds)) == (log, ["p"])


def test_the_log_takes_a_name_that_is_no_utf_8(runner: Runner, tmp_path: Path, log: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    runner.run(plan(MakeDir(folder, phase="p")))
    assert folder.is_dir()
    assert "caf\\udce9" in log.read_text(encoding="utf-8")


def test_nothing_to_do_leaves_no_log(runner: Runner, tmp_path: Path, log: Path) -> None:
    steps = stamped([MakeDir(tmp_path / "a", phase="p")], tmp_path / ".done")
    (tmp_path / ".done").write_text(steps[0].stamp.key if steps[0].stamp else "")
    outcome = runner.run(plan(*steps))
    assert (outcome.skipped, outcome.seconds) == (1, {})
    assert not log.exists()
    assert not (tmp_path / "a").exists()


def test_a_group_runs_again_when_any_of_its_steps_changes(runner: Runner, tmp_path: Path) -> None:
    runner.run(plan(*stamped([count("a", tmp_path), count("b", tmp_path)], tmp_path / ".done")))
    runner.run(plan(*stamped([count("a", tmp_path), count("c", tmp_path)], tmp_path / ".done")))
    assert [times(name, tmp_path) for name in "abc"] == [2, 1, 1]


def test_a_groups_stamp_comes_after_its_last_step(runner: Runner, tmp_path: Path) -> None:
    check = sh("test ! -e .done && test -e allowed", tmp_path)
    one = stamped([count("one", tmp_path)], tmp_path / ".one")
    two = stamped([count("two", tmp_path), check], tmp_path / ".done")
    with pytest.raises(CommandFailedError):
        runner.run(plan(*one, two[0], count("between", tmp_path), two[1]))
    assert (tmp_path / ".one").exists()
    assert not (tmp_path / ".done").exists()
    (tmp_path / "allowed").touch()
    runner.run(plan(*one, two[0], count("between", tmp_path), two[1]))
    assert [times(name, tmp_path) for name in ("one", "two", "between")] == [1, 2, 2]
    assert (tmp_path / ".done").exists()


def test_a_group_runs_again_when_what_it_made_is_gone(runner: Runner, tmp_path: Path) -> None:
    steps = stamped([count("made", tmp_path), count("runs", tmp_path)], tmp_path / ".done", tmp_path / "made")
    runner.run(plan(*steps))
    (tmp_path / "made").unlink()
    runner.run(plan(*steps))
    runner.run(plan(*steps))
    assert (times("made", tmp_path), times("runs", tmp_path)) == (1, 2)


def test_a_stamp_that_came_with_the_tree_is_not_written_again(runner: Runner, tmp_path: Path) -> None:
    """A kill while it is written would leave half of it in the tree, which counts as complete by then."""
    stamp = Stamp(tmp_path / "tree" / ".done", "key")
    (tmp_path / "kept").write_text("key")
    make_old(tmp_path / "kept")
    runner.run(plan(sh("mkdir tree; cp -p kept tree/.done", tmp_path, stamp=stamp)))
    assert stamp.holds()
    assert is_untouched(stamp.path)


def test_a_stamps_folder_is_made(runner: Runner, tmp_path: Path) -> None:
    stamp = Stamp(tmp_path / "sub" / "deep" / ".done", "key")
    runner.run(plan(MakeDir(tmp_path / "a", phase="p", stamp=stamp)))
    assert stamp.holds()


# --- files


@pytest.mark.parametrize(
    ("before", "stays"),
    [(b"same\n", True), (b"other\n", False), (b"same", False), (b"\xff\xfe", False), (None, False)],
)
def test_write_leaves_an_equal_file_alone(
    runner: Runner, tmp_path: Path, before: bytes | None, stays: bool
) -> None:
    path = tmp_path / "sub" / "file"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
        make_old(path)
    runner.run(plan(Write(path, "same\n", phase="p")))
    assert path.read_bytes() == b"same\n"
    assert is_untouched(path) is stays
    assert [child.name for child in path.parent.iterdir()] == ["file"]


def test_write_replaces_a_link_and_not_what_it_points_to(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to("target")
    runner.run(plan(Write(tmp_path / "link", "new", phase="p")))
    assert (tmp_path / "target").read_text() == "precious"
    assert (tmp_path / "link").read_text() == "new"


def test_copy_leaves_equal_files_alone(runner: Runner, tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    for name in ("same.h", "changed.h", "sub/new.h"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "changed.h").chmod(0o755)
    dest.mkdir()
    for name, text in (("same.h", "same.h"), ("changed.h", "CHANGED.h"), ("theirs.h", "theirs")):
        (dest / name).write_text(text)
        make_old(dest / name)
    runner.run(plan(Copy(source, dest, tree=True, phase="p")))
    assert is_untouched(dest / "same.h")
    assert is_untouched(dest / "theirs.h")
    assert (dest / "changed.h").read_text() == "changed.h"
    assert (dest / "changed.h").stat().st_mode & 0o100
    assert (dest / "sub" / "new.h").read_text() == "sub/new.h"


@pytest.mark.parametrize("link", ["backend", "backend/bin", "backend/bin/ptxas"])
@pytest.mark.parametrize("tree", [True, False])
def test_copy_does_not_write_through_a_link_that_leads_out(
    runner: Runner, tmp_path: Path, link: str, tree: bool
) -> None:
    """A checkout that somebody sent: `third_party/nvidia/backend/bin` may be a link to `~/bin`."""
    inside, outside, source = tmp_path / "checkout", tmp_path / "home", tmp_path / "source"
    (outside / "bin").mkdir(parents=True)
    (outside / "bin" / "ptxas").write_text("mine")
    source.mkdir()
    (source / "ptxas").write_text("new")
    place = inside / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside.joinpath(*Path(link).parts[1:]))
    bin_ = inside / "backend" / "bin"
    step = (
        Copy(source, bin_, True, inside, phase="p")
        if tree
        else Copy(source / "ptxas", bin_ / "ptxas", root=inside, phase="p")
    )
    with pytest.raises(OwnershipError, match="refusing to write through a link that leads out") as error:
        runner.run(plan(step))
    assert str(outside) in str(error.value)
    assert (outside / "bin" / "ptxas").read_text() == "mine"


def test_copy_follows_a_link_that_stays_inside(runner: Runner, tmp_path: Path) -> None:
    inside, source = tmp_path / "checkout", tmp_path / "source"
    (inside / "real").mkdir(parents=True)
    (inside / "bin").symlink_to("real")
    source.write_text("new")
    runner.run(plan(Copy(source, inside / "bin" / "ptxas", root=inside, phase="p")))
    assert (inside / "real" / "ptxas").read_text() == "new"


def test_copy_of_one_file(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    step = Copy(tmp_path / "source", tmp_path / "new" / "dest", phase="p")
    runner.run(plan(step))
    make_old(step.dest)
    runner.run(plan(step))
    assert is_untouched(step.dest)
    (tmp_path / "source").write_text("y")
    runner.run(plan(step))
    assert step.dest.read_text() == "y"


@pytest.mark.parametrize("before", [None, "target", "wrong", "dangling", "itself", "a folder"])
def test_link_replaces_links(runner: Runner, tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "links" / "link"
    (tmp_path / "a folder").mkdir()
    (tmp_path / "wrong").touch()
    if before:
        path.parent.mkdir()
        path.symlink_to({"dangling": "/nowhere", "itself": "link"}.get(before, tmp_path / before))
    runner.run(plan(Link(path, tmp_path / "target", phase="p")))
    assert path.readlink() == tmp_path / "target"
    assert list(path.parent.iterdir()) == [path]
    assert list((tmp_path / "a folder").iterdir()) == []


def test_link_refuses_a_file_or_folder(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("precious")
    for path in (tmp_path / "folder", tmp_path / "folder" / "file"):
        with pytest.raises(OwnershipError, match="refusing to replace") as caught:
            runner.run(plan(Link(path, tmp_path / "target", phase="p")))
        assert caught.value.where == str(path)
    assert (tmp_path / "folder" / "file").read_text() == "precious"


def test_remove_stays_below_the_root(runner: Runner, root: Path, tmp_path: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    runner.run(plan(Remove((root / "a", root / "absent"), root, phase="p")))
    assert not (root / "a").exists()
    with pytest.raises(OwnershipError):
        runner.run(plan(Remove((tmp_path / "outside",), root, phase="p")))
    assert (tmp_path / "outside").is_dir()


def test_move(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.partial").mkdir()
    (tmp_path / "a.partial" / "file").touch()
    runner.run(plan(Move(tmp_path / "a.partial", tmp_path / "a", phase="p")))
    assert (tmp_path / "a" / "file").exists()
    assert not (tmp_path / "a.partial").exists()


def packed(tmp_path: Path) -> Path:
    (tmp_path / "content").write_text("content")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "content", "top/llvm/file")
    return tmp_path / "a.tar"


def test_extract_goes_on_after_a_kill(runner: Runner, root: Path, tmp_path: Path, progress: Recorder) -> None:
    archive = packed(tmp_path)
    (root / "dest.partial").mkdir()
    (root / "dest.partial" / "half").touch()
    step = Extract(archive, root / "dest", root, sha256=download.sha256_of(archive).upper(), phase="p")
    runner.run(plan(step))
    assert [path.name for path in (root / "dest").iterdir()] == ["llvm"]
    assert not (root / "dest.partial").exists()
    assert progress.updates[-1][2] == "extract a.tar"


def test_extract_checks_first(runner: Runner, root: Path, tmp_path: Path) -> None:
    archive = packed(tmp_path)
    with pytest.raises(DownloadError, match="wrong checksum"):
        runner.run(plan(Extract(archive, root / "dest", root, sha256="0" * 64, phase="p")))
    archive.write_bytes(archive.read_bytes()[:700])
    with pytest.raises(DownloadError, match="cannot extract"):
        runner.run(plan(Extract(archive, root / "dest", root, phase="p")))
    assert not (root / "dest").exists()


def test_extract_clears_away_only_below_the_root(runner: Runner, root: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.partial"
    theirs.mkdir()
    with pytest.raises(OwnershipError):
        runner.run(plan(Extract(packed(tmp_path), tmp_path / "theirs", root, phase="p")))
    assert theirs.is_dir()


def test_download_shows_bytes(runner: Runner, tmp_path: Path, progress: Recorder) -> None:
    source = tmp_path / "source.tar"
    source.write_bytes(b"x" * 100)
    step = Download(source.as_uri(), download.sha256_of(source), tmp_path / "sub" / "dest", phase="p")
    runner.run(plan(step))
    assert (tmp_path / "sub" / "dest").read_bytes() == b"x" * 100
    assert progress.updates == [(100, 100, "download source.tar")]


# --- installations


@pytest.mark.parametrize(
    "argv",
    [
        ("/usr/bin/python3.11", "-m", "pip", "install", "--quiet", "triton==3.9.0"),
        ("/usr/bin/python3.11", "-m", "venv", "--clear", "/nowhere/venv"),
    ],
)
def test_nothing_is_installed_where_that_is_refused(
    runner: Runner, tmp_path: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_INSTALL, "1")
    with pytest.raises(
        PreflightError, match="a plan is not there yet, and this run may not install it"
    ) as error:
        runner.run(plan(count("before", tmp_path), Run(argv, cwd=tmp_path, phase="p")))
    assert NO_INSTALL in str(error.value.why)
    assert argv[-1] in str(error.value.why)
    # Nor is anything begun that would be half done then.
    assert times("before", tmp_path) == 0


def test_what_is_there_and_what_installs_nothing_goes_on(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_INSTALL, "1")
    source = tmp_path / "source.tar"
    source.write_bytes(b"x")
    done = Stamp(tmp_path / "stamp", "key")
    done.path.write_text("key")
    step = Download(source.as_uri(), download.sha256_of(source), tmp_path / "dest", phase="p", stamp=done)
    runner.run(plan(step, count("after", tmp_path)))
    assert times("after", tmp_path) == 1
    with pytest.raises(PreflightError):
        runner.run(plan(Download(source.as_uri(), "0" * 64, tmp_path / "dest", phase="p")))


# --- programs


def test_the_environment_is_changed_and_only_the_change_is_logged(
    log: Path, progress: Recorder, tmp_path: Path
) -> None:
    environ = {"PATH": "/usr/bin:/bin", "KEPT": "kept", "GONE": "secret", "OTHER": "hunter2"}
    step = sh(
        'echo "$KEPT ${GONE-removed} $NEW $PATH" > out',
        tmp_path,
        env=(("NEW", "a b"), ("GONE", None), ("NEVER", None)),
        path=(tmp_path / "one", tmp_path / "two"),
    )
    Runner(log, progress, environ).run(plan(step))
    path = f"{tmp_path}/one:{tmp_path}/two:/usr/bin:/bin"
    assert (tmp_path / "out").read_text() == f"kept removed a b {path}\n"
    text = log.read_text()
    assert "-u GONE -u NEVER NEW='a b'" in text
    assert "secret" not in text
    assert "hunter2" not in text


def test_programs_are_found_in_the_steps_own_folders(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "only-here").write_text("#!/bin/sh\ntouch found\n")
    (tmp_path / "bin" / "only-here").chmod(0o755)
    runner.run(plan(Run(("only-here",), cwd=tmp_path, path=(tmp_path / "bin",), phase="p")))
    assert (tmp_path / "found").exists()


NINJA = """
echo '[1/30] Building CXX object a.o'
echo 'warning: no progress'
echo '[30/30] Linking'
echo
"""


def test_numbered_lines_drive_the_progress(runner: Runner, tmp_path: Path, progress: Recorder) -> None:
    runner.run(plan(sh(f"echo configuring; {NINJA}", tmp_path)))
    assert progress.updates == [
        (0, None, "configuring"),
        (1, 30, "Building CXX object a.o"),
        (30, 30, "Linking"),
    ]


def test_a_failing_program_keeps_its_output_and_its_log(runner: Runner, tmp_path: Path, log: Path) -> None:
    script = (
        "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i + 1)); done; echo 'a.cc:1: error: x' >&2; exit 3"
    )
    with pytest.raises(CommandFailedError) as caught:
        runner.run(plan(sh(script, tmp_path), MakeDir(tmp_path / "after", phase="q")))
    error = caught.value
    assert (error.code, error.log, error.exit_code) == (3, log, 1)
    assert len(error.output) == 4000
    assert error.output[-2:] == ("line 4999", "a.cc:1: error: x")
    assert "sh failed with exit code 3" in str(error)
    assert "a.cc:1: error: x" in str(error)
    text = log.read_text()
    assert text.startswith("# a plan\n")
    assert "## p: sh\n" in text
    assert "line 0\n" in text
    assert "exit code 3\n" in text
    assert not (tmp_path / "after").exists()


def test_phases_are_timed_each_in_its_turn(runner: Runner, tmp_path: Path) -> None:
    steps = [MakeDir(tmp_path / str(number), phase=name) for number, name in enumerate("abba")]
    seconds = runner.run(plan(*steps)).seconds
    assert list(seconds) == ["a", "b"]
    assert all(took >= 0 for took in seconds.values())


def test_a_step_that_can_only_be_printed_is_a_bug(runner: Runner) -> None:
    @dataclass(frozen=True)
    class Dance(Step):
        def shell(self) -> list[str]:
            return ["dance"]

    with pytest.raises(NotImplementedError, match="Dance"):
        runner.run(plan(Dance(phase="p")))


# --- what the system refuses


def test_a_missing_program(progress: Recorder, tmp_path: Path, log: Path) -> None:
    runner = Runner(log, progress, {"PATH": "/usr/bin:/bin"})
    with pytest.raises(StepError, match="p: No such file or directory") as caught:
        runner.run(plan(Run(("no-such-program", "x"), cwd=tmp_path, phase="p")))
    assert caught.value.where == "no-such-program"
    assert "invoke doctor" in caught.value.hints[0]
    assert "failed: [Errno 2]" in log.read_text()


@pytest.mark.parametrize(
    "step",
    [
        lambda path: MakeDir(path / "sub", phase="p"),
        lambda path: Write(path / "sub", "x", phase="p"),
        lambda path: Link(path / "sub", Path("x"), phase="p"),
        lambda path: Copy(Path(__file__), path / "sub", phase="p"),
        lambda path: Move(Path(__file__), path / "sub", phase="p"),
        lambda path: Run(("true",), cwd=path / "sub", phase="p"),
    ],
)
def test_a_file_where_a_folder_is_needed(
    runner: Runner, tmp_path: Path, step: Callable[[Path], Step]
) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StepError, match=r"p: (Not a directory|File exists)"):
        runner.run(plan(step(tmp_path / "file")))
    assert (tmp_path / "file").read_text() == "precious"


def test_a_full_disk(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    with pytest.raises(StepError, match="p: No space left on device") as caught:
        runner.run(plan(Copy(tmp_path / "source", Path("/dev/full"), phase="p")))
    assert "free some disk space" in str(caught.value)


@pytest.mark.parametrize("script", ["true", "false", "echo; echo; sleep 600"])
def test_a_full_disk_below_the_log(progress: Recorder, tmp_path: Path, script: str) -> None:
    with pytest.raises(StepError, match="No space left on device") as caught:
        Runner(Path("/dev/full"), progress).run(plan(sh(script, tmp_path)))
    assert caught.value.where == "/dev/full"
    assert "free some disk space" in str(caught.value)


def test_a_log_that_cannot_be_opened(progress: Recorder, tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    with pytest.raises(StepError, match="log: File exists"):
        Runner(tmp_path / "logs" / "x.log", progress).run(plan(MakeDir(tmp_path / "a", phase="p")))
    assert not (tmp_path / "a").exists()


def test_a_stamp_that_cannot_be_written(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / ".done").mkdir()
    with pytest.raises(StepError, match="Is a directory"):
        runner.run(plan(*stamped([MakeDir(tmp_path / "a", phase="p")], tmp_path / ".done")))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that is mounted read-only."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "ro,size=64k", "none", str(folder))
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    yield folder
    subprocess.run(("umount", folder), check=True)


def test_a_read_only_file_system(runner: Runner, read_only: Path) -> None:
    with pytest.raises(StepError, match="p: Read-only file system") as caught:
        runner.run(plan(MakeDir(read_only / "a", phase="p")))
    assert "TRITONSMITH_HOME" in str(caught.value)


@contextmanager
def without_privileges() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_of_someone_else(progress: Recorder) -> None:
    folder = Path(tempfile.mkdtemp())
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0o500)
    folder.chmod(0o777)
    try:
        with without_privileges(), pytest.raises(StepError, match="p: Permission denied") as caught:
            Runner(folder / "log", progress).run(plan(MakeDir(folder / "closed" / "a", phase="p")))
    finally:
        shutil.rmtree(folder)
    assert caught.value.where == str(folder / "closed" / "a")
    assert "check the permissions" in str(caught.value)


@pytest.mark.parametrize("occupied", ["place", ".place.tritonsmith"])
def test_errors_name_the_file_that_was_meant(runner: Runner, tmp_path: Path, occupied: str) -> None:
    """Not the one beside it, which becomes it when it is whole."""
    (tmp_path / occupied).mkdir()
    with pytest.raises(StepError) as caught:
        runner.run(plan(Write(tmp_path / "place", "text", phase="p")))
    assert caught.value.where == str(tmp_path / "place")
