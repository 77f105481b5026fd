"""Read the machine: cores, memory and its cgroup's limit, disk, libc and libstdc++."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.plan.process import capture
from tritonsmith.core.untrusted import exists, is_dir, text_if_any
from tritonsmith.core.versions import version_key
from tritonsmith.facts import probe_cache

_GIB = float(1 << 30)


@dataclass(frozen=True)
class Machine:
    """The resources for a build.

    Attributes:
        system: `Linux` or `Darwin`.
        arch: `x86_64`, `aarch64` or `arm64`.
        cores: number of cores that this process may use and its cgroup grants.
        memory: bytes, the cgroup's limit included.
        os_id: `ID` of /etc/os-release, or empty.
        glibc: version, or empty where there is none.
        glibcxx: newest `GLIBCXX_` tag of libstdc++.so.6, or empty.
        granted: bytes of memory that a cgroup grants; None where none grants less than there is.
    """

    system: str
    arch: str
    cores: int
    memory: int
    os_id: str = ""
    glibc: str = ""
    glibcxx: str = ""
    granted: int | None = None

    @property
    def memory_gib(self) -> float:
        """The memory in GiB."""
        return self.memory / _GIB


def read(cgroup: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> Machine:
    """Return the machine that this process runs on.

    Args:
        cgroup: mount point of the cgroup v2 hierarchy, or the folder of v1's, one for each controller.
        membership: the kernel's list of this process's cgroups.
    """
    system = platform.system()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # as psutil, without its import
    limits = [_memory_limit(folder) for folder in _own_cgroups(cgroup, membership, "memory")]
    granted = min((limit for limit in limits if limit and limit < total), default=None)
    shares = [_cpu_limit(folder) for folder in _own_cgroups(cgroup, membership, "cpu")]
    libc, glibc = platform.libc_ver()
    return Machine(
        system=system,
        arch=platform.machine(),
        cores=max(1, min([cores, *filter(None, shares)])),
        memory=granted or total,
        os_id=_os_id(),
        glibc=glibc if libc == "glibc" else "",
        glibcxx=_glibcxx() if system == "Linux" else "",
        granted=granted,
    )


def uptime(proc: Path = Path("/proc")) -> float | None:
    """Return the seconds since the machine was started; None if it does not report them."""
    first = (text_if_any(proc / "uptime").split() or [""])[0]
    return float(first) if re.fullmatch(r"\d+(\.\d+)?", first) else None


def disk_free(path: Path) -> float:
    """Return the GiB free where `path` is, or will be once its missing parents are made."""
    while not exists(path) and path != path.parent:
        path = path.parent
    about = os.statvfs(path)
    return about.f_bavail * about.f_frsize / _GIB


def why_not_writable(folder: Path) -> str:
    """Return why this user may not create files in a folder, or the folder itself; empty if they may."""
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not is_dir(nearest):
        return f"{nearest} is not a folder"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} is not writable"


def _own_cgroups(root: Path, membership: Path, controller: str) -> list[Path]:
    """Return the folders of this process's cgroup and of its parents, whose limits bind it, too.

    Lines are `0::/path` for v2 and `4:cpu,cpuacct:/path` for a controller of v1; in a container the path may
    be the host's, and the folders around it still hold its limits.
    """
    folders = []
    for line in text_if_any(membership).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        own = top / path.strip().lstrip("/")
        folders += [folder for folder in (own, *own.parents) if folder.is_relative_to(top)]
    return folders


def _memory_limit(folder: Path) -> int | None:
    text = text_if_any(folder / "memory.max") or text_if_any(folder / "memory.limit_in_bytes")
    return int(text) if text.isdigit() else None


def _cpu_limit(folder: Path) -> int | None:
    quota, _, period = (text_if_any(folder / "cpu.max") or "max").partition(" ")
    if quota == "max":
        quota = text_if_any(folder / "cpu.cfs_quota_us")
        period = text_if_any(folder / "cpu.cfs_period_us")
    return max(1, int(quota) // int(period)) if quota.isdigit() and period.isdigit() else None


def _os_id() -> str:
    try:
        return platform.freedesktop_os_release().get("ID", "")
    except OSError:
        return ""


def _glibcxx() -> str:
    """Return the newest tag, read from the library's bytes: `strings` may not be installed."""
    listing = capture(("/sbin/ldconfig", "-p")) or ""
    match = re.search(r"libstdc\+\+\.so\.6 .*=> (\S+)", listing)
    if not match:
        return ""
    library = Path(match[1])
    return probe_cache.remembered(f"GLIBCXX of {library}", library, lambda: glibcxx_of(library)) or ""


def glibcxx_of(library: Path) -> str:
    """Return the newest `GLIBCXX_` tag that a libstdc++.so.6 defines; empty if it has none, or is missing."""
    if not library.is_file():
        return ""
    tags = re.findall(rb"GLIBCXX_(\d+\.\d+(?:\.\d+)?)\x00", untrusted.read_bytes(library))
    return max((tag.decode() for tag in tags), key=version_key, default="")
