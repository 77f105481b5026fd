"""Archives that would write elsewhere, fill the memory or the disk, or leave what cannot be deleted."""

from __future__ import annotations

import errno
import functools
import io
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import as_plain_user
from tests.unit.core.plan import bombs, confined
from tests.unit.core.plan.test_archive import DIR, FILE, HARD, SYM, Entry, extract, pack, tree
from tritonsmith.core import configs
from tritonsmith.core.errors import DownloadError, UsageError
from tritonsmith.core.plan import compression, files
from tritonsmith.core.plan.confined_tree import FreshTree

DEEP = "top/" + "/".join("abcdefghij")


@pytest.fixture(scope="module")
def exploded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was said of each bomb."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = []
    for number, name in enumerate(bombs.MAKERS):
        (folder / str(number)).mkdir()
        paths.append(bombs.write(folder / str(number), name))
    argv = (sys.executable, "-m", confined.__name__, str(folder / "dest"), *map(str, paths))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir() if not path.name.isdigit()) == []
    return dict(zip(bombs.MAKERS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a first entry of many zeros", "200 times its size"),
        ("a file of many zeros", "200 times its size"),
        ("zeros behind its end", "data follows the end of the archive"),
        ("a pax header of many zeros", "headers of more than 1,048,576 bytes"),
        ("a global header of many zeros", "headers of more than 1,048,576 bytes"),
        ("a long name of many zeros", "headers of more than 1,048,576 bytes"),
        ("extended headers without end", "headers of more than 1,048,576 bytes"),
        ("a sparse file", "a sparse file"),
        ("an old sparse file", "a sparse file"),
        ("a window of 2 GiB", "more memory than is allowed"),
        ("a dictionary of 3 GiB", "more memory than is allowed"),
        ("gzip", "200 times its size"),
        ("bzip2", "200 times its size"),
    ],
)
def test_a_bomb_fills_neither_memory_nor_disk(exploded: dict[str, str], name: str, words: str) -> None:
    said = exploded[name]
    assert said.startswith("cannot extract this archive")
    assert words in said
    if "its size" in words:
        assert "TRITONSMITH_UNPACK_LIMIT=SIZE raises the limit" in said
        assert "truncated" not in said


def test_a_large_one_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "a.tar.gz", ("top/a", FILE, "x" * 5_000_000), mode="w:gz")
    monkeypatch.setitem(configs.load("archives")["limits"], "ratio-from", 1000)
    with pytest.raises(DownloadError, match="200 times"):
        extract(path, tmp_path / "dest")
    monkeypatch.setenv(compression.VARIABLE, "5MB")
    with pytest.raises(DownloadError, match="more than 5,000,000 bytes"):
        extract(path, tmp_path / "dest")
    monkeypatch.setenv(compression.VARIABLE, "6MB")
    extract(path, tmp_path / "dest")
    assert (tmp_path / "dest" / "a").stat().st_size == 5_000_000
    monkeypatch.setenv(compression.VARIABLE, "much")
    with pytest.raises(UsageError, match="not a size"):
        extract(path, tmp_path / "again")


@pytest.mark.parametrize(
    ("limit", "entries", "words"),
    [
        ("entries", [("top/a", FILE, ""), ("top/b", FILE, ""), ("top/c", FILE, "")], "more than 2 entries"),
        ("name", [("top/abc", FILE, "")], "a name of more than 2 bytes"),
        ("name", [("b", SYM, "abc")], "a name of more than 2 bytes"),
        ("depth", [("a/b/c", FILE, "")], "more than 2 folders deep"),
    ],
)
def test_limits_of_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, entries: list[Entry], words: str
) -> None:
    path = pack(tmp_path / "a.tar", *entries)
    monkeypatch.setitem(configs.load("archives")["limits"], limit, 2)
    with pytest.raises(DownloadError, match=words):
        extract(path, tmp_path / "dest")
    assert not any(tmp_path.glob("dest*"))


HOSTILE: dict[str, tuple[Entry, ...]] = {
    "a hard link to a link that leads elsewhere from there": (
        (f"{DEEP}/link", SYM, "../../../../../../../../../../victim"),
        ("top/shallow", HARD, f"{DEEP}/link"),
    ),
    "a hard link to a link that stays": (
        ("top/file", FILE, "x"),
        ("top/link", SYM, "file"),
        ("top/hard", HARD, "top/link"),
    ),
    "a hard link to a folder": (("top/folder", DIR, ""), ("top/hard", HARD, "top/folder")),
    "a hard link to what comes after it": (("top/hard", HARD, "top/file"), ("top/file", FILE, "x")),
    "a hard link to another top": (("top/file", FILE, "x"), ("top/hard", HARD, "other/file")),
    "a file through a link": (("top/a", SYM, "b"), ("top/a/file", FILE, "x")),
    "a file over a link": (("top/a", SYM, "b"), ("top/a", FILE, "x")),
    "a link over a file": (("top/a", FILE, "x"), ("top/a", SYM, "b")),
    "a link over a folder": (("top/a/b", FILE, "x"), ("top/a", SYM, "c")),
    "a link twice": (("top/a", SYM, "b"), ("top/a", SYM, "c")),
    "a file twice": (("top/a", FILE, "x"), ("top/a", FILE, "y")),
    "a file below a file": (("top/a", FILE, "x"), ("top/a/b", FILE, "y")),
    "a folder over a file": (("top/a", FILE, "x"), ("top/a", DIR, "")),
    "a link that climbs through a link": (
        ("top/x/y/up", SYM, "../.."),
        ("top/x/out", SYM, "y/up/../victim"),
    ),
    "a link that climbs out and comes back": (("top/a", SYM, "../dest.partial/b"),),
    "a link to the folder's own parent": (("top/a", SYM, ".."),),
    "a link that climbs from what is not there": (("top/a", SYM, "nothing/../b"),),
    "a link to nothing": (("top/a", SYM, ""),),
    "two folders that are one where letters are": (("top/Up/a", SYM, ".."), ("top/b", SYM, "up/../victim")),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_nothing_is_written_through_links(tmp_path: Path, name: str, mode: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    path = pack(tmp_path / "a.tar", ("top/good", FILE, "x"), *HOSTILE[name], mode=mode)
    with pytest.raises(DownloadError, match="cannot extract"):
        extract(path, tmp_path / "dest")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tar", "victim"]
    assert tree(victim) == {"file": "precious"}


def test_links_of_an_llvm(tmp_path: Path) -> None:
    path = pack(
        tmp_path / "a.tar",
        ("top/bin/clang", SYM, "clang-19"),  # before what it leads to
        ("top/bin/clang-19", FILE, "clang"),
        ("top/lib/libLLVM.so", SYM, "libLLVM.so.19.1"),
        ("top/lib/libLLVM.so.19.1", FILE, "llvm"),
        ("top/lib/libLLVM-19.so", SYM, "./libLLVM.so.19.1"),
        ("top/lib/cmake/llvm/up", SYM, "../../../bin/clang"),
        ("top/lib64", SYM, "lib"),
        ("top/lib/cmake/around", SYM, "llvm/../../libLLVM.so"),
        ("top/dangling", SYM, "lib/none"),
        ("top/bin/again", HARD, "top/bin/clang-19"),
    )
    extract(path, tmp_path / "dest")
    dest = tmp_path / "dest"
    assert (dest / "lib" / "cmake" / "llvm" / "up").read_text() == "clang"
    assert (dest / "lib64" / "cmake" / "around").read_text() == "llvm"
    assert (dest / "lib64" / "libLLVM-19.so").read_text() == "llvm"
    assert (dest / "bin" / "again").samefile(dest / "bin" / "clang-19")
    assert (dest / "dangling").readlink() == Path("lib/none")


def test_modes_let_the_owner_in(tmp_path: Path) -> None:
    """A folder of mode 0 could neither be filled nor deleted."""
    import io
    import tarfile

    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, kind, mode in (
            ("top/d", DIR, 0o0),
            ("top/d/e", DIR, 0o7000),
            ("top/d/e/file", FILE, 0o0),
            ("top/d/run", FILE, 0o7111),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.size = kind, mode, 1 if kind == FILE else 0
            tar.addfile(member, io.BytesIO(b"x"))
    as_plain_user(lambda: extract(tmp_path / "a.tar", tmp_path / "dest"))
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "dest").rglob("*")}
    assert all(mode & 0o700 == 0o700 for name, mode in modes.items() if name in ("d", "e", "run")), modes
    assert modes["file"] & 0o600 == 0o600
    assert not any(mode & 0o7022 for mode in modes.values()), modes
    files.mark(tmp_path / "root")
    (tmp_path / "dest").rename(tmp_path / "root" / "dest")
    as_plain_user(lambda: files.remove_owned(tmp_path / "root" / "dest", tmp_path / "root"))
    assert not (tmp_path / "root" / "dest").exists()


def test_a_left_over_that_nobody_may_enter_can_be_deleted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files.mark(root)
    inner = root / "left" / "locked" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (root / "left" / "elsewhere").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").mkdir(mode=0o500)
    inner.chmod(0o000)
    inner.parent.chmod(0o000)
    as_plain_user(lambda: files.remove_owned(root / "left", root))
    assert not (root / "left").exists()
    assert (tmp_path / "victim").stat().st_mode & 0o777 == 0o500


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    files.mark(root)
    (root / "left").mkdir()
    root.chmod(0o500)
    try:
        with pytest.raises(OSError, match="Permission denied") as caught:
            as_plain_user(lambda: files.remove_owned(root / "left", root))
    finally:
        root.chmod(0o700)
    assert str(caught.value.filename) == str(root / "left")


def test_a_disk_without_room_is_told_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(tmp_path)

    def full(_: int) -> os.statvfs_result:
        return os.statvfs_result((*real[:4], 0, *real[5:]))

    path = pack(tmp_path / "a.tar", ("top/a", FILE, "x" * 5000))
    monkeypatch.setattr(os, "statvfs", full)
    with pytest.raises(OSError, match="No space left") as caught:
        extract(path, tmp_path / "dest")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "dest.partial"))
    assert not any(tmp_path.glob("dest*"))


@pytest.mark.parametrize("what", ["file", "folder", "link", "gone", "another link"])
def test_what_comes_from_elsewhere_meanwhile(tmp_path: Path, what: str) -> None:
    def disturb() -> None:
        place = tmp_path / "dest"
        if what == "file":
            (place / "new").touch()
        elif what == "folder":
            (place / "new").mkdir()
        elif what == "link":
            (place / "new").symlink_to("/etc")
        elif what == "gone":
            (place / "a").unlink()
        else:
            (place / "a").unlink()
            (place / "a").symlink_to("/etc/passwd")

    def fill() -> None:
        with FreshTree(tmp_path / "dest") as made:
            made.file(("a",), [b"x"], 1, executable=False, mtime=0)
            disturb()
            made.finish()

    with pytest.raises(compression.DamagedError, match="another process"):
        fill()
    assert not (tmp_path / "dest").exists()


def test_a_fresh_tree_is_fresh(tmp_path: Path) -> None:
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest" / "mine").touch()
    with pytest.raises(FileExistsError):
        FreshTree(tmp_path / "dest")
    assert (tmp_path / "dest" / "mine").exists()


@pytest.mark.parametrize("name", ["gzip", "bz2", "lzma"])
def test_a_piece_of_input_may_have_no_output(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A header between two blocks or an index has none, wherever the pieces of the file and of the reader end:
    # LLVM's tarball of 19.1.7, of 142 blocks, was called truncated.
    content = random.Random(1).randbytes(3000)  # noqa: S311
    packed = __import__(name).compress(content)
    for piece, amount in itertools.product(range(1, 64), (1, 50, len(content))):
        monkeypatch.setattr(compression, "_CHUNK", piece)
        read = compression.Decompressed(io.BytesIO(packed), compression.limits()).read
        assert b"".join(iter(functools.partial(read, amount), b"")) == content
    less = compression.Decompressed(io.BytesIO(packed[:-1]), compression.limits())
    with pytest.raises(compression.DamagedError, match="truncated"):
        less.read(len(content) + 1)


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_several_members_and_what_follows_them(tmp_path: Path, ending: str) -> None:
    """gzip, bzip2 and xz may be concatenated; something else may not follow."""
    one = pack(tmp_path / "a.tar", ("top/a", FILE, random.Random(0).randbytes(50_000).hex()))  # noqa: S311
    plain = one.read_bytes()
    module = __import__({"gz": "gzip", "bz2": "bz2", "xz": "lzma"}[ending])
    packed = module.compress(plain[:30_000]) + module.compress(plain[30_000:])
    one.write_bytes(packed)
    extract(one, tmp_path / "dest")
    for more in (b"x", bytes(1), bytes(100_000), packed[:100], packed):
        one.write_bytes(packed + more)
        with pytest.raises(DownloadError):
            extract(one, tmp_path / "other")
    for less in (1, 5, 1000):
        one.write_bytes(packed[:-less])
        with pytest.raises(DownloadError):
            extract(one, tmp_path / "other")


@pytest.mark.parametrize(
    "block",
    [
        bombs.header("top/a", kind=b"Z"),
        bombs.header("top/a", kind=b"D"),
        bombs.header("top/a", 1 << 80),
        bombs.entry("x", b"9999999999 path=a\n", b"x"),
        bombs.entry("x", b"0 path=a\n", b"x"),
        bombs.entry("x", b"11 path=ab\n11 path=ab", b"x"),
        bombs.entry("x", b"14 path=a\0bcd\n", b"x") + bombs.header("top/b"),
        bombs.entry("x", b"15 size=-10000\n", b"x") + bombs.header("top/b"),
        bombs.entry("x", b"9" * 50, b"x") + bombs.header("top/b"),
        bombs.entry("x", b"10 path=a\n", b"x"),
        b"\xff" * 512,
    ],
)
def test_headers_that_nobody_writes(tmp_path: Path, block: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(bombs.entry("top/good", b"x") + block + bombs.END)
    with pytest.raises(DownloadError, match="cannot extract"):
        extract(path, tmp_path / "dest")
    assert not any(tmp_path.glob("dest*"))
