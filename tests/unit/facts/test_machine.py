from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import pytest

from tests.unit.facts import fakes
from tritonsmith.core.versions import version_key
from tritonsmith.facts import machine

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
    seen = machine.read(root, listing)
    free = machine.read(tmp_path / "none", tmp_path / "none")
    assert seen.memory == (memory * MIB if memory else free.memory)
    assert seen.cores == (cores or free.cores)
    assert seen.granted == (memory * MIB if memory else None)
    assert seen.memory_gib == seen.memory / 1024**3


def test_a_cgroup_that_grants_more_than_there_is(tmp_path: Path) -> None:
    there = psutil.virtual_memory().total
    listing = fake(tmp_path / "cgroup", {"": (str(4 * there), "max")}, "")
    seen = machine.read(tmp_path / "cgroup", listing)
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
    seen = machine.read(root, listing)
    assert (seen.memory, seen.granted, seen.cores) == (512 * MIB, 512 * MIB, 1)


def test_this_machine(tmp_path: Path) -> None:
    seen = machine.read(tmp_path, tmp_path / "none")
    assert (seen.system, seen.arch) == (platform.system(), platform.machine())
    assert seen.memory == psutil.virtual_memory().total
    assert 1 <= seen.cores <= (os.cpu_count() or 1)
    if seen.glibc:
        assert version_key(seen.glibc) >= (2, 17)
    if seen.glibcxx:
        assert version_key(seen.glibcxx) >= (3, 4)


def test_disk_free_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    there, not_yet = machine.disk_free(tmp_path), machine.disk_free(tmp_path / "a" / "b")
    assert there > 0
    assert not_yet == pytest.approx(there, rel=0.5)


def test_the_newest_tag_of_a_libstdcxx(tmp_path: Path) -> None:
    library = fakes.libstdcxx(tmp_path, "3.4", "3.4.9", "3.4.30", "3.4.29", "DEBUG_MESSAGE_LENGTH")
    assert machine.glibcxx_of(library) == "3.4.30"
    link = tmp_path / "link"
    link.symlink_to(library)
    assert machine.glibcxx_of(link) == "3.4.30"


def test_a_libstdcxx_that_is_none(tmp_path: Path) -> None:
    assert machine.glibcxx_of(tmp_path / "gone") == ""
    assert machine.glibcxx_of(tmp_path) == ""
    assert machine.glibcxx_of(fakes.libstdcxx(tmp_path)) == ""
    (tmp_path / "dangling").symlink_to("gone")
    assert machine.glibcxx_of(tmp_path / "dangling") == ""
