from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tritonsmith.core.errors import OwnershipError
from tritonsmith.core.plan import files

TAG, MARKER = "CACHEDIR.TAG", "tritonsmith-owned"


def fill(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "file").write_text("precious")
    return folder


def test_mark_makes_a_cache_folder(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    files.mark(root)
    assert files.is_marked(root)
    assert (root / TAG).read_text().startswith(files.CACHEDIR_SIGNATURE)


def test_mark_again_changes_nothing(root: Path) -> None:
    fill(root / "content")
    before = (root / MARKER).stat()
    files.mark(root)
    assert (root / MARKER).stat().st_mtime_ns == before.st_mtime_ns
    assert (root / "content" / "sub" / "file").is_file()


def test_mark_refuses_a_folder_with_files_in_it(tmp_path: Path) -> None:
    fill(tmp_path / "theirs")
    with pytest.raises(OwnershipError, match="already contains files"):
        files.mark(tmp_path / "theirs")
    assert not (tmp_path / "theirs" / TAG).exists()


def test_mark_goes_on_after_a_kill_between_tag_and_marker(root: Path) -> None:
    (root / MARKER).unlink()
    assert not files.is_marked(root)
    files.mark(root)
    assert files.is_marked(root)


def test_two_threads_mark_a_folder_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, write = tmp_path / "root", Path.write_text
    others: list[threading.Thread] = []

    def write_text(path: Path, text: str, **how: str) -> int:
        length = write(path, text, **how)
        if not others:  # the first tag is written, and has not its name yet
            others.append(threading.Thread(target=files.mark, args=(root,)))
            others[0].start()
            others[0].join()
        return length

    monkeypatch.setattr(Path, "write_text", write_text)
    files.mark(root)
    assert others
    assert files.is_marked(root)


def test_mark_does_not_write_through_a_linked_tag(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    root = tmp_path / "root"
    root.mkdir()
    (root / TAG).symlink_to(victim)
    with pytest.raises(OwnershipError):
        files.mark(root)
    assert victim.read_text() == "precious"


def no_tag(root: Path) -> None:
    (root / TAG).unlink()


def bad_tag(root: Path) -> None:
    (root / TAG).write_text("Signature: of someone else")


def no_marker(root: Path) -> None:
    (root / MARKER).unlink()


def linked(name: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (root / name).rename(root.parent / name)
        (root / name).symlink_to(root.parent / name)

    spoil.__name__ = f"linked {name}"
    return spoil


@pytest.mark.parametrize("spoil", [no_tag, bad_tag, no_marker, linked(TAG), linked(MARKER)])
def test_a_root_without_a_valid_mark_protects_its_content(root: Path, spoil: Callable[[Path], None]) -> None:
    inside = fill(root / "inside")
    spoil(root)
    with pytest.raises(OwnershipError, match="no mark"):
        files.remove_owned(inside, root)
    assert (inside / "sub" / "file").read_text() == "precious"


PATHS: dict[str, Callable[[Path], Path]] = {
    "empty": lambda _: Path(),
    "relative": lambda root: Path(os.path.relpath(root / "inside")),
    "climbs out": lambda root: root / "inside" / ".." / ".." / "outside",
    "climbs and comes back": lambda root: root / "inside" / ".." / "inside",
    "the root": lambda root: root,
    "its parent": lambda root: root.parent,
    "beside it": lambda root: root.parent / "outside",
    "same beginning": lambda root: root.with_name(root.name + "-not"),
    "/": lambda _: Path("/"),
    "in /": lambda _: Path("/etc"),
    "home": lambda _: Path.home(),
    "through a link to /": lambda root: root / "to-slash" / "etc",
    "through a link to a sibling": lambda root: root / "to-outside" / "sub",
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_that_are_refused(root: Path, name: str) -> None:
    for folder in (root / "inside", root.parent / "outside", root.with_name(root.name + "-not")):
        fill(folder)
    (root / "to-slash").symlink_to("/")
    (root / "to-outside").symlink_to(root.parent / "outside")
    with pytest.raises(OwnershipError, match="refusing to delete"):
        files.remove_owned(PATHS[name](root), root)
    assert len(list(root.parent.rglob("file"))) == 3


def test_home_below_the_root_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root / "people" / "me")
    monkeypatch.setenv("HOME", str(root / "people" / "me"))
    for path in (root / "people" / "me", root / "people"):
        with pytest.raises(OwnershipError, match="home folder"):
            files.remove_owned(path, root)
    files.remove_owned(root / "people" / "me" / "sub", root)
    assert not (root / "people" / "me" / "sub").exists()


@pytest.mark.parametrize("root", [Path("/"), Path.home()])
def test_roots_that_are_refused_even_if_marked(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(files, "is_marked", lambda _: True)
    monkeypatch.setenv("HOME", str(root))
    with pytest.raises(OwnershipError, match="home folder or /"):
        files.check_owned(tmp_path / "x", root)


def test_home_as_root_is_refused_through_a_link(home: Path, tmp_path: Path) -> None:
    files.mark(home)
    (tmp_path / "alias").symlink_to(home)
    inside = fill(home / "inside")
    with pytest.raises(OwnershipError, match="home folder or /"):
        files.remove_owned(inside, tmp_path / "alias")
    assert inside.is_dir()


@pytest.mark.parametrize("target", ["/", "..", "sibling", "nowhere"])
def test_a_link_is_unlinked_and_its_target_stays(root: Path, target: str) -> None:
    sibling = fill(root.parent / "sibling")
    link = root / "link"
    link.symlink_to(sibling if target == "sibling" else target)
    files.remove_owned(link, root)
    assert not os.path.lexists(link)
    assert (sibling / "sub" / "file").read_text() == "precious"


def test_links_inside_a_removed_folder_are_not_followed(root: Path) -> None:
    sibling = fill(root.parent / "sibling")
    folder = fill(root / "folder")
    (folder / "link").symlink_to(sibling)
    (folder / "sub" / "deep").symlink_to("/")
    files.remove_owned(folder, root)
    assert not folder.exists()
    assert (sibling / "sub" / "file").read_text() == "precious"


def test_files_and_absent_paths(root: Path) -> None:
    (root / "file").write_text("x")
    files.remove_owned(root / "file", root)
    files.remove_owned(root / "file", root)
    files.remove_owned(root / "no" / "such" / "folder", root)
    assert not (root / "file").exists()


def test_a_root_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    fill(root / "inside")
    files.remove_owned(tmp_path / "alias" / "inside", tmp_path / "alias")
    assert not (root / "inside").exists()


@pytest.fixture
def mounted(root: Path) -> Iterator[Path]:
    """A folder two levels below the root that something else is mounted on."""
    theirs, point = fill(root.parent / "theirs"), root / "folder" / "point"
    point.mkdir(parents=True)
    done = subprocess.run(["mount", "--bind", theirs, point], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("cannot mount here")
    yield point
    subprocess.run(["umount", point], check=True)


def test_mount_points_are_refused_and_so_is_what_holds_them(mounted: Path, root: Path) -> None:
    for path in (mounted, mounted.parent):
        with pytest.raises(OwnershipError, match="mount point"):
            files.remove_owned(path, root)
    assert (mounted / "sub" / "file").read_text() == "precious"


def test_mount_point_as_python_sees_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root / "point")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == root / "point")
    with pytest.raises(OwnershipError, match="mount point"):
        files.remove_owned(root / "point", root)
    assert (root / "point" / "sub" / "file").is_file()


STARTS = """
import os, sys
from pathlib import Path
from tritonsmith.core.plan import files

for number in range(int(sys.argv[2])):
    root, (wait, go) = Path(sys.argv[1]) / str(number), os.pipe()
    runs = []
    for _ in range(8):
        runs.append(os.fork())
        if runs[-1] == 0:
            os.close(go)
            os.read(wait, 1)  # until its other end is closed, for all at once
            files.mark(root)
            (root / f"mine {os.getpid()}").touch()
            os._exit(0)
    os.close(go), os.close(wait)
    assert [os.waitpid(run, 0)[1] for run in runs] == [0] * 8, number
    assert files.is_marked(root), number
"""


@pytest.mark.slow
def test_many_first_starts_at_once(tmp_path: Path) -> None:
    """Each sees no folder, a marked one, or one that is just being marked: none is taken for another's."""
    argv = (sys.executable, "-c", STARTS, str(tmp_path), os.environ.get("TRITONSMITH_FUZZ", "20"))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
