from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.unit.facts.fakes import mounts
from tritonsmith.core import configs
from tritonsmith.facts import filesystems
from tritonsmith.facts.filesystems import FileSystem


def test_the_nearest_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(
        monkeypatch, ("/", "ext4"), (tmp_path, "nfs4"), (tmp_path / "fast", "xfs"), (tmp_path / "fas", "cifs")
    )
    assert filesystems.of(tmp_path / "a" / "b") == FileSystem("nfs4", tmp_path, network=True)
    assert filesystems.of(tmp_path / "fast" / "a") == FileSystem("xfs", tmp_path / "fast", network=False)
    assert filesystems.of(Path("/")) == FileSystem("ext4", Path("/"), network=False)


def test_a_path_through_a_link_lies_where_the_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far")
    mounts(monkeypatch, ("/", "ext4"), (tmp_path / "far", "fuse.sshfs"))
    seen = filesystems.of(tmp_path / "link" / "not-yet")
    assert seen == FileSystem("fuse.sshfs", tmp_path / "far", network=True)


def test_the_last_of_two_at_one_place_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(monkeypatch, ("/", "rootfs"), ("/", "ext4"), (tmp_path, "autofs"), (tmp_path, "nfs4"))
    assert filesystems.of(tmp_path / "x") == FileSystem("nfs4", tmp_path, network=True)
    assert filesystems.of(Path("/")) == FileSystem("ext4", Path("/"), network=False)


def test_a_kernel_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts(monkeypatch)
    assert filesystems.of(tmp_path) is None


@pytest.mark.parametrize("kind", configs.load("resources")["file-systems"]["network"])
def test_every_network_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounts(monkeypatch, (tmp_path, kind))
    seen = filesystems.of(tmp_path)
    assert seen is not None
    assert seen.network


def test_this_machine(tmp_path: Path) -> None:
    mounted = [Path(part.mountpoint) for part in psutil.disk_partitions(all=True)]
    seen = filesystems.of(tmp_path / "not-yet" / "made")
    if any(tmp_path.is_relative_to(mount) for mount in mounted):  # in a chroot, nothing may hold it
        assert seen is not None
        assert tmp_path.is_relative_to(seen.mount)
        assert seen.kind
    else:
        assert seen is None
