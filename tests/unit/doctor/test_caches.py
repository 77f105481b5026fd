"""The group `caches`: each check with a cache that is as it should be, and with one that is not."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tests.support import as_plain_user
from tests.unit.doctor.caches import made
from tests.unit.doctor.conftest import only
from tests.unit.facts.test_installed_tritons import install
from tritonsmith.core import configs
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.core.untrusted import TRASH
from tritonsmith.doctor import cache_checks as caches
from tritonsmith.doctor import run
from tritonsmith.doctor.check import Check, DoctorContext
from tritonsmith.facts import triton_cache
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import Fill, FillHead, FillRecord

Limits = Callable[..., None]


@pytest.fixture
def root(home: Path, subject: DoctorContext, tmp_path: Path) -> Path:
    """The cache in use; TorchInductor's is looked for where the test is alone."""
    subject.environ = {"HOME": str(home), "TMPDIR": str(tmp_path), "PATH": ""}
    subject.packages = None
    folder = home / ".triton" / "cache"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    """Sets bounds and thresholds."""

    def change(**values: float) -> None:
        table = configs.load("triton-cache")["doctor"]
        for name, value in values.items():
            monkeypatch.setitem(table, name.replace("_", "-"), value)

    return change


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen((sys.executable, "-c", ""))
    process.wait()
    return process.pid


@pytest.mark.parametrize("check", run.checks_of(caches)[:4], ids=lambda check: check.id)
def test_no_cache_yet(subject: DoctorContext, root: Path, check: Check) -> None:
    assert only(check, subject).status == "not applicable"
    root.rmdir()
    assert only(check, subject).status == "not applicable"


# --- caches.filled


def filled(cache: Path, home: Path, version: str = "3.6.0") -> None:
    """A record in a cache, of a Triton that was installed when the cache was filled."""
    head = FillHead(version, "digest", "3.12.1", ".cpython-312.so", "/v/t", "ptxas", {})
    record = FillRecord(1, (Fill("cuda:90:32", str(home), head, ()),))
    (cache / triton_cache.RECORD).write_text(text_of(record))


def test_a_cache_that_was_not_filled_is_not_judged(subject: DoctorContext, root: Path) -> None:
    made.kernel(root)
    assert only(caches.filled, subject).status == "not applicable"


def test_a_record_that_cannot_be_read_is_said(subject: DoctorContext, root: Path) -> None:
    made.kernel(root)
    (root / triton_cache.RECORD).write_text("somebody's")
    found = only(caches.filled, subject)
    assert found.status == "warning"
    assert found.seen.startswith("the record of this cache cannot be read; ")
    (root / triton_cache.RECORD).write_text('{"schema": 2}')
    assert only(caches.filled, subject).seen == "a later version of tritonsmith has filled this cache"


def test_a_filled_cache_of_a_triton_that_is_gone(subject: DoctorContext, root: Path) -> None:
    filled(root, root)
    found = only(caches.filled, subject)
    assert found.status == "warning"
    assert found.seen == "useless for Triton 3.6.0, cuda:90:32: installed: none"
    assert found.commands == (f"invoke cache.fill captured.toml --into {root}",)


@pytest.mark.parametrize(
    ("here", "status", "text"),
    [
        ("digest", "ok", "1 of 1 fills are of use to an installed Triton"),
        ("other", "warning", "useless for Triton 3.6.0, cuda:90:32: Triton 3.6.0 was another build: /v/t"),
    ],
)
def test_a_filled_cache_is_compared_with_what_the_interpreter_answers(
    here: str, status: str, text: str, subject: DoctorContext, root: Path, tmp_path: Path
) -> None:
    filled(root, root)
    install(tmp_path / "venv", "3.6.0")
    # An interpreter that answers as the worker does.
    python = tmp_path / "venv" / "bin" / "python3"
    answer = text_of(FillHead("3.6.0", here, "3.12.1", ".cpython-312.so", "/v/t", "ptxas", {}))
    python.write_text(f"#!/bin/sh\necho '{answer}'\n")
    python.chmod(0o755)
    subject.environ = {**subject.environ, "VIRTUAL_ENV": str(tmp_path / "venv")}
    found = only(caches.filled, subject)
    assert (found.status, found.seen) == (status, text)


def test_an_interpreter_is_asked_once_and_a_hostile_record_moves_no_cursor(
    subject: DoctorContext, root: Path, tmp_path: Path
) -> None:
    head = FillHead("3.6.0", "digest", "3.12.1", ".cpython-312.so", "/v/t", "ptxas", {})
    homes = (str(root), str(root), "/a\x1b[2J\nb", "/nul\0")
    record = FillRecord(1, tuple(Fill("cuda:90:32", home, head, ()) for home in homes))
    (root / triton_cache.RECORD).write_text(text_of(record))
    install(tmp_path / "venv", "3.6.0")
    python, asked = tmp_path / "venv" / "bin" / "python3", tmp_path / "asked"
    python.write_text(f"#!/bin/sh\necho x >> {asked}\necho '{text_of(head)}'\n")
    python.chmod(0o755)
    subject.environ = {**subject.environ, "VIRTUAL_ENV": str(tmp_path / "venv")}
    first, second, good = caches.filled(subject)
    assert asked.read_text() == "x\n"
    assert first.seen.endswith("its indexes name files in /a\\x1b[2J\\nb")
    assert second.seen.endswith("its indexes name files in /nul\\x00")
    assert good.seen == "2 of 4 fills are of use to an installed Triton"


# --- caches.size


def test_size(subject: DoctorContext, root: Path) -> None:
    made.kernel(root, ago=86400 * 3)
    made.kernel(subject.space.root / "envs" / "wheel" / "triton-cache")
    found = only(caches.size, subject)
    assert found.status == "ok"
    assert found.seen.startswith("2 entries in 2 caches, ")
    assert found.seen.endswith("the oldest 3 d old")


@pytest.mark.parametrize("limit", [{"count": 3}, {"size_gib": 0.000001}])
def test_a_large_cache(subject: DoctorContext, root: Path, limits: Limits, limit: dict[str, float]) -> None:
    for number in range(4):
        made.kernel(root, seed=number)
    limits(**limit)
    found = only(caches.size, subject)
    assert (found.status, found.where) == ("note", str(root))
    assert "invoke clear-cache --stale" in found.commands


def test_a_part_stands_for_all_and_it_says_so(subject: DoctorContext, root: Path, limits: Limits) -> None:
    for number in range(10):
        made.kernel(root, seed=number)
    exact = only(caches.size, subject).seen
    limits(entries=4)
    vars(subject).pop("caches")
    assert only(caches.size, subject).seen == f"{exact} (checked 4 of 10)"


# --- caches.stale


def test_entries_of_the_installed_triton(subject: DoctorContext, root: Path) -> None:
    install(subject.env.venv, "3.9.0")
    made.kernel(root)
    found = only(caches.stale, subject)
    assert (found.status, found.seen) == ("ok", "0 of 1 by a Triton other than 3.9.0; 1 base32 (3.3+)")


@pytest.mark.parametrize("era", made.ERAS)
def test_entries_of_another_triton(subject: DoctorContext, root: Path, era: str) -> None:
    install(subject.env.venv, "3.9.0")
    made.kernel(root, era=era, version="3.4.0")
    found = only(caches.stale, subject)
    assert (found.status, found.where) == ("note", str(root))
    assert found.seen.startswith(f"1 of 1 by a Triton other than 3.9.0; 1 {era} ")
    assert found.commands == ("invoke clear-cache --stale --all",)


def test_entries_that_nobody_can_judge(subject: DoctorContext, root: Path) -> None:
    install(subject.env.venv, "3.9.0")
    made.launcher(root)
    assert ", 1 undecided;" in only(caches.stale, subject).seen


def test_no_triton_to_compare_with(subject: DoctorContext, root: Path, limits: Limits) -> None:
    for number, era in enumerate(("md5", "base32", "base32")):
        made.kernel(root, era=era, ago=60.0 * (number + 1), seed=number)
    limits(files=2)
    found = only(caches.stale, subject)
    assert found.status == "not applicable"
    assert found.seen.endswith("1 md5 (2.0-2.3), 1 base32 (3.3+) (checked 2 of 3)")


# --- caches.leftovers


def mend(subject: DoctorContext, log: Path) -> None:
    plan = run.fix_plan(caches.leftovers(subject))
    Runner(log, PhaseProgress(live=False, silent=True)).run(plan)
    vars(subject).pop("caches")


def test_no_leftovers(subject: DoctorContext, root: Path, gone: int) -> None:
    made.kernel(root)
    made.writing(made.unfinished(root, "now"), os.getpid(), ago=-1)
    made.writing(made.unfinished(root, "elsewhere"), gone, ago=60)
    found = only(caches.leftovers, subject)
    assert (found.status, found.seen) == ("ok", "none in 3 entries")


@pytest.mark.parametrize("as_file", [True, False])
def test_what_a_killed_compile_left(
    subject: DoctorContext, root: Path, gone: int, as_file: bool, tmp_path: Path
) -> None:
    entry = made.unfinished(root)
    part = made.writing(entry, gone, as_file=as_file)
    found = only(caches.leftovers, subject)
    assert (found.status, found.where) == ("warning", str(root))
    assert part.name in found.seen
    mend(subject, tmp_path / "log")
    assert sorted(path.name for path in entry.iterdir()) == ["slow.ttgir", "slow.ttir"]
    assert only(caches.leftovers, subject).status == "ok"


def test_what_a_day_has_passed_over_is_nobodys(subject: DoctorContext, root: Path) -> None:
    made.writing(made.unfinished(root), os.getpid(), ago=100_000)
    assert only(caches.leftovers, subject).status == "warning"


def test_files_without_content(subject: DoctorContext, root: Path, tmp_path: Path) -> None:
    broken, whole = made.kernel(root), made.kernel(root, "whole")
    (broken / "vector_add.cubin").write_text("")
    found = only(caches.leftovers, subject)
    assert (found.status, found.seen) == (
        "warning",
        f"1 with empty files, such as {broken.name}",
    )
    mend(subject, tmp_path / "log")
    assert list(root.iterdir()) == [whole]


def test_what_a_stopped_clear_left(subject: DoctorContext, root: Path, tmp_path: Path) -> None:
    made.kernel(root / f"{TRASH}0")
    assert only(caches.leftovers, subject).seen == "files that an interrupted run of this tool has left"
    mend(subject, tmp_path / "log")
    assert list(root.iterdir()) == []


def test_a_bundle_that_came_to_nothing(subject: DoctorContext, root: Path, tmp_path: Path) -> None:
    made.kernel(root).rename(root / "tmp.7f6bd6a1-3bb1-4bd4-b2a5-32d2c1ab8e0c")
    mend(subject, tmp_path / "log")
    assert list(root.iterdir()) == []


# --- caches.dangling


def test_whole_indexes(subject: DoctorContext, root: Path) -> None:
    for era in made.ERAS:
        made.kernel(root, era=era)
    found = only(caches.dangling, subject)
    assert (found.status, found.seen) == ("ok", "all files of 4 kernels exist")


def test_a_moved_cache(subject: DoctorContext, root: Path, tmp_path: Path) -> None:
    for era in made.ERAS:
        made.kernel(tmp_path / "before", era=era)
    root.rmdir()
    (tmp_path / "before").rename(root)
    found = only(caches.dangling, subject)
    assert found.status == "warning"
    assert found.seen.startswith("3 of 4 kernels name missing files, such as ")
    assert str(tmp_path / "before") in found.seen
    assert found.commands == (f"invoke clear-cache --root {root}",)


def test_a_swept_cache(subject: DoctorContext, root: Path, limits: Limits) -> None:
    for number in range(3):
        (made.kernel(root, seed=number) / "vector_add.ttir").unlink()
    limits(files=2)
    found = only(caches.dangling, subject)
    assert found.seen.startswith("2 of 2 kernels")
    assert found.seen.endswith("(checked 2 of 3)")


# --- caches.filesystem


def mounted(monkeypatch: pytest.MonkeyPatch, *places: tuple[Path, str]) -> None:
    """The kernel's table of mounts."""
    table = [SimpleNamespace(mountpoint=str(path), fstype=kind) for path, kind in places]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: table)


def test_a_local_file_system(subject: DoctorContext, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert root.is_dir()
    mounted(monkeypatch, (Path("/"), "ext4"))
    found = only(caches.filesystem, subject)
    assert (found.status, found.seen) == ("ok", "local: ext4")


def test_a_network_file_system(subject: DoctorContext, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted(monkeypatch, (Path("/"), "ext4"), (root.parents[1], "nfs4"))
    found = only(caches.filesystem, subject)
    assert (found.status, found.where) == ("warning", str(root))
    assert found.seen == f"nfs4 ({root.parents[1]}) holds the cache jit"
    assert found.commands == ("export TRITON_CACHE_DIR=/tmp/triton-cache-$USER",)


def test_a_link_to_a_network_file_system(
    subject: DoctorContext, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root.rmdir()
    (tmp_path / "far").mkdir()
    root.symlink_to(tmp_path / "far")
    mounted(monkeypatch, (Path("/"), "ext4"), (tmp_path / "far", "lustre"))
    assert only(caches.filesystem, subject).status == "warning"


def test_a_system_that_tells_of_no_mounts(
    subject: DoctorContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert root.is_dir()
    mounted(monkeypatch)
    assert only(caches.filesystem, subject).status == "not applicable"


# --- caches.inductor


@pytest.fixture
def inductor(root: Path, tmp_path: Path) -> Path:
    """TorchInductor's cache with a kernel for the first device."""
    assert root.is_dir()
    folder = tmp_path / f"torchinductor_{getpass.getuser()}"
    made.kernel(folder / "triton" / "0", "triton_poi_fused_add_0")
    return folder


def test_no_torchinductor(subject: DoctorContext, root: Path) -> None:
    assert root.is_dir()
    assert only(caches.inductor, subject).status == "not applicable"


def test_torchinductors_kernels(subject: DoctorContext, inductor: Path) -> None:
    found = only(caches.inductor, subject)
    assert (found.status, found.where) == ("ok", str(inductor))
    assert found.seen.startswith("including 1 entry of Triton's")


def test_kernels_that_are_not_in_use(subject: DoctorContext, inductor: Path, tmp_path: Path) -> None:
    subject.environ = {**subject.environ, "TRITON_CACHE_DIR": str(tmp_path / "other")}
    found = only(caches.inductor, subject)
    assert (found.status, found.where) == ("note", str(inductor))
    assert found.commands == ("invoke clear-cache --inductor",)


def test_a_file_in_its_place(subject: DoctorContext, root: Path, tmp_path: Path) -> None:
    (root / "file").write_text("x")
    subject.environ = {**subject.environ, "TORCHINDUCTOR_CACHE_DIR": str(root / "file")}
    assert only(caches.inductor, subject).seen == "not a folder"
    assert tmp_path.is_dir()


def test_a_folder_of_somebody_elses(subject: DoctorContext, inductor: Path) -> None:
    inductor.chmod(0o500)
    found = as_plain_user(lambda: only(caches.inductor, subject))
    inductor.chmod(0o700)
    assert found.status == "warning"
    assert f"owned by user {inductor.stat().st_uid}" in found.seen
