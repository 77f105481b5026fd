from __future__ import annotations

import io
import os
import random
import tarfile
from pathlib import Path

import pytest

from tritonsmith.core.errors import DownloadError
from tritonsmith.core.plan import archive

Entry = tuple[str, bytes, str]  # name, type of tarfile, content or link's target

FILE, DIR, SYM, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def pack(path: Path, *entries: Entry, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o755 if kind == DIR else 0o644
            if kind == FILE:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content.encode()))
            else:
                member.linkname = content
                tar.addfile(member)
    return path


def tree(folder: Path) -> dict[str, str]:
    """Path to content; links to `-> target`, folders to `/`."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "/" if path.is_dir() else path.read_text()
    return found


def extract(path: Path, dest: Path, **options: object) -> None:
    archive.extract(path, dest, progress=lambda _done, _total: None, **options)  # type: ignore[arg-type]


GOOD: tuple[Entry, ...] = (
    ("top", DIR, ""),
    ("top/README", FILE, "about"),
    ("top/llvm/a.txt", FILE, "a"),
    ("top/llvm/deep/b.txt", FILE, "b"),
    ("top/llvm/link", SYM, "deep/../a.txt"),
    ("top/llvm/hard", HARD, "top/llvm/a.txt"),
    ("top/mlir/up", SYM, "../llvm/deep"),
    ("top/other/llvm/c.txt", FILE, "c"),
)
LLVM = {
    "llvm": "/",
    "llvm/a.txt": "a",
    "llvm/deep": "/",
    "llvm/deep/b.txt": "b",
    "llvm/hard": "a",
    "llvm/link": "-> deep/../a.txt",
}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_extract(tmp_path: Path, mode: str) -> None:
    seen: list[tuple[int, int | None]] = []
    path = pack(tmp_path / "a.tar", *GOOD, mode=mode)
    archive.extract(path, tmp_path / "out" / "dest", progress=lambda *now: seen.append(now))
    assert tree(tmp_path / "out" / "dest") == LLVM | {
        "README": "about",
        "mlir": "/",
        "mlir/up": "-> ../llvm/deep",
        "other": "/",
        "other/llvm": "/",
        "other/llvm/c.txt": "c",
    }
    assert [child.name for child in (tmp_path / "out").iterdir()] == ["dest"]
    size = path.stat().st_size
    assert seen
    assert all(0 < done <= size == total for done, total in seen)


def test_only_and_strip(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar", *GOOD)
    extract(path, tmp_path / "only", only=("llvm",))
    assert tree(tmp_path / "only") == LLVM
    extract(path, tmp_path / "strip2", only=("llvm", "a.txt"), strip=2)
    assert tree(tmp_path / "strip2") == {"a.txt": "a", "llvm": "/", "llvm/c.txt": "c"}
    extract(path, tmp_path / "strip0", only=("top",), strip=0)
    assert (tmp_path / "strip0" / "top" / "llvm" / "hard").read_text() == "a"


@pytest.mark.parametrize("dot", ["./", "././"])
def test_names_that_begin_with_a_dot(tmp_path: Path, dot: str) -> None:
    path = pack(tmp_path / "a.tar", (f"{dot}top/llvm/a.txt", FILE, "a"))
    extract(path, tmp_path / "dest")
    assert tree(tmp_path / "dest") == {"llvm": "/", "llvm/a.txt": "a"}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_the_comment_that_git_archive_writes(tmp_path: Path, form: int) -> None:
    long = "/".join(["a folder"] * 40)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz", format=form, pax_headers={"comment": "a" * 40}) as tar:
        tar.addfile(tarfile.TarInfo(f"top/{long}/file"))
        link = tarfile.TarInfo("top/link")
        link.type, link.linkname = SYM, long
        tar.addfile(link)
    extract(tmp_path / "a.tar.gz", tmp_path / "dest")
    assert (tmp_path / "dest" / "link" / "file").is_file()


def test_owner_and_special_bits_are_dropped(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("top/tool")
        member.mode, member.uid, member.gid, member.uname = 0o6777, 12345, 12345, "daemon"
        tar.addfile(member)
    extract(tmp_path / "a.tar", tmp_path / "dest")
    found = (tmp_path / "dest" / "tool").stat()
    assert (found.st_mode & 0o7777, found.st_uid) == (0o755, os.getuid())


EVIL: dict[str, tuple[Entry, ...]] = {
    "absolute": (("/top/victim/new", FILE, "x"),),
    "absolute and short": (("/new", FILE, "x"),),
    "climbs": (("top/../../victim/new", FILE, "x"),),
    "climbs within": (("top/a/../b", FILE, "x"),),
    "begins with ..": (("../victim/new", FILE, "x"),),
    "link to an absolute path": (("top/a", SYM, "/etc/passwd"),),
    "link outside": (("top/a", SYM, "../victim"),),
    "link outside, deeper": (("top/a/b", SYM, "../../victim"),),
    "link outside by detour": (("top/a", SYM, "b/../../victim"),),
    "hard link outside": (("top/a", HARD, "../victim/file"),),
    "hard link to an absolute path": (("top/a", HARD, "/etc/passwd"),),
    "hard link to nothing": (("top/a", HARD, "top/nothing"),),
    "through a link that climbs": (
        ("top/x/up", SYM, ".."),
        ("top/x/up/out", SYM, "../victim"),
        ("top/out/new", FILE, "x"),
    ),
    "through a link that changes its meaning": (
        ("top/a", SYM, "b/c/../../victim"),
        ("top/b/c", SYM, "."),
        ("top/a/new", FILE, "x"),
    ),
    "hard link through links": (
        ("top/x/up", SYM, ".."),
        ("top/x/up/out", SYM, "../victim"),
        ("top/hard", HARD, "top/out/file"),
    ),
    "device": (("top/null", tarfile.CHRTYPE, ""),),
    "block device": (("top/disk", tarfile.BLKTYPE, ""),),
    "pipe": (("top/pipe", tarfile.FIFOTYPE, ""),),
}


@pytest.mark.parametrize("name", EVIL)
def test_nothing_lands_outside(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    path = pack(tmp_path / "a.tar", ("top/good", FILE, "x"), *EVIL[name])
    with pytest.raises(DownloadError, match="cannot extract"):
        extract(path, tmp_path / "dest")
    assert not (tmp_path / "dest").exists()
    assert tree(victim) == {"file": "precious"}
    assert (victim / "file").stat().st_nlink == 1


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("damage", ["truncated", "garbled", "empty", "text"])
def test_a_damaged_archive_leaves_nothing(tmp_path: Path, mode: str, damage: str) -> None:
    noise = random.Random(0).randbytes(20_000).hex()  # noqa: S311 - only incompressible
    path = pack(tmp_path / "a.tar", ("top/a", FILE, noise), ("top/b", FILE, noise), mode=mode)
    whole = path.read_bytes()
    middle = len(whole) // 2
    changed = {
        "truncated": whole[:middle],
        "garbled": whole[:middle] + bytes(64) + b"\xff" * 2000 + whole[middle + 2064 :],
        "empty": b"",
        "text": b"<html>not an archive</html>" * 100,
    }
    path.write_bytes(changed[damage])
    if (mode, damage) == ("w", "garbled"):
        extract(path, tmp_path / "dest")  # a plain tar has no checksum of contents: that is sha256's part
        assert (tmp_path / "dest" / "b").stat().st_size == len(noise)
        return
    with pytest.raises(DownloadError):
        extract(path, tmp_path / "dest")
    assert not (tmp_path / "dest").exists()


def test_a_tar_that_ends_between_two_entries_is_truncated(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar", ("top/a", FILE, "x"), ("top/b", FILE, "y"))
    path.write_bytes(path.read_bytes()[:1024])
    with pytest.raises(DownloadError, match="truncated"):
        extract(path, tmp_path / "dest")
    assert not (tmp_path / "dest").exists()


def test_nothing_of_what_is_wanted(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar", *GOOD)
    with pytest.raises(DownloadError, match="looked for clang, lld"):
        extract(path, tmp_path / "dest", only=("clang", "lld"))
    assert not (tmp_path / "dest").exists()


def test_a_missing_archive(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        extract(tmp_path / "a.tar", tmp_path / "dest")
