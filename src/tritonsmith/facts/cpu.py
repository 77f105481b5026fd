"""Describe the processor as the kernel does, for reports."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.untrusted import text_if_any

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


def read(cpuinfo: Path = Path("/proc/cpuinfo"), system: Path = Path("/sys/devices/system")) -> Cpu:
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
