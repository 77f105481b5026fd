from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support import as_plain_user
from tests.unit.doctor.conftest import GIB, VERSIONS, Programs, built, only
from tests.unit.facts import fakes
from tests.unit.facts.fakes import mounts
from tests.unit.facts.test_machine import fake
from tritonsmith.core.envs.settings import LlvmSettings, Settings, ToolchainSettings, TritonSettings
from tritonsmith.doctor import machine
from tritonsmith.doctor.check import DoctorContext
from tritonsmith.facts import ccache
from tritonsmith.facts import machine as machines

# --- memory


@pytest.mark.parametrize(
    ("gib", "status", "jobs"),
    [(32, "ok", "8 compile and 8 link"), (16, "note", "8 compile and 5 link"), (2, "warning", "1 compile")],
)
def test_memory(subject: DoctorContext, gib: int, status: str, jobs: str) -> None:
    subject.host = replace(subject.host, memory=gib * GIB)
    found = only(machine.memory, subject)
    assert found.status == status
    assert f"{gib}.0 GiB, 8 cores: {jobs}" in found.seen
    assert bool(found.affects) is (status != "ok")


def test_a_pip_that_is_bounded_is_no_note(subject: DoctorContext) -> None:
    subject.host = replace(subject.host, memory=16 * GIB)
    found = only(machine.memory, subject)
    assert "starts 16 jobs" in found.affects
    assert found.commands == ("export MAX_JOBS=8",)
    subject.environ = {"MAX_JOBS": "8"}
    assert only(machine.memory, subject).status == "ok"


def test_jobs_that_were_asked_for_and_do_not_fit(subject: DoctorContext) -> None:
    subject.settings = Settings("dev", toolchain=ToolchainSettings(jobs=64))
    found = only(machine.memory, subject)
    assert (found.status, found.commands) == ("warning", ("invoke build-triton --jobs 1",))
    assert "which need 96 GiB" in found.seen
    assert "triton#4249" in found.affects


def test_links_with_all_of_their_debug_info(subject: DoctorContext) -> None:
    subject.settings = Settings(
        "dev", toolchain=ToolchainSettings(link_jobs=4), llvm=LlvmSettings(debug_info="full")
    )
    assert "which need 48 GiB" in only(machine.memory, subject).seen


def test_the_memory_that_a_cgroup_grants(subject: DoctorContext, tmp_path: Path) -> None:
    listing = fake(tmp_path / "cgroup", {"job": (str(GIB // 2), "max")}, "job")
    subject.host = machines.read(tmp_path / "cgroup", listing)
    found = only(machine.memory, subject)
    assert found.status == "warning"
    assert found.seen.startswith("0.5 GiB by its cgroup, ")
    more = fake(tmp_path / "more", {"job": (str(4 * psutil.virtual_memory().total), "max")}, "job")
    subject.host = machines.read(tmp_path / "more", more)
    assert "cgroup" not in only(machine.memory, subject).seen


# --- disk


@pytest.mark.parametrize(
    ("free", "settings", "status"),
    [
        (500, Settings("x"), "ok"),
        (20, Settings("x"), "note"),
        (20, Settings("x", llvm=LlvmSettings(build_type="Release")), "ok"),
        (20, Settings("x", triton=TritonSettings(wheel="newest")), "ok"),
        (2, Settings("x"), "error"),
        (2, Settings("x", triton=TritonSettings(wheel="newest")), "ok"),
        (0.5, Settings("x", triton=TritonSettings(wheel="newest")), "error"),
    ],
)
def test_disk(
    subject: DoctorContext, free: float, settings: Settings, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonsmith.facts.machine.disk_free", lambda _: float(free))
    subject.settings = settings
    found = only(machine.disk, subject)
    assert (found.status, found.where) == (status, str(subject.space.root))
    assert f"{free:.0f} GiB free" in found.seen
    assert bool(found.remedy) is (status != "ok")


def test_a_workspace_that_is_a_file(subject: DoctorContext) -> None:
    subject.space.root.touch()
    found = only(machine.disk, subject)
    assert (found.status, found.seen) == ("error", f"{subject.space.root} is not a folder")


def test_a_workspace_that_may_not_be_written_to(subject: DoctorContext) -> None:
    subject.space.root.mkdir(mode=0o555)
    found = as_plain_user(lambda: only(machine.disk, subject))
    assert (found.status, found.seen) == ("error", f"{subject.space.root} is not writable")


# --- libstdc++


def test_libstdcxx_without_a_checkout(subject: DoctorContext) -> None:
    found = only(machine.libstdcxx, subject)
    assert (found.status, found.seen) == (
        "not applicable",
        "glibc 2.36, GLIBCXX_3.4.30; no checkout, so no prebuilt LLVM to compare with",
    )


@pytest.mark.parametrize(
    ("glibc", "glibcxx", "status", "told"),
    [
        ("2.36", "3.4.30", "ok", "the ubuntu-x64 build runs here"),
        ("2.31", "3.4.28", "warning", "using almalinux-x64 instead"),  # Debian 11, Ubuntu 20.04
        ("2.36", "3.4.29", "warning", "GLIBCXX_3.4.29"),  # a libstdc++ that is older than its glibc
        ("2.17", "3.4.19", "ok", "the centos-x64 build runs here"),
        ("", "", "note", "upstream has no prebuilt LLVM"),  # musl
    ],
)
def test_libstdcxx(subject: DoctorContext, glibc: str, glibcxx: str, status: str, told: str) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    subject.host = replace(subject.host, glibc=glibc, glibcxx=glibcxx)
    found = only(machine.libstdcxx, subject)
    assert found.status == status
    assert told in f"{found.seen} {found.affects}"
    if status == "warning":
        assert "triton#7088" in found.affects
        assert found.commands == ("export TRITON_LLVM_SYSTEM_SUFFIX=almalinux-x64",)
    if status == "note":
        assert found.commands == ("invoke setup-mlir --provider source",)


def test_libstdcxx_on_macos_and_on_an_architecture_without_a_build(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    linux, subject.host = subject.host, replace(subject.host, system="Darwin", arch="arm64")
    assert only(machine.libstdcxx, subject).seen == "Darwin has neither"
    subject.host = replace(linux, arch="riscv64")
    assert only(machine.libstdcxx, subject).status == "note"


def test_libstdcxx_where_the_checkout_has_no_pin(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    (subject.cwd / "cmake" / "llvm-hash.txt").unlink()
    assert only(machine.libstdcxx, subject).status == "not applicable"


# --- clock


def ahead(path: Path, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() + seconds,) * 2)


def test_the_clock_before_anything_was_built(subject: DoctorContext) -> None:
    assert only(machine.clock, subject).status == "not applicable"


def test_a_clock_that_is_right(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    fakes.cmake_cache(subject.env.build)
    built(subject, subject.cwd)
    ahead(subject.env.build / "build.ninja", -3600)
    found = only(machine.clock, subject)
    assert (found.status, found.seen) == ("ok", "no file is from the future (4 checked)")


@pytest.mark.parametrize(
    "name", ["build.ninja", ".ninja_log", ".ninja_deps", "CMakeCache.txt", "../receipts/build-triton.json"]
)
def test_a_build_from_the_future(subject: DoctorContext, name: str) -> None:
    ahead(subject.env.build / "other", 9000)
    ahead(subject.env.path / "receipts" / "setup-mlir.json", 60)
    (subject.env.build / name).touch()
    ahead(subject.env.build / name, 3600)
    found = only(machine.clock, subject)
    assert found.status == "warning"
    assert found.seen in ("written 3600 s from now", "written 3599 s from now")
    assert Path(found.where) == (subject.env.path / "triton" / name).resolve()


@pytest.mark.parametrize("name", [".git/index", "CMakeLists.txt", "python/triton/_C/libtriton.so"])
def test_sources_from_the_future(subject: DoctorContext, name: str) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    ahead(subject.cwd / name, 100)
    found = only(machine.clock, subject)
    assert (found.status, found.where) == ("warning", str(subject.cwd / name))


# --- file systems


def test_a_local_disk(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(monkeypatch, ("/", "ext4"))
    found = only(machine.filesystem, subject)
    assert (found.status, found.seen) == ("ok", "workspace on ext4")
    mounts(monkeypatch)
    found = only(machine.filesystem, subject)
    assert (found.status, found.seen) == ("ok", "local")


@pytest.mark.parametrize("what", ["workspace", "checkout", "compiler cache"])
def test_a_network_file_system(
    subject: DoctorContext, monkeypatch: pytest.MonkeyPatch, what: str, tmp_path: Path
) -> None:
    subject.cwd = fakes.checkout(tmp_path / "triton", "3.5")
    subject.ccache = ccache.parse(f"(x) cache_dir = {tmp_path / 'cc'}\n", "")
    places = {"workspace": subject.space.root, "checkout": subject.cwd, "compiler cache": tmp_path / "cc"}
    place = places[what]
    mounts(monkeypatch, ("/", "ext4"), (place, "nfs4"))
    found = only(machine.filesystem, subject)
    assert (found.status, found.where) == ("warning", str(place))
    assert found.seen == f"the {what} is on nfs4, mounted at {place}"
    assert (
        found.commands
        == {
            "workspace": ("export TRITONSMITH_HOME=/local/tritonsmith",),
            "checkout": (),
            "compiler cache": ("export CCACHE_DIR=/local/ccache",),
        }[what]
    )


def test_a_home_folder_on_the_network_is_named_for_each_place_in_it(
    subject: DoctorContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, programs: Programs
) -> None:
    programs(VERSIONS | {"ccache": f"\necho '(environment) cache_dir = {tmp_path}/cc'\n"})
    del subject.ccache
    mounts(monkeypatch, ("/", "ext4"), (tmp_path, "nfs4"))
    found = machine.filesystem(subject)
    assert [one.status for one in found] == ["warning", "warning"]
    assert [one.where for one in found] == [str(subject.space.root), str(tmp_path / "cc")]
