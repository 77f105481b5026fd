"""Entries of a Triton cache in all four spellings, and everything that is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.doctor.caches import made
from tritonsmith.core.untrusted import TRASH
from tritonsmith.facts import triton_cache
from tritonsmith.facts.triton_cache import CacheEntry, Root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def only(root: Path) -> CacheEntry:
    (entry,) = triton_cache.scan(made.as_root(root)).entries
    return entry


@pytest.mark.parametrize("era", made.ERAS)
def test_a_kernel_of_every_era(root: Path, era: str) -> None:
    path = made.kernel(root, "matmul", era=era)
    entry = only(root)
    assert (entry.era, entry.kind, entry.kernel, entry.path) == (era, "kernel", "matmul", str(path))
    sizes = [file.stat().st_size for file in path.iterdir()]
    assert (entry.files, entry.bytes, entry.changed) == (len(sizes), sum(sizes), path.stat().st_mtime_ns)
    assert (entry.temporary, entry.empty) == ((), ())


def test_spellings_have_lengths_of_their_own() -> None:
    lengths = [era.length for era in triton_cache.eras()]
    assert len(set(lengths)) == len(lengths) == len(made.ERAS)
    assert [era.versions for era in triton_cache.eras()] == ["2.0-2.3", "3.0-3.1", "3.2", "3.3+"]


@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        ("cuda_utils.so", "cuda_utils"),
        ("__triton_launcher.so", "__triton_launcher"),
        ("hip_utils.cpython-312-x86_64-linux-gnu.so", "hip_utils"),
    ],
)
def test_launchers(root: Path, file: str, kernel: str) -> None:
    made.launcher(root, file)
    assert (only(root).kind, only(root).kernel) == ("launcher", kernel)


def test_an_autotuners_result(root: Path) -> None:
    made.autotune(root, "matmul")
    assert (only(root).kind, only(root).kernel) == ("autotune", "matmul")


def test_another_backends_stages_are_an_entrys_if_its_index_is_there(root: Path) -> None:
    path = made.kernel(root)
    (path / "vector_add.npubin").write_text("x")
    made.age(path, 5)
    assert only(root).kind == "kernel"


def test_empty_and_stopped_compiles_are_unfinished(root: Path) -> None:
    made.folder(root, "base32", "empty")
    made.unfinished(root, "slow")
    found = triton_cache.scan(made.as_root(root))
    assert {(entry.kind, entry.kernel) for entry in found.entries} == {
        ("unfinished", ""),
        ("unfinished", "slow"),
    }


def test_metadata_without_an_index_are_a_whole_entry_in_2_0(root: Path) -> None:
    path = made.unfinished(root, "old", era="md5")
    (path / "old.json").write_text("{}")
    (path / "lock").touch()
    assert (only(root).kind, only(root).empty) == ("kernel", ())


@pytest.mark.parametrize("as_file", [True, False])
def test_what_a_writer_has_not_renamed_yet(root: Path, as_file: bool) -> None:
    part = made.writing(made.unfinished(root), 4711, as_file=as_file)
    assert only(root).temporary == ((part.name, 4711),)


def test_a_writer_alone(root: Path) -> None:
    made.writing(made.folder(root, "base32", 1), 4711)
    assert only(root).kind == "unfinished"


def test_files_without_content(root: Path) -> None:
    path = made.kernel(root)
    (path / "vector_add.ptx").write_text("")
    (path / "vector_add.llir.tmp.pid_1_2").write_text("")
    (path / "lock").write_text("")
    assert only(root).empty == ("vector_add.ptx",)


@pytest.mark.parametrize("kind", ["dump", "override"])
def test_dumps_and_overrides(root: Path, kind: str) -> None:
    made.unfinished(root, "matmul")
    (entry,) = triton_cache.scan(made.as_root(root, kind)).entries
    assert (entry.kind, entry.kernel) == (kind, "matmul")


def test_a_bundle_of_torchinductors(root: Path) -> None:
    path = made.kernel(root)
    path.rename(root / "tmp.7f6bd6a1-3bb1-4bd4-b2a5-32d2c1ab8e0c")
    assert (only(root).era, only(root).kind) == ("", "unfinished")


HEX = made.name_of("md5", "somebody's")


def strange(root: Path, name: str) -> str:
    """Make something that is no entry; words of the reason."""
    folder = root / HEX
    if name == "a file":
        folder.write_text("x")
    elif name == "a link":
        folder.symlink_to(made.kernel(root.parent))
    elif name == "a name of no entry":
        folder = root / HEX.upper()
        folder.mkdir()
    else:
        folder.mkdir()
        fill(folder, name)
    reasons = {"a file": "not a folder", "a name of no entry": "not an entry name"}
    return reasons.get(name, "holds" if folder.is_dir() and not folder.is_symlink() else "a link")


def fill(folder: Path, name: str) -> None:
    if name == "a kernel and a note":
        (folder / "__grp__k.json").write_text("{}")
        (folder / "k.ttir").write_text("x")
    if name == "a kernel and a folder":
        (folder / "k.ttir").mkdir()
    if name == "a launcher and its source":
        (folder / "a.so").write_text("x")
    (folder / {"only JSON": "package.json"}.get(name, "notes.txt")).write_text("x")


STRANGERS = ("a file", "a link", "a name of no entry", "a kernel and a note", "a kernel and a folder")


@pytest.mark.parametrize("name", [*STRANGERS, "a launcher and its source", "only JSON", "something else"])
def test_strangers(root: Path, name: str) -> None:
    why = strange(root, name)
    found = triton_cache.scan(made.as_root(root))
    assert (found.entries, found.total) == ((), 0)
    ((_, reason),) = found.strangers
    assert reason.startswith(why)


def test_no_cache_at_all_and_one_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    absent = triton_cache.scan(Root("jit", tmp_path / "absent", "a test"))
    assert (absent.entries, absent.readable) == ((), True)
    assert not triton_cache.scan(Root("jit", tmp_path / "file", "a test")).readable


def test_what_a_stopped_clear_left_is_no_stranger(root: Path) -> None:
    (root / f"{TRASH}0").mkdir()
    found = triton_cache.scan(made.as_root(root))
    assert found.trash
    assert found.strangers == ()


def test_a_limit_counts_the_rest(root: Path) -> None:
    for number in range(9):
        made.kernel(root, seed=number)
    found = triton_cache.scan(made.as_root(root), limit=4)
    assert (len(found.entries), found.total) == (4, 9)
    assert triton_cache.scan(made.as_root(root), limit=0).total == 9


def test_a_root_that_is_a_link_is_read_where_it_leads(root: Path) -> None:
    path = made.kernel(root)
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert only(alias).path == str(path)


# --- metadata


@pytest.mark.parametrize(
    ("era", "version"), [("md5", ""), ("sha256", ""), ("base64url", ""), ("base32", "3.9.0")]
)
def test_metadata_of_every_era(root: Path, era: str, version: str) -> None:
    made.kernel(root, era=era, num_warps=8, maxnreg=128)
    told = triton_cache.read_metadata(only(root))
    assert (told.target, told.version) == ("cuda:90:32", version)
    assert dict(told.options) == {"num_warps": "8", "maxnreg": "128"}


def test_a_capability_in_2_2(root: Path) -> None:
    path = made.kernel(root, era="md5")
    (path / "vector_add.json").write_text('{"target": {"capability": 80}, "device_type": "cuda"}')
    assert triton_cache.read_metadata(only(root)).target == "cuda:80:32"


def test_backends_have_defaults_of_their_own(root: Path) -> None:
    made.kernel(root, target=("hip", "gfx942", 64))
    assert triton_cache.read_metadata(only(root)) == triton_cache.Metadata("hip:gfx942:64", "3.9.0")


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "{}", '{"target": null}'])
def test_metadata_that_tell_nothing(root: Path, text: str) -> None:
    (made.kernel(root) / "vector_add.json").write_text(text)
    assert triton_cache.read_metadata(only(root)) == triton_cache.Metadata()


def test_stages_in_the_order_of_the_pipeline(root: Path) -> None:
    path = made.kernel(root)
    (path / "vector_add.npubin").write_text("x")
    (path / "vector_add.sass.tmp.pid_1_2").write_text("x")
    assert triton_cache.entry_stages(only(root)) == ("source", *made.CUDA, "npubin")
    (path / "vector_add.llir").unlink()
    assert "llir" not in triton_cache.entry_stages(only(root))


def test_stages_of_a_launcher_and_of_what_has_gone(root: Path) -> None:
    path = made.launcher(root)
    assert triton_cache.entry_stages(only(root)) == ("so",)
    entry = triton_cache.scan(made.as_root(root)).entries[0]
    (path / "cuda_utils.so").unlink()
    path.rmdir()
    gone = CacheEntry(entry.root, entry.name, entry.era, "kernel", "k", 1, 1, 1)
    assert triton_cache.entry_stages(gone) == ()


@pytest.mark.parametrize("era", made.ERAS)
def test_an_index_dangles_when_a_file_is_gone(root: Path, era: str) -> None:
    path = made.kernel(root, era=era)
    assert triton_cache.dangling_stages(only(root)) == ()
    (path / "vector_add.ttgir").unlink()
    assert [Path(gone).name for gone in triton_cache.dangling_stages(only(root))] == ["vector_add.ttgir"]


@pytest.mark.parametrize(("era", "count"), [("md5", 0), ("sha256", 6), ("base64url", 6), ("base32", 7)])
def test_a_cache_that_was_moved_dangles_since_3_0(root: Path, era: str, count: int) -> None:
    made.kernel(root, era=era)
    moved = Path(os.fspath(root.parent / "moved"))
    root.rename(moved)
    assert len(triton_cache.dangling_stages(only(moved))) == count
