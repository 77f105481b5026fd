"""Read the machine: processor, memory, its cgroup's limits, disks and file systems, libc and libstdc++."""

from __future__ import annotations

import itertools
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs, untrusted
from tritonsmith.core.process import capture
from tritonsmith.core.text import version_key
from tritonsmith.core.untrusted import exists, is_dir, text_if_any
from tritonsmith.facts import tools

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
    # `cpu_count` ignores `taskset` and a batch system's binding.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A container sees the host's memory here; its own limit is in the cgroup.
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # as psutil, without its import
    limits = [_memory_limit(folder) for folder in _own_cgroups(cgroup, membership, "memory")]
    # A limit beyond what there is says "no limit": v1 writes 9223372036854771712 for it.
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
    # The folder of a build is made later; `statvfs` needs one that is there.
    while not exists(path) and path != path.parent:
        path = path.parent
    about = os.statvfs(path)
    return about.f_bavail * about.f_frsize / _GIB


def why_not_writable(folder: Path) -> str:
    """Return why this user may not create files in a folder, or the folder itself; empty if they may."""
    # os.path.lexists: a link that leads nowhere is something, and mkdir fails at it.
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not is_dir(nearest):
        return f"{nearest} is not a folder"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} is not writable"


def _own_cgroups(root: Path, membership: Path, controller: str) -> list[Path]:
    """Return the folders of this process's cgroup and of its parents, whose limits bind it, too."""
    folders = []
    for line in text_if_any(membership).splitlines():
        # `0::/path` is v2, `4:cpu,cpuacct:/path` a controller of v1. A machine may have both.
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        own = top / path.strip().lstrip("/")
        # In a container the path may be the host's, so the folder is missing here; those above it still
        # hold the container's limits.
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
    """Return the newest tag of the system's library."""
    # From the library's bytes: `strings` is not installed everywhere, and the newest tag is what prebuilt
    # programs of LLVM fail at ("GLIBCXX_3.4.30 not found", triton#7088).
    listing = capture(("/sbin/ldconfig", "-p")) or ""
    match = re.search(r"libstdc\+\+\.so\.6 .*=> (\S+)", listing)
    if not match:
        return ""
    library = Path(match[1])
    return tools.remembered(f"GLIBCXX of {library}", library, lambda: glibcxx_of(library)) or ""


def glibcxx_of(library: Path) -> str:
    """Return the newest `GLIBCXX_` tag that a libstdc++.so.6 defines; empty if it has none, or is missing."""
    if not library.is_file():
        return ""
    tags = re.findall(rb"GLIBCXX_(\d+\.\d+(?:\.\d+)?)\x00", untrusted.read_bytes(library))
    return max((tag.decode() for tag in tags), key=version_key, default="")


# Instructions on vectors and matrices: x86, then Arm; `smep` protects memory.
_VECTOR = re.compile(r"sse4|avx|fma|f16c|amx|asimd|neon|sve|sme(?!p)")


@dataclass(frozen=True)
class Cpu:
    """A processor; numbers are 0 and texts empty if unknown.

    Attributes:
        model: the maker's name for it.
        sockets: number of processors.
        cores: number of cores per socket.
        threads: number of threads per core.
        vectors: flags of vector instructions, as the kernel spells them.
        l2: size of one cache of level 2, in the kernel's spelling: `1024K`.
        l3: the same of level 3.
        numa_nodes: number of NUMA nodes.
    """

    model: str
    sockets: int = 0
    cores: int = 0
    threads: int = 0
    vectors: tuple[str, ...] = ()
    l2: str = ""
    l3: str = ""
    numa_nodes: int = 0


def read_cpu(cpuinfo: Path = Path("/proc/cpuinfo"), system: Path = Path("/sys/devices/system")) -> Cpu:
    """Return the processor that this process runs on; on macOS the name alone."""
    # Of the first processor only: the others repeat it.
    first = text_if_any(cpuinfo).partition("\n\n")[0]
    fields = dict(re.findall(r"^([^\t:\n]+?)[ \t]*:[ \t]*(.*)$", first, re.MULTILINE))
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    topologies = sorted(system.glob("cpu/cpu[0-9]*/topology"))
    sockets = len({text_if_any(folder / "physical_package_id") for folder in topologies})
    cores = len({text_if_any(folder / "thread_siblings_list") for folder in topologies})
    levels = (system / "cpu" / "cpu0" / "cache").glob("index[0-9]*")
    sizes = {text_if_any(level / "level"): text_if_any(level / "size") for level in levels}
    return Cpu(
        model=fields.get("model name") or _arm(fields) or platform.processor() or platform.machine(),
        sockets=sockets,
        cores=cores // sockets if sockets else 0,
        threads=len(topologies) // cores if cores else 0,
        vectors=tuple(sorted(flag for flag in flags if _VECTOR.match(flag))),
        l2=sizes.get("2", ""),
        l3=sizes.get("3", ""),
        numa_nodes=len(list(system.glob("node/node[0-9]*"))),
    )


def _arm(fields: dict[str, str]) -> str:
    """Describe an Arm processor, for which the kernel gives numbers instead of a name."""
    if "CPU part" not in fields:
        return ""
    return f"{platform.machine()} implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system.

    Attributes:
        kind: as the kernel names it: `ext4`, `nfs4`.
        mount: where it is mounted.
        network: it is a network file system (`configs/resources.toml`): builds are slow there, and locks may
            not work.
    """

    kind: str
    mount: Path
    network: bool


def file_system_of(path: Path) -> FileSystem | None:
    """Return the file system of an existing or future path; None if unknown."""
    import psutil  # noqa: PLC0415 - builds import this module and ask it nothing

    real = path.resolve()
    holding = [
        part for part in psutil.disk_partitions(all=True) if real.is_relative_to(Path(part.mountpoint))
    ]
    if not holding:
        return None
    network = configs.load("resources")["file-systems"]["network"]
    # `max` keeps the first of equals. Of two mounts at one place the later one covers the earlier, as NFS
    # covers autofs, so the list is turned round.
    nearest = max(reversed(holding), key=lambda part: len(Path(part.mountpoint).parts))
    return FileSystem(nearest.fstype, Path(nearest.mountpoint), nearest.fstype in network)


def free_name(path: Path, ending: str) -> Path:
    """Return a free name beside a path: `NAME.backup`, `NAME.backup1` ..."""
    candidates = (path.with_name(f"{path.name}{ending}{number or ''}") for number in itertools.count())
    return next(candidate for candidate in candidates if not os.path.lexists(candidate))
