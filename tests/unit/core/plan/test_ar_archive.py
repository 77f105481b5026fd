from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.unit.core.plan import thin
from tritonsmith.core.plan.archive import (
    AR_MAGIC,
    BadArchiveError,
    ar_kind,
    ar_symbols,
    fat_size,
    fatten,
    read_ar,
)

OBJECTS = {
    "Support/CMakeFiles/S.dir/A.cpp.o": b"odd",
    "Support/CMakeFiles/S.dir/AA.cpp.o": b"even",
    "Other/A.cpp.o": b"x" * 4097,
}


@pytest.mark.parametrize("wide", [False, True])
def test_a_thin_archive_made_whole(tmp_path: Path, wide: bool) -> None:
    thin.write(tmp_path / "libS.a", OBJECTS, wide=wide)
    archive = read_ar(tmp_path / "libS.a")
    assert archive.thin
    assert [member.name for member in archive.objects] == list(OBJECTS)
    assert archive.missing() == ""
    fat = tmp_path / "fat" / "libS.a"
    fat.parent.mkdir()
    fat.write_bytes(b"".join(fatten(archive)))
    assert fat.stat().st_size == fat_size(archive)
    whole = read_ar(fat)
    assert not whole.thin
    assert [member.name for member in whole.objects] == ["A.cpp.o", "AA.cpp.o", "A.cpp.o"]
    content = fat.read_bytes()
    held = [content[one.content : one.content + one.size] for one in whole.objects]
    assert held == list(OBJECTS.values())
    index = whole.members[0]
    number, width = ("Q", 8) if wide else ("I", 4)
    offsets = struct.unpack_from(f">3{number}", content, index.content + width)
    assert list(offsets) == [member.header for member in whole.objects]
    names = 4 * width  # after the count and three offsets, which move
    assert ar_symbols(fat)[names:] == ar_symbols(tmp_path / "libS.a")[names:]
    assert b"__cxx11" in ar_symbols(tmp_path / "libS.a")


def test_kinds_of_files(tmp_path: Path) -> None:
    thin.write(tmp_path / "thin.a", OBJECTS)
    (tmp_path / "fat.a").write_bytes(AR_MAGIC)
    (tmp_path / "empty.a").touch()
    kinds = [ar_kind(tmp_path / name) for name in ("thin.a", "fat.a", "empty.a")]
    assert kinds == ["thin", "fat", ""]
    assert read_ar(tmp_path / "fat.a").members == ()
    assert ar_symbols(tmp_path / "fat.a") == b""
    with pytest.raises(BadArchiveError, match=r"empty\.a is not an archive"):
        read_ar(tmp_path / "empty.a")


def test_an_object_that_is_gone_or_was_changed(tmp_path: Path) -> None:
    archive = read_ar(thin.write(tmp_path / "libS.a", OBJECTS))
    (tmp_path / "Other" / "A.cpp.o").write_bytes(b"shorter")
    assert archive.missing() == "Other/A.cpp.o"
    (tmp_path / "Other" / "A.cpp.o").unlink()
    assert archive.missing() == "Other/A.cpp.o"
    with pytest.raises(BadArchiveError, match=r"Other/A\.cpp\.o"):
        list(fatten(archive))


@pytest.mark.parametrize("kept", [9, 67, 68, 100, 200, 260, 300])
def test_a_truncated_archive(tmp_path: Path, kept: int) -> None:
    archive = thin.write(tmp_path / "libS.a", OBJECTS)
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(BadArchiveError, match=r"damaged|truncated"):
        read_ar(archive)


def test_a_truncated_whole_archive(tmp_path: Path) -> None:
    whole = b"".join(fatten(read_ar(thin.write(tmp_path / "libS.a", OBJECTS))))
    (tmp_path / "fat.a").write_bytes(whole[:-1000])
    with pytest.raises(BadArchiveError, match="a member ends after the end of the file"):
        read_ar(tmp_path / "fat.a")


def test_names_as_bsd_writes_them(tmp_path: Path) -> None:
    content = b"a_long_name_of.o\0\0\0\0data"
    member = thin.header("#1/20", len(content)) + content
    short = thin.header("short.o", 2) + b"ab"
    (tmp_path / "bsd.a").write_bytes(AR_MAGIC + member + short)
    names = [member.name for member in read_ar(tmp_path / "bsd.a").objects]
    assert names == ["a_long_name_of.o", "short.o"]


def test_an_index_that_fits_nothing(tmp_path: Path) -> None:
    path = thin.write(tmp_path / "libS.a", OBJECTS)
    content = bytearray(path.read_bytes())
    content[72:76] = b"\0\0\0\7"
    path.write_bytes(content)
    with pytest.raises(BadArchiveError, match="its index does not match"):
        list(fatten(read_ar(path)))
