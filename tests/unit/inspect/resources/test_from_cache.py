"""A whole Triton cache: what is read, what is read again, what is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_ptxas_report import PTX
from tritonsmith.compiler.resources import measure
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.facts.triton_cache import CacheEntry
from tritonsmith.inspect import resources

NAMES = [f"{letter * 52}" for letter in "ABCDEFG"]  # as long as a digest in base 32
SPILLING = elf_maker.cubin(frame=8, code=elf_maker.access(0x387, 5))


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


def entry(
    cache: Path, name: str, binary: bytes | None, kind: str = "cubin", kernel: str = "kern", **files: str
) -> Path:
    """An entry as Triton 3.9 leaves it."""
    folder = cache / name
    folder.mkdir(parents=True)
    target: dict[str, Any] = {"backend": "cuda", "arch": 80, "warp_size": 32}
    if kind == "hsaco":
        target = {"backend": "hip", "arch": "gfx90a", "warp_size": 64}
    about = {"target": target, "num_warps": 8, "shared": 1024, "name": kernel, "triton_version": "3.9.0"}
    (folder / f"{kernel}.json").write_text(json.dumps(about), encoding="utf-8")
    children = {f"{kernel}.json": str(folder / f"{kernel}.json")}
    (folder / f"__grp__{kernel}.json").write_text(json.dumps({"child_paths": children}), encoding="utf-8")
    if binary is not None:
        (folder / f"{kernel}.{kind}").write_bytes(binary)
    for stage, text in files.items():
        (folder / f"{kernel}.{stage}").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Five entries: two that spill, one of AMD, one broken, one with an array in local memory."""
    folder = tmp_path / "cache"
    entry(folder, NAMES[0], SPILLING)
    entry(folder, NAMES[1], elf_maker.code_object(), "hsaco", kernel="other")
    entry(folder, NAMES[2], elf_maker.cubin())
    entry(folder, NAMES[3], b"nothing")
    entry(folder, NAMES[4], SPILLING, ptx=PTX)
    return folder


def test_a_cache(cache: Path, space: Workspace) -> None:
    found = resources.read_cache(str(cache), space)
    assert [(row.kernel, row.point[0], row.spilled) for row in found.rows] == [
        ("kern", "A", 8),
        ("kern", "C", 0),
        ("kern", "E", 8),
        ("other", "B", 3),
    ]
    assert found.rows[0].options == "num_warps=8"
    assert found.rows[3].target == "hip:gfx90a:64"
    assert "DDDDDDDDDDDD: this file is neither a cubin" in found.notes[0]
    assert "1 kernels keep arrays" in found.notes[1]


def test_the_second_time_nothing_is_read(cache: Path, space: Workspace) -> None:
    first = resources.read_cache(str(cache), space)
    binary = cache / NAMES[0] / "kern.cubin"
    binary.chmod(0)
    entry_about = (cache / NAMES[2] / "kern.json").stat()
    (cache / NAMES[2] / "kern.json").write_bytes(
        b" " * entry_about.st_size
    )  # in place: the folder is the same
    assert resources.read_cache(str(cache), space) == first


def test_what_changed_is_read_again_and_what_went_is_forgotten(cache: Path, space: Workspace) -> None:
    resources.read_cache(str(cache), space)
    new = cache / NAMES[2] / "kern.cubin.new"
    new.write_bytes(SPILLING)
    new.rename(cache / NAMES[2] / "kern.cubin")
    for path in (cache / NAMES[1]).iterdir():
        path.unlink()
    (cache / NAMES[1]).rmdir()
    found = resources.read_cache(str(cache), space)
    assert [row.spilled for row in found.rows] == [8, 8, 8]


@pytest.mark.parametrize("content", ["", "[]", '{"edition": "older", "entries": {}}', '{"edition"'])
def test_what_was_kept_and_cannot_be_used_is_made_again(cache: Path, space: Workspace, content: str) -> None:
    first = resources.read_cache(str(cache), space)
    (kept,) = (space.root / "kernels" / "resources").iterdir()
    kept.write_text(content, encoding="utf-8")
    assert resources.read_cache(str(cache), space) == first


def test_one_entry(cache: Path, space: Workspace) -> None:
    found = resources.read_cache(str(cache / NAMES[1]), space)
    assert [row.kernel for row in found.rows] == ["other"]


def test_all_caches(cache: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setenv("HOME", str(cache.parent))
    assert len(resources.read_cache("all", space).rows) == 4


def test_no_such_entry(cache: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    with pytest.raises(FactError, match="no entry"):
        resources.read_cache("ZZZZZZZ", space)


def test_an_empty_cache(tmp_path: Path, space: Workspace) -> None:
    (tmp_path / "empty").mkdir()
    assert resources.read_cache(str(tmp_path / "empty"), space).rows == ()


@pytest.mark.slow
def test_many_entries_are_read_by_several_processes(tmp_path: Path, space: Workspace) -> None:
    letters = "ABCDEFGHIJKLMNOPQRST"
    for one in letters:
        for two in letters:
            entry(tmp_path / "cache", one + two + "A" * 50, SPILLING)
    found = resources.read_cache(str(tmp_path / "cache"), space)
    assert [row.spilled for row in found.rows] == [8] * len(letters) ** 2
    assert resources.read_cache(str(tmp_path / "cache"), space) == found


def test_an_entry_for_a_gpu_of_nobody_is_told(cache: Path, space: Workspace) -> None:
    """A row without a target is in no table."""
    about = json.dumps({"target": {"backend": "metal", "arch": 1, "warp_size": 32}, "shared": 0})
    (cache / NAMES[2] / "kern.json").write_text(about, encoding="utf-8")
    found = resources.read_cache(str(cache), space)
    assert not [row for row in found.rows if row.backend not in ("cuda", "hip")]
    assert f"kern in {NAMES[2][:12]}: its metadata does not record the target" in found.notes


@pytest.mark.parametrize("content", ["[]", '{"target": ', "\xff"])
def test_one_entry_that_cannot_be_read_is_an_error(cache: Path, space: Workspace, content: str) -> None:
    (cache / NAMES[2] / "kern.json").write_text(content, encoding="latin-1")
    with pytest.raises(FactError, match="cannot read this entry") as caught:
        resources.read_cache(str(cache / NAMES[2]), space)
    assert "its metadata" in str(caught.value.why)
    with pytest.raises(FactError, match="cannot read this entry"):
        resources.read_cache(str(cache / NAMES[3]), space)


def test_clusters_are_told_of_a_cache_too(cache: Path, space: Workspace) -> None:
    about = json.loads((cache / NAMES[2] / "kern.json").read_text(encoding="utf-8")) | {"num_ctas": 2}
    (cache / NAMES[2] / "kern.json").write_text(json.dumps(about), encoding="utf-8")
    for _ in range(2):  # the second time from what is kept
        assert any("clusters of 2" in note for note in resources.read_cache(str(cache), space).notes)


def test_rows_of_other_measuring_code_are_not_kept(
    cache: Path, space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources.read_cache(str(cache), space)
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer/measure.py").write_text("# another way to count\n", encoding="utf-8")
    monkeypatch.setattr(measure, "__file__", str(tmp_path / "newer/measure.py"))
    resources._edition.cache_clear()
    reads: list[int] = []

    def read_nothing(entries: Sequence[CacheEntry]) -> Iterator[Any]:
        reads.append(len(entries))
        return iter(())

    monkeypatch.setattr(resources, "_read_all", read_nothing)
    try:
        with pytest.raises(ValueError, match="shorter"):  # nothing was read in place of the old rows
            resources.read_cache(str(cache), space)
    finally:
        resources._edition.cache_clear()
    assert reads == [5]
