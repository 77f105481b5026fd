from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import pytest

from tests.unit.facts import fakes
from tests.unit.facts.fakes import mounts
from tests.unit.facts.installs import put
from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts import machine as machines
from tritonsmith.facts.machine import Cpu, FileSystem, file_system_of

MIB = 1 << 20


def fake(root: Path, groups: dict[str, tuple[str, str]], own: str) -> Path:
    """A cgroup v2 hierarchy: folder to `memory.max` and `cpu.max`; the file that names the process's own."""
    for name, (memory, cpu) in groups.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{memory}\n")
        (folder / "cpu.max").write_text(f"{cpu}\n")
    listing = root.parent / "membership"
    listing.write_text(f"1:name=systemd:/x\n0::/{own}\n")
    return listing


@pytest.mark.parametrize(
    ("groups", "own", "memory", "cores"),
    [
        ({"": (str(512 * MIB), "100000 100000")}, "", 512, 1),
        ({"job": (str(512 * MIB), "max 100000")}, "job", 512, None),
        ({"job": ("max", "150000 100000")}, "job", None, 1),
        ({"job": ("max", "10000 100000")}, "job", None, 1),
        ({"job": (str(256 * MIB), "max"), "job/step": (str(512 * MIB), "max")}, "job/step", 256, None),
        ({"job": (str(256 * MIB), "max"), "job/a/b": ("max", "max")}, "job/a/b", 256, None),
        ({"job": ("nonsense", "x y"), "other": (str(MIB), "100000 100000")}, "job", None, None),
        ({"": (str(300 * MIB), "max")}, "gone/with/its/folder", 300, None),
        ({"": ("max", "max 100000")}, "", None, None),
    ],
)
def test_the_limit_of_a_cgroup(
    tmp_path: Path, groups: dict[str, tuple[str, str]], own: str, memory: int | None, cores: int | None
) -> None:
    root = tmp_path / "cgroup"
    listing = fake(root, groups, own)
    seen = machines.read(root, listing)
    free = machines.read(tmp_path / "none", tmp_path / "none")
    assert seen.memory == (memory * MIB if memory else free.memory)
    assert seen.cores == (cores or free.cores)
    assert seen.granted == (memory * MIB if memory else None)
    assert seen.memory_gib == seen.memory / 1024**3


def test_a_cgroup_that_grants_more_than_there_is(tmp_path: Path) -> None:
    there = psutil.virtual_memory().total
    listing = fake(tmp_path / "cgroup", {"": (str(4 * there), "max")}, "")
    seen = machines.read(tmp_path / "cgroup", listing)
    assert (seen.memory, seen.granted) == (there, None)


@pytest.mark.parametrize("own", ["/docker/0123", "/job"])
def test_cgroups_of_version_1(tmp_path: Path, own: str) -> None:
    """A hierarchy for each controller; in a container the path is often the host's."""
    root = tmp_path / "cgroup"
    for name, files in {
        "memory": {"memory.limit_in_bytes": str(512 * MIB)},
        "memory/job": {"memory.limit_in_bytes": "9223372036854771712"},
        "cpu": {"cpu.cfs_quota_us": "100000", "cpu.cfs_period_us": "100000"},
        "cpu/job": {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"},
        "pids": {"memory.limit_in_bytes": "1", "cpu.cfs_quota_us": "1"},
    }.items():
        (root / name).mkdir(parents=True)
        for file, text in files.items():
            (root / name / file).write_text(f"{text}\n")
    listing = tmp_path / "membership"
    listing.write_text(
        f"12:pids:{own}\n4:memory:{own}\n3:cpu,cpuacct:{own}\n1:name=systemd:{own}\nnonsense\n"
    )
    seen = machines.read(root, listing)
    assert (seen.memory, seen.granted, seen.cores) == (512 * MIB, 512 * MIB, 1)


def test_this_machine(tmp_path: Path) -> None:
    seen = machines.read(tmp_path, tmp_path / "none")
    assert (seen.system, seen.arch) == (platform.system(), platform.machine())
    assert seen.memory == psutil.virtual_memory().total
    assert 1 <= seen.cores <= (os.cpu_count() or 1)
    if seen.glibc:
        assert version_key(seen.glibc) >= (2, 17)
    if seen.glibcxx:
        assert version_key(seen.glibcxx) >= (3, 4)


def test_disk_free_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    there, not_yet = machines.disk_free(tmp_path), machines.disk_free(tmp_path / "a" / "b")
    assert there > 0
    assert not_yet == pytest.approx(there, rel=0.5)


def test_the_newest_tag_of_a_libstdcxx(tmp_path: Path) -> None:
    library = fakes.libstdcxx(tmp_path, "3.4", "3.4.9", "3.4.30", "3.4.29", "DEBUG_MESSAGE_LENGTH")
    assert machines.glibcxx_of(library) == "3.4.30"
    link = tmp_path / "link"
    link.symlink_to(library)
    assert machines.glibcxx_of(link) == "3.4.30"


def test_a_libstdcxx_that_is_none(tmp_path: Path) -> None:
    assert machines.glibcxx_of(tmp_path / "gone") == ""
    assert machines.glibcxx_of(tmp_path) == ""
    assert machines.glibcxx_of(fakes.libstdcxx(tmp_path)) == ""
    (tmp_path / "dangling").symlink_to("gone")
    assert machines.glibcxx_of(tmp_path / "dangling") == ""


FLAGS = "fpu sse2 sse4_2 avx avx2 avx512f amx_tile vaes smep"
X86 = f"processor\t: 0\nmodel name\t: AMD EPYC: 9654\nflags\t\t: {FLAGS}\n\nprocessor\t: 1\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd sve sve2 sme\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"


def machine(root: Path, cpuinfo: str) -> tuple[Path, Path]:
    """Two sockets of two cores with two threads each, and a node for each socket."""
    files = {"cpuinfo": cpuinfo, "system/node/node0/x": "", "system/node/node1/x": ""}
    for number in range(8):
        topology = f"system/cpu/cpu{number}/topology"
        core = number % 4
        files[f"{topology}/physical_package_id"] = f"{core // 2}\n"
        files[f"{topology}/thread_siblings_list"] = f"{core},{core + 4}\n"
    for index, (level, size) in enumerate((("1", "32K"), ("1", "32K"), ("2", "1024K"), ("3", "32768K"))):
        files[f"system/cpu/cpu0/cache/index{index}/level"] = f"{level}\n"
        files[f"system/cpu/cpu0/cache/index{index}/size"] = f"{size}\n"
    put(root, files)
    return root / "cpuinfo", root / "system"


def test_x86(tmp_path: Path) -> None:
    vectors = ("amx_tile", "avx", "avx2", "avx512f", "sse4_2")
    assert machines.read_cpu(*machine(tmp_path, X86)) == Cpu(
        "AMD EPYC: 9654", 2, 2, 2, vectors, "1024K", "32768K", 2
    )


def test_arm_gives_numbers(tmp_path: Path) -> None:
    found = machines.read_cpu(*machine(tmp_path, ARM))
    assert found.model.endswith("implementer 0x41 part 0xd4f")
    assert found.vectors == ("asimd", "sme", "sve", "sve2")


def test_where_the_kernel_tells_nothing(tmp_path: Path) -> None:
    found = machines.read_cpu(tmp_path / "cpuinfo", tmp_path / "system")
    assert found == Cpu(found.model)
    assert found.model


def test_the_nearest_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(
        monkeypatch, ("/", "ext4"), (tmp_path, "nfs4"), (tmp_path / "fast", "xfs"), (tmp_path / "fas", "cifs")
    )
    assert file_system_of(tmp_path / "a" / "b") == FileSystem("nfs4", tmp_path, network=True)
    assert file_system_of(tmp_path / "fast" / "a") == FileSystem("xfs", tmp_path / "fast", network=False)
    assert file_system_of(Path("/")) == FileSystem("ext4", Path("/"), network=False)


def test_a_path_through_a_link_lies_where_the_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far")
    mounts(monkeypatch, ("/", "ext4"), (tmp_path / "far", "fuse.sshfs"))
    seen = file_system_of(tmp_path / "link" / "not-yet")
    assert seen == FileSystem("fuse.sshfs", tmp_path / "far", network=True)


def test_the_last_of_two_at_one_place_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(monkeypatch, ("/", "rootfs"), ("/", "ext4"), (tmp_path, "autofs"), (tmp_path, "nfs4"))
    assert file_system_of(tmp_path / "x") == FileSystem("nfs4", tmp_path, network=True)
    assert file_system_of(Path("/")) == FileSystem("ext4", Path("/"), network=False)


def test_a_kernel_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(monkeypatch)
    assert file_system_of(tmp_path) is None


@pytest.mark.parametrize("kind", configs.load("resources")["file-systems"]["network"])
def test_every_network_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounts(monkeypatch, (tmp_path, kind))
    seen = file_system_of(tmp_path)
    assert seen is not None
    assert seen.network


def test_this_machine_of_filesystems(tmp_path: Path) -> None:
    mounted = [Path(part.mountpoint) for part in psutil.disk_partitions(all=True)]
    seen = file_system_of(tmp_path / "not-yet" / "made")
    if any(tmp_path.is_relative_to(mount) for mount in mounted):  # in a chroot, nothing may hold it
        assert seen is not None
        assert tmp_path.is_relative_to(seen.mount)
        assert seen.kind
    else:
        assert seen is None
