"""Which entries are meant."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.doctor.caches import made
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.doctor import cache_clear
from tritonsmith.doctor import cache_clear as caches_stale
from tritonsmith.doctor.cache_clear import Chosen, Filters, Living
from tritonsmith.facts import triton_cache
from tritonsmith.facts.installed_tritons import InstalledTriton, TritonProcess

HERE = (InstalledTriton("3.9.0", Path("/here")),)


def choose(*roots: Path, installed: tuple[InstalledTriton, ...] = HERE, **wanted: object) -> Chosen:
    entries = [entry for root in roots for entry in triton_cache.scan(made.as_root(root)).entries]
    return cache_clear.choose(entries, Filters(**wanted), installed, time.time())  # type: ignore[arg-type]


def names(chosen: Chosen) -> set[str]:
    return {entry.name for entry in chosen.entries}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), ("90s", 90), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("2w", 1209600)],
)
def test_ages(text: str, seconds: float | None) -> None:
    assert cache_clear.parse_age(text) == seconds


@pytest.mark.parametrize("text", ["7", "d", "7 d", "-1d", "1.5h", "7y", "7dd", "seven"])
def test_ages_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not an age") as caught:
        cache_clear.parse_age(text)
    assert caught.value.hints


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("", ()),
        ("cuda:90", ("cuda", "90")),
        ("cuda:sm_90", ("cuda", "90")),
        ("hip:gfx942", ("hip", "gfx942")),
        ("hip:gfx942:64", ("hip", "gfx942", "64")),
        ("H100", ("cuda", "90", "32")),
        ("xpu:something", ("xpu", "something")),
    ],
)
def test_targets(text: str, target: tuple[str, ...]) -> None:
    assert cache_clear.parse_target(text) == target


@pytest.mark.parametrize("text", ["cuda", "h10", "cuda:", ":90", "a:b:c:d"])
def test_targets_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a target"):
        cache_clear.parse_target(text)
    with pytest.raises(UsageError, match="did you mean 'h100'"):
        cache_clear.parse_target("h10")


def test_no_filter_chooses_all(root: Path) -> None:
    made.kernel(root)
    made.launcher(root)
    made.folder(root, "base32", "empty")
    assert len(choose(root).entries) == 3
    assert not Filters().any
    assert Filters(stale=True).any


@pytest.mark.parametrize(
    ("glob", "count"), [("matmul*", 2), ("matmul", 1), ("*", 3), ("MATMUL", 0), ("m?tmul", 1)]
)
def test_by_kernel(root: Path, glob: str, count: int) -> None:
    for kernel in ("matmul", "matmul_persistent", "softmax"):
        made.kernel(root, kernel)
    assert len(choose(root, kernel=glob).entries) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("cuda:90", 1), ("h100", 1), ("cuda:80", 0), ("mi300x", 1), ("hip:gfx942", 1), ("cuda:9", 0)],
)
def test_by_target(root: Path, text: str, count: int) -> None:
    made.kernel(root)
    made.kernel(root, target=("hip", "gfx942", 64))
    made.launcher(root)
    assert len(choose(root, target=cache_clear.parse_target(text)).entries) == count


def test_by_age(root: Path) -> None:
    made.kernel(root, "young", ago=60)
    old = made.kernel(root, "old", ago=7200)
    assert names(choose(root, older_than=3600.0)) == {old.name}


def test_the_newest_of_each_kernel_are_passed_over(root: Path) -> None:
    kernels = [made.kernel(root, "matmul", seed=number, ago=number * 60) for number in range(1, 5)]
    made.kernel(root, "softmax")
    empty = made.folder(root, "base32", "empty")
    assert names(choose(root, keep_newest=2)) == {kernels[2].name, kernels[3].name, empty.name}
    assert len(choose(root, keep_newest=0).entries) == 6


def test_the_newest_are_kept_whatever_else_is_said(root: Path) -> None:
    made.kernel(root, "matmul", version="3.4.0", ago=60)
    older = made.kernel(root, "matmul", version="3.3.0", ago=120)
    assert names(choose(root, stale=True, keep_newest=1)) == {older.name}


def test_the_newest_are_kept_in_each_cache(root: Path, tmp_path: Path) -> None:
    made.kernel(root, "matmul")
    made.kernel(tmp_path / "other", "matmul", ago=7200)
    assert choose(root, tmp_path / "other", keep_newest=1).entries == ()


def test_filters_hold_together(root: Path) -> None:
    wanted = made.kernel(root, "matmul", ago=7200)
    made.kernel(root, "matmul", ago=60, seed=1)
    made.kernel(root, "softmax", ago=7200)
    assert names(choose(root, kernel="mat*", older_than=3600.0, target=("cuda", "90"))) == {wanted.name}


# --- stale


def test_stale_is_what_no_installed_version_made(root: Path) -> None:
    made.kernel(root, version="3.9.0")
    stale = made.kernel(root, version="3.4.0")
    older = [made.kernel(root, era=era) for era in ("md5", "sha256", "base64url")]
    found = choose(root, stale=True)
    assert names(found) == {stale.name, *(path.name for path in older)}
    assert found.undecided == 0


@pytest.mark.parametrize(
    ("version", "era"), [("2.1.0", "md5"), ("3.0.0", "sha256"), ("3.1.0", "sha256"), ("3.2.0", "base64url")]
)
def test_entries_without_a_version_are_undecided_in_their_own_era(root: Path, version: str, era: str) -> None:
    for each in ("md5", "sha256", "base64url"):
        made.kernel(root, era=each)
    found = choose(root, stale=True, installed=(InstalledTriton(version, Path("/here")),))
    assert (len(found.entries), found.undecided) == (2, 1)
    assert era not in {entry.era for entry in found.entries}


def test_a_checkout_may_spell_names_as_the_next_release(root: Path) -> None:
    """Seen with upstream's 46550ab1 of August 2024: version 3.0.0, and names as 3.2 spells them."""
    for each in ("md5", "sha256", "base64url"):
        made.kernel(root, era=each)
    found = choose(root, stale=True, installed=(InstalledTriton("3.0.0", Path("/here"), checkout=True),))
    assert [entry.era for entry in found.entries] == ["md5"]
    assert found.undecided == 2


def test_launchers_say_no_version(root: Path) -> None:
    made.launcher(root)
    assert choose(root, stale=True).undecided == 1
    assert len(choose(root, stale=True, installed=(InstalledTriton("3.2.0", Path("/here")),)).entries) == 1


def test_local_parts_of_versions_do_not_count(root: Path) -> None:
    made.kernel(root, version="3.9.0+git1234567")
    assert choose(root, stale=True).entries == ()


def test_a_version_of_no_known_form_may_be_of_any_era(root: Path) -> None:
    made.kernel(root, era="md5")
    (entry,) = triton_cache.scan(made.as_root(root)).entries
    assert caches_stale.staleness(entry, (InstalledTriton("main-of-today", Path("/here")),)) == "unknown"


def test_a_bundle_is_undecided(root: Path) -> None:
    made.kernel(root).rename(root / "tmp.7f6bd6a1-3bb1-4bd4-b2a5-32d2c1ab8e0c")
    assert choose(root, stale=True).undecided == 1


def test_without_any_triton_nothing_can_be_told(root: Path) -> None:
    made.kernel(root)
    with pytest.raises(FactError, match="no Triton to compare with"):
        choose(root, stale=True, installed=())


def test_metadata_are_read_only_when_a_filter_asks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.kernel(root)
    made.kernel(root, "softmax")
    opened: list[Path] = []
    read = untrusted.read_bytes

    def note(path: Path, limit: int = untrusted.LIMIT) -> bytes:
        opened.append(path)
        return read(path, limit)

    monkeypatch.setattr(untrusted, "read_bytes", note)
    choose(root, kernel="softmax", older_than=1.0, keep_newest=0)
    assert opened == []
    choose(root, kernel="softmax", target=("cuda", "90"))
    assert len(opened) == 1


# What a compile may still want.

BUSY = (TritonProcess(4711, "python train.py"),)


def reason(root: Path, living: Living = ()) -> str:
    (entry,) = triton_cache.scan(made.as_root(root)).entries
    return cache_clear.reason_to_keep(entry, living, time.time())


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen((sys.executable, "-c", ""))
    process.wait()
    return process.pid


@pytest.mark.parametrize("as_file", [True, False])
def test_a_living_process_is_writing(root: Path, as_file: bool) -> None:
    made.writing(made.unfinished(root), os.getpid(), ago=-1, as_file=as_file)
    assert reason(root) == f"process {os.getpid()} is writing to it"


def test_a_writer_that_is_gone_may_have_been_on_another_machine(root: Path, gone: int) -> None:
    made.writing(made.unfinished(root), gone, ago=60)
    assert reason(root).startswith("unfinished, and changed 6")


def test_a_writer_that_is_long_gone_keeps_nothing(root: Path, gone: int) -> None:
    made.writing(made.unfinished(root), gone)
    assert reason(root) == ""


def test_a_process_that_got_the_number_later_is_not_the_writer(root: Path) -> None:
    made.writing(made.unfinished(root), os.getpid(), ago=1_000_000)
    assert reason(root) == ""


@pytest.mark.parametrize(("ago", "kept"), [(0, True), (500, True), (700, False)])
def test_unfinished_entries_are_kept_for_minutes(root: Path, ago: float, kept: bool) -> None:
    made.age(made.unfinished(root), ago)
    assert bool(reason(root)) is kept


@pytest.mark.parametrize(
    ("ago", "living", "words"),
    [
        (5, (), ""),
        (5, BUSY, "process 4711 (python train.py) has Triton loaded"),
        (5, None, "made 5 s ago"),
        (200, BUSY, ""),
        (-500, BUSY, "made 0 s ago"),
    ],
)
def test_finished_entries_are_kept_while_somebody_compiles(
    root: Path, ago: float, living: Living, words: str
) -> None:
    made.kernel(root, ago=ago)
    found = reason(root, living)
    assert words in found
    assert bool(found) is bool(words)


def running(version: str) -> Living:
    return (TritonProcess(4711, "python train.py", version),)


@pytest.mark.parametrize(
    ("era", "version", "kept"),
    [
        ("base32", "3.9.0", True),
        ("base32", "3.2.0", False),
        ("base64url", "3.2.0", True),
        ("sha256", "3.9.0", False),
        ("md5", "", True),
    ],
)
def test_a_process_wants_only_what_is_spelt_its_way(root: Path, era: str, version: str, kept: bool) -> None:
    made.kernel(root, era=era, ago=5)
    assert bool(reason(root, running(version))) is kept


@pytest.mark.parametrize(
    ("era", "version", "kept"),
    [
        ("md5", "2.1.0", True),
        ("sha256", "3.1.0", True),
        ("sha256", "2.1.0", False),
        ("base64url", "3.2.0", False),
        ("base32", "3.9.0", False),
    ],
)
def test_old_tritons_need_the_folders_of_entries(root: Path, era: str, version: str, kept: bool) -> None:
    made.kernel(root, era=era, ago=500_000)
    assert ("fails if an entry's folder is deleted" in reason(root, running(version))) is kept
    assert reason(root, None) == ""


def test_readers_get_time_where_there_are_some() -> None:
    assert cache_clear.grace_time(()) == 0
    assert cache_clear.grace_time(BUSY) == cache_clear.grace_time(None) > 0


def test_what_is_abandoned(gone: int) -> None:
    now = time.time()
    hour_ago = int((now - 3600) * 1e9)
    assert cache_clear.is_abandoned(gone, hour_ago, now)
    assert not cache_clear.is_abandoned(gone, int(now * 1e9), now)
    assert not cache_clear.is_abandoned(os.getpid(), int((now + 1) * 1e9), now + 3600)
